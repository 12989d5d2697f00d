// SPDX-License-Identifier: BSD-2-Clause
/* A sample in code that is out of scope, but not known to be so yet, is nobody's: what calls it is not in the sample any more. Such code is
 * found unit by unit as samples are named (code/owner.c), which experiments do at their ends; but a program that has just begun with
 * something else would lose a good part of a second's samples each time. So samples are named in between, soon after each discovery. */
#include "run/discovery.h"

#include "base/clock.h"
#include "run/run.h"
#include "code/map.h"
#include "experiment/runner.h"

#define LEAST_NS (5 * NSEC_PER_MSEC)
#define MOST_NS (1 * NSEC_PER_SEC) /* where an experiment is as long as the program */
/* Whatever is found next is found after at most this much more of the time since the last discovery ... */
#define PART 4
/* ... and all this takes at most one part of so many of a CPU's time. */
#define SHARE 8

static uint64_t wait_after(const struct discovery *d, uint64_t now, uint64_t took)
{
	uint64_t wait = (now - d->learned_ns) / PART;

	if (wait > MOST_NS)
		wait = MOST_NS;
	if (wait < LEAST_NS)
		wait = LEAST_NS;
	return wait < SHARE * took ? SHARE * took : wait;
}

uint64_t run_discovery_step(struct discovery *d, struct run *r, uint64_t now)
{
	uint64_t begin = clock_monotonic_ns();
	bool due = now >= d->next_ns;
	size_t learned;

	/* Errors of theirs are met again by those who can report them: the next experiment, the next look at the mappings. */
	if (due)
		(void)runner_look(r->runner);
	learned = code_map_learned(r->code);
	if (!due && learned == d->learned)
		return d->next_ns;
	if (code_map_is_stale(r->code))
		(void)session_refresh_code(r->session);
	if (learned != d->learned || !d->next_ns) /* or this is the first time */
		d->learned_ns = now;
	d->learned = learned;
	d->next_ns = now + wait_after(d, now, clock_monotonic_ns() - begin);
	return d->next_ns;
}
