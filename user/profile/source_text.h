/* SPDX-License-Identifier: BSD-2-Clause */
/* The source around lines, kept in a profile for who has not got the files. A path in debug
 * information can be any path, so that this is done only where a user asks for it, with the rights
 * @as, and of regular files. */
#pragma once

#include "profile/reader.h"

struct file_rights;

/* Opens @path with the rights @as, as open_file and opener_open. */
typedef int (*source_opener)(const char *path, const struct file_rights *as);

/* Fills profile_samples.source of each line that was tried, or has a slope, and has no source.
 * Files that cannot be read, or are too large, are passed over. */
void profile_take_sources(struct profile *p, source_opener open, const struct file_rights *as);

/* The text of a file, with a zero behind its *ret bytes, the caller's (free). NULL: there is none,
 * or more than FILE_TEXT_MAX. */
char *source_read(int fd, size_t *ret);

/* One line of profile_samples.source. */
struct source_line {
	unsigned long number;
	const char *text; /* @length bytes */
	size_t length;
};
/* Takes the next line from *at, which is profile_samples.source at first. False: none is left. */
bool source_next(const char **at, struct source_line *ret);
/* The number of a "FILE:NUMBER"; 0: it is a function. *ret_file: how many bytes the file has. */
unsigned long source_line_number(const char *location, size_t *ret_file);
