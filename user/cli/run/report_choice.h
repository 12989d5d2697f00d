/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a report goes, as the options of --report, --html and --json choose it. */
#pragma once

#include "base/replace_file.h"
#include "cli/options/run_options.h"

struct analysis;
struct profile;
struct report_hints;
/* Can the files that @c names be written? Else a negative errno. */
int report_choice_check(const struct report_choice *c, struct error *e);
/* Prints a report to where @c says, and into the files that it names; @h as for report_print.
 * Negative errno with @e set. */
int report_choice_print(const struct report_choice *c, const struct profile *p,
			const struct analysis *a, const struct report_hints *h, struct error *e);
/* Where its text goes: a descriptor that may be a terminal; -1: into a file. */
int report_choice_fd(const struct report_choice *c);
/* Has @fill write that text. Negative errno with @e set. */
int report_choice_write(const struct report_choice *c, int (*fill)(FILE *out, void *arg), void *arg,
			struct error *e);
/* A new HTML report at @path. It replaces an older report there, and no other file. */
struct replace_file report_choice_html(const char *path, bool is_private);
