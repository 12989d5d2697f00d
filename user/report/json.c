// SPDX-License-Identifier: BSD-2-Clause
/* The analysis for other programs: one JSON object. What is unknown is null. */
#include "report/report.h"

#include "base/cleanup.h"
#include "profile/utf8.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <string.h>

static int add(struct json_object *to, const char *key, struct json_object *value)
{
	return json_object_object_add(to, key, value);
}

static int add_number(struct json_object *to, const char *key, double v)
{
	return add(to, key, isfinite(v) ? json_object_new_double(v) : NULL);
}

static int add_count(struct json_object *to, const char *key, uint64_t v)
{
	return add(to, key, json_object_new_uint64(v));
}

static int add_string(struct json_object *to, const char *key, const char *v)
{
	_cleanup_free_ char *clean = v ? utf8_clean(v, strlen(v)) : NULL;

	if (v && !clean)
		return -ENOMEM;
	return add(to, key, clean ? json_object_new_string(clean) : NULL);
}

static int add_effect(struct json_object *to, double effect, double low, double high)
{
	return add_number(to, "effect", effect) | add_number(to, "low", low) | add_number(to, "high", high);
}

static struct json_object *cells_of(const struct analysis_line *line)
{
	struct json_object *cells = json_object_new_array(), *o;
	int r = 0;

	for (size_t i = 0; cells && i < line->n_cells; i++) {
		const struct analysis_cell *c = &line->cells[i];

		o = json_object_new_object();
		r |= json_object_array_add(cells, o) | add_number(o, "speedup", c->speedup) |
		     add_count(o, "experiments", c->experiments) | add_number(o, "visits", c->visits) |
		     add_number(o, "period_ns", c->period_ns) | add_effect(o, c->effect, c->low, c->high);
	}
	if (!r)
		return cells;
	json_object_put(cells);
	return NULL;
}

static struct json_object *curve_of(const struct analysis_curve *c)
{
	struct json_object *curve = json_object_new_object(), *at = json_object_new_array(), *o;
	int r = 0;

	r |= add(curve, "at", at);
	for (size_t i = 0; at && i < ANALYSIS_CURVE_POINTS; i++) {
		o = json_object_new_object();
		r |= json_object_array_add(at, o) | add_number(o, "speedup", analysis_curve_speedups[i]) |
		     add_effect(o, c->at[i].effect, c->at[i].low, c->at[i].high);
	}
	r |= add_number(curve, "knee", c->knee) | add_number(curve, "knee_low", c->knee_low) |
	     add_number(curve, "knee_high", c->knee_high) | add_number(curve, "knee_effect", c->knee_effect) |
	     add_number(curve, "slope_after", c->slope_after);
	if (!r)
		return curve;
	json_object_put(curve);
	return NULL;
}

static struct json_object *line_of(const struct analysis_line *l)
{
	struct json_object *o = json_object_new_object();
	int r = add_string(o, "selected", l->selected) | add_string(o, "function", l->function) | add_number(o, "share", l->share) |
		add_count(o, "experiments", l->experiments) | add_string(o, "verdict", verdict_name(l->verdict)) |
		add_number(o, "best_speedup", l->best_speedup) | add_number(o, "best_effect", l->best_effect) |
		add_number(o, "missing_s", l->missing_s) | add_number(o, "allowed_share", l->allowed_share) |
		add(o, "cells", cells_of(l)) | add(o, "curve", curve_of(&l->curve));

	if (!r)
		return o;
	json_object_put(o);
	return NULL;
}

static struct json_object *point_of(const struct analysis_point *p)
{
	struct json_object *o = json_object_new_object(), *lines = json_object_new_array();
	int r = add_string(o, "name", p->name) | add_string(o, "kind", p->kind == PROFILE_LATENCY ? "latency" : "throughput") |
		add_count(o, "visits", p->visits) | add_number(o, "placebo", p->placebo) | add(o, "lines", lines);

	for (size_t i = 0; lines && i < p->n_lines; i++)
		r |= json_object_array_add(lines, line_of(&p->lines[i]));
	if (!r)
		return o;
	json_object_put(o);
	return NULL;
}

static struct json_object *fidelity_of(const struct analysis *a)
{
	struct json_object *o = json_object_new_object();
	int r = add_number(o, "elapsed_ns", a->elapsed_ns) | add_number(o, "growth_ns", a->growth_ns) |
		add_number(o, "hit_ns", a->hit_ns) | add_number(o, "paid_ns", a->paid_ns) | add_number(o, "owed_ns", a->owed_ns) |
		add_number(o, "credited_ns", a->credited_ns) | add_number(o, "rq_credited_ns", a->rq_credited_ns) |
		add_number(o, "forgiven_ns", a->forgiven_ns) | add_number(o, "oversleep_ns", a->oversleep_ns) |
		add_number(o, "late_ns", a->late_ns) | add_number(o, "foreign", a->foreign) |
		add_count(o, "foreign_flagged", a->foreign_flagged) | add_count(o, "marked", a->marked) |
		add_count(o, "imbalance_ns", (uint64_t)(a->imbalance_max > 0 ? a->imbalance_max : 0));

	if (!r)
		return o;
	json_object_put(o);
	return NULL;
}

int report_json(FILE *out, const struct profile *p, const struct analysis *a)
{
	struct json_object *root = json_object_new_object(), *points = json_object_new_array();
	const char *text;
	int r = add_count(root, "runs", p->n_runs) | add_count(root, "experiments", p->n_experiments) | add(root, "points", points);

	for (size_t i = 0; points && i < a->n_points; i++)
		r |= json_object_array_add(points, point_of(&a->points[i]));
	r |= add(root, "fidelity", fidelity_of(a));
	text = r ? NULL : json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text)
		(void)fprintf(out, "%s\n", text);
	json_object_put(root);
	return text ? 0 : -ENOMEM;
}
