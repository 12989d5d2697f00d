/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose rights the program runs with: under sudo, the invoking user's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct error;

struct identity {
	uid_t uid;
	gid_t gid;
	gid_t *groups; /* supplementary */
	size_t n_groups;
	char *home, *name;
	bool switches; /* false: as we are, the rest is informative */
};

/* The id that is a whole decimal number and nothing else. -EINVAL: it is none. */
int identity_parse_id(const char *text, unsigned int *ret);
/* From SUDO_UID and SUDO_GID when we are root and @keep_root is false; else our own ids, switches =
 * false. A malformed SUDO_UID or one unknown to the user database is -EINVAL. The contents are the
 * caller's (identity_free). */
int identity_find(bool keep_root, struct identity *ret, struct error *e);
/* Files that the program names are opened with these rights from now on (base/open_file.h). */
void identity_open_files(const struct identity *id);
/* To be called first of all: whom sudo names is the invoking user (file_rights_invoker). Where it
 * names nobody who is known, that is root, and commands that start programs say so. */
void identity_find_invoker(void);
void identity_free(struct identity *id);
/* In the child before exec: groups, gid, uid (in that order, checked to be irrevocable), no
 * capabilities, HOME, USER, LOGNAME. Without a switch, our capabilities leave the ambient set.
 * Negative errno on failure: the caller must then _exit. */
int identity_assume(const struct identity *id);
