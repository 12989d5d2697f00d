// SPDX-License-Identifier: BSD-2-Clause
/* The report at the end of a run, with what the run knows beside its profile. */
#include "cli/run/run.h"

#include "cli/run/report_choice.h"

#include "analysis/analysis.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/jit.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/shell.h"
#include "base/waits.h"
#include "program/code/map.h"
#include "kernel/counting/candidates.h"
#include "experiment/runner.h"
#include "points/points.h"
#include "report/report.h"
#include "shared/abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHORT_RUN_NS (10 * NSEC_PER_SEC)
#define MOST_PROPOSALS 18

/* Of a program that ended by itself too soon for a verdict: the command that starts it as often as
 * it takes; else NULL. The caller's. */
static char *command_again(const struct run *r)
{
	const struct run_options *o = &r->options;
	char *text = NULL;
	size_t size;
	FILE *f;

	if (o->kind != RUN_LAUNCH || o->runs || o->repeat || r->terminated || r->interrupted ||
	    !r->n_runner_points || run_exit_status(r) != 0 || r->profile.runtime_ns >= SHORT_RUN_NS)
		return NULL;
	f = xopen_memstream(&text, &size);
	(void)fputs("cozbpf run --repeat auto", f);
	if (!(o->until_ci > 0))
		(void)fputs(" --until-ci 5", f);
	for (size_t i = 1; o->words[i]; i++)
		shell_put(f, o->words[i]);
	xclose_memstream(f);
	return text;
}

/* The object that a line or function is in; SIZE_MAX: in none that is known, or in no file. */
static size_t object_of(const struct run *r, const char *location)
{
	struct addr_range first;
	size_t n;

	if (jit_is_name(location) || code_map_intervals(r->code, location, &first, 1, &n) < 0 ||
	    ABI_CODE_OBJECT(first.lo) >= code_map_count(r->code) ||
	    *code_map_path(r->code, ABI_CODE_OBJECT(first.lo)) == '[')
		return SIZE_MAX;
	return ABI_CODE_OBJECT(first.lo);
}

/* Of a run that began with a wrapper: the executable with the most samples, in words; else NULL.
 * The caller's. */
static char *program_of_wrapper(const struct run *r)
{
	size_t n = code_map_count(r->code), best = SIZE_MAX;
	_cleanup_free_ uint64_t *samples = r->wrapper ? xcalloc(n, sizeof(*samples)) : NULL;
	uint64_t all = 0;

	if (!samples)
		return NULL;
	for (size_t i = 0; i < r->profile.n_samples; i++) {
		size_t object = object_of(r, r->profile.samples[i].location);

		if (wait_of(r->profile.samples[i].location, NULL) ||
		    jit_is_name(r->profile.samples[i].location))
			continue;
		all += r->profile.samples[i].count;
		if (object < n)
			samples[object] += r->profile.samples[i].count;
	}
	for (size_t i = 0; i < n; i++)
		if (samples[i] && (best == SIZE_MAX || samples[i] > samples[best]))
			best = i;
	/* The first one is the wrapper itself. */
	if (best == SIZE_MAX || best == 0)
		return NULL;
	return xasprintf("%s started %s, which has %.0f %% of the samples in scope", r->path,
			 code_map_path(r->code, best), 100 * (double)samples[best] / (double)all);
}

static size_t silent_points(struct run *r, const char **ret)
{
	struct backend_totals t;
	size_t n = 0;

	if (session_backend.snapshot(r->session, &t) < 0)
		return 0;
	for (size_t i = 0; i < t.n_points; i++)
		if (!t.points[i].visits && !t.points[i].departures)
			ret[n++] = points_shown(session_points(r->session), i)->name;
	return n;
}

struct proposals {
	char *all[MOST_PROPOSALS];
	size_t n;
};

static void proposals_free(struct proposals *p)
{
	for (size_t i = 0; i < p->n; i++)
		free(p->all[i]);
}

/* Of a run without a point: "-p NAME", and how often it is passed. */
static struct proposals propose(const struct run *r)
{
	const struct candidate *all = NULL;
	size_t n = run_proposals(r, &all), size;
	struct proposals p = {.n = 0};

	for (size_t i = 0; i < n && p.n < MOST_PROPOSALS; i++) {
		FILE *f = xopen_memstream(&p.all[p.n], &size);

		(void)fputs("-p", f);
		shell_put(f, all[i].point);
		(void)fprintf(f, "   (%.0f a second)", all[i].per_s);
		xclose_memstream(f);
		p.n++;
	}
	return p;
}

int run_print_report(struct run *r)
{
	_cleanup_(proposals_free) struct proposals proposed = propose(r);
	_cleanup_free_ char *counters = session_counters(r->session), *again = command_again(r);
	_cleanup_free_ char *program = program_of_wrapper(r);
	const char *silent[ABI_MAX_POINTS], *without = NULL;
	bool by_function = code_map_by_function(r->code);
	struct abi_totals totals = {0};
	struct runner_status s;
	struct error e = {0};
	_cleanup_(analysis_free) struct analysis a = {0};

	if (code_map_warning(r->code))
		(void)log_error("warning: %s", code_map_warning(r->code));
	if (r->options.no_report)
		return 0;
	if (program)
		(void)log_error("%s", program);
	/* As `cozbpf report` does, so that both say the same. */
	analyse(&r->profile, r->profile.runs[0].seed, &a);
	runner_get_status(r->runner, &s);
	(void)session_totals(r->session, &totals);
	(void)code_map_without_names(r->code, &without, &by_function);
	struct report_hints h = {
		.silent_points = silent,
		.n_silent_points = silent_points(r, silent),
		.no_debug_info = s.sums.no_debug_info ? without : NULL,
		.by_function = by_function,
		.samples_in_scope = s.sums.samples,
		.samples_out_of_scope = totals.samples_outside,
		.samples_without_line = s.sums.without_line,
		.run_s = (double)r->profile.runtime_ns / (double)NSEC_PER_SEC,
		.proposals = (const char *const *)proposed.all,
		.n_proposals = proposed.n,
		.again = again,
		.profile = r->options.output,
		.kernel_counters = counters[0] ? counters : NULL,
	};
	if (report_choice_print(&r->options.report, &r->profile, &a, &h, &e) < 0)
		return log_error("%s; `cozbpf report %s` prints it again", e.text,
				 r->options.output);
	return 0;
}
