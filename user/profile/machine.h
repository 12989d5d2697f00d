/* SPDX-License-Identifier: BSD-2-Clause */
/* Who had the machine's CPU time while runs went on. Runs may know some of it only: each part stands beside the machine's time of those
 * that know it, so that shares of several runs together are right. */
#pragma once

#include <stdint.h>

struct profile_runtime;

struct profile_machine {
	uint64_t own_ns, own_of_ns;		    /* the profiler's process */
	uint64_t kernel_ns, kernel_of_ns;	    /* its programs in the kernel, estimated */
	uint64_t scope_ns, foreign_ns, scope_of_ns; /* what was profiled, and all else that ran */
};

/* One more run. */
void profile_machine_add_run(struct profile_machine *m, const struct profile_runtime *t);
/* All that @more knows. */
void profile_machine_add(struct profile_machine *m, const struct profile_machine *more);
/* 0..1; NaN: not known. */
double profile_machine_share(uint64_t ns, uint64_t of_ns);
