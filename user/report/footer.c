// SPDX-License-Identifier: BSD-2-Clause
/* What stands below the tables: how far the numbers can be trusted. */
#include "report/text.h"

#include "analysis/fidelity.h"
#include "base/cleanup.h"
#include "base/memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool has_books(const struct analysis *a)
{
	return a->sums.hit_ns != 0 || a->growth_ns != 0 || a->sums.paid != 0 ||
	       a->sums.credited != 0 || a->owed_ns != 0;
}

size_t book_rows(const struct analysis *a, struct book_row rows[MAX_BOOK_ROWS])
{
	const struct book_row all[MAX_BOOK_ROWS] = {
		{"earned", a->sums.hit_ns, "virtual time won by samples in the selected line"},
		{"required", a->growth_ns, "delay that every other thread had to take for it"},
		{"paid", a->sums.paid, "time that threads were really stopped"},
		{"credited", a->sums.credited,
		 "not to be paid: spent waiting for threads that had paid"},
		{"cpu credit", a->sums.rq_credited,
		 "not to be paid: spent waiting for a CPU behind threads that had paid"},
		{"owed", a->owed_ns, "still open when experiments ended"},
		{"forgiven", a->sums.forgiven, "open debts that ended with their experiment"},
		{"oversleep", a->sums.oversleep,
		 "stopped beyond what was owed, carried to the next payment"},
		{"late", fmax(a->late_ns, 0), "from a hit to the pause that it causes (median)"},
		{"imbalance", (double)a->imbalance_max, "largest gap in one thread's books"},
	};
	size_t n = 0;

	for (size_t i = 0; has_books(a) && i < MAX_BOOK_ROWS; i++)
		/* What seldom happens is told where it did. */
		if (all[i].ns != 0 ||
		    (strcmp(all[i].name, "cpu credit") && strcmp(all[i].name, "late") &&
		     strcmp(all[i].name, "imbalance")))
			rows[n++] = all[i];
	return n;
}

#define FAIR_SHARE 0.1 /* of experiments outside the bounds of fidelity */
#define POOR_SHARE 0.5

const char *const light_names[] = {[LIGHT_UNKNOWN] = "unknown",
				   [LIGHT_POOR] = "poor",
				   [LIGHT_FAIR] = "fair",
				   [LIGHT_GOOD] = "good"};

static bool any_refused(const struct analysis *a)
{
	for (enum undecided why = UNDECIDED_LENT; why <= UNDECIDED_HELD; why++)
		if (any_verdict(a, VERDICT_UNDECIDED, why))
			return true;
	return false;
}

enum light fidelity_light(const struct analysis *a, size_t n_experiments, char **words)
{
	double share = n_experiments ? (double)a->marked / (double)n_experiments : 0;
	enum light light = !has_books(a)	? LIGHT_UNKNOWN
			   : any_refused(a)	? LIGHT_POOR
			   : share > POOR_SHARE ? LIGHT_POOR
			   : share > FAIR_SHARE ? LIGHT_FAIR
						: LIGHT_GOOD;

	if (light == LIGHT_UNKNOWN)
		*words = xstrdup("unknown: the profile has no record of delays");
	else if (any_refused(a))
		*words = xstrdup("poor: threads could not be paused as they should have been");
	else
		*words = xasprintf("%s: %zu of %zu experiment%s %s disturbed", light_names[light],
				   a->marked, n_experiments, plural(n_experiments),
				   a->marked == 1 ? "was" : "were");
	return light;
}

#define BOOK_COLUMNS 28 /* before the words */

static void print_books(const struct report *r)
{
	struct book_row rows[MAX_BOOK_ROWS];
	size_t n = book_rows(r->a, rows);

	for (size_t i = 0; i < n; i++) {
		(void)fprintf(r->out, "  %-12s%12s  ", rows[i].name,
			      text_duration(rows[i].ns).text);
		paragraph_rest(r, BOOK_COLUMNS, BOOK_COLUMNS, "%s", rows[i].words);
	}
}

