// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/runs.h"

#include "analysis/fidelity.h"
#include "base/cleanup.h"
#include "base/memory.h"
#include "base/waits.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Bounds for hostile files; a line takes about 4 KiB. Lines with the most experiments are kept. */
#define MAX_LINES_PER_POINT 512
#define MAX_LINES 16384

double analysis_sampled(const struct profile *p)
{
	double total = 0;

	for (size_t i = 0; i < p->n_samples; i++)
		total += wait_of(p->samples[i].location, NULL) ? 0 : (double)p->samples[i].count;
	/* A sample can belong to several lines. */
	if (p->sampled)
		total = (double)p->sampled;
	return total + (double)p->unattributed;
}

/* Shares by the runs' sample logs. False if there is none (a killed run). */
static bool shares_from_log(const struct profile *p, const struct collection *c,
			    struct line_info *info)
{
	double total = analysis_sampled(p);

	if (!(total > 0))
		return false;
	for (size_t i = 0; i < c->n_lines; i++) {
		const struct profile_samples *hit = profile_find_samples(p, c->lines[i]);

		if (!wait_of(c->lines[i], NULL))
			info[i].share = hit ? fmin(1, (double)hit->count / total) : 0;
	}
	return true;
}

/* Of the run's time, the part in which at least one thread waited there. It is at most all, and at
 * most what all threads waited together. */
static void share_of_waits(const struct profile *p, const struct collection *c,
			   struct line_info *info)
{
	double by_kind[WAIT_KINDS] = {0};

	for (size_t i = 0; i < p->n_samples; i++)
		by_kind[wait_of(p->samples[i].location, NULL)] += (double)p->samples[i].ns;
	for (size_t i = 0; i < c->n_lines; i++) {
		size_t place = 0;
		unsigned int kind = wait_of(c->lines[i], &place);
		const struct profile_samples *s = profile_find_samples(p, c->lines[i]);
		double waited = !place ? by_kind[kind] : s ? (double)s->ns : 0;

		if (kind)
			info[i].share =
				p->runtime_ns ? fmin(1, waited / (double)p->runtime_ns) : NAN;
	}
}

/* Shares as the experiments saw them: of the samples in all experiments, those in the line, in the
 * experiments that watched it, scaled up. */
static void shares_from_experiments(const struct profile *p, const struct collection *c,
				    struct line_info *info)
{
	for (size_t i = 0; i < p->n_experiments; i++) {
		const struct profile_experiment *x = &p->experiments[i].x;
		struct line_info *line = &info[c->line_of[i]];

		if (p->experiments[i].n_points == 0 || x->samples == 0)
			continue;
		line->share += (double)x->selected_samples;
		line->seen += (double)x->samples;
	}
	for (size_t i = 0; i < c->n_lines; i++)
		info[i].share = info[i].seen > 0 ? fmin(1, info[i].share / info[i].seen) : NAN;
}

static void describe_lines(const struct profile *p, const struct collection *c,
			   struct line_info *info)
{
	for (size_t i = 0; i < c->n_obs; i++)
		if (!info[c->obs[i].line].function)
			info[c->obs[i].line].function =
				p->experiments[c->obs[i].experiment].x.function;
	if (!shares_from_log(p, c, info))
		shares_from_experiments(p, c, info);
	share_of_waits(p, c, info);
}

/* The time that each line's samples in the run stand for. */
static void find_times(const struct profile *p, const struct collection *c, struct run_info *run)
{
	run->presence = (struct run_presence){
		(double)p->runtime_ns, xcalloc(c->n_lines + 1, sizeof(*run->presence.line_ns))};
	for (size_t i = 0; i < c->n_lines; i++) {
		const struct profile_samples *s = profile_find_samples(p, c->lines[i]);

		/* Waits are drawn from all that there were so far, not from those of a moment:
		 * their experiments are everywhere. */
		run->presence.line_ns[i] =
			s && s->ns && !wait_of(c->lines[i], NULL) ? (double)s->ns : NAN;
	}
}

