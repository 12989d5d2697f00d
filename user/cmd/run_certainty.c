// SPDX-License-Identifier: BSD-2-Clause
/* What the run knows so far, looked at between two experiments: for the status line, and for --until-ci. */
#include "cmd/run.h"

#include "analysis/analysis.h"
#include "base/clock.h"

/* The next look takes this many new experiments, and a tenth of all. */
#define LOOK_EVERY 4
/* What looking costs, of the time: it may not disturb the program. */
#define LOOK_SHARE 50

bool run_certainty_due(const struct run *r, uint64_t now)
{
	size_t n = r->profile.n_experiments;

	if (r->options.until_ci <= 0 && r->options.quiet)
		return false;
	return n >= r->looked_at + LOOK_EVERY + r->looked_at / 10 && now >= r->look_ns;
}

void run_certainty_look(struct run *r, uint64_t now)
{
	struct analysis a;

	r->looked_at = r->profile.n_experiments;
	if (analyse(&r->profile, r->options.seed, &a) < 0)
		return; /* no memory now: the next look may have some */
	r->certainty = certainty_of(&a, r->options.until_ci, a.elapsed_ns / (double)NSEC_PER_SEC);
	analysis_free(&a);
	r->look_ns = now + LOOK_SHARE * (clock_monotonic_ns() - now);
}