/* Which part of what others took of the CPUs was the profiler's own process; 0: not known. */
static double own_part(const struct profile_machine *m)
{
	double own = profile_machine_share(m->own_ns, m->own_of_ns),
	       others = profile_machine_share(m->foreign_ns, m->scope_of_ns);

	return own > 0 && others > 0 ? fmin(own / others, 1) : 0;
}

static bool any_starred(const struct analysis *a)
{
	for (size_t i = 0; i < a->n_points; i++)
		for (size_t j = 0; a->points[i].visits && j < a->points[i].n_lines; j++)
			if (a->points[i].lines[j].foreign > ANALYSIS_FOREIGN_FLAG)
				return true;
	return false;
}

/* Experiments that are flagged now and then count for less, and that is all. Where most are, the
 * answer says so itself. */
static bool is_worth_a_warning(const struct report *r, size_t flagged)
{
	return (double)flagged > FAIR_SHARE * (double)r->p->n_experiments &&
	       !analysis_disturbed(r->p, r->a);
}

static void note_foreign(const struct report *r)
{
	const struct analysis *a = r->a;
	double own = own_part(&r->p->machine);
	bool theirs = a->foreign * (1 - own) > ANALYSIS_FOREIGN_FLAG / 2;
	struct words part = {""};

	if (own >= 0.1)
		part = text_words(", %.0f %% of that cozbpf itself", 100 * own);
	if ((is_worth_a_warning(r, a->foreign_flagged) && theirs) ||
	    (any_starred(a) && !analysis_disturbed(r->p, a)))
		note(r, NOTE_WARNING,
		     "%zu of %zu experiment%s ran with other programs taking CPU (%.1f %% of the "
		     "wait time%s). Effects can be off by several points, "
		     "those with a * behind the verdict above all: repeat the run on a quiet "
		     "machine.",
		     a->foreign_flagged, r->p->n_experiments, plural(r->p->n_experiments),
		     100 * a->foreign, part.text);
	else if (a->foreign > 0.0005)
		note(r, NOTE_DETAIL,
		     "Other programs took CPU for %.1f %% of the wait time%s; in %zu of %zu "
		     "experiment%s so much that they count for less.",
		     100 * a->foreign, part.text, a->foreign_flagged, r->p->n_experiments,
		     plural(r->p->n_experiments));
}

static void note_stolen(const struct report *r)
{
	const struct analysis *a = r->a;

	if (a->stolen_flagged)
		note(r, is_worth_a_warning(r, a->stolen_flagged) ? NOTE_WARNING : NOTE_DETAIL,
		     "in %zu of %zu experiment%s the hypervisor gave CPU time of this machine to "
		     "others (%.1f %% of what the program ran and waited "
		     "for a CPU). Waits get longer by that, and so does what depends on them: "
		     "repeat the run when the host is quiet.",
		     a->stolen_flagged, r->p->n_experiments, plural(r->p->n_experiments),
		     100 * a->stolen);
}

/* What it cost the machine to be looked at. */
static void note_machine(const struct report *r)
{
	const struct profile_machine *m = &r->p->machine;
	double scope = profile_machine_share(m->scope_ns, m->scope_of_ns);
	double own = profile_machine_share(m->own_ns, m->own_of_ns);
	double kernel = profile_machine_share(m->kernel_ns, m->kernel_of_ns);

	if (!isnan(scope))
		note(r, NOTE_DETAIL,
		     "Of the machine's CPU time the processes in scope took %.1f %%, their pauses "
		     "included, and the rest of the machine %.1f %%.",
		     100 * scope, 100 * profile_machine_share(m->foreign_ns, m->scope_of_ns));
	if (!isnan(own) && !isnan(kernel))
		note(r, NOTE_DETAIL,
		     "cozbpf itself took %.2f %% of the machine's CPU time, and its programs in "
		     "the kernel about %.2f %%, in and out of scope.",
		     100 * own, 100 * kernel);
	else if (!isnan(own))
		note(r, NOTE_DETAIL,
		     "cozbpf itself took %.2f %% of the machine's CPU time; its programs in the "
		     "kernel were not timed.",
		     100 * own);
}

struct range {
	double least, most;
};

static void widen(struct range *range, double value)
{
	range->least = fmin(range->least, value); /* a NaN loses against a number */
	range->most = fmax(range->most, value);
}

