// SPDX-License-Identifier: BSD-2-Clause
/* The analysis for other programs: one JSON object. What is unknown is null. */
#include "report/report.h"
#include "report/text.h"

#include "analysis/fidelity.h"
#include "base/cleanup.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "base/waits.h"

#include <json-c/json.h>
#include <math.h>
#include <string.h>

/* Changes when a key changes its meaning or goes. New keys may come at any time. */
#define SCHEMA 1

void json_add(struct json_object *to, const char *key, struct json_object *value)
{
	if (json_object_object_add(to, key, value) < 0)
		out_of_memory();
}

void json_append(struct json_object *to, struct json_object *value)
{
	if (json_object_array_add(to, or_out_of_memory(value)) < 0)
		out_of_memory();
}

struct json_object *json_new(void)
{
	return or_out_of_memory(json_object_new_object());
}

static struct json_object *json_new_array(void)
{
	return or_out_of_memory(json_object_new_array());
}

struct json_object *json_add_array(struct json_object *to, const char *key)
{
	struct json_object *list = json_new_array();

	json_add(to, key, list);
	return list;
}

struct json_object *json_append_new(struct json_object *to)
{
	struct json_object *o = json_new();

	json_append(to, o);
	return o;
}

void json_add_number(struct json_object *to, const char *key, double v)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%.9g", v);
	json_add(to, key, isfinite(v) ? or_out_of_memory(json_object_new_double_s(v, text)) : NULL);
}

void json_add_bool(struct json_object *to, const char *key, bool v)
{
	json_add(to, key, or_out_of_memory(json_object_new_boolean(v)));
}

static void add_count(struct json_object *to, const char *key, uint64_t v)
{
	json_add(to, key, or_out_of_memory(json_object_new_uint64(v)));
}

static struct json_object *string_of(const char *s)
{
	_cleanup_free_ char *clean = or_out_of_memory(utf8_clean(s, strlen(s)));

	return or_out_of_memory(json_object_new_string(clean));
}

void json_add_string(struct json_object *to, const char *key, const char *v)
{
	json_add(to, key, v ? string_of(v) : NULL);
}

static void add_effect(struct json_object *to, struct analysis_change c)
{
	json_add_number(to, "effect", c.effect);
	json_add_number(to, "low", c.low);
	json_add_number(to, "high", c.high);
}

static struct json_object *change_of(struct analysis_change c)
{
	struct json_object *o = json_new();

	add_effect(o, c);
	return o;
}

void json_add_change(struct json_object *to, const char *key, struct analysis_change c)
{
	json_add(to, key, change_of(c));
}

static struct json_object *cells_of(const struct analysis_line *line)
{
	struct json_object *cells = json_new_array();

	for (size_t i = 0; i < line->n_cells; i++) {
		const struct analysis_cell *c = &line->cells[i];
		struct json_object *o = json_append_new(cells);

		json_add_number(o, "speedup", c->speedup);
		add_count(o, "experiments", c->experiments);
		json_add_number(o, "visits", c->visits);
		json_add_number(o, "period_ns", c->period_ns);
		add_effect(o, c->change);
	}
	return cells;
}

static struct json_object *curve_of(const struct analysis_curve *c, struct analysis_allowance allow)
{
	struct json_object *curve = json_new(), *at = json_add_array(curve, "at");

	for (size_t i = 0; i < ANALYSIS_CURVE_POINTS; i++) {
		struct json_object *o = json_append_new(at);

		json_add_number(o, "speedup", analysis_curve_speedups[i]);
		add_effect(o, c->at[i]);
		json_add_number(o, "method", fidelity_allowance(allow, c->at[i].effect));
	}
	json_add_number(curve, "knee", c->knee);
	json_add_number(curve, "knee_low", c->knee_low);
	json_add_number(curve, "knee_high", c->knee_high);
	json_add_number(curve, "knee_effect", c->knee_effect);
	json_add_number(curve, "slope_after", c->slope_after);
	return curve;
}

static void add_latency_cell(struct json_object *cells, const struct analysis_latency_cell *c)
{
	struct json_object *o = json_append_new(cells);

	json_add_number(o, "speedup", c->speedup);
	add_count(o, "experiments", c->experiments);
	json_add_number(o, "intervals", c->intervals);
	for (int s = 0; s < N_LATENCY_STATISTICS; s++) {
		struct json_object *change = change_of(c->change[s]);

		json_add_number(change, "ns", c->ns[s]);
		json_add(o, latency_statistic_name((enum latency_statistic)s), change);
	}
}

static struct json_object *latency_of(const struct analysis_latency *l)
{
	struct json_object *latency = json_new(), *at = json_add_array(latency, "at"),
			   *cells = json_add_array(latency, "cells");

	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
		struct json_object *o = json_append_new(at);

		json_add_number(o, "speedup", analysis_curve_speedups[k]);
		for (int s = 0; s < N_LATENCY_STATISTICS; s++)
			json_add_change(o, latency_statistic_name((enum latency_statistic)s),
					l->at[s][k]);
	}
	for (size_t i = 0; i < l->n_cells; i++)
		add_latency_cell(cells, &l->cells[i]);
	return latency;
}

