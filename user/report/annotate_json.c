// SPDX-License-Identifier: BSD-2-Clause
/* The instructions of a function for other programs. */
#include "report/annotate_rows.h"

#include <json-c/json.h>

/* What the line is worth by a causal profile, if that is known. */
static void add_effect(struct json_object *row, const struct analysis_line *l)
{
	struct json_object *at;

	if (!l)
		return;
	json_add_string(row, "verdict", verdict_names[l->verdict]);
	at = json_add_array(row, "effects");
	for (size_t i = 0; i < ANALYSIS_CURVE_POINTS; i++) {
		struct json_object *o = json_append_new(at);

		json_add_number(o, "speedup", analysis_curve_speedups[i]);
		json_add_change(o, "change", analysis_shown(l, i));
	}
}

static void add_instruction(struct json_object *list, const struct annotate_page *p,
			    const struct flow_block *b, uint32_t i)
{
	struct json_object *row = json_append_new(list), *causes = json_add_array(row, "possible");
	const struct annotation *a = p->a;
	struct line_location at;

	json_add_number(row, "address", (double)a->flow.all[i].at);
	json_add_string(row, "code", annotation_text(a, p->of->object, i).text);
	json_add_number(row, "samples", a->samples[i]);
	if (a->called[i] > 0)
		json_add_number(row, "called", a->called[i]);
	if (a->model.cycles)
		json_add_number(row, "cycles", a->model.cycles[i]);
	if (a->executed)
		json_add_number(row, "took", annotate_cycles(p, b, i));
	if (p->of->lines && line_table_at(p->of->lines, a->flow.all[i].at, &at) == 0) {
		json_add_string(row, "file", at.file);
		json_add_number(row, "line", at.line);
		add_effect(row, annotate_effect(p, &at));
	}
	for (int c = 0; c < N_CULPRITS; c++)
		if (a->possible[i] >> c & 1)
			json_append(causes, json_object_new_string(culprit_names[c]));
}

static void add_block(struct json_object *list, const struct annotate_page *p,
		      const struct flow_block *b)
{
	struct json_object *row = json_append_new(list),
			   *instructions = json_add_array(row, "instructions");
	size_t i = (size_t)(b - p->a->flow.blocks);

	if (p->a->executed) {
		json_add_number(row, "executed", p->a->executed[i]);
		json_add_number(row, "executed_error", p->a->executed_errors[i]);
	}
	for (uint32_t k = b->first; k < b->first + b->n; k++)
		add_instruction(instructions, p, b, k);
}

void annotate_json(FILE *out, const struct annotate_page *p)
{
	struct json_object *o = json_new(), *blocks = json_add_array(o, "blocks");
	const struct annotation *a = p->a;

	json_add_string(o, "function", p->of->symbol.function);
	json_add_string(o, "image", p->of->image);
	json_add_string(o, "event", p->of->event);
	json_add_number(o, "samples", (double)p->of->samples);
	json_add_number(o, "all_samples", (double)p->of->total);
	json_add_number(o, "cut", (double)a->flow.cut);
	json_add_number(o, "no_instruction", (double)a->flow.holes);
	json_add_number(o, "lost_jumps", (double)a->flow.lost);
	json_add_number(o, "jumps_inside", (double)a->flow.inside);
	json_add_string(o, "skid",
			a->skid == SKID_NONE   ? "none"
			: a->skid == SKID_NEXT ? "next"
					       : NULL);
	json_add_string(o, "model", a->model.cycles ? a->model.cpu : NULL);
	json_add_string(o, "point", p->point ? p->point->name : NULL);
	if (a->executed)
		json_add_number(o, "clock_hz", a->clock_hz);
	for (size_t b = 0; b < a->flow.n_blocks; b++)
		add_block(blocks, p, &a->flow.blocks[b]);
	json_print(out, o, 0);
}
