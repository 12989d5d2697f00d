/* SPDX-License-Identifier: BSD-2-Clause */
/* How often the blocks of a function executed, by samples of the clock. After Anderson et al., Continuous Profiling (TOCS 1997, section 6.1).
 *
 * An instruction is sampled while it is the oldest that has not retired. Of n executions of one that takes m cycles there, without a stall, there are
 * n * m / P samples, for a sample each P cycles; a stall adds to them and never takes away. So the quotients of samples and m, of all instructions
 * that execute equally often, are lowest where nothing stalls, and are n / P there. */
#pragma once

#include "annotate/classes.h"

struct frequency {
	/* Of each class: executions for each cycle that lies between two samples, so times that distance it is how often; and the standard error of
	 * what its own samples say of it, infinity where it has no instructions. Owned. */
	double *classes, *errors;
};

/* @samples and @cycles of each instruction: those that found it, and how many cycles it takes at least, which the model of the CPU says. What goes
 * into each block comes out of it: classes that have few samples follow from the others. *ret is the caller's (frequency_free). -ENOMEM. */
int frequency_estimate(const struct flow *f, const struct classes *c, const double *samples, const double *cycles, struct frequency *ret);
void frequency_free(struct frequency *f);
