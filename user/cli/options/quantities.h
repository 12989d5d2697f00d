/* SPDX-License-Identifier: BSD-2-Clause */
/* Values with a unit, and options that stand in a file. */
#pragma once

#include "cli/options/options.h"

/* Setters for a uint64_t at the row's offset: seconds, as "90s", "15m", "1h", "30d" ("90" are
 * seconds); bytes, as "512K", "200M", "1G". */
int option_set_span(void *target, const struct option_row *row, const char *value, struct error *e);
int option_set_size(void *target, const struct option_row *row, const char *value, struct error *e);
/* A uint64_t of nanoseconds: a time, as above or with a fraction ("0.5", "1.5m"); 0 as well. */
int option_set_seconds(void *target, const struct option_row *row, const char *value,
		       struct error *e);
/* A gid_t: a group by name or number. */
int option_set_group(void *target, const struct option_row *row, const char *value,
		     struct error *e);

/* A part of the past, in seconds since 1970, UTC: "2026-11-27" is a day, "2026-11-27T07" or
 * "2026-11-27T07:30" an hour and a minute, A..B from the begin of the one to the end of the other.
 * -EINVAL. */
int option_range(const struct option_row *row, const char *value, uint64_t *ret_from,
		 uint64_t *ret_to, struct error *e);
/* A uint64_t: a span before now, or the begin of such a part. */
int option_set_since(void *target, const struct option_row *row, const char *value,
		     struct error *e);

/* The words of a file, as options_parse wants them: of each line "NAME = VALUE" or "NAME" the
 * option --NAME; '#' begins a comment. */
struct option_file {
	char **words; /* owned; the first is the file's name */
	int n;
};
/* -ENOENT: there is none. -EPERM: it is neither root's nor ours, or others may write to it. */
int option_file_read(const char *path, struct option_file *ret, struct error *e);
void option_file_free(struct option_file *f);
