// SPDX-License-Identifier: BSD-2-Clause
#include "annotate/culprits.h"

#include "base/cleanup.h"
#include "base/memory.h"

#include <Zydis/Zydis.h>
#include <stdlib.h>
#include <string.h>

/* So many instructions back something may still be on its way. */
#define WINDOW 16
#define LINE_BYTES 64
/* Cycles for which it has to wait for a unit by the model for that to be a cause: in the model one
 * passes in any case. */
#define PORTS_LEAST 2.0

/* A register, whole: general ones, flags, vectors. As many bits as there are of them here. */
#define N_REGISTERS 49
#define FLAGS 48

/* What matters of one instruction. */
struct facts {
	uint64_t reads, writes; /* registers, by bit */
	bool loads, stores, divides, locks, waits_for_stores;
	ZydisDecodedOperandMem stored, loaded; /* where */
	unsigned int stored_bits, loaded_bits;
};

const char *const culprit_names[] = {
	[CULPRIT_KERNEL] = "kernel",	  [CULPRIT_LOCK] = "lock",
	[CULPRIT_DIVIDER] = "divider",	  [CULPRIT_DCACHE] = "data cache",
	[CULPRIT_DTLB] = "DTLB",	  [CULPRIT_FORWARD] = "forwarding",
	[CULPRIT_STORE] = "store buffer", [CULPRIT_BRANCH] = "misprediction",
	[CULPRIT_ICACHE] = "code cache",  [CULPRIT_DEPENDENT] = "latency",
	[CULPRIT_PORTS] = "ports",	  [CULPRIT_CALL] = "the call",
	[CULPRIT_SLOTS] = "slots",
};

void culprits_free(struct culprits *c)
{
	free(c->of);
	free(c->found_there);
	free(c->waited);
	*c = (struct culprits){0};
}

uint16_t culprits_of(const struct culprits *c, size_t instruction, bool found_there)
{
	uint16_t all = c->of[instruction] | (found_there ? c->found_there[instruction] : 0);

	return all ? all : (uint16_t)(1U << CULPRIT_SLOTS);
}

static int register_bit(ZydisRegister r)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);

	if (ZydisRegisterGetClass(r) == ZYDIS_REGCLASS_FLAGS)
		return FLAGS;
	switch (ZydisRegisterGetClass(whole)) {
	case ZYDIS_REGCLASS_GPR64:
		return ZydisRegisterGetId(whole);
	case ZYDIS_REGCLASS_XMM:
	case ZYDIS_REGCLASS_YMM:
	case ZYDIS_REGCLASS_ZMM:
		return 16 + ZydisRegisterGetId(whole);
	default:
		return -1;
	}
}

static void note_register(ZydisRegister r, uint64_t *set)
{
	int bit = register_bit(r);

	if (bit >= 0 && bit < N_REGISTERS)
		*set |= 1ULL << bit;
}

/* Relative to the next instruction, an address is written otherwise in each. */
static ZydisDecodedOperandMem place_of(const ZydisDecodedInstruction *x,
				       const ZydisDecodedOperand *o, uint64_t at)
{
	ZydisDecodedOperandMem m = o->mem;

	if (m.base == ZYDIS_REGISTER_RIP)
		m.disp.value += (int64_t)(at + x->length);
	return m;
}

static void note_memory(const ZydisDecodedInstruction *x, const ZydisDecodedOperand *o, uint64_t at,
			struct facts *f)
{
	note_register(o->mem.base, &f->reads);
	note_register(o->mem.index, &f->reads);
	/* An address alone, as of lea. */
	if (o->mem.type != ZYDIS_MEMOP_TYPE_MEM || x->meta.category == ZYDIS_CATEGORY_NOP ||
	    x->meta.category == ZYDIS_CATEGORY_WIDENOP)
		return;
	if (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ) {
		f->loads = true;
		f->loaded = place_of(x, o, at);
		f->loaded_bits = o->size;
	}
	if (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) {
		f->stores = true;
		f->stored = place_of(x, o, at);
		f->stored_bits = o->size;
	}
}

