/* SPDX-License-Identifier: BSD-2-Clause */
/* How often places in code were executed, from counts by probes in short windows. Pure.
 *
 * A probe makes the code that it stands in slower, a short loop by a factor of thousands. The
 * proportions within a window stay exact, because the program passes the same places in the same
 * order at any speed. So places are sorted into levels by how often they are passed:
 *
 * Last level: probes at rare places alone. They hardly slow the program down: a place's rate is its
 * hits over the CPU time.
 *
 * Level before: probes at those, and at places up to some 50 times as frequent. The rates of these
 * follow from the proportion to the rare ones.
 *
 * ... and so on, to level 0, which has probes at all places.
 *
 * A window begins at a random moment. In a program with phases, each phase gets windows by the time
 * that it lasts, not by how much it executes, and a window of the first levels is too short to see
 * more than one phase. So the windows of a level are weighted: the weighted hits of the places
 * whose rates are known from later levels have to agree with these rates (calibration weights:
 * Deville and Särndal, JASA 1992; found by expectation maximisation, as in Richardson 1972 and Lucy
 * 1974). Without weights a loop can be off by a factor of three (unit test phases_are_weighted). */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct executions_window {
	uint32_t level;	      /* a place has a probe if its own level is this or a later one */
	double cpu_s;	      /* seconds of CPU time of the process, probes included */
	const uint64_t *hits; /* of each place */
};

struct executions_input {
	const struct executions_window *windows;
	size_t n_windows;
	const uint32_t *levels; /* of each place: the last in which it has a probe */
	size_t n_places;
};

/* @rates: executions of each place in a second of CPU time. @errors: the relative standard error of
 * each rate, by the bootstrap over windows; infinite for a place that was never hit. -ERANGE: no
 * place of the last level was hit. */
int executions_estimate(const struct executions_input *in, double *rates, double *errors);

/* Sorts places into levels by their rough @rates (executions a second). The places of the last
 * level are hit @last times a second in sum; each level before it has up to @factor times as many
 * hits as the one after it. The last level has one place at least. Returns the number of levels. */
uint32_t executions_levels(const double *rates, size_t n, double last, double factor,
			   uint32_t *levels);
