// SPDX-License-Identifier: BSD-2-Clause
/* The analysis for other programs: one JSON object. What is unknown is null. */
#include "report/inlined.h"
#include "report/report.h"
#include "report/text.h"

#include "analysis/fidelity.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/waits.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <string.h>

/* Changes when a key changes its meaning or goes. New keys may come at any time. */
#define SCHEMA 1

static int add(struct json_object *to, const char *key, struct json_object *value)
{
	return json_object_object_add(to, key, value);
}

int json_add_number(struct json_object *to, const char *key, double v)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%.9g", v);
	return add(to, key, isfinite(v) ? json_object_new_double_s(v, text) : NULL);
}

static int add_count(struct json_object *to, const char *key, uint64_t v)
{
	return add(to, key, json_object_new_uint64(v));
}

int json_add_string(struct json_object *to, const char *key, const char *v)
{
	_cleanup_free_ char *clean = v ? utf8_clean(v, strlen(v)) : NULL;

	if (v && !clean)
		return -ENOMEM;
	return add(to, key, clean ? json_object_new_string(clean) : NULL);
}

static int add_effect(struct json_object *to, double effect, double low, double high)
{
	return json_add_number(to, "effect", effect) | json_add_number(to, "low", low) |
	       json_add_number(to, "high", high);
}

int json_add_change(struct json_object *to, const char *key, struct analysis_change c)
{
	struct json_object *o = json_object_new_object();
	int r = add(to, key, o);

	return r || !o ? -ENOMEM : add_effect(o, c.effect, c.low, c.high);
}

/* @o, of which everything was added if @r is 0; else NULL. */
static struct json_object *whole(struct json_object *o, int r)
{
	if (!r)
		return o;
	json_object_put(o);
	return NULL;
}

static struct json_object *cells_of(const struct analysis_line *line)
{
	struct json_object *cells = json_object_new_array(), *o;
	int r = 0;

	for (size_t i = 0; cells && i < line->n_cells; i++) {
		const struct analysis_cell *c = &line->cells[i];

		o = json_object_new_object();
		r |= json_object_array_add(cells, o) | json_add_number(o, "speedup", c->speedup) |
		     add_count(o, "experiments", c->experiments) |
		     json_add_number(o, "visits", c->visits) |
		     json_add_number(o, "period_ns", c->period_ns) |
		     add_effect(o, c->effect, c->low, c->high);
	}
	return whole(cells, r);
}

static struct json_object *curve_of(const struct analysis_curve *c, struct analysis_allowance allow)
{
	struct json_object *curve = json_object_new_object(), *at = json_object_new_array(), *o;
	int r = 0;

	r |= add(curve, "at", at);
	for (size_t i = 0; at && i < ANALYSIS_CURVE_POINTS; i++) {
		o = json_object_new_object();
		r |= json_object_array_add(at, o) |
		     json_add_number(o, "speedup", analysis_curve_speedups[i]) |
		     add_effect(o, c->at[i].effect, c->at[i].low, c->at[i].high) |
		     json_add_number(o, "method", fidelity_allowance(allow, c->at[i].effect));
	}
	r |= json_add_number(curve, "knee", c->knee) |
	     json_add_number(curve, "knee_low", c->knee_low) |
	     json_add_number(curve, "knee_high", c->knee_high) |
	     json_add_number(curve, "knee_effect", c->knee_effect) |
	     json_add_number(curve, "slope_after", c->slope_after);
	return whole(curve, r);
}

static struct json_object *changes_of(const struct analysis_change *c)
{
	struct json_object *o = json_object_new_object();

	return whole(o, add_effect(o, c->effect, c->low, c->high));
}

static struct json_object *latency_cell_of(const struct analysis_latency_cell *c)
{
	struct json_object *o = json_object_new_object(), *change;
	int r = json_add_number(o, "speedup", c->speedup) |
		add_count(o, "experiments", c->experiments) |
		json_add_number(o, "intervals", c->intervals);