/* With so many CPUs without work, on average, who wants one gets one. */
#define CPUS_TO_SPARE 2

struct held {
	double ns, of_ns;
};

static void held_add(struct held *h, const struct profile_experiment *x)
{
	if (x->speedup > 0) {
		h->ns += (double)x->held_asleep;
		h->of_ns += (double)x->elapsed;
	}
}

/* 0 where it does no harm. */
static double held_share(const struct held *h, const struct profile *p)
{
	const struct profile_machine *m = &p->machine;
	double used = (double)m->scope_ns + (double)m->foreign_ns,
	       share = h->of_ns > 0 ? h->ns / h->of_ns : 0;

	if (m->scope_of_ns &&
	    (double)m->scope_of_ns - used >= CPUS_TO_SPARE * (double)p->runtime_ns)
		return 0;
	return share > ANALYSIS_HELD_LEAST ? share : 0;
}

double analysis_held(const struct profile *p)
{
	struct held h = {0};

	for (size_t i = 0; i < p->n_experiments; i++)
		held_add(&h, &p->experiments[i].x);
	return held_share(&h, p);
}

static void find_held(const struct profile *p, const struct collection *c, struct run_info *run)
{
	_cleanup_free_ struct held *h = xcalloc(c->n_lines + 1, sizeof(*h));

	for (size_t i = 0; i < p->n_experiments; i++)
		held_add(&h[c->line_of[i]], &p->experiments[i].x);
	for (size_t i = 0; i < c->n_lines; i++)
		run->lines[i].held = held_share(&h[i], p);
	run->held = UNDECIDED_HELD;
	for (size_t i = 0; i < p->n_runs; i++)
		if (p->runs[i].inject && strcmp(p->runs[i].inject, "never") == 0)
			run->held = UNDECIDED_INJECT;
}

/* How long the waits of a place were on average, over experiments: logs, since what grows with the
 * speedup does so by a factor, and those at 100 % would otherwise make the scatter. */
struct lengths {
	double n, sum, squares, waits;
};

#define WAITS_WANTED 30
#define MUCH_LONGER 1.25
#define SURELY \
	4.0 /* standard errors: other programs make waits for a process longer, at any speedup */

static double lengths_mean(const struct lengths *l)
{
	return l->sum / l->n;
}

/* The squared standard error of the mean. */
static double lengths_error(const struct lengths *l)
{
	return fmax(0, l->squares / l->n - lengths_mean(l) * lengths_mean(l)) / (l->n - 1);
}

static bool much_longer(const struct lengths *than, const struct lengths *l)
{
	double by;

	if (than->n < 2 || l->n < 2 || than->waits < WAITS_WANTED || l->waits < WAITS_WANTED)
		return false;
	by = lengths_mean(l) - lengths_mean(than);
	return by > log(MUCH_LONGER) && by > SURELY * sqrt(lengths_error(l) + lengths_error(than));
}

/* Finds waits that did not occur in their experiments, and waits that get longer if the program is
 * paused more. */
static void judge_waits(const struct profile *p, const struct collection *c, struct run_info *run)
{
	/* Of each line at 0 %, at a half and more, and between. */
	_cleanup_free_ struct lengths(*all)[3] = xcalloc(c->n_lines + 1, sizeof(*all));

	for (size_t i = 0; i < p->n_experiments; i++) {
		const struct profile_experiment *x = &p->experiments[i].x;
		struct lengths *l =
			&all[c->line_of[i]][x->speedup > 0 ? 1 + (x->speedup < 0.5) : 0];
		double mean = x->waits && x->selected_ns
				      ? log((double)x->selected_ns / (double)x->waits)
				      : 0;

		l->waits += (double)x->waits;
		l->n += x->waits > 0;
		l->sum += mean;
		l->squares += mean * mean;
	}
	for (size_t i = 0; i < c->n_lines; i++) {
		const struct lengths *l = all[i];

		if (!wait_of(c->lines[i], NULL))
			continue;
		if (l[0].waits + l[1].waits + l[2].waits == 0)
			run->lines[i].waits = UNDECIDED_ABSENT;
		/* Pauses make waits for a CPU longer. That is known, and counts. */
		else if (wait_of(c->lines[i], NULL) != WAIT_CPU && much_longer(&l[0], &l[1]))
			run->lines[i].waits = UNDECIDED_DEPENDS;
	}
}

