/* SPDX-License-Identifier: BSD-2-Clause */
/* Hands the preloaded library on to programs that the program starts (user/target/shim/exec.c): a
 * process that answers on a socket of an abstract name, so that nothing is left in the file system,
 * whatever becomes of us. */
#pragma once

#include "shared/shim_abi.h"

#include <stdbool.h>
#include <sys/types.h>

struct error;
struct preload_server;

struct preload_options {
	const char *name;	/* of preload_name */
	struct shim_page *page; /* it says there that it serves */
	/* The very files that the program was launched with (target_spec, target_image_fd): the
	 * library takes no others. */
	int image_fd, page_fd, slots_fd;
	/* Both are called in the server's process, a copy of this one: what they change in its
	 * memory is not seen here. Of descriptors it has those of above and arg_fd. */
	/* May the process ask? By its id, whatever its user: a worker that dropped its privileges
	 * has children, too. */
	bool (*may_ask)(void *arg, pid_t pid);
	/* A process has loaded the library. @has: false takes it back, since the process did not
	 * hear of it. */
	void (*ready)(void *arg, pid_t pid, int has);
	void *arg;
	int arg_fd; /* -1: none */
};

/* A name for the socket that nobody else has, and nobody can guess. It is part of the image, so it
 * is chosen before the launch. */
int preload_name(char ret[SHIM_SERVER_NAME], struct error *e);
/* After target_spawn, before target_exec. */
int preload_serve(const struct preload_options *o, struct preload_server **ret, struct error *e);
/* Takes a second at most, whatever strangers do. NULL is allowed. */
void preload_stop(struct preload_server *s);