	for (int s = 0; s < N_LATENCY_STATISTICS; s++) {
		change = changes_of(&c->change[s]);
		r |= change ? json_add_number(change, "ns", c->ns[s]) : -ENOMEM;
		r |= add(o, latency_statistic_name((enum latency_statistic)s), change);
	}
	return whole(o, r);
}

static struct json_object *latency_of(const struct analysis_latency *l)
{
	struct json_object *latency = json_object_new_object(), *at = json_object_new_array(),
			   *cells = json_object_new_array(), *o;
	int r = add(latency, "at", at);

	r |= add(latency, "cells", cells);
	for (size_t k = 0; at && k < ANALYSIS_CURVE_POINTS; k++) {
		o = json_object_new_object();
		r |= json_object_array_add(at, o) |
		     json_add_number(o, "speedup", analysis_curve_speedups[k]);
		for (int s = 0; s < N_LATENCY_STATISTICS; s++)
			r |= add(o, latency_statistic_name((enum latency_statistic)s),
				 changes_of(&l->at[s][k]));
	}
	for (size_t i = 0; cells && i < l->n_cells; i++)
		r |= json_object_array_add(cells, latency_cell_of(&l->cells[i]));
	return whole(latency, r);
}

static struct json_object *intervals_of(const struct analysis_intervals *in)
{
	struct json_object *o = json_object_new_object(), *ns = json_object_new_object();
	int r = add(o, "ns", ns) | json_add_number(o, "intervals", in->intervals) |
		json_add_number(o, "in_flight", in->in_flight) |
		json_add_number(o, "unmatched", in->unmatched) |
		json_add_number(o, "unended", in->unended) |
		json_add_number(o, "crossed", in->crossed) | json_add_number(o, "lost", in->lost) |
		json_add_number(o, "distance_ns", in->distance_ns);

	for (int s = 0; s < N_LATENCY_STATISTICS; s++)
		r |= json_add_number(ns, latency_statistic_name((enum latency_statistic)s),
				     in->ns[s]);
	return whole(o, r);
}

static int add_text(struct json_object *to, const char *text)
{
	_cleanup_free_ char *clean = utf8_clean(text, strlen(text));

	return clean ? json_object_array_add(to, json_object_new_string(clean)) : -ENOMEM;
}

/* Copies of the line, and of what was inlined into it: samples, and source lines from the innermost
 * out. */
static struct json_object *copies_of(const struct profile *p, const char *selected)
{
	struct json_object *copies = json_object_new_array(), *o, *lines;
	const struct profile_samples *s = profile_find_samples(p, selected);
	_cleanup_free_ char *text = s && s->inlined ? strdup(s->inlined) : NULL;
	struct inlined_copy c;
	char *at = text;
	int r = s && s->inlined && !text ? -ENOMEM : 0;

	while (copies && r == 0 && at && inlined_next(&at, &c)) {
		o = json_object_new_object();
		lines = json_object_new_array();
		r |= json_object_array_add(copies, o) | add_count(o, "samples", c.count) |
		     add(o, "lines", lines);
		for (size_t i = 0; lines && i < c.n; i++)
			r |= add_text(lines, c.lines[i]);
	}
	return whole(copies, r);
}

/* A new object in @list, of the class that has this number. */
static struct json_object *add_class(struct json_object *list, size_t number, int *r)
{
	struct json_object *o = json_object_new_object();

	*r |= json_object_array_add(list, o) |
	      json_add_string(o, "class", profile_class_names[number]);
	return o;
}

/* The line's share of intervals, by how long they are. */
static struct json_object *by_class_of(const struct analysis_line *l)
{
	struct json_object *list = json_object_new_array();
	int r = 0;

	for (size_t i = 0; list && i < PROFILE_CLASSES; i++) {
		struct json_object *o = add_class(list, i, &r);

		r |= json_add_number(o, "share", l->in_class[i].effect) |
		     json_add_number(o, "low", l->in_class[i].low) |
		     json_add_number(o, "high", l->in_class[i].high);
	}
	return whole(list, r);
}

static struct json_object *classes_of(const struct analysis_point *p)
{
	struct json_object *list = json_object_new_array();
	int r = 0;