static struct json_object *intervals_of(const struct analysis_intervals *in)
{
	struct json_object *o = json_new(), *ns = json_new();

	json_add(o, "ns", ns);
	json_add_number(o, "intervals", in->intervals);
	json_add_number(o, "in_flight", in->in_flight);
	json_add_number(o, "unmatched", in->unmatched);
	json_add_number(o, "unended", in->unended);
	json_add_number(o, "crossed", in->crossed);
	json_add_number(o, "lost", in->lost);
	json_add_number(o, "distance_ns", in->distance_ns);
	for (int s = 0; s < N_LATENCY_STATISTICS; s++)
		json_add_number(ns, latency_statistic_name((enum latency_statistic)s), in->ns[s]);
	return o;
}

/* Copies of a line, and of what was inlined into it: samples, and source lines from the innermost
 * out. @s: the line's; NULL: none. */
static struct json_object *copies_of(const struct profile_samples *s)
{
	struct json_object *copies = json_new_array(), *o, *lines;
	_cleanup_free_ char *text = s && s->inlined ? xstrdup(s->inlined) : NULL;
	struct inlined_copy c;
	char *at = text;

	while (at && inlined_next(&at, &c)) {
		o = json_append_new(copies);
		add_count(o, "samples", c.count);
		lines = json_add_array(o, "lines");
		for (size_t i = 0; i < c.n; i++)
			json_append(lines, string_of(c.lines[i]));
	}
	return copies;
}

/* A new object in @list, of the class that has this number. */
static struct json_object *add_class(struct json_object *list, size_t number)
{
	struct json_object *o = json_append_new(list);

	json_add_string(o, "class", profile_class_names[number]);
	return o;
}

/* The line's share of intervals, by how long they are. */
static struct json_object *by_class_of(const struct analysis_line *l)
{
	struct json_object *list = json_new_array();

	for (size_t i = 0; i < PROFILE_CLASSES; i++) {
		struct json_object *o = add_class(list, i);

		json_add_number(o, "share", l->in_class[i].effect);
		json_add_number(o, "low", l->in_class[i].low);
		json_add_number(o, "high", l->in_class[i].high);
	}
	return list;
}

static struct json_object *classes_of(const struct analysis_point *p)
{
	struct json_object *list = json_new_array();

	for (size_t i = 0; i < PROFILE_CLASSES; i++) {
		struct json_object *o = add_class(list, i);

		add_count(o, "intervals", p->classes[i].n);
		json_add_number(o, "mean_ns", p->classes[i].mean_ns);
	}
	return list;
}

static void add_line(struct json_object *list, const struct profile *all,
		     const struct analysis_line *l, bool spins, bool classes)
{
	const struct profile_samples *of = profile_find_samples(all, l->selected);
	struct json_object *o = json_append_new(list);

	json_add_string(o, "selected", l->selected);
	json_add_string(o, "function", l->function);
	json_add_string(o, "object", of ? of->object : NULL);
	json_add_number(o, "share", l->share);
	json_add_number(o, "slope", l->slope.effect);
	json_add_number(o, "slope_low", l->slope.low);
	json_add_number(o, "slope_high", l->slope.high);
	json_add_string(o, "wait", l->wait ? wait_name(l->wait) : NULL);
	add_count(o, "experiments", l->experiments);
	json_add_string(o, "verdict", verdict_names[l->verdict]);
	json_add_string(o, "undecided_why", undecided_words[l->undecided].why);
	json_add_number(o, "best_speedup", l->best_speedup);
	json_add_number(o, "best_effect", l->best_effect);
	json_add_number(o, "foreign", l->foreign);
	json_add_number(o, "missing_s", l->missing_s);
	json_add_number(o, "allowed_share", l->allow.share);
	json_add_number(o, "sampling_share", l->allow.sampling);
	json_add_number(o, "presence", l->allow.presence.share);
	json_add_number(o, "presence_factor", l->allow.presence.factor);
	json_add_number(o, "presence_error", l->allow.presence.error);
	json_add(o, "cells", cells_of(l));
	json_add(o, "curve", curve_of(&l->curve, l->allow));
	json_add(o, "inlined", copies_of(of));
	json_add_string(o, "verdict_text", text_verdict(l, spins).text);
	if (l->latency)
		json_add(o, "latency", latency_of(l->latency));
	if (classes)
		json_add(o, "by_class", by_class_of(l));
}

static struct json_object *speed_of(const struct analysis_speed *s)
{
	struct json_object *o = json_new();

	json_add_number(o, "slope", s->slope);
	json_add_number(o, "before", s->before);
	json_add_number(o, "after", s->after);
	json_add_number(o, "share", s->share);
	return o;
}

/* The notes that were collected, which are none afterwards. */
static struct json_object *notes_of(const struct report *report)
{
	struct json_object *list = json_new_array();

