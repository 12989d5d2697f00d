// SPDX-License-Identifier: BSD-2-Clause
/* What stands below the tables: how far the numbers can be trusted. */
#include "report/text.h"

#include "analysis/fidelity.h"
#include "base/cleanup.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static void amount(const struct report *r, const char *name, double ns, const char *words)
{
	char text[NUMBER_ROOM];

	text_duration(ns, text);
	(void)fprintf(r->out, "  %-12s%12s  %s\n", name, text, words);
}

static bool has_books(const struct analysis *a)
{
	return a->sums.hit_ns != 0 || a->growth_ns != 0 || a->sums.paid != 0 || a->sums.credited != 0 || a->owed_ns != 0;
}

static void print_fidelity(const struct report *r)
{
	const struct analysis *a = r->a;
	char text[NUMBER_ROOM];

	(void)fputc('\n', r->out);
	if (!has_books(a)) {
		(void)fputs("Fidelity: the profile has no record of delays.\n", r->out);
		return;
	}
	text_duration(a->elapsed_ns, text);
	heading(r, "Fidelity: %zu experiments, %s", r->p->n_experiments, text);
	amount(r, "earned", a->sums.hit_ns, "virtual time won by samples in the selected line");
	amount(r, "required", a->growth_ns, "delay that every other thread had to take for it");
	amount(r, "paid", a->sums.paid, "time that threads were really stopped");
	amount(r, "credited", a->sums.credited, "not to be paid: spent waiting for threads that had paid");
	if (a->sums.rq_credited != 0)
		amount(r, "cpu credit", a->sums.rq_credited, "not to be paid: spent waiting for a CPU behind threads that had paid");
	amount(r, "owed", a->owed_ns, "still open when experiments ended");
	amount(r, "forgiven", a->sums.forgiven, "open debts that ended with their experiment");
	amount(r, "oversleep", a->sums.oversleep, "stopped beyond what was owed, carried to the next payment");
	if (a->late_ns > 0)
		amount(r, "late", a->late_ns, "from a hit to the pause that it causes (median)");
	if (a->imbalance_max)
		amount(r, "imbalance", (double)a->imbalance_max, "largest gap in one thread's books");
}

static void print_foreign(const struct report *r)
{
	const struct analysis *a = r->a;

	if (a->foreign_flagged)
		paragraph(r, 2,
			  "Warning: %zu of %zu experiments ran with other programs taking CPU (%.1f %% of the wait time). "
			  "Effects can be off by several points, those with a * behind the verdict above all: repeat the run on a quiet machine.",
			  a->foreign_flagged, r->p->n_experiments, 100 * a->foreign);
	else if (a->foreign > 0.0005)
		paragraph(r, 2, "Other programs took CPU for %.1f %% of the wait time.", 100 * a->foreign);
}

static void print_stolen(const struct report *r)
{
	const struct analysis *a = r->a;

	if (a->stolen_flagged)
		paragraph(
			r, 2,
			"Warning: in %zu of %zu experiments the hypervisor gave CPU time of this machine to others (%.1f %% of what the program ran "
			"and waited for a CPU). Waits get longer by that, and so does what depends on them: repeat the run when the host is quiet.",
			a->stolen_flagged, r->p->n_experiments, 100 * a->stolen);
}

/* What it cost the machine to be looked at. */
static void print_machine(const struct report *r)
{
	const struct profile_machine *m = &r->p->machine;
	double scope = profile_machine_share(m->scope_ns, m->scope_of_ns);
	double own = profile_machine_share(m->own_ns, m->own_of_ns);
	double kernel = profile_machine_share(m->kernel_ns, m->kernel_of_ns);

	if (!isnan(scope))
		paragraph(
			r, 2,
			"Of the machine's CPU time the processes in scope took %.1f %%, their pauses included, and the rest of the machine %.1f %%.",
			100 * scope, 100 * profile_machine_share(m->foreign_ns, m->scope_of_ns));
	if (!isnan(own) && !isnan(kernel))
		paragraph(r, 2,
			  "cozbpf itself took %.2f %% of the machine's CPU time, and its programs in the kernel about %.2f %%, in and out of scope.",
			  100 * own, 100 * kernel);
	else if (!isnan(own))
		paragraph(r, 2, "cozbpf itself took %.2f %% of the machine's CPU time; its programs in the kernel were not timed.", 100 * own);
}

struct range {
	double least, most;
};

static void widen(struct range *range, double value)
{
	range->least = fmin(range->least, value); /* a NaN loses against a number */
	range->most = fmax(range->most, value);
}

