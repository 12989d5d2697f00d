/* SPDX-License-Identifier: BSD-2-Clause */
/* The file side of writing a profile: who may be written to, and how a failed write is undone. Internal to the package. */
#pragma once

#include "profile/writer.h"

#include <stdbool.h>

struct profile_file {
	int fd;
	char *path;
	bool created; /* by us, so ours to remove again */
	bool written;
	off_t size;	    /* up to the end of the last whole record */
	bool needs_newline; /* the last record lacks its end of line */
};

/* As profile_writer_open says. Nothing is left behind on failure. */
int profile_file_open(const char *path, enum profile_format format, uid_t uid, gid_t gid, struct profile_file *ret, struct error *e);
/* Appends all of @data or nothing. Negative errno. */
int profile_file_append(struct profile_file *f, const char *data, size_t size);
/* Removes a file that was created and not written to. Negative errno of close. */
int profile_file_close(struct profile_file *f);
