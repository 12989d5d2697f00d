// SPDX-License-Identifier: BSD-2-Clause
/* A run that was given no point finds one. Until it is known which there are, nothing is tried: the
 * experiments of a run all have the same points. */
#include "cli/run/run.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/search.h"
#include "program/code/map.h"
#include "kernel/counting/candidates.h"
#include "experiment/runner.h"
#include "experiment/session/session.h"
#include "target/launch.h"

#include <string.h>

/* What a program does first is seldom what it is for. */
#define SETTLE_NS (NSEC_PER_SEC / 2)
/* A counter of coz.h may come at any time: then there is a point. */
#define LOOK_NS (20 * NSEC_PER_MSEC)
#define MOST_OTHERS 3
#define LONGEST_OTHER 64 /* bytes of a name in a list */

bool run_may_choose(const struct run *r)
{
	return !r->options.n_points && !r->options.n_latencies && !r->options.runs &&
	       !r->purpose->slows;
}

static void put_candidate(FILE *f, const struct candidate *c)
{
	(void)fprintf(f, "%s (%.*f/s", c->point, c->per_s < 9.95, c->per_s);
}

/* "syscall:sendto (812/s, even); others: syscall:recvfrom (812/s)", the caller's. */
static char *words_of(const struct candidate *chosen, const struct candidate *all, size_t n)
{
	char *text = NULL;
	size_t size, others = 0;
	FILE *f = xopen_memstream(&text, &size);

	put_candidate(f, chosen);
	(void)fprintf(f, ", %s)", choice_evenness(chosen));
	for (size_t i = 0; i < n && others < MOST_OTHERS; i++) {
		if (&all[i] == chosen || !choice_serves(&all[i]) ||
		    strlen(all[i].point) > LONGEST_OTHER)
			continue;
		(void)fputs(others++ ? ", " : "; others: ", f);
		put_candidate(f, &all[i]);
		(void)fputc(')', f);
	}
	xclose_memstream(f);
	return text;
}

static void decide(struct run *r)
{
	r->decided = true;
	run_begin_profile(r);
}

static void take(struct run *r, char *words)
{
	struct profile_startup *s = &r->profile.runs[0];

	s->chosen = xstrdup(r->chosen.name);
	s->choice = words;
	if (!r->options.quiet)
		(void)log_error("no -p: counting %s", words);
}

/* Whether there is a point now. */
static bool choose(struct run *r)
{
	const struct candidate *all;
	size_t n = candidates_found(r->candidates, &all);

	for (size_t i = 0; i < n && choice_serves(&all[i]); i++)
		if (run_add_point(r, all[i].point, NULL) == 0) {
			take(r, words_of(&all[i], all, n));
			return true;
		}
	if (!r->options.quiet)
		(void)log_error("no -p, and nothing is passed evenly, 5 times a second or "
				"more: shares of time alone; name a point with -p (`cozbpf list "
				"points` shows some)");
	return false;
}

/* CPUs that run this code. */
static double busy(size_t object, uint64_t lo, uint64_t hi, void *arg)
{
	struct run *r = arg;
	struct addr_range at;
	double samples = 0, ns = (double)(clock_monotonic_ns() - r->start_ns);

	if (!code_map_place(r->code, object, (struct addr_range){lo, hi}, &at))
		return 0;
	if (!r->sampled && runner_look(r->runner) == 0)
		tally_places(runner_tally(r->runner), &r->sampled, &r->n_sampled);
	for (size_t i = search_front(r->n_sampled, k, r->sampled[k].addr < at.lo);
	     i < r->n_sampled && r->sampled[i].addr < at.hi; i++)
		samples += (double)r->sampled[i].count;
	return samples * (double)session_period_ns(r->session) / ns;
}

static int begin(struct run *r, struct error *e)
{
	const struct candidates_scope scope = {
		.pid = r->scope ? 0 : target_pid(r->target),
		.procs = session_processes_fd(r->session),
		.code = r->code,
		.probed = session_points(r->session)->pid,
		.disabled = r->options.disabled,
		.busy = busy,
		.arg = r,
	};

	return candidates_begin(&scope, &r->candidates, e);
}

bool run_choose_step(struct run *r, uint64_t now, uint64_t *ret_next)
{
	uint64_t next =
		r->start_ns + r->options.delay_ns + (r->options.kind == RUN_LAUNCH ? SETTLE_NS : 0);
	bool chosen = false;
	struct error e = {};
	int err = 0;

	if (r->decided)
		return true;
	if (!run_may_choose(r) || r->n_runner_points) {
		run_choose_end(r);
		return true;
	}
	clock_sooner(ret_next, now + LOOK_NS);
	if (!r->candidates && now >= next)
		err = begin(r, &e);
	if (r->candidates && err == 0)
		err = candidates_step(r->candidates, now, &next, &e);
	if (err == 0) {
		clock_sooner(ret_next, next);
		return false;
	}
	if (err > 0)
		chosen = choose(r);
	else if (!r->options.quiet)
		(void)log_error("no -p, and none can be found: %s", e.text);
	decide(r);
	/* The runner learns of it first. */
	if (chosen)
		*ret_next = now;
	return !chosen;
}

void run_choose_end(struct run *r)
{
	if (r->decided)
		return;
	if (r->n_runner_points) {
		candidates_end(r->candidates);
		r->candidates = NULL;
	}
	decide(r);
}

size_t run_proposals(const struct run *r, const struct candidate **ret)
{
	return r->candidates && !r->options.n_points ? candidates_found(r->candidates, ret) : 0;
}
