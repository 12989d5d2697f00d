// SPDX-License-Identifier: BSD-2-Clause
#include "annotate/model.h"

#include "annotate/mca.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So often a block is run, and so many times first that do not count: its own results have to be
 * ready for it. */
#define ITERATIONS 24
#define WARM_UP 8
/* Blocks are taken until they have this share of all weights. */
#define ENOUGH 0.995
#define MOST_BLOCKS 600
#define MOST_INSTRUCTIONS 20000
/* Lines that it does not read are left out, and it is asked again. */
#define TRIES 4
#define NO_INSTRUCTION UINT32_MAX

/* What it is asked. */
struct question {
	uint32_t *blocks; /* that are asked about */
	size_t n_blocks;
	bool *unread;	   /* by instruction: it does not know it */
	uint32_t *of_line; /* by line of the text, from 1 on: the instruction */
	size_t n_lines;
	ZydisFormatter formatter;
	ZydisDecoder decoder;
};

void model_free(struct model *m)
{
	free(m->cycles);
	free(m->ports);
	*m = (struct model){0};
}

static void question_free(struct question *q)
{
	free(q->blocks);
	free(q->unread);
	free(q->of_line);
}

static int by_weight(const void *a, const void *b, void *arg)
{
	const double *weights = arg, x = weights[*(const uint32_t *)a],
		     y = weights[*(const uint32_t *)b];

	return (x < y) - (x > y);
}

/* The heaviest blocks. */
static void choose(const struct flow *f, const double *weights, struct question *q,
		   size_t *ret_left_out)
{
	_cleanup_free_ double *of_block = xcalloc(f->n_blocks, sizeof(*of_block));
	double all = 0, taken = 0;
	size_t instructions = 0;

	q->blocks = xcalloc(f->n_blocks, sizeof(*q->blocks));
	for (uint32_t b = 0; b < f->n_blocks; b++) {
		for (uint32_t i = f->blocks[b].first; i < f->blocks[b].first + f->blocks[b].n; i++)
			of_block[b] += weights[i];
		all += of_block[b];
		q->blocks[b] = b;
	}
	qsort_r(q->blocks, f->n_blocks, sizeof(*q->blocks), by_weight, of_block);
	for (; q->n_blocks < f->n_blocks && taken < ENOUGH * all; q->n_blocks++) {
		const struct flow_block *b = &f->blocks[q->blocks[q->n_blocks]];

		if (q->n_blocks == MOST_BLOCKS || instructions + b->n > MOST_INSTRUCTIONS)
			break;
		taken += of_block[q->blocks[q->n_blocks]];
		instructions += b->n;
	}
	*ret_left_out = 0;
	for (size_t k = q->n_blocks; k < f->n_blocks && taken < ENOUGH * all; k++)
		*ret_left_out += of_block[q->blocks[k]] > 0;
}

/* What the line says, in Intel's syntax. Where a jump goes does not matter; calls and returns are
 * jumps, as their addresses are predicted; what fills is one nop. */
static void put_instruction(const struct question *q, const struct flow *f, const struct code *c,
			    uint32_t i, FILE *out)
{
	const struct code_instruction *x = &f->all[i];
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction d;
	size_t at = x->at - c->start;
	char text[256];

	if (q->unread[i] || x->fills ||
	    !ZYAN_SUCCESS(
		    ZydisDecoderDecodeFull(&q->decoder, c->bytes + at, c->size - at, &d, operands)))
		(void)fputs("nop\n", out);
	else if (x->flow == CODE_CALL || x->flow == CODE_RETURN)
		(void)fputs("jmp x\n", out);
	else if (x->direct)
		(void)fprintf(out, "%s x\n", ZydisMnemonicGetString(d.mnemonic));
	else if (ZYAN_SUCCESS(ZydisFormatterFormatInstruction(
			 &q->formatter, &d, operands, d.operand_count_visible, text, sizeof(text),
			 ZYDIS_RUNTIME_ADDRESS_NONE, NULL)))
		(void)fprintf(out, "%s\n", text);
	else
		(void)fputs("nop\n", out);
}

static void write_text(struct question *q, const struct flow *f, const struct code *c, char **ret,
		       size_t *ret_n)
{
	FILE *out = xopen_memstream(ret, ret_n);

	xarray_add(q->of_line, q->n_lines, NO_INSTRUCTION);
	(void)fputs(".intel_syntax noprefix\n", out);
	for (size_t k = 0; k < q->n_blocks; k++) {
		const struct flow_block *b = &f->blocks[q->blocks[k]];

		(void)fprintf(out, "# LLVM-MCA-BEGIN %zu\n", k);
		xarray_add(q->of_line, q->n_lines, NO_INSTRUCTION);
		for (uint32_t i = b->first; i < b->first + b->n; i++) {
			put_instruction(q, f, c, i, out);
			xarray_add(q->of_line, q->n_lines, i);
		}
		(void)fputs("# LLVM-MCA-END\n", out);
		xarray_add(q->of_line, q->n_lines, NO_INSTRUCTION);
	}
	xclose_memstream(out);
}

/* "<stdin>:LINE:COLUMN: error: ...". Returns how many lines are news. */
static size_t take_complaints(struct question *q, const char *text)
{
	static const char begin[] = "<stdin>:";
	size_t news = 0;

	for (const char *at = strstr(text, begin); at; at = strstr(at + 1, begin)) {
		unsigned long line = strtoul(at + sizeof(begin) - 1, NULL, 10);
		uint32_t i = line && line <= q->n_lines ? q->of_line[line - 1] : NO_INSTRUCTION;

		if (i == NO_INSTRUCTION || q->unread[i])
			continue;
		q->unread[i] = true;
		news++;
	}
	return news;
}

