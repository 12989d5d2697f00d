// SPDX-License-Identifier: BSD-2-Clause
/* The instructions of a function for other programs. */
#include "report/annotate_rows.h"

#include <errno.h>
#include <json-c/json.h>

/* What the line is worth by a causal profile, if that is known. */
static int add_effect(struct json_object *row, const struct analysis_line *l)
{
	struct json_object *at;
	int r;

	if (!l)
		return 0;
	at = json_object_new_array();
	r = json_add_string(row, "verdict", verdict_name(l->verdict)) |
	    json_object_object_add(row, "effects", at);
	for (size_t i = 0; r == 0 && i < ANALYSIS_CURVE_POINTS; i++) {
		struct json_object *o = json_object_new_object();
		struct analysis_change c = analysis_shown(l, i);

		r = json_object_array_add(at, o) |
		    json_add_number(o, "speedup", analysis_curve_speedups[i]) |
		    json_add_change(o, "change", c);
	}
	return r;
}

static int add_instruction(struct json_object *list, const struct annotate_page *p,
			   const struct flow_block *b, uint32_t i)
{
	struct json_object *row = json_object_new_object(), *causes = json_object_new_array();
	const struct annotation *a = p->a;
	struct line_location at;
	char text[ANNOTATE_TEXT_ROOM];
	int r = json_object_array_add(list, row);

	if (r || !row || !causes || json_object_object_add(row, "possible", causes)) {
		json_object_put(causes);
		return -ENOMEM;
	}
	annotation_text(a, p->of->object, i, text, sizeof(text));
	r = json_add_number(row, "address", (double)a->flow.all[i].at) |
	    json_add_string(row, "code", text) | json_add_number(row, "samples", a->samples[i]);
	if (a->called[i] > 0)
		r |= json_add_number(row, "called", a->called[i]);
	if (a->model.cycles)
		r |= json_add_number(row, "cycles", a->model.cycles[i]);
	if (a->executed)
		r |= json_add_number(row, "took", annotate_cycles(p, b, i));
	if (p->of->lines && line_table_at(p->of->lines, a->flow.all[i].at, &at) == 0)
		r |= json_add_string(row, "file", at.file) | json_add_number(row, "line", at.line) |
		     add_effect(row, annotate_effect(p, &at));
	for (int c = 0; r == 0 && c < N_CULPRITS; c++)
		if (a->possible[i] >> c & 1)
			r = json_object_array_add(
				causes, json_object_new_string(culprit_name((enum culprit)c)));
	return r ? -ENOMEM : 0;
}

static int add_block(struct json_object *list, const struct annotate_page *p,
		     const struct flow_block *b)
{
	struct json_object *row = json_object_new_object(), *instructions = json_object_new_array();
	int r = json_object_array_add(list, row);

	if (r || !row || !instructions ||
	    json_object_object_add(row, "instructions", instructions)) {
		json_object_put(instructions);
		return -ENOMEM;
	}
	if (p->a->executed)
		r = json_add_number(row, "executed", p->a->executed[b - p->a->flow.blocks]) |
		    json_add_number(row, "executed_error",
				    p->a->executed_errors[b - p->a->flow.blocks]);
	for (uint32_t i = b->first; r == 0 && i < b->first + b->n; i++)
		r = add_instruction(instructions, p, b, i);
	return r;
}

int annotate_json(FILE *out, const struct annotate_page *p)
{
	struct json_object *o = json_object_new_object(), *blocks = json_object_new_array();
	const struct annotation *a = p->a;
	int r = 0;

	if (!o || !blocks || json_object_object_add(o, "blocks", blocks)) {
		json_object_put(o);
		json_object_put(blocks);
		return -ENOMEM;
	}
	r = json_add_string(o, "function", p->of->symbol.function) |
	    json_add_string(o, "image", p->of->image) | json_add_string(o, "event", p->of->event) |
	    json_add_number(o, "samples", (double)p->of->samples) |
	    json_add_number(o, "all_samples", (double)p->of->total) |
	    json_add_number(o, "cut", (double)a->flow.cut) |
	    json_add_number(o, "no_instruction", (double)a->flow.holes) |
	    json_add_number(o, "lost_jumps", (double)a->flow.lost) |
	    json_add_number(o, "jumps_inside", (double)a->flow.inside) |
	    json_add_string(o, "skid",
			    a->skid == SKID_NONE   ? "none"
			    : a->skid == SKID_NEXT ? "next"
						   : NULL) |
	    json_add_string(o, "model", a->model.cycles ? a->model.cpu : NULL) |
	    json_add_string(o, "point", p->point ? p->point->name : NULL);
	if (a->executed)
		r |= json_add_number(o, "clock_hz", a->clock_hz);
	for (size_t b = 0; r == 0 && b < a->flow.n_blocks; b++)
		r = add_block(blocks, p, &a->flow.blocks[b]);
	if (r == 0)
		report_put_json(out, json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY));
	json_object_put(o);
	return r ? -ENOMEM : 0;
}
