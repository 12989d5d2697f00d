// SPDX-License-Identifier: BSD-2-Clause
/* Why a profile is empty, and what to do. The most frequent question about causal profilers. */
#include "report/text.h"

#include "base/cleanup.h"
#include "base/memory.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* A line takes some 20 experiments of half a second for a first verdict, and a profile some lines.
 */
#define USEFUL_RUN_S 60.0
#define SHORT_RUN_S 10.0

static void add_name(const char **names, size_t *n, const char *name)
{
	for (size_t i = 0; i < *n; i++)
		if (strcmp(names[i], name) == 0)
			return;
	names[(*n)++] = name;
}

/* Was anything seen of the point? A latency point may have had begins or ends that do not match. */
static bool point_was_seen(const struct analysis_point *p)
{
	const struct analysis_intervals *in = p->intervals;

	return p->visits || (in && (in->unmatched > 0 || in->unended > 0 || in->crossed > 0 ||
				    in->lost > 0 || in->in_flight > 0));
}

const char **silent_points(const struct report *r)
{
	const char **names = xcalloc(r->a->n_points + r->h->n_silent_points + 1, sizeof(*names));
	size_t n = 0;

	for (size_t i = 0; i < r->a->n_points; i++)
		if (!point_was_seen(&r->a->points[i]))
			add_name(names, &n, r->a->points[i].name);
	for (size_t i = 0; i < r->h->n_silent_points; i++)
		add_name(names, &n, r->h->silent_points[i]);
	return names;
}

static double run_seconds(const struct report *r)
{
	if (r->h->run_s > 0)
		return r->h->run_s;
	return r->p->runtime_ns ? (double)r->p->runtime_ns / 1e9 : r->a->elapsed_ns / 1e9;
}

/* Begins and ends were there, but no interval of both. */
bool intervals_missing(const struct report *r)
{
	bool some = false;

	for (size_t i = 0; i < r->a->n_points; i++) {
		const struct analysis_point *p = &r->a->points[i];

		if (!p->intervals || p->visits || !point_was_seen(p))
			continue;
		note(r, NOTE_REASON,
		     "Latency point '%s' has begins or ends, but no interval in an experiment: "
		     "%.0f ends without a begin, %.0f begins without an "
		     "end, %.0f lost, %.0f longer than the experiment's part before them. If "
		     "another thread ends what one began, they need a key: "
		     ",key=argN. Long intervals need long experiments: --experiment.",
		     p->name, p->intervals->unmatched, p->intervals->unended, p->intervals->lost,
		     p->intervals->crossed);
		some = true;
	}
	return some;
}

/* One reason a line; returns whether it applied. */
static bool no_samples(const struct report *r)
{
	uint64_t in = r->h->samples_in_scope, out = r->h->samples_out_of_scope;
	_cleanup_free_ char *objects = elsewhere_text(r, (double)r->p->unattributed);

	if (r->p->n_samples || in)
		return false;
	if (out)
		note(r, NOTE_REASON,
		     "No sample fell into the scope; all %" PRIu64
		     " fell outside it%s%s. The scope is the program's own sources unless --source "
		     "and "
		     "--binary say otherwise: widen it with --binary '*' or --source GLOB.",
		     out, objects ? ": " : "", objects ? objects : "");
	else
		note(r, NOTE_REASON,
		     "There are no samples: the program hardly ran on a CPU. A causal profile "
		     "speeds up code that runs; a program that only waits has none.");
	return true;
}

static bool no_lines(const struct report *r)
{
	const char *name = r->h->no_debug_info;

	if (!name &&
	    !(r->h->samples_without_line && r->h->samples_without_line >= r->h->samples_in_scope))
		return false;
	if (!name)
		note(r, NOTE_REASON,
		     "%" PRIu64 " of %" PRIu64
		     " samples in scope belong to no line or function of it: they fell into code "
		     "that the compiler names no line for, or into a "
		     "library's, the language's or the system's sources. These are tried with "
		     "--source '*'.",
		     r->h->samples_without_line, r->h->samples_in_scope);
	else if (r->h->by_function)
		note(r, NOTE_REASON,
		     "%s has no function symbols: %" PRIu64 " of %" PRIu64
		     " samples in scope belong to no function. Do not strip it.",
		     name, r->h->samples_without_line, r->h->samples_in_scope);
	else
		note(r, NOTE_REASON,
		     "%s has no debug information: %" PRIu64 " of %" PRIu64
		     " samples in scope belong to no line. Build with -g, or use --granularity "
		     "function.",
		     name, r->h->samples_without_line, r->h->samples_in_scope);
	return true;
}

static bool no_visits(const struct report *r)
{
	_cleanup_free_ const char **names = silent_points(r);
	bool some = false;

	for (size_t i = 0; names[i]; i++) {
		some = true;
		note(r, NOTE_REASON,
		     "Progress point '%s' never fired. Is it on the path that the program takes, "
		     "once per unit of work? A function that was inlined "
		     "everywhere is never entered: use FILE:LINE.",
		     names[i]);
	}
	return some;
}

static bool no_points(const struct report *r)
{
	if (r->a->n_points || r->h->n_silent_points || r->p->n_experiments == 0)
		return false;
	note(r, NOTE_REASON,
	     "There is no progress point: name what counts as progress with -p FUNCTION or -p "
	     "FILE:LINE (`cozbpf list points` shows some), or "
	     "measure a program that ends as a whole: `cozbpf run --repeat 20` runs it 20 times.");
	if (r->h->n_proposals)
		note(r, NOTE_COMMAND, "Passed meanwhile, one of which may be a unit of its work:");
	for (size_t i = 0; i < r->h->n_proposals; i++)
		note(r, NOTE_COMMAND, "  %s", r->h->proposals[i]);
	return true;
}

static bool too_short(const struct report *r)
{
	double s = run_seconds(r);

	if (r->p->n_experiments >= 4 && s >= SHORT_RUN_S)
		return false;
	if (r->p->n_experiments == 0)
		note(r, NOTE_REASON,
		     "No experiment was completed%s. The run lasted %.1f s; a first verdict on a "
		     "few lines takes about %.0f s of work. Give the "
		     "program more to do, or repeat the run: runs into the same file add up.",
		     s < SHORT_RUN_S ? ": the run was too short" : "", s, USEFUL_RUN_S);
	else
		note(r, NOTE_REASON,
		     "Only %zu experiment%s in %.1f s: a first verdict on a few lines takes about "
		     "%.0f s. Runs into the same file add up.",
		     r->p->n_experiments, plural(r->p->n_experiments), s, USEFUL_RUN_S);
	note_again(r);
	return true;
}

static void seen_objects(const struct report *r)
{
	if (r->h->n_seen_objects)
		note(r, NOTE_COMMAND, "Files that samples fell into:");
	for (size_t i = 0; i < r->h->n_seen_objects; i++)
		note(r, NOTE_COMMAND, "  %s", r->h->seen_objects[i]);
}

bool report_is_empty(const struct analysis *a)
{
	for (size_t i = 0; i < a->n_points; i++)
		if (a->points[i].visits && a->points[i].n_lines)
			return false;
	return true;
}

void empty_notes(const struct report *r)
{
	bool known = false;

	known |= no_visits(r);
	known |= intervals_missing(r);
	known |= no_points(r);
	known |= no_lines(r);
	/* A Coz file without a sample log is no sign of a program without samples. */
	if (r->p->n_experiments == 0 || r->h->samples_out_of_scope)
		known |= no_samples(r);
	known |= too_short(r);
	if (!known)
		note(r, NOTE_REASON, "No experiment saw a visit of a progress point.");
	seen_objects(r);
}
