/* SPDX-License-Identifier: BSD-2-Clause */
/* What instructions take at least, by the model of the CPU that LLVM has: llvm-mca runs each block
 * over and over, without misses of any kind. */
#pragma once

#include "program/elf/flow.h"

struct error;

struct model {
	double *cycles; /* of each instruction of the flow: how long it is the oldest that has not
			   retired. Owned */
	double *ports; /* of each: how many cycles it is ready and no unit that executes it is free.
			  Owned */
	char cpu[32];  /* what LLVM calls the CPU that was modelled */
	size_t unknown;	 /* instructions that it does not know, which take nothing here */
	size_t left_out; /* blocks beyond those that it was asked about */
};

/* @weights: of each instruction; the blocks with the most are modelled, up to a bound. @cpu: NULL
 * for the one that this runs on. *ret is the caller's (model_free). -ENOENT: there is no llvm-mca
 * (@e names the package); -ETIMEDOUT; -EIO: it does not answer as it should; -ENOMEM. It runs
 * without rights, since what it reads comes from a program. */
int model_make(const struct flow *f, const struct code *c, const double *weights, const char *cpu,
	       struct model *ret, struct error *e);
void model_free(struct model *m);
