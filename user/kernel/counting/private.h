/* SPDX-License-Identifier: BSD-2-Clause */
/* What counting is made of, and windows: probes at some places of a process, for a moment. Internal
 * to the package. */
#pragma once

#include "program/elf/code_place.h"

#include <pthread.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct counted_place;
struct elf_object;
struct error;
struct executions_window;
struct windows;

/* Closing a link takes some hundredths of a second after its probes are gone from the code. Threads
 * do it while the next windows go on. All zero at first. */
#define CLOSERS 4
struct closers {
	struct closer {
		pthread_t thread;
		bool runs;
		int fd;
	} all[CLOSERS];
	size_t next;
};
void closers_close(struct closers *x, int fd); /* takes @fd over */
void closers_wait(struct closers *x);	       /* until all are closed */

struct window_place {
	uint64_t vaddr; /* where an instruction surely begins */
	bool wanted;	/* in the next window */
};

/* What is to be closed by windows_close. */
int windows_open(pid_t pid, const struct elf_object *o, struct windows **ret, struct error *e);
void windows_close(struct windows *w); /* NULL is allowed */

/* Probes at those of @places that are wanted, until the process had @cpu_s of CPU time or ten times
 * as long has passed. A place has the counter of its index, below VISIT_RATES_SITES, so that is
 * always the same. @hits: of each place. *ret_cpu_s: its CPU time meanwhile. @look: it ends soon if
 * none of them is hit at first, since the process does something else. */
int windows_count(struct windows *w, const struct window_place *places, size_t n, double cpu_s,
		  bool look, uint64_t *hits, double *ret_cpu_s, struct error *e);

struct counting {
	const struct elf_object *o;
	struct code_places code;
	struct windows *windows;
	struct window_place
		*places; /* those of the function first, in the order of @counted; then anchors */
	struct counted_place *counted;
	size_t n, n_counted;
	size_t rarest;	      /* the place that was the last to turn out to be frequent */
	bool nothing_rarer;   /* it has to count as rare all the same */
	bool *rare, *useless; /* useless: it is never hit, and not of the function */
	double *rates, *errors;
	uint32_t *levels, n_levels;
	struct executions_window *all; /* hits are owned */
	size_t n_all;
};

/* Fills in the levels and rates of all places, and windows, for @seconds. */
int counting_rounds(struct counting *c, double seconds, struct error *e);
