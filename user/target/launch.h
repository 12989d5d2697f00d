/* SPDX-License-Identifier: BSD-2-Clause */
/* Starting the program to be profiled: a child that waits before exec until everything is attached.
 */
#pragma once

#include "target/identity.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct error;
struct shim_page;
struct target;

struct target_spec {
	char *const *argv; /* NULL-terminated; argv[0] is looked up in PATH as a shell would */
	const struct identity *identity; /* who the program runs as; NULL: as we are */
	const char *output_to; /* a file for its standard output and error, opened as that user;
				  NULL: ours */
	/* Or a descriptor for both, and an empty standard input. */
	bool captures;
	int captured_fd;
	/* The shim: its image, and the descriptors that it maps (shared/shim_abi.h). shim_size 0:
	 * no preload. */
	const void *shim;
	size_t shim_size;
	int page_fd;  /* a memfd with struct shim_page */
	int slots_fd; /* the BPF map of slots; -1: none (the shim then only serves coz.h counters)
		       */
	/* What the shim is told (shared/shim_launch.h). */
	unsigned int pay, signo;
	const char *server; /* the name of preload_name; NULL: children go without the shim */
};

/* A page to share with a program, that the program cannot cut short. The caller closes and unmaps
 * it. */
int target_make_page(int *ret_fd, struct shim_page **ret, struct error *e);

/* To be called first thing in main: remembers the signal mask and the ignored signals that we were
 * started with, before any of our own changes, so that the program starts with them. Without it,
 * target_spawn takes those at its first call. */
void target_save_signals(void);

/* Resolves argv[0] to the file that exec will run (a script resolves to itself). *ret is the
 * caller's (free). -ENOENT not found (exit 127), -EACCES found but not executable (exit 126). */
int target_find_executable(const char *name, char **ret, struct error *e);
/* The program that the command @argv has the executable @path start, if that is a dynamic linker:
 * `ld-linux-x86-64.so.2 ./program`. One of the words; NULL: it is none. */
const char *target_of_linker(const char *path, char *const *argv);
/* The interpreter a "#!" script names, or NULL if @path is not a script. The caller frees. */
char *target_script_interpreter(const char *path);

/* Forks the child; it stops before exec (it dies if we, or the thread that called this, die first).
 * All our descriptors are close-on-exec, so it gets only what the spec names; signal mask and
 * dispositions are those we were started with. A failure to find the program, or to become its
 * user, shows here. @spec and what it points to must live until this returns. */
int target_spawn(const struct target_spec *spec, struct target **ret, struct error *e);
pid_t target_pid(const struct target *t);
/* A pidfd, owned by the target: readable when the process has ended. */
int target_pidfd(const struct target *t);
/* The memory file that the shim's image is in, owned by the target; -1 without one. */
int target_image_fd(const struct target *t);
/* Has target_exec hold the program, once it is mapped, before its first instruction, until
 * target_release. It is traced meanwhile; where that is not allowed it is not held. Both are for
 * the thread that calls target_exec. */
void target_hold(struct target *t);
void target_release(struct target *t); /* one that is not held: allowed */
/* Lets the child exec and waits until it has (then the new image is mapped). A failed exec:
 * -ENOENT, -EACCES, -ENOEXEC...; the child is reaped. A text file without "#!" is run by /bin/sh,
 * as a shell would. A child that a signal ended at this very moment (Ctrl-C) is no failure: the
 * pidfd is readable and target_reap has the status. */
int target_exec(struct target *t, struct error *e);
/* Is the process stopped by a signal (SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU)? *ret_was: it was, at
 * some time since the last call. */
bool target_is_stopped(struct target *t, bool *ret_was);
/* Has the process, which is not reaped, ended with status 0? If so, the CPU time that it had, and
 * the children that it waited for. */
bool target_succeeded(const struct target *t, uint64_t *ret_user_ns, uint64_t *ret_system_ns);
/* After the pidfd is readable: reaps; *ret_status as from waitpid. */
int target_reap(struct target *t, int *ret_status);
/* Kills (SIGKILL) and reaps a child that still lives and has NOT exec'ed yet; a running program is
 * left alone. NULL is allowed. */
void target_free(struct target *t);
/* The status that a shell reports: exit code, or 128 + signal. */
int target_exit_code(int wait_status);