	for (size_t i = 0; list && i < PROFILE_CLASSES; i++) {
		struct json_object *o = add_class(list, i, &r);

		r |= add_count(o, "intervals", p->classes[i].n) |
		     json_add_number(o, "mean_ns", p->classes[i].mean_ns);
	}
	return whole(list, r);
}

static struct json_object *line_of(const struct profile *all, const struct analysis_line *l,
				   bool spins, bool classes)
{
	char verdict[NUMBER_ROOM];
	struct json_object *o = json_object_new_object();
	int r = json_add_string(o, "selected", l->selected) |
		json_add_string(o, "function", l->function) |
		json_add_number(o, "share", l->share) |
		json_add_number(o, "slope", l->slope.effect) |
		json_add_number(o, "slope_low", l->slope.low) |
		json_add_number(o, "slope_high", l->slope.high) |
		json_add_string(o, "wait", l->wait ? wait_name(l->wait) : NULL) |
		add_count(o, "experiments", l->experiments) |
		json_add_string(o, "verdict", verdict_name(l->verdict)) |
		json_add_string(o, "undecided_why", undecided_words[l->undecided].why) |
		json_add_number(o, "best_speedup", l->best_speedup) |
		json_add_number(o, "best_effect", l->best_effect) |
		json_add_number(o, "foreign", l->foreign) |
		json_add_number(o, "missing_s", l->missing_s) |
		json_add_number(o, "allowed_share", l->allow.share) |
		json_add_number(o, "sampling_share", l->allow.sampling) |
		json_add_number(o, "presence", l->allow.presence.share) |
		json_add_number(o, "presence_factor", l->allow.presence.factor) |
		json_add_number(o, "presence_error", l->allow.presence.error) |
		add(o, "cells", cells_of(l)) | add(o, "curve", curve_of(&l->curve, l->allow)) |
		add(o, "inlined", copies_of(all, l->selected));

	text_verdict(l, spins, verdict);
	r |= json_add_string(o, "verdict_text", verdict);
	if (l->latency)
		r |= add(o, "latency", latency_of(l->latency));
	if (classes)
		r |= add(o, "by_class", by_class_of(l));
	return whole(o, r);
}

static struct json_object *speed_of(const struct analysis_speed *s)
{
	struct json_object *o = json_object_new_object();

	return whole(o, json_add_number(o, "slope", s->slope) |
				json_add_number(o, "before", s->before) |
				json_add_number(o, "after", s->after) |
				json_add_number(o, "share", s->share));
}

static void not_seen_notes(const struct report *report)
{
	silent_notes(report);
	(void)intervals_missing(report);
}

/* The notes that were collected, which are none afterwards. */
static struct json_object *notes_of(const struct report *report)
{
	struct json_object *list = json_object_new_array(), *o;
	int r = 0;

	for (size_t i = 0; list && i < report->notes->n; i++) {
		o = json_object_new_object();
		r |= json_object_array_add(list, o) |
		     json_add_string(o, "kind", note_kind_name(report->notes->list[i].kind)) |
		     json_add_string(o, "text", report->notes->list[i].text);
	}
	notes_free(report->notes);
	*report->notes = (struct notes){0};
	return whole(list, r);
}

static struct json_object *point_of(const struct report *report, const struct analysis_point *p)
{
	const struct profile *all = report->p;
	_cleanup_free_ char *said = answer(report, p);
	struct json_object *o = json_object_new_object(), *lines = json_object_new_array();
	int r = json_add_string(o, "name", p->name) |
		json_add_string(o, "kind", p->kind == PROFILE_LATENCY ? "latency" : "throughput") |
		add_count(o, "visits", p->visits) | json_add_number(o, "placebo", p->placebo) |
		json_add_number(o, "self_share", p->self_share) | add(o, "lines", lines);

