// SPDX-License-Identifier: BSD-2-Clause

#include "cli/run/run.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/waits.h"
#include "experiment/runner.h"
#include "profile/merge.h"
#include "shared/abi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_RUN_NS (NSEC_PER_SEC / 10) /* no program is started only to be ended at once */
#define MOST_WAITS 12			 /* places where threads wait, of all that are followed */

int repeat_init(struct repeat *x, const struct run_options *o, struct error *e)
{
	int err;

	*x = (struct repeat){.first_seed = o->seed, .certainty.missing_s = __builtin_nan("")};
	if (o->repeat) {
		/* Slopes take the scheduler's events. */
		x->whole = o->n_points || o->sync != RUN_SYNC_SCHED ? REPEAT_POINTS : REPEAT_LOOKS;
		x->last_ns = o->duration_ns ? clock_monotonic_ns() + o->duration_ns : 0;
		return 0;
	}
	if (o->n_points)
		return fail(e, EINVAL, "--runs measures whole runs: leave out -p, or --runs");
	if (o->duration_ns)
		return fail(e, EINVAL,
			    "--runs measures until the program ends by itself: leave out "
			    "--duration, or --runs");
	err = plan_init(&x->plan, o->seed, o->fixed_speedup, o->zero_share, o->grid, o->n_grid, 0);
	return err < 0 ? fail(e, -err, "cannot plan experiments: %s", strerror(-err)) : 0;
}

void repeat_free(struct repeat *x)
{
	profile_free(&x->all);
	plan_free(&x->plan);
	free(x->line);
	free(x->lines);
}

bool run_is_whole(const struct run *r)
{
	return r->repeat && r->repeat->whole == REPEAT_WHOLE;
}

bool run_is_for_whole(const struct run *r)
{
	return r->repeat && r->repeat->whole != REPEAT_POINTS;
}

bool run_may_try(const struct run *r)
{
	return !r->repeat || r->repeat->whole != REPEAT_LOOKS || r->n_runner_points;
}

/* The lines that the runs so far were in most of the time, and the places where they waited. */
static void choose_lines(struct repeat *x)
{
	size_t n = x->all.n_samples, waits = 0;
	_cleanup_free_ const struct profile_samples **all = profile_samples_sorted(&x->all);

	free(x->lines);
	x->lines = xcalloc(ABI_MAX_FOLLOWED, sizeof(*x->lines));
	x->n_lines = 0;
	for (size_t i = 0; i < n && x->n_lines < ABI_MAX_FOLLOWED; i++) {
		size_t place = 1;
		bool wait = wait_of(all[i]->location, &place);

		/* Of all places of a kind the sums are kept in any case. */
		if (place && (!wait || waits++ < MOST_WAITS))
			x->lines[x->n_lines++] = all[i]->location;
	}
}

/* A line in proportion to its samples in the runs so far. */
static char *draw_line(struct repeat *x)
{
	uint64_t total = 0, nth;

	for (size_t i = 0; i < x->all.n_samples; i++)
		total += x->all.samples[i].count;
	if (!total)
		return NULL;
	nth = plan_sample(&x->plan, total);
	for (size_t i = 0; i < x->all.n_samples; i++) {
		if (nth < x->all.samples[i].count)
			return xstrdup(x->all.samples[i].location);
		nth -= x->all.samples[i].count;
	}
	return NULL;
}

void repeat_next(struct repeat *x, struct run_options *o)
{
	if (o->repeat) {
		uint64_t now = clock_monotonic_ns();

		o->seed = x->first_seed + x->done;
		if (x->whole == REPEAT_WHOLE) {
			o->slopes_only = true;
			choose_lines(x);
		}
		if (x->last_ns)
			o->duration_ns = x->last_ns > now ? x->last_ns - now : 1;
		/* Half of a whole run is of no use, and to put the one before away takes time, too.
		 */
		if (x->last_ns && x->whole != REPEAT_POINTS && o->duration_ns < 2 * x->longest_ns)
			o->duration_ns = 2 * x->longest_ns;
		return;
	}
	if (!x->all.n_runs) {
		o->fixed_speedup = 0;
		return;
	}
	o->fixed_speedup = plan_speedup(&x->plan, &x->speedups, NULL);
	if (o->fixed_line && o->fixed_line != x->line)
		return;
	free(x->line);
	x->line = draw_line(x);
	o->fixed_line = x->line;
}

/* What all runs together say, which is more than the last one does. */
static void look(struct repeat *x, struct run *r)
{
	struct runner_status status;

	runner_get_status(r->runner, &status);
	x->visits_per_s = status.visits_per_s;
	if (r->options.until_ci <= 0 && r->options.quiet)
		return;
	r->certainty = x->certainty = run_certainty_of(&x->all, x->first_seed, r->options.until_ci);
	if (r->options.until_ci > 0 && x->certainty.reached)
		run_say_certain(r);
}

static bool is_over(const struct repeat *x, const struct run_options *o)
{
	uint64_t least_ns;

	if (o->runs)
		return x->done >= o->runs;
	/* Half of a whole run is of no use. */
	least_ns = x->whole != REPEAT_POINTS && x->longest_ns > LEAST_RUN_NS ? x->longest_ns
									     : LEAST_RUN_NS;
	return x->done >= o->repeat || (o->until_ci > 0 && x->certainty.reached) ||
	       (x->last_ns && clock_monotonic_ns() + least_ns >= x->last_ns);
}

void repeat_keep(struct repeat *x, struct run *r)
{
	struct certainty known = r->certainty;

	x->done++;
	if (r->end_ns > r->start_ns && r->end_ns - r->start_ns > x->longest_ns)
		x->longest_ns = r->end_ns - r->start_ns;
	if (x->whole == REPEAT_LOOKS)
		x->whole = r->n_runner_points ? REPEAT_POINTS : REPEAT_WHOLE;
	profile_merge(&x->all, &r->profile);
	if (r->options.repeat && !known.reached)
		look(x, r);
	else
		x->certainty = known;
	x->over = is_over(x, &r->options);
}

bool repeat_is_over(const struct repeat *x, const struct run *r)
{
	return x->over || r->interrupted || r->terminated || r->write_error ||
	       run_exit_status(r) != 0;
}