static struct words range_text(const struct range *range, int digits)
{
	if (range->most - range->least < 0.5 * pow(10, -digits))
		return text_words("%.*f", digits, range->most);
	return text_words("%.*f to %.*f", digits, range->least, digits, range->most);
}

static void note_allowed(const struct report *r)
{
	struct range share = {NAN, NAN}, points = {NAN, NAN};
	double sampling = 0;
	struct words cost = {""};

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
	if (sampling > 0)
		cost = text_words(" Samples took about %.*f %% of the threads' time.",
				  sampling < 0.01 ? 1 : 0, 100 * sampling);
	note(r, NOTE_DETAIL,
	     "Intervals hold the truth 95 times in 100: they allow for how experiments differ, and "
	     "also for %s points and %s %% of the "
	     "effect, which the method itself can be off by.%s",
	     range_text(&points, 1).text, range_text(&share, 0).text, cost.text);
}

static void note_intervals(const struct report *r)
{
	const struct analysis *a = r->a;

	note_allowed(r);
	if (a->marked)
		note(r, NOTE_DETAIL,
		     "%zu of %zu experiment%s %s outside the bounds of fidelity (2 %% of the time "
		     "behind other programs, 3 %% taken by a "
		     "hypervisor, books off by 1 %%, payments too long by a quarter, another "
		     "sampling rate than in the end) and count for less, by "
		     "how far that was, whatever they showed.",
		     a->marked, r->p->n_experiments, plural(r->p->n_experiments),
		     a->marked == 1 ? "was" : "were");
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_inclusive(const struct profile_startup *s)
{
	return s->attribution && strcmp(s->attribution, "inclusive") == 0;
}

static void note_attribution(const struct report *r)
{
	size_t n = 0;

	for (size_t i = 0; i < r->p->n_runs; i++)
		n += is_inclusive(&r->p->runs[i]);
	if (!n)
		return;
	note(r, NOTE_PLAIN,
	     "Attribution is inclusive: a sample counts for every line of its call chain that can "
	     "be tried, so shares add up to more than 100 %%, "
	     "and the effect of a line is that of all that it calls.");
	if (n < r->p->n_runs)
		note(r, NOTE_WARNING,
		     "%zu of %zu runs attributed samples to the first line only: their effects are "
		     "not comparable. Report them apart.",
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
static void note_runs(const struct report *r)
{
	size_t shown = 0;

	for (size_t i = 0; i < r->p->n_runs && shown < 5; i++) {
		const struct profile_startup *s = &r->p->runs[i], *before = i ? s - 1 : NULL;

		if (!s->pay && !s->version)
			continue; /* not by us */
		if (before && same(s->pay, before->pay) && same(s->sync, before->sync) &&
		    same(s->fallback, before->fallback) && s->seed == before->seed)
			continue;
		note(r, NOTE_DETAIL,
		     "Run %zu: delays paid by %s, waits followed by %s, sampled every %s, seed "
		     "%" PRIu64 ".",
		     i + 1, s->pay ? s->pay : "unknown", s->sync ? s->sync : "unknown",
		     text_duration((double)settled_period(r, i)).text, s->seed);
		if (s->fallback && *s->fallback)
			note(r, NOTE_DETAIL, "Fallback in use: %s", s->fallback);
		shown++;
	}
}

/* Points in code that several functions share: each different text once. */
static void note_shared(const struct report *r)
{
	for (size_t i = 0; i < r->p->n_runs; i++) {
		const char *text = r->p->runs[i].shared;
		size_t before = 0;

		while (text && before < i && !same(text, r->p->runs[before].shared))
			before++;
		if (text && before == i)
			note(r, NOTE_WARNING, "%s, since the code is one.", text);
	}
}

static void note_placebo(const struct report *r)
{
	for (size_t i = 0; i < r->a->n_points; i++) {
		const struct analysis_point *point = &r->a->points[i];

		if (!point->visits || analysis_slopes_only(point))
			continue;
		if (isfinite(point->placebo))
			note(r, NOTE_DETAIL,
			     "Noise floor of '%s': %s%.1f points (0 %% experiments against 0 %% "
			     "experiments).",
			     point->name, r->utf8 ? "\u00b1" : "+-", 100 * point->placebo);
		else
			note(r, NOTE_DETAIL,
			     "Noise floor of '%s': unknown (it takes four experiments at 0 %%).",
			     point->name);
	}
}

static void note_speed(const struct report *r)
{
	for (size_t i = 0; i < r->a->n_points; i++) {
		const struct analysis_point *point = &r->a->points[i];

		if (point->speed.slope > 0)
			note(r, NOTE_DETAIL,
			     "The machine was not equally fast in all experiments, as the CPU time "
			     "of a visit of '%s' tells. Corrected for that they "
			     "differ by %.1f %% instead of %.1f %%.",
			     point->name, 100 * point->speed.after, 100 * point->speed.before);
	}
}

#define UNATTRIBUTED_TOLD 0.05
#define UNATTRIBUTED_MUCH 0.2

/* Samples that no line can be blamed for are in what shares are of: they are time as well. */
static void note_unattributed(const struct report *r)
{
	double none = (double)r->p->unattributed, all = none + (double)r->p->sampled;
	double too_deep = (double)r->p->too_deep, cut_short = (double)r->p->cut_short;
	struct words deep = {""}, cut = {""};
	_cleanup_free_ char *objects = elsewhere_text(r, all);

	if (too_deep > 0)
		deep = text_words("%.1f %% had call chains of more frames than are looked at, ",
				  100 * too_deep / all);
	if (cut_short > 0)
		cut = text_words("%.1f %% call chains that could not be followed to their end, ",
				 100 * cut_short / all);
	if (none > UNATTRIBUTED_TOLD * all)
		note(r, none < UNATTRIBUTED_MUCH * all ? NOTE_DETAIL : NOTE_PLAIN,
		     "%.0f %% of the samples belong to no line or function of the tables: %s%s%s "
		     "are in code out of scope that nothing in scope "
		     "called, or in functions without a name%s%s%s. Shares are of all samples, "
		     "these "
		     "included.",
		     100 * none / all, deep.text, cut.text,
		     too_deep + cut_short > 0 ? "the others" : "they",
		     objects ? " (of all samples, " : "", objects ? objects : "",
		     objects ? ")" : "");
}

#define MOST_STRIPPED 4 /* files that are named */

/* Is the location a function "FILE+0xPLACE" of that file? */
static bool is_named_after(const char *location, const char *path)
{
	const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
	size_t n = strlen(file);

	return strncmp(location, file, n) == 0 && strncmp(location + n, "+0x", 3) == 0;
}

/* The file of a function without a name; NULL: it is not known. */
static const struct profile_addresses *file_without_names(const struct profile *p,
							  const char *location)
{
	for (size_t i = 0; strstr(location, "+0x") && i < p->n_addresses; i++)
		if (is_named_after(location, p->addresses[i].path))
			return &p->addresses[i];
	return NULL;
}

/* The files whose functions are called after their place, with their build ids; NULL: none. The
 * caller's. */
static char *stripped_files(const struct profile *p)
{
	const struct profile_addresses *found[MOST_STRIPPED];
	size_t n = 0, size;
	char *text = NULL;
	FILE *f;

	for (size_t i = 0; i < p->n_samples && n < MOST_STRIPPED; i++) {
		const struct profile_addresses *file =
			file_without_names(p, p->samples[i].location);
		size_t k = 0;

		while (k < n && found[k] != file)
			k++;
		if (file && k == n)
			found[n++] = file;
	}
	if (!n)
		return NULL;
	f = xopen_memstream(&text, &size);
	for (size_t i = 0; i < n; i++)
		(void)fprintf(f, "%s%s%s%s%s", i ? ", " : "", found[i]->path,
			      found[i]->build ? " (build id " : "",
			      found[i]->build ? found[i]->build : "", found[i]->build ? ")" : "");
	xclose_memstream(f);
	return text;
}

static void note_names(const struct report *r)
{
	_cleanup_free_ char *stripped = stripped_files(r->p);

	if (stripped)
		note(r, NOTE_PLAIN,
		     "Functions called FILE+0xPLACE have no name, since the file was stripped. Its "
		     "debug symbols would name them, from the distribution's package of them or by "
		     "--debug-dir: %s.",
		     stripped);
}

/* What the profiler took of the chains of events that slopes are shares of. */
static void note_self(const struct report *r)
{
	for (size_t i = 0; i < r->a->n_points; i++) {
		const struct analysis_point *point = &r->a->points[i];

		if (isfinite(point->self_share))
			note(r, NOTE_DETAIL,
			     "Samples and probes took %.1f %% of what leads to visits of '%s'; "
			     "slopes are without it.",
			     100 * point->self_share, point->name);
	}
}

/* The largest of the points' noise floors; NaN: none is known. */
static double noise_floor(const struct analysis *a)
{
	double most = NAN;

	for (size_t i = 0; i < a->n_points; i++)
		if (a->points[i].visits && analysis_was_tried(&a->points[i]))
			most = fmax(most, a->points[i].placebo); /* a NaN loses against a number */
	return most;
}

static void print_fidelity(const struct report *r)
{
	const char *more = r->verbose ? "" : " --verbose says more.";
	double floor = noise_floor(r->a);
	struct words noise = {""};
	_cleanup_free_ char *words = NULL;

	(void)fputc('\n', r->out);
	if (!r->p->n_experiments && r->p->n_slopes) {
		paragraph(r, 2, "Fidelity: nothing was paused.%s", more);
		return;
	}
	(void)fidelity_light(r->a, r->p->n_experiments, &words);
	if (isfinite(floor))
		noise = text_words("; noise floor %s%.1f points", r->utf8 ? "\u00b1" : "+-",
				   100 * floor);
	paragraph(r, 2, "Fidelity: %s%s.%s", words, noise.text, more);
}

char *run_times_text(const struct report *r)
{
	const struct analysis_run_times *t = &r->a->run_times;
	const char *around = r->utf8 ? "\u00b1" : "+-";

	if (t->n < 2)
		return NULL;
	return xasprintf(
		"Run time: %s %s %s (mean %s %s of %zu runs%s), %s to %s; user %s, system %s.",
		text_duration(t->mean_ns).text, around, text_duration(t->deviation_ns).text, around,
		r->utf8 ? "\u03c3" : "sigma", t->n, r->a->growth_ns > 0 ? ", without pauses" : "",
		text_duration(t->least_ns).text, text_duration(t->most_ns).text,
		text_duration(t->user_ns).text, text_duration(t->system_ns).text);
}

/* The rules and the remedies are hyperfine's. */
static void note_run_times(const struct report *r)
{
	const struct analysis_run_times *t = &r->a->run_times;

	if (t->n < 2 || !t->outliers)
		return;
	if (t->first_is_slow)
		note(r, NOTE_WARNING,
		     "The first run was much slower than the others: caches may have been filled "
		     "by "
		     "it. With --warmup runs come before it that are not measured; --prepare can "
		     "empty the caches before each run.");
	else
		note(r, NOTE_WARNING,
		     "%zu of %zu run times %s: something else may have disturbed the runs. "
		     "Repeat them on a quiet machine; --warmup or --prepare may help as well.",
		     t->outliers, t->n, t->outliers == 1 ? "is an outlier" : "are outliers");
}

void footer_print(const struct report *r, const struct notes *run)
{
	print_fidelity(r);
	if (r->verbose)
		print_books(r);
	notes_print(r, run, false);
	next_print(r);
}

void footer_notes(const struct report *r)
{
	note_run_times(r);
	note_foreign(r);
	note_stolen(r);
	note_machine(r);
	note_intervals(r);
	note_speed(r);
	note_placebo(r);
	note_self(r);
	costs_notes(r);
	note_runs(r);
	note_attribution(r);
	note_shared(r);
	note_unattributed(r);
	note_names(r);
	jit_notes(r);
	verdict_notes(r);
	if (r->p->bad_lines)
		note(r, NOTE_PLAIN,
		     "%zu line%s of the input %s no record%s and %s skipped (the first: line "
		     "%zu).",
		     r->p->bad_lines, plural(r->p->bad_lines),
		     r->p->bad_lines == 1 ? "was" : "were", plural(r->p->bad_lines),
		     r->p->bad_lines == 1 ? "was" : "were", r->p->first_bad_line);
}
