/* SPDX-License-Identifier: BSD-2-Clause */
/* Hands the preloaded library on to programs that the program starts (user/shim/exec.c): a thread that answers on a socket of an abstract
 * name, so that nothing is left in the file system, whatever becomes of us. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct error;
struct preload_server;

struct preload_options {
	const void *shim; /* its image */
	size_t shim_size;
	int page_fd, slots_fd; /* as in target_spec; they must outlive the server */
	uid_t uid;             /* who may ask */
	/* A process has loaded the library. Called in the server's thread; @has: false takes it back, since the process did not hear of it. */
	void (*ready)(void *arg, pid_t pid, int has);
	void *arg;
};

/* @ret_name, of SHIM_SERVER_NAME bytes: what the page is to say. */
int preload_serve(const struct preload_options *o, struct preload_server **ret, char *ret_name, struct error *e);
/* NULL is allowed. */
void preload_stop(struct preload_server *s);
