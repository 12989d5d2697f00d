/* SPDX-License-Identifier: BSD-2-Clause */
/* A process of its own that puts payment handlers into processes and takes them out again
 * (target/inject.h): it outlives us if we are killed, finishes what it was at, and cleans up.
 * Nothing holds it back but that work; of our descriptors it keeps the slots alone open. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct error;
struct injector;

struct injector_options {
	const void *image; /* of the handler */
	size_t size;
	unsigned int pay; /* enum shim_pay */
	int signo;
};

/* What came of a process. */
struct injected {
	uint64_t handler; /* the address of its handler */
	unsigned int
		numbers; /* SHIM_NAMESPACE of the numbers that the handler knows its threads by */
	unsigned int threads;		 /* how many it has */
	unsigned int blocking, filtered; /* how many of them block the signal, or filter their
					    system calls: those get none */
};

/* Starts it; it is forked off, so call this while there is one thread. */
int injector_start(const struct injector_options *o, struct injector **ret, struct error *e);
/* The BPF map of slots. Once, before the first injector_enter. */
int injector_give_slots(struct injector *i, int slots_fd, struct error *e);
/* Has @pid, the process of @pidfd, pay by a handler. Refused with @e: -ESRCH it has ended, and
 * others. */
int injector_enter(struct injector *i, pid_t pid, int pidfd, struct injected *ret, struct error *e);
/* Takes the handlers out of all processes, and ends it. No signal may be raised any more. NULL is
 * allowed. -EBUSY with @e: something is left. */
int injector_stop(struct injector *i, struct error *e);