	table_notes(report, p);
	if (p->intervals)
		latency_notes(report, p);
	r |= json_add_string(o, "answer", said) | add(o, "notes", notes_of(report)) |
	     add(o, "spins", json_object_new_boolean(p->speed.spins));
	if (p->speed.slope > 0)
		r |= add(o, "machine_speed", speed_of(&p->speed));
	if (p->intervals)
		r |= add(o, "intervals", intervals_of(p->intervals));
	if (analysis_has_classes(p))
		r |= add(o, "classes", classes_of(p));
	for (size_t i = 0; lines && i < p->n_lines; i++)
		r |= json_object_array_add(
			lines, line_of(all, &p->lines[i], p->speed.spins, analysis_has_classes(p)));
	return whole(o, r);
}

static struct json_object *fidelity_of(const struct report *report)
{
	const struct analysis *a = report->a;
	_cleanup_free_ char *words = NULL;
	enum light light = fidelity_light(a, report->p->n_experiments, &words);
	struct json_object *o = json_object_new_object();
	int r = json_add_string(o, "light", light_name(light)) |
		json_add_string(o, "words", words) |
		json_add_number(o, "elapsed_ns", a->elapsed_ns) |
		json_add_number(o, "growth_ns", a->growth_ns) |
		json_add_number(o, "owed_ns", a->owed_ns) |
#define SUM(kind, name, json) json_add_number(o, json, a->sums.name) |
#include "shared/sums.def"
#undef SUM
		json_add_number(o, "late_ns", a->late_ns) |
		json_add_number(o, "foreign", a->foreign) |
		add_count(o, "foreign_flagged", a->foreign_flagged) |
		json_add_number(o, "stolen", a->stolen) |
		add_count(o, "stolen_flagged", a->stolen_flagged) |
		add_count(o, "marked", a->marked) |
		add_count(o, "imbalance_ns",
			  (uint64_t)(a->imbalance_max > 0 ? a->imbalance_max : 0));

	return whole(o, r);
}

/* Shares of the machine's CPU time. */
static struct json_object *machine_of(const struct profile_machine *m)
{
	struct json_object *o = json_object_new_object();
	int r = json_add_number(o, "scope", profile_machine_share(m->scope_ns, m->scope_of_ns)) |
		json_add_number(o, "foreign",
				profile_machine_share(m->foreign_ns, m->scope_of_ns)) |
		json_add_number(o, "own", profile_machine_share(m->own_ns, m->own_of_ns)) |
		json_add_number(o, "own_in_kernel",
				profile_machine_share(m->kernel_ns, m->kernel_of_ns));

	return whole(o, r);
}

/* NULL: not known, or not the same in all runs. */
static const char *attribution_of(const struct profile *p)
{
	const char *rule = p->n_runs ? p->runs[0].attribution : NULL;

	for (size_t i = 0; rule && i < p->n_runs; i++)
		if (!p->runs[i].attribution || strcmp(p->runs[i].attribution, rule) != 0)
			return NULL;
	return rule;
}

void report_put_json(FILE *out, const char *text)
{
	utf8_put_json(out, text);
	(void)fputc('\n', out);
}

int report_json(FILE *out, const struct profile *p, const struct analysis *a)
{
	struct json_object *root = json_object_new_object(), *points = json_object_new_array();
	static const struct report_hints no_hints;
	struct notes notes = {0};
	struct report report = {.p = p,
				.a = a,
				.h = &no_hints,
				.utf8 = true,
				.top = SIZE_MAX,
				.notes = &notes,
				.directory = text_common_directory(a)};
	const char *text;
	int r = add_count(root, "schema", SCHEMA) | add_count(root, "runs", p->n_runs) |
		json_add_string(root, "attribution", attribution_of(p)) |
		add_count(root, "experiments", p->n_experiments) | add(root, "points", points);

	for (size_t i = 0; points && i < a->n_points; i++)
		r |= json_object_array_add(points, point_of(&report, &a->points[i]));
	if (report_is_empty(a))
		empty_notes(&report);
	else
		not_seen_notes(&report);
	footer_notes(&report);
	r |= add(root, "notes", notes_of(&report)) | add(root, "fidelity", fidelity_of(&report)) |
	     add(root, "machine", machine_of(&p->machine));
	text = r ? NULL
		 : json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY |
								JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text)
		report_put_json(out, text);
	json_object_put(root);
	return text ? 0 : -ENOMEM;
}