	for (size_t i = 0; i < report->notes->n; i++) {
		struct json_object *o = json_append_new(list);

		json_add_string(o, "kind", note_kind_names[report->notes->list[i].kind]);
		json_add_string(o, "text", report->notes->list[i].text);
	}
	notes_free(report->notes);
	return list;
}

static void add_point(struct json_object *points, const struct report *report,
		      const struct analysis_point *p)
{
	_cleanup_free_ char *said = answer(report, p);
	struct json_object *o = json_append_new(points), *lines;

	json_add_string(o, "name", p->name);
	json_add_string(o, "kind", point_kind_name(p->kind));
	json_add_bool(o, "chosen", choice_of(report, p) != NULL);
	add_count(o, "visits", p->visits);
	json_add_number(o, "placebo", p->placebo);
	json_add_number(o, "self_share", p->self_share);
	lines = json_add_array(o, "lines");
	table_notes(report, p);
	if (p->intervals)
		latency_notes(report, p);
	json_add_string(o, "answer", said);
	json_add(o, "notes", notes_of(report));
	json_add_bool(o, "spins", p->speed.spins);
	if (p->speed.slope > 0)
		json_add(o, "machine_speed", speed_of(&p->speed));
	if (p->intervals)
		json_add(o, "intervals", intervals_of(p->intervals));
	if (analysis_has_classes(p))
		json_add(o, "classes", classes_of(p));
	for (size_t i = 0; i < p->n_lines; i++)
		add_line(lines, report->p, &p->lines[i], p->speed.spins, analysis_has_classes(p));
}

static struct json_object *fidelity_of(const struct report *report)
{
	const struct analysis *a = report->a;
	_cleanup_free_ char *words = NULL;
	enum light light = fidelity_light(a, report->p->n_experiments, &words);
	struct json_object *o = json_new();

	json_add_string(o, "light", light_names[light]);
	json_add_string(o, "words", words);
	json_add_number(o, "elapsed_ns", a->elapsed_ns);
	json_add_number(o, "growth_ns", a->growth_ns);
	json_add_number(o, "owed_ns", a->owed_ns);
#define SUM(kind, name, json) json_add_number(o, json, a->sums.name);
#include "shared/sums.def"
#undef SUM
	json_add_number(o, "late_ns", a->late_ns);
	json_add_number(o, "foreign", a->foreign);
	add_count(o, "foreign_flagged", a->foreign_flagged);
	json_add_number(o, "stolen", a->stolen);
	add_count(o, "stolen_flagged", a->stolen_flagged);
	add_count(o, "marked", a->marked);
	add_count(o, "imbalance_ns", (uint64_t)(a->imbalance_max > 0 ? a->imbalance_max : 0));
	return o;
}

/* Shares of the machine's CPU time. */
static struct json_object *machine_of(const struct profile_machine *m)
{
	struct json_object *o = json_new();

	json_add_number(o, "scope", profile_machine_share(m->scope_ns, m->scope_of_ns));
	json_add_number(o, "foreign", profile_machine_share(m->foreign_ns, m->scope_of_ns));
	json_add_number(o, "own", profile_machine_share(m->own_ns, m->own_of_ns));
	json_add_number(o, "own_in_kernel", profile_machine_share(m->kernel_ns, m->kernel_of_ns));
	return o;
}

static struct json_object *run_times_of(const struct analysis_run_times *t)
{
	struct json_object *o = json_new();

	add_count(o, "runs", t->n);
	json_add_number(o, "mean_ns", t->mean_ns);
	json_add_number(o, "deviation_ns", t->deviation_ns);
	json_add_number(o, "min_ns", t->least_ns);
	json_add_number(o, "max_ns", t->most_ns);
	json_add_number(o, "user_ns", t->user_ns);
	json_add_number(o, "system_ns", t->system_ns);
	add_count(o, "outliers", t->outliers);
	return o;
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

void json_print(FILE *out, struct json_object *o, int flags)
{
	const char *text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY | flags);

	if (!text)
		out_of_memory();
	utf8_put_json(out, text);
	(void)fputc('\n', out);
	json_object_put(o);
}

void report_json(FILE *out, const struct profile *p, const struct analysis *a)
{
	struct json_object *root = json_new(), *points;
	struct notes notes = {0};
	struct report report = report_make(out, p, a, NULL, &notes);

	add_count(root, "schema", SCHEMA);
	add_count(root, "runs", p->n_runs);
	json_add_string(root, "attribution", attribution_of(p));
	add_count(root, "experiments", p->n_experiments);
	points = json_add_array(root, "points");
	for (size_t i = 0; i < a->n_points; i++)
		add_point(points, &report, &a->points[i]);
	if (report_is_empty(a)) {
		empty_notes(&report);
	} else {
		silent_notes(&report);
		(void)intervals_missing(&report);
	}
	footer_notes(&report);
	json_add(root, "notes", notes_of(&report));
	json_add(root, "fidelity", fidelity_of(&report));
	json_add(root, "machine", machine_of(&p->machine));
	if (a->run_times.n)
		json_add(root, "run_time", run_times_of(&a->run_times));
	json_print(out, root, JSON_C_TO_STRING_NOSLASHESCAPE);
}
