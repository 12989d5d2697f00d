/* SPDX-License-Identifier: BSD-2-Clause */
/* What an instruction may have waited for. After Anderson et al., Continuous Profiling (TOCS 1997,
 * section 6.3): all causes are taken to be possible, and those are ruled out that the code around
 * it cannot have. What is left is listed, the likeliest first. */
#pragma once

#include "program/elf/flow.h"
#include "annotate/skid.h"

enum culprit {
	CULPRIT_KERNEL,	   /* a system call, or a fault that the kernel serves */
	CULPRIT_LOCK,	   /* an atomic access, or a fence: earlier stores have to be done */
	CULPRIT_DIVIDER,   /* a division or square root, which the CPU has one unit for */
	CULPRIT_DCACHE,	   /* a load that it needs was not in the cache */
	CULPRIT_DTLB,	   /* ... or its page's address was not */
	CULPRIT_FORWARD,   /* a load of what a store just before it wrote in another size */
	CULPRIT_STORE,	   /* no room for one more store */
	CULPRIT_BRANCH,	   /* a branch to it, or its target, was predicted wrongly */
	CULPRIT_ICACHE,	   /* the code was not in the cache, or its page's address was not */
	CULPRIT_DEPENDENT, /* static: a result of an instruction before it, by its latency */
	CULPRIT_PORTS,	   /* static: no unit that executes it is free, by the model of the CPU */
	CULPRIT_CALL,	   /* the code that it calls, which is not shown here */
	CULPRIT_SLOTS,	   /* static: its turn, as there is nothing else */
	N_CULPRITS,
};
/* "data cache", ... */
extern const char *const culprit_names[N_CULPRITS];

struct culprits {
	/* A bit for each that is possible, of each instruction, whether it stalls or not; and what
	 * comes in addition where samples were found at it and belong there, as far as can be told.
	 * Owned. */
	uint16_t *of, *found_there;
	uint32_t *waited; /* where a sample was found at each: the instruction that waited. Owned */
};

/* All that are possible of @instruction; @found_there: samples were. */
uint16_t culprits_of(const struct culprits *c, size_t instruction, bool found_there);
/* @ports: as in struct model, or NULL. @kernel: samples of time in the kernel are there, too, at
 * what led there. @skid: of the samples, before they are put where waited says. *ret is the
 * caller's (culprits_free). */
void culprits_find(const struct flow *f, const struct code *c, const double *ports, bool kernel,
		   enum skid skid, struct culprits *ret);
void culprits_free(struct culprits *c);