/* Of the CPUs' time, what the program's threads take where there is none to spare. */
#define CPUS_SHORT 0.8

/* Did paused threads leave their CPUs to others that waited for one? There is R4 (bpf/README.md)
 * where a pause keeps the CPU, only. */
static bool lends_cpus(const struct profile *p)
{
	double cpus = (double)p->machine.own_of_ns / (double)p->runtime_ns, executed = 0,
	       elapsed = 0, threads = 0;

	for (size_t i = 0; i < p->n_experiments; i++) {
		const struct profile_experiment *x = &p->experiments[i].x;
		const char *pay = p->experiments[i].run < p->n_runs
					  ? p->runs[p->experiments[i].run].pay
					  : NULL;

		if (!pay || strcmp(pay, "sleep") != 0)
			continue;
		threads = fmax(threads, (double)x->threads);
		if (x->speedup > 0)
			continue;
		executed += (double)x->executed_ns;
		elapsed += (double)x->elapsed;
	}
	return p->machine.own_of_ns && threads > cpus + 0.5 &&
	       executed > CPUS_SHORT * cpus * elapsed;
}

/* A thread that spins is paused like others: of what all owe, the part that somebody has taken. */
#define PAUSED 0.02
/* And it executes while another thread does. If only one at a time can, this many execute on
 * average at most. */
#define ONE_AT_A_TIME 1.02

/* Was there nobody to spin for? */
static bool was_alone(const struct profile *p)
{
	double paid = 0, growth = 0, executed = 0, elapsed = 0;

	for (size_t i = 0; i < p->n_experiments; i++) {
		const struct profile_experiment *x = &p->experiments[i].x;

		paid += (double)x->paid;
		growth += (double)x->growth;
		if (x->speedup > 0)
			continue;
		executed += (double)x->executed_ns;
		elapsed += (double)x->elapsed;
	}
	return executed < ONE_AT_A_TIME * elapsed || paid < PAUSED * growth;
}

double analysis_throttled(const struct profile *p)
{
	double sum = 0, elapsed = 0;

	for (size_t i = 0; i < p->n_experiments; i++) {
		const struct profile_experiment *x = &p->experiments[i].x;

		sum += fidelity_share(x->throttled) * fidelity_length(x);
		elapsed += fidelity_length(x);
	}
	return elapsed > 0 ? sum / elapsed : 0;
}

void run_info_make(const struct profile *p, const struct collection *c, size_t n_points,
		   double elapsed_s, struct run_info *run)
{
	run->lines = xcalloc(c->n_lines + 1, sizeof(*run->lines));
	run->max_lines = n_points && MAX_LINES / n_points < MAX_LINES_PER_POINT
				 ? MAX_LINES / n_points
				 : MAX_LINES_PER_POINT;
	run->elapsed_s = elapsed_s;
	run->undecided = analysis_throttled(p) > ANALYSIS_THROTTLED_LEAST ? UNDECIDED_QUOTA
			 : lends_cpus(p)				  ? UNDECIDED_LENT
									  : UNDECIDED_OPEN;
	run->alone = was_alone(p);
	describe_lines(p, c, run->lines);
	find_times(p, c, run);
	find_held(p, c, run);
	judge_waits(p, c, run);
}

void run_info_free(struct run_info *run)
{
	free(run->lines);
	free(run->presence.line_ns);
}
