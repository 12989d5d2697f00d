/* SPDX-License-Identifier: BSD-2-Clause */
/* What the commands that use a database of `cozbpf collect` share. */
#pragma once

#include "collect/database/database.h"
#include "cli/options/options.h"
#include "profile/reader.h"
#include "collect/shares/shares.h"

#include <stdbool.h>

#define CMD_DEFAULT_DATABASE "/var/lib/cozbpf"

/* Tables to be included: --db, for a const char *; for a struct shares_choice the times, and what
 * else it chooses by. */
extern const struct option_row cmd_option_db[], cmd_option_times[], cmd_option_choice[];

/* A database_say that prints; @arg is the command's name. */
void cmd_left_out(const char *text, void *arg);

/* `cozbpf diff --db`; @words: what is before and after. The exit status. */
int cmd_diff_samples(const char *path, enum shares_by by, bool json, int width, char **words);

/* Adds the experiments of one build to @ret: the one whose id begins with @build, or (NULL) the one
 * that ran last; then it is said that there are others.
 * @command is who says it. -ENOENT: there are none. */
int cmd_experiments(const char *command, const char *path, uint64_t from_s, uint64_t to_s,
		    const char *build, struct profile *ret, struct error *e);
