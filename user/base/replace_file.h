/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that are written whole or not at all, and take the place of an older one of the same kind.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

struct error;

/* What may be replaced, and whose the new file is. */
struct replace_file {
	const char *path;
	const char *begins; /* how a file of this kind begins: nothing else is replaced; NULL:
			       nothing at all */
	const char *kind;   /* in messages: "a report" */
	uid_t uid;	    /* of the invoking user; -1: ours */
	gid_t gid;
	bool is_private; /* for its owner alone, because what it was made of is */
};

/* Is @path a file or a directory that others cannot read, so that what is made of it is for its
 * owner alone? False as well if it is neither (a pipe), or not there. */
bool replace_file_source_is_private(const char *path);

/* Could @f be written? To be asked before work whose result it is to hold. 0, or a negative errno:
 * it is no regular file, belongs to another user than us, @f->uid and root, is of another kind, or
 * its directory is not there or not writable. */
int replace_file_check(const struct replace_file *f, struct error *e);
/* Has @fill write a new file, which then takes the place of @f->path. Its mode is 0666 less the
 * umask, 0600 if @f->is_private, and nothing that an older file has withheld. Otherwise nothing is
 * left behind. @fill returns 0 or a negative errno. */
int replace_file(const struct replace_file *f, int (*fill)(FILE *out, void *arg), void *arg,
		 struct error *e);