static void print_range(const struct range *range, int digits, char text[2 * NUMBER_ROOM])
{
	if (range->most - range->least < 0.5 * pow(10, -digits))
		(void)snprintf(text, 2 * NUMBER_ROOM, "%.*f", digits, range->most);
	else
		(void)snprintf(text, 2 * NUMBER_ROOM, "%.*f to %.*f", digits, range->least, digits, range->most);
}

static void print_allowed(const struct report *r)
{
	struct range share = {NAN, NAN}, points = {NAN, NAN};
	double sampling = 0;
	char of[2 * NUMBER_ROOM], beside[2 * NUMBER_ROOM], cost[2 * NUMBER_ROOM] = "";

	for (size_t i = 0; i < r->a->n_points; i++)
		for (size_t j = 0; r->a->points[i].visits && j < r->a->points[i].n_lines; j++) {
			struct analysis_allowance allow = r->a->points[i].lines[j].allow;

			if (isnan(allow.share))
				continue;
			widen(&share, 100 * allow.share);
			widen(&points, 100 * fidelity_allowance(allow, 0));
			sampling = fmax(sampling, allow.sampling);
		}
	if (isnan(share.most))
		return;
	print_range(&share, 0, of);
	print_range(&points, 1, beside);
	if (sampling > 0)
		(void)snprintf(cost, sizeof(cost), " Samples took about %.*f %% of the threads' time.", sampling < 0.01 ? 1 : 0, 100 * sampling);
	paragraph(r, 2,
		  "Intervals hold the truth 95 times in 100: they allow for how experiments differ, and, beside that, for %s points "
		  "and %s %% of the effect, which the method itself can be off by.%s",
		  beside, of, cost);
}

static void print_intervals(const struct report *r)
{
	const struct analysis *a = r->a;

	print_allowed(r);
	if (a->marked)
		paragraph(r, 2,
			  "%zu of %zu experiments were outside the bounds of fidelity (2 %% of the time behind other programs, 3 %% taken by a "
			  "hypervisor, books off by 1 %%, "
			  "payments too long by a quarter, another sampling rate than in the end) and count for less, by how far they were, whatever "
			  "they showed.",
			  a->marked, r->p->n_experiments);
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_inclusive(const struct profile_startup *s)
{
	return s->attribution && strcmp(s->attribution, "inclusive") == 0;
}

static void print_attribution(const struct report *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->p->n_runs; i++)
		n += is_inclusive(&r->p->runs[i]);
	if (!n)
		return;
	paragraph(r, 2,
		  "Attribution is inclusive: a sample counts for every line of its call chain that can be tried, so shares add up to more "
		  "than 100 %%, and the effect of a line is that of all that it calls.");
	if (n < r->p->n_runs)
		paragraph(r, 2,
			  "Warning: %zu of %zu runs attributed samples to the first line only: their effects are not comparable. Report "
			  "them apart.",
			  r->p->n_runs - n, r->p->n_runs);
}

/* The distance of samples that the run has come to; that of its begin if it has no experiment. */
static uint64_t settled_period(const struct report *r, size_t run)
{
	uint64_t period = 0;

	for (size_t i = 0; i < r->p->n_experiments; i++)
		if (r->p->experiments[i].run == run && r->p->experiments[i].x.period_ns)
			period = r->p->experiments[i].x.period_ns;
	return period ? period : r->p->runs[run].period_ns;
}

/* How it was measured: each different way once. */
static void print_runs(const struct report *r)
{
	size_t shown = 0;

	for (size_t i = 0; i < r->p->n_runs && shown < 5; i++) {
		const struct profile_startup *s = &r->p->runs[i], *before = i ? s - 1 : NULL;
		_cleanup_free_ char *pay = text_clean(r, s->pay ? s->pay : "unknown");
		_cleanup_free_ char *sync = text_clean(r, s->sync ? s->sync : "unknown");
		_cleanup_free_ char *fallback = text_clean(r, s->fallback ? s->fallback : "");
		char period[NUMBER_ROOM];

		if (!s->pay && !s->version)
			continue; /* not by us */
		if (before && same(s->pay, before->pay) && same(s->sync, before->sync) && same(s->fallback, before->fallback) &&
		    s->seed == before->seed)
			continue;
		text_duration((double)settled_period(r, i), period);
		paragraph(r, 2, "Run %zu: delays paid by %s, waits followed by %s, sampled every %s, seed %" PRIu64 ".", i + 1, pay, sync, period,
			  s->seed);
		if (*fallback)
			paragraph(r, 2, "Fallback in use: %s", fallback);
		shown++;
	}
}

