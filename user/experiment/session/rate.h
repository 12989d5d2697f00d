/* SPDX-License-Identifier: BSD-2-Clause */
/* How often to sample, from what an experiment has shown. Arithmetic only. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Samples a second and CPU. A pause is as long as the distance between samples and stands for what
 * happened since the last one: where threads wait for each other in rounds that are not much
 * longer, they see large steps. By the truth program of two threads and a lock, rounds of 2 ms, 100
 * %: 51 is read for 40 at 2 kHz, 45 at 4 kHz, 38 at 8 kHz (8 s each). But a sample costs 13 us in a
 * virtual machine, and a server whose caches it empties some 30. Where nobody waits for anybody's
 * pause, finer ones buy nothing but a smaller chance error: with 500 a second, that of a line's
 * share is at most 2.2 points in a second, and 0.3 in a minute. */
#define SESSION_RATE_LIGHT 250
#define SESSION_RATE_ALONE 500
#define SESSION_RATE_LEAST 1000
#define SESSION_RATE_LOW 2000
#define SESSION_RATE_HIGH 4000

#define RATE_ENOUGH_SAMPLES 100 /* fewer say nothing of whose they are */

/* Of one experiment. */
struct rate_seen {
	uint64_t ns;	 /* its length */
	uint64_t run_ns; /* CPU time of what is in scope */
	uint64_t visits; /* of the busiest point */
	uint64_t wakes;	 /* a thread in scope woke another one: rule R3 */
	uint64_t
		cpu_waits; /* a thread in scope had to wait until another one left a CPU: rule R4 */
	uint64_t samples, turns; /* ... and those of another thread than the sample before */
	uint64_t tick_ns;	 /* what a sample stops its thread for; 0: not known */
};

/* Can pauses meet nobody but the thread that is hit? Next to all samples are one thread's, and next
 * to nobody is woken by another. Who then waits for a CPU until that thread leaves it is a helper
 * that its own timer woke: it does next to nothing that a pause could take away. */
bool rate_alone(const struct rate_seen *x);

/* The rate at which a run begins: LOW, but where ticks of @tick_ns would then take more than 5 % of
 * the time, less, down to LEAST. */
unsigned int rate_low(uint64_t tick_ns);

/* The rate for programs in production where nothing is paused: LEAST, but where ticks of @tick_ns
 * would then take more than 1.5 % of the time, less, down to LIGHT. */
unsigned int rate_light(uint64_t tick_ns);

/* The rate from here on, where @rate is in force. It only ever grows, since what was seen once may
 * come again, and a run should not change its grain with every phase; but at the @first look it may
 * turn out that the rate at which a run begins is more than is needed. */
unsigned int rate_next(unsigned int rate, bool first, const struct rate_seen *x);
