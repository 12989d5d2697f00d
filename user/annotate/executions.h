/* SPDX-License-Identifier: BSD-2-Clause */
/* How often places in code were executed, from counts by probes in short windows. Pure.
 *
 * A probe slows the code down that it is in, by a factor of thousands in a short loop. What windows say is exact all the same: within one, places are
 * passed in the proportion in which the program passes them, however long it takes. So places are sorted into levels by how often they are passed. In
 * a window of the last level only the rarest have a probe, which hardly slow anything down: their hits for the CPU time are their rates. A window of
 * the level before has those and the next more frequent ones, whose rates follow by proportion, and so on to the most frequent.
 *
 * Windows begin at random in time, so that, of a program with phases, those last as long in the sum as the phases do, and not as what is counted in
 * them. Windows of a level are weighted so that what they say of places whose rates are known from later levels comes out right (calibration
 * weights: Deville and Särndal, JASA 1992; found by expectation maximisation, as Richardson and Lucy have it). */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct executions_window {
	uint32_t level;	      /* each place whose level is at least that has a probe */
	double cpu_s;	      /* seconds of CPU time of the process, probes included */
	const uint64_t *hits; /* of each place */
};

struct executions_input {
	const struct executions_window *windows;
	size_t n_windows;
	const uint32_t *levels; /* of each place: the last in which it has a probe */
	size_t n_places;
};

/* @rates: of each place, for each second of CPU time; @errors: the standard error of each, relative, by drawing windows again; infinite for what was
 * never hit. -ERANGE: windows of the last level say nothing; -ENOMEM. */
int executions_estimate(const struct executions_input *in, double *rates, double *errors);

/* Levels for places of which @rates is known roughly: those of the last one are hit @last times a second together (but there is one at least), and
 * those of each level before up to @factor times as often. Returns how many levels there are; 0: out of memory. */
uint32_t executions_levels(const double *rates, size_t n, double last, double factor, uint32_t *levels);