/* When something happened to the @i-th instruction that was executed; -1: that is not said. */
static int64_t when(struct json_object *timeline, size_t i, const char *what)
{
	struct json_object *x = json_object_array_get_idx(timeline, i), *cycle;

	return x && json_object_object_get_ex(x, what, &cycle) ? json_object_get_int64(cycle) : -1;
}

/* Of one block: how much later each instruction retires than the one before it, and is issued than
 * it could be, on average. False: the answer is not about it. */
static bool take_block(struct json_object *region, const struct flow_block *b, struct model *m)
{
	struct json_object *view, *timeline;
	size_t n = (size_t)ITERATIONS * b->n;

	if (!json_object_object_get_ex(region, "TimelineView", &view) ||
	    !json_object_object_get_ex(view, "TimelineInfo", &timeline) ||
	    !json_object_is_type(timeline, json_type_array) ||
	    json_object_array_length(timeline) != n)
		return false;
	for (size_t at = (size_t)WARM_UP * b->n; at < n; at++) {
		int64_t before = when(timeline, at - 1, "CycleRetired"),
			now = when(timeline, at, "CycleRetired");
		int64_t ready = when(timeline, at, "CycleReady"),
			issued = when(timeline, at, "CycleIssued");
		size_t i = b->first + at % b->n;

		if (before < 0 || now < before || ready < 0 || issued < ready)
			return false;
		m->cycles[i] += (double)(now - before) / (ITERATIONS - WARM_UP);
		m->ports[i] += (double)(issued - ready) / (ITERATIONS - WARM_UP);
	}
	return true;
}

static int take_answer(const struct question *q, const struct flow *f, const char *text,
		       struct model *m, struct error *e)
{
	struct json_object *all = json_tokener_parse(text), *regions = NULL, *info, *cpu;
	int r = -EIO;

	if (all && json_object_object_get_ex(all, "CodeRegions", &regions) &&
	    json_object_is_type(regions, json_type_array) &&
	    json_object_array_length(regions) == q->n_blocks)
		r = 0;
	for (size_t k = 0; r == 0 && k < q->n_blocks; k++)
		if (!take_block(json_object_array_get_idx(regions, k), &f->blocks[q->blocks[k]], m))
			r = -EIO;
	if (r == 0 && json_object_object_get_ex(all, "TargetInfo", &info) &&
	    json_object_object_get_ex(info, "CPUName", &cpu))
		(void)snprintf(m->cpu, sizeof(m->cpu), "%s", json_object_get_string(cpu));
	json_object_put(all);
	return r < 0 ? fail(e, -r, "llvm-mca does not answer as it should") : 0;
}

static int ask(struct question *q, const struct flow *f, const struct code *c, const char *cpu,
	       struct model *m, struct error *e)
{
	for (int i = 0; i < TRIES; i++) {
		_cleanup_(mca_answer_free) struct mca_answer a = {0};
		_cleanup_free_ char *text = NULL;
		size_t n = 0;
		int r;

		free(q->of_line);
		q->of_line = NULL;
		q->n_lines = 0;
		write_text(q, f, c, &text, &n);
		r = mca_run(text, n, cpu, ITERATIONS, &a, e);
		if (r < 0)
			return r;
		/* It passes over a line that it cannot read, and says so. */
		if (take_complaints(q, a.complaints))
			continue;
		return a.status == 0
			       ? take_answer(q, f, a.out, m, e)
			       : fail(e, EIO, "llvm-mca refuses its input: %.200s", a.complaints);
	}
	return fail(e, EIO, "llvm-mca refuses its input, whatever is left out of it");
}

int model_make(const struct flow *f, const struct code *c, const double *weights, const char *cpu,
	       struct model *ret, struct error *e)
{
	_cleanup_(model_free) struct model m = {.cycles = xcalloc(f->n, sizeof(double)),
						.ports = xcalloc(f->n, sizeof(double))};
	_cleanup_(question_free) struct question q = {.unread = xcalloc(f->n, sizeof(bool))};
	int r = 0;

	choose(f, weights, &q, &m.left_out);
	if (!ZYAN_SUCCESS(ZydisDecoderInit(&q.decoder, ZYDIS_MACHINE_MODE_LONG_64,
					   ZYDIS_STACK_WIDTH_64)) ||
	    !ZYAN_SUCCESS(ZydisFormatterInit(&q.formatter, ZYDIS_FORMATTER_STYLE_INTEL)) ||
	    !ZYAN_SUCCESS(ZydisFormatterSetProperty(
		    &q.formatter, ZYDIS_FORMATTER_PROP_FORCE_RELATIVE_RIPREL, ZYAN_TRUE)) ||
	    !ZYAN_SUCCESS(ZydisFormatterSetProperty(&q.formatter, ZYDIS_FORMATTER_PROP_FORCE_SIZE,
						    ZYAN_TRUE)))
		return fail(e, EIO, "the disassembler does not start");
	if (q.n_blocks)
		r = ask(&q, f, c, cpu ? cpu : "native", &m, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < f->n; i++)
		m.unknown += q.unread[i];
	*ret = m;
	m = (struct model){0};
	return 0;
}