static bool divides(const ZydisDecodedInstruction *x)
{
	static const ZydisMnemonic all[] = {
		ZYDIS_MNEMONIC_DIV,	ZYDIS_MNEMONIC_IDIV,	ZYDIS_MNEMONIC_DIVSS,
		ZYDIS_MNEMONIC_DIVSD,	ZYDIS_MNEMONIC_DIVPS,	ZYDIS_MNEMONIC_DIVPD,
		ZYDIS_MNEMONIC_VDIVSS,	ZYDIS_MNEMONIC_VDIVSD,	ZYDIS_MNEMONIC_VDIVPS,
		ZYDIS_MNEMONIC_VDIVPD,	ZYDIS_MNEMONIC_SQRTSS,	ZYDIS_MNEMONIC_SQRTSD,
		ZYDIS_MNEMONIC_SQRTPS,	ZYDIS_MNEMONIC_SQRTPD,	ZYDIS_MNEMONIC_VSQRTSS,
		ZYDIS_MNEMONIC_VSQRTSD, ZYDIS_MNEMONIC_VSQRTPS, ZYDIS_MNEMONIC_VSQRTPD,
		ZYDIS_MNEMONIC_FDIV,	ZYDIS_MNEMONIC_FDIVP,	ZYDIS_MNEMONIC_FDIVR,
		ZYDIS_MNEMONIC_FDIVRP,	ZYDIS_MNEMONIC_FSQRT,
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (x->mnemonic == all[i])
			return true;
	return false;
}

static bool waits_for_stores(const ZydisDecodedInstruction *x)
{
	return x->mnemonic == ZYDIS_MNEMONIC_MFENCE || x->mnemonic == ZYDIS_MNEMONIC_SFENCE ||
	       x->mnemonic == ZYDIS_MNEMONIC_LFENCE || x->mnemonic == ZYDIS_MNEMONIC_CPUID;
}

static struct facts facts_of(const ZydisDecoder *decoder, const struct code *c,
			     const struct code_instruction *i)
{
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction x;
	size_t at = i->at - c->start;
	struct facts f = {0};

	if (!ZYAN_SUCCESS(
		    ZydisDecoderDecodeFull(decoder, c->bytes + at, c->size - at, &x, operands)))
		return f;
	for (size_t k = 0; k < x.operand_count; k++) {
		const ZydisDecodedOperand *o = &operands[k];

		if (o->type == ZYDIS_OPERAND_TYPE_MEMORY)
			note_memory(&x, o, i->at, &f);
		if (o->type != ZYDIS_OPERAND_TYPE_REGISTER)
			continue;
		if (o->actions & ZYDIS_OPERAND_ACTION_MASK_READ)
			note_register(o->reg.value, &f.reads);
		if (o->actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			note_register(o->reg.value, &f.writes);
	}
	f.divides = divides(&x);
	f.locks = (x.attributes & ZYDIS_ATTRIB_HAS_LOCK) ||
		  (x.mnemonic == ZYDIS_MNEMONIC_XCHG && f.stores);
	f.waits_for_stores = waits_for_stores(&x);
	return f;
}

static bool same_place(const ZydisDecodedOperandMem *a, const ZydisDecodedOperandMem *b)
{
	return a->base == b->base && a->index == b->index && a->scale == b->scale &&
	       llabs(a->disp.value - b->disp.value) < 32;
}

/* Causes of instructions that need nothing but results of others, and a unit. */
#define COMPUTES (1U << CULPRIT_DEPENDENT | 1U << CULPRIT_PORTS)

static uint16_t bit(enum culprit c)
{
	return (uint16_t)(1U << c);
}

/* What a result that is not there yet may wait for: of an instruction whose own the later one
 * reads. */
static uint16_t of_result(const struct facts *f)
{
	uint16_t all = bit(CULPRIT_DEPENDENT);

	if (f->loads)
		all |= bit(CULPRIT_DCACHE) | bit(CULPRIT_DTLB);
	if (f->divides)
		all |= bit(CULPRIT_DIVIDER);
	return all;
}

/* Of what the instruction itself does. */
static uint16_t of_itself(const struct facts *f, const struct code_instruction *x)
{
	uint16_t all = 0;

	if (f->loads)
		all |= bit(CULPRIT_DCACHE) | bit(CULPRIT_DTLB);
	/* One that is atomic waits until no store is left. */
	if (f->stores)
		all |= (f->locks ? 0 : bit(CULPRIT_STORE)) | bit(CULPRIT_DTLB);
	if (f->divides)
		all |= bit(CULPRIT_DIVIDER);
	if (f->locks || f->waits_for_stores)
		all |= bit(CULPRIT_LOCK);
	if (x->flow == CODE_KERNEL)
		all |= bit(CULPRIT_KERNEL);
	return all;
}

/* Of the instructions before it in its block: those whose results it needs, whatever is in between,
 * and a store that it loads from. */
static uint16_t of_those_before(const struct facts *all, uint32_t first, uint32_t i)
{
	uint64_t needed = all[i].reads;
	uint16_t found = 0;

	for (uint32_t k = i; k-- > first && i - k <= WINDOW;) {
		const struct facts *f = &all[k];

		if (f->writes & needed)
			found |= of_result(f);
		needed &= ~f->writes;
		if (all[i].loads && f->stores && same_place(&all[i].loaded, &f->stored) &&
		    f->stored_bits != all[i].loaded_bits)
			found |= bit(CULPRIT_FORWARD);
	}
	return found;
}

/* Ways into a block. */
struct ways {
	bool branched, indirect; /* by a branch, taken or not; by a jump, a return or a table */
	uint32_t only; /* the block that alone leads there; f->n_blocks and above: there is none, or
			  another way */
};

static struct ways *find_ways(const struct flow *f)
{
	struct ways *all = xcalloc(f->n_blocks, sizeof(*all));

	for (size_t b = 0; b < f->n_blocks; b++)
		all[b].only = UINT32_MAX;
	for (size_t i = 0; i < f->n_edges; i++) {
		const struct flow_edge *e = &f->edges[i];
		struct ways *w;

		if (e->to >= f->n_blocks)
			continue;
		w = &all[e->to];
		w->only = w->only == UINT32_MAX || w->only == e->from ? e->from : flow_exit(f);
		if (e->from == flow_entry(f) || e->kind == FLOW_TABLE || e->kind == FLOW_LOST)
			w->indirect = true;
		else if (f->all[f->blocks[e->from].first + f->blocks[e->from].n - 1].flow ==
			 CODE_BRANCH)
			w->branched = true;
	}
	return all;
}

/* Of how the CPU comes to it. Only the first of what it fetches at a time waits for code; what
 * follows a call was fetched again. */
static uint16_t of_the_way(const struct flow *f, const struct ways *w, const struct flow_block *b,
			   uint32_t i)
{
	const struct code_instruction *x = &f->all[i];
	bool first = i == b->first, returned = !first && x[-1].flow == CODE_CALL;
	uint16_t all = 0;

	if ((first && (w->branched || w->indirect)) || returned)
		all |= bit(CULPRIT_BRANCH);
	if (x->at % LINE_BYTES + x->length > LINE_BYTES || x->at % LINE_BYTES == 0 ||
	    ((first && w->indirect) || returned))
		all |= bit(CULPRIT_ICACHE);
	return all;
}

/* What each instruction waits for, wherever samples of that are. */
static void find_own(const struct flow *f, const struct facts *all, const struct ways *ways,
		     const double *ports, uint16_t *own)
{
	for (size_t b = 0; b < f->n_blocks; b++) {
		const struct flow_block *block = &f->blocks[b];

		for (uint32_t i = block->first; i < block->first + block->n; i++) {
			own[i] = of_itself(&all[i], &f->all[i]) |
				 of_those_before(all, block->first, i) |
				 of_the_way(f, &ways[b], block, i);
			if (ports && ports[i] >= PORTS_LEAST && !all[i].divides)
				own[i] |= bit(CULPRIT_PORTS);
		}
	}
}

/* The same of those that come just before each block: the last ones of the blocks that lead there.
 */
static void find_before(const struct flow *f, const uint16_t *own, uint16_t *before)
{
	for (size_t i = 0; i < f->n_edges; i++) {
		const struct flow_edge *e = &f->edges[i];

		if (e->from < f->n_blocks && e->to < f->n_blocks)
			before[e->to] |= own[f->blocks[e->from].first + f->blocks[e->from].n - 1];
	}
}

/* Where samples are at the one after it: the instruction that waited if one was found at @i of @b.
 */
static uint32_t waited_before(const struct flow *f, const struct flow_block *b, uint32_t only,
			      uint32_t i)
{
	uint32_t w = i;

	if (i > b->first)
		w = i - 1;
	else if (only < f->n_blocks)
		w = f->blocks[only].first + f->blocks[only].n - 1;
	/* What was called was executed in between. */
	return f->all[w].flow == CODE_CALL ? i : w;
}

void culprits_find(const struct flow *f, const struct code *c, const double *ports, bool kernel,
		   enum skid skid, struct culprits *ret)
{
	_cleanup_free_ struct facts *all = xcalloc(f->n, sizeof(*all));
	_cleanup_free_ struct ways *ways = find_ways(f);
	_cleanup_free_ uint16_t *own = xcalloc(f->n, sizeof(*own));
	_cleanup_free_ uint16_t *before = xcalloc(f->n_blocks, sizeof(*before));
	uint16_t *of = xcalloc(f->n, sizeof(*of)),
		 *found_there = xcalloc(f->n, sizeof(*found_there));
	uint32_t *waited = xcalloc(f->n, sizeof(*waited));
	ZydisDecoder decoder;

	(void)ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	for (size_t i = 0; i < f->n; i++)
		all[i] = facts_of(&decoder, c, &f->all[i]);
	find_own(f, all, ways, ports, own);
	find_before(f, own, before);
	for (size_t b = 0; b < f->n_blocks; b++) {
		const struct flow_block *block = &f->blocks[b];

		for (uint32_t i = block->first; i < block->first + block->n; i++) {
			bool stack = f->all[i].flow == CODE_CALL || f->all[i].flow == CODE_RETURN,
			     may_fault = kernel && !stack && (all[i].loads || all[i].stores);

			waited[i] =
				skid == SKID_NEXT ? waited_before(f, block, ways[b].only, i) : i;
			/* A fault's sample is at the instruction itself: likelier than that one
			 * waited which does nothing but compute. */
			if (may_fault && !(own[waited[i]] & ~COMPUTES))
				waited[i] = i;
			if (skid == SKID_UNKNOWN ||
			    (skid == SKID_NEXT && i == block->first && waited[i] == i))
				found_there[i] |= i > block->first ? own[i - 1] : before[b];
			/* The sample of a thread that comes back from the kernel finds what
			 * follows. */
			if (skid != SKID_NEXT && i > block->first &&
			    f->all[i - 1].flow == CODE_KERNEL)
				found_there[i] |= bit(CULPRIT_KERNEL);
			if (may_fault && waited[i] == i)
				found_there[i] |= bit(CULPRIT_KERNEL);
			else if (may_fault)
				of[waited[i]] |= bit(CULPRIT_KERNEL);
			of[i] |= own[i];
			if (f->all[i].flow == CODE_CALL)
				of[i] |= bit(CULPRIT_CALL);
		}
	}
	*ret = (struct culprits){of, found_there, waited};
}