static void print_placebo(const struct report *r)
{
	for (size_t i = 0; i < r->a->n_points; i++) {
		const struct analysis_point *point = &r->a->points[i];
		_cleanup_free_ char *name = text_clean(r, point->name);

		if (!point->visits)
			continue;
		if (isfinite(point->placebo))
			paragraph(r, 2, "Noise floor of '%s': %s%.1f points (0 %% experiments against 0 %% experiments).", name,
				  r->utf8 ? "\u00b1" : "+-", 100 * point->placebo);
		else
			paragraph(r, 2, "Noise floor of '%s': unknown (it takes four experiments at 0 %%).", name);
	}
}

static void print_speed(const struct report *r)
{
	for (size_t i = 0; i < r->a->n_points; i++) {
		const struct analysis_point *point = &r->a->points[i];
		_cleanup_free_ char *name = text_clean(r, point->name);

		if (point->speed.slope > 0)
			paragraph(r, 2,
				  "The machine was not equally fast in all experiments, as the CPU time of a visit of '%s' tells. Corrected for that "
				  "they differ by %.1f %% instead of %.1f %%.",
				  name, 100 * point->speed.after, 100 * point->speed.before);
	}
}

#define UNATTRIBUTED_TOLD 0.05

/* Samples that no line can be blamed for are in what shares are of: they are time as well. */
static void print_unattributed(const struct report *r)
{
	double none = (double)r->p->unattributed, all = none + (double)r->p->sampled;

	if (none > UNATTRIBUTED_TOLD * all)
		paragraph(r, 2,
			  "%.0f %% of the samples belong to no line or function of the tables: they are in code out of scope that nothing in scope "
			  "called, "
			  "or in functions without a name. Shares are of all samples, these included.",
			  100 * none / all);
}

static bool any_verdict(const struct analysis *a, enum verdict v, enum undecided why)
{
	for (size_t i = 0; i < a->n_points; i++)
		for (size_t j = 0; a->points[i].visits && j < a->points[i].n_lines; j++)
			if (a->points[i].lines[j].verdict == v && a->points[i].lines[j].undecided == why)
				return true;
	return false;
}

/* For how long threads were held that should have slept, and how to have them sleep. */
static void print_held(const struct report *r)
{
	const struct profile *p = r->p;
	_cleanup_free_ char *command = text_clean(r, p->n_runs && p->runs[p->n_runs - 1].command ? p->runs[p->n_runs - 1].command : "");
	double most = 0;

	for (size_t i = 0; i < r->a->n_points; i++)
		for (size_t j = 0; r->a->points[i].visits && j < r->a->points[i].n_lines; j++)
			most = fmax(most, r->a->points[i].lines[j].held);
	if (most > 0)
		paragraph(r, 2, "Threads that should have slept were held for up to %.0f %% of the time in a line's experiments.", 100 * most);
	/* One line, however long, to be copied. */
	if (*command && any_verdict(r->a, VERDICT_UNDECIDED, UNDECIDED_INJECT))
		(void)fprintf(r->out, "With a handler: cozbpf %s --inject=auto\n", command);
}

void footer_print(const struct report *r)
{
	print_fidelity(r);
	print_foreign(r);
	print_stolen(r);
	print_machine(r);
	print_intervals(r);
	print_speed(r);
	print_placebo(r);
	costs_print(r);
	print_runs(r);
	print_attribution(r);
	print_unattributed(r);
	if (any_verdict(r->a, VERDICT_HURTS, UNDECIDED_OPEN))
		paragraph(r, 2,
			  "A negative effect means contention: if the line gets faster, threads meet more often where they "
			  "get in "
			  "each other's way (a lock, a cache line, a queue). Look there before you make it faster.");
	for (enum undecided why = UNDECIDED_OPEN + 1; why < N_UNDECIDED; why++)
		if (any_verdict(r->a, VERDICT_UNDECIDED, why))
			paragraph(r, 2, "%c%s: %s. %s", toupper(undecided_words[why].verdict[0]), undecided_words[why].verdict + 1,
				  undecided_words[why].why, undecided_words[why].more);
	print_held(r);
	if (any_verdict(r->a, VERDICT_UNDECIDED, UNDECIDED_OPEN))
		paragraph(r, 2,
			  "Undecided: the intervals are still too wide, in parentheses about how much longer to run. "
			  "Further runs "
			  "into the same file add up.");
	if (r->p->bad_lines)
		paragraph(r, 2, "%zu lines of the input were no records and were skipped (the first: line %zu).", r->p->bad_lines,
			  r->p->first_bad_line);
}
