/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of this package share: the two sides of the fork, and the program's environment.
 */
#pragma once

#include "target/launch.h"

#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

/* Where the child failed, for the message; it sends this and an errno. */
enum child_stage {
	CHILD_READY,	/* no failure: everything but exec is done, waiting for a byte */
	CHILD_ORPHANED, /* no failure of the child's: the parent was gone */
	CHILD_IDENTITY,
	CHILD_OUTPUT,
	CHILD_PRELOAD,
	CHILD_ENVIRON,
	CHILD_EXEC,
};

struct child_report {
	int stage; /* enum child_stage */
	int errnum;
};

/* What the child needs; all of it is made before the fork. */
struct child_plan {
	const struct target_spec *spec;
	const char *path; /* of the executable */
	int image_fd;	  /* memfd with the shim, or -1 */
	int socket;	  /* the child's end: SEQPACKET, close-on-exec */
	pid_t parent;
};

/* The child's life from fork to exec; every signal is blocked when it starts. */
_Noreturn void child_run(const struct child_plan *plan);

/* A sealed memory file with the library and, at its end, what the library is told; for LD_PRELOAD
 * to name. The caller closes it. */
struct error;
int target_make_image(const struct target_spec *spec, int *ret_fd, struct error *e);

/* @envp with the library of descriptor @fd, and before it @first (shared/shim_first.h) if that is
 * not "", added to LD_PRELOAD, last: an existing value is extended in its place and with the
 * separator it uses, else the variable comes after all others. A new vector (and one new string);
 * NULL if there is no memory. */
char **environ_with_preload(char *const *envp, int fd, const char *first);
