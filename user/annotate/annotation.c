// SPDX-License-Identifier: BSD-2-Clause
#include "annotate/annotation.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "program/elf/object.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void annotation_free(struct annotation *a)
{
	flow_free(&a->flow);
	code_close(&a->code);
	culprits_free(&a->culprits);
	model_free(&a->model);
	free(a->found);
	free(a->samples);
	free(a->called);
	free(a->possible);
	free(a->executed);
	free(a->executed_errors);
	*a = (struct annotation){0};
}

static void place(struct annotation *a, const struct annotation_sample *samples, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		size_t i = flow_find(&a->flow, samples[k].vaddr);

		a->all += (double)samples[k].n;
		if (i != SIZE_MAX && a->flow.all[i].at == samples[k].vaddr)
			a->found[i] += (double)samples[k].n;
		/* Of a call chain: the call that a thread was to come back from. */
		else if (i != SIZE_MAX && a->flow.all[i].flow == CODE_CALL)
			a->called[i] += (double)samples[k].n;
		else
			a->between += (double)samples[k].n;
	}
}

/* Of an instruction's samples, fewer that were found at it say nothing of why they are there. */
#define FOUND_THERE 0.1

/* To the instructions that waited. */
static void move_samples(struct annotation *a)
{
	a->samples = xcalloc(a->flow.n, sizeof(*a->samples));
	a->possible = xcalloc(a->flow.n, sizeof(*a->possible));
	for (size_t i = 0; i < a->flow.n; i++)
		a->samples[a->culprits.waited[i]] += a->found[i];
	for (size_t i = 0; i < a->flow.n; i++)
		a->possible[i] = culprits_of(&a->culprits, i,
					     a->culprits.waited[i] == i &&
						     a->found[i] >= FOUND_THERE * a->samples[i]);
}

int annotation_make(const struct elf_object *o, const struct elf_symbol *s,
		    const struct annotation_sample *samples, size_t n, bool kernel,
		    struct annotation *ret, struct error *e)
{
	_cleanup_(annotation_free) struct annotation a = {0};
	int r = flow_read(o, s->addr, s->size, &a.flow);

	if (r == 0)
		r = code_open(o, s->addr, a.flow.size, &a.code);
	if (r < 0)
		return r == -ENOMEM ? fail(e, ENOMEM, "out of memory")
				    : fail(e, -r, "the code of '%s' is not in the file", s->name);
	a.skid = skid_measure();
	a.found = xcalloc(a.flow.n, sizeof(*a.found));
	a.called = xcalloc(a.flow.n, sizeof(*a.called));
	place(&a, samples, n);
	if (model_make(&a.flow, &a.code, a.found, NULL, &a.model, &a.unmodelled) == -ENOMEM)
		return fail(e, ENOMEM, "out of memory");
	culprits_find(&a.flow, &a.code, a.model.ports, kernel, a.skid, &a.culprits);
	move_samples(&a);
	*ret = a;
	a = (struct annotation){0};
	return 0;
}

/* "call memcpy" */
static bool put_target(const struct annotation *a, const struct elf_object *o,
		       const struct code_instruction *x, ZydisMnemonic mnemonic,
		       struct annotation_text *ret)
{
	const char *jump = ZydisMnemonicGetString(mnemonic);
	_cleanup_free_ char *name = NULL;
	struct elf_symbol s;

	if (x->target - a->flow.start < a->flow.size) {
		(void)snprintf(ret->text, sizeof(ret->text), "%s %" PRIx64, jump, x->target);
		return true;
	}
	if (elf_object_function_at(o, x->target, &s) < 0)
		return false;
	name = elf_demangle(s.function);
	(void)snprintf(ret->text, sizeof(ret->text), "%s %s", jump, name ? name : s.name);
	return true;
}

struct annotation_text annotation_text(const struct annotation *a, const struct elf_object *o,
				       size_t instruction)
{
	const struct code_instruction *x = &a->flow.all[instruction];
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	struct annotation_text ret = {"(bad)"};
	ZydisDecodedInstruction d;
	ZydisFormatter formatter;
	ZydisDecoder decoder;
	size_t at = x->at - a->code.start;

	if (ZYAN_SUCCESS(
		    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) &&
	    ZYAN_SUCCESS(ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL)) &&
	    ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, a->code.bytes + at, a->code.size - at, &d,
						operands)) &&
	    !(x->direct && put_target(a, o, x, d.mnemonic, &ret)))
		(void)ZydisFormatterFormatInstruction(&formatter, &d, operands,
						      d.operand_count_visible, ret.text,
						      sizeof(ret.text), x->at, NULL);
	return ret;
}
