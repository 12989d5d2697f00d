// SPDX-License-Identifier: BSD-2-Clause
#include "program/elf/jump_table.h"

#include "base/array.h"
#include "base/cleanup.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdlib.h>

/* How far before the jump the parts of it are looked for, in instructions. The address of the table
 * may have been taken before a loop. */
#define NEAR 12
#define FAR 64
#define MOST_TARGETS 4096

struct decoded {
	ZydisDecodedInstruction x;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
};

static bool decode(const struct flow *f, const struct code *c, size_t i, struct decoded *ret)
{
	size_t at = f->all[i].at - c->start;
	ZydisDecoder d;

	return ZYAN_SUCCESS(
		       ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) &&
	       ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d, c->bytes + at, c->size - at, &ret->x,
						   ret->operands));
}

static ZydisRegister whole(ZydisRegister r)
{
	return ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
}

static bool is_register(const ZydisDecodedOperand *o, ZydisRegister r)
{
	return o->type == ZYDIS_OPERAND_TYPE_REGISTER && whole(o->reg.value) == r;
}

/* Where a table is, how its words are read, and which register says which one. */
struct place {
	uint64_t table;
	unsigned int width; /* bytes of a word: 4, relative to the table; 8, absolute */
	ZydisRegister index;
};

/* lea base, [table]: the nearest one before. */
static bool find_base(const struct flow *f, const struct code *c, size_t jump, ZydisRegister base,
		      uint64_t *ret)
{
	for (size_t i = jump; i-- > 0 && jump - i <= FAR;) {
		struct decoded d;

		if (!decode(f, c, i, &d) || !d.x.operand_count ||
		    !is_register(&d.operands[0], base) ||
		    !(d.operands[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		return d.x.mnemonic == ZYDIS_MNEMONIC_LEA &&
		       d.operands[1].mem.base == ZYDIS_REGISTER_RIP &&
		       ZYAN_SUCCESS(
			       ZydisCalcAbsoluteAddress(&d.x, &d.operands[1], f->all[i].at, ret));
	}
	return false;
}

/* movsxd x, [base + 4 * index]; add x, base; jmp x */
static bool find_relative(const struct flow *f, const struct code *c, size_t jump, ZydisRegister to,
			  struct place *ret)
{
	ZydisRegister base = ZYDIS_REGISTER_NONE;

	for (size_t i = jump; i-- > 0 && jump - i <= NEAR;) {
		struct decoded d;

		if (!decode(f, c, i, &d) || !d.x.operand_count ||
		    !is_register(&d.operands[0], to) ||
		    !(d.operands[0].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (d.x.mnemonic == ZYDIS_MNEMONIC_ADD && base == ZYDIS_REGISTER_NONE &&
		    d.operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
			base = whole(d.operands[1].reg.value);
			continue;
		}
		if (d.x.mnemonic != ZYDIS_MNEMONIC_MOVSXD || base == ZYDIS_REGISTER_NONE ||
		    d.operands[1].type != ZYDIS_OPERAND_TYPE_MEMORY ||
		    d.operands[1].mem.scale != 4 || whole(d.operands[1].mem.base) != base ||
		    d.operands[1].mem.disp.value != 0)
			return false;
		ret->index = whole(d.operands[1].mem.index);
		ret->width = 4;
		return find_base(f, c, i, base, &ret->table);
	}
	return false;
}

static bool find_place(const struct flow *f, const struct code *c, size_t jump, struct place *ret)
{
	struct decoded d;
	const ZydisDecodedOperand *o = &d.operands[0];

	if (!decode(f, c, jump, &d) || !d.x.operand_count)
		return false;
	if (o->type == ZYDIS_OPERAND_TYPE_REGISTER)
		return find_relative(f, c, jump, whole(o->reg.value), ret);
	if (o->type != ZYDIS_OPERAND_TYPE_MEMORY || o->mem.scale != 8 ||
	    o->mem.base != ZYDIS_REGISTER_NONE)
		return false;
	*ret = (struct place){(uint64_t)o->mem.disp.value, 8, whole(o->mem.index)};
	return true;
}

/* cmp index, last; ja: how many words there are. The index may have been copied or widened in
 * between, so that any register is taken for it. 0: no such comparison. */
static size_t find_count(const struct flow *f, const struct code *c, size_t jump)
{
	for (size_t i = jump; i-- > 0 && jump - i <= NEAR;) {
		struct decoded d;

		if (!decode(f, c, i, &d) || d.x.mnemonic != ZYDIS_MNEMONIC_CMP ||
		    d.operands[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			continue;
		return d.operands[1].imm.value.u < MOST_TARGETS
			       ? (size_t)d.operands[1].imm.value.u + 1
			       : 0;
	}
	return 0;
}

static bool read_target(const struct place *p, size_t k, flow_table read, void *arg, uint64_t *ret)
{
	int32_t word, high = 0;

	if (!read(p->table + k * p->width, &word, arg) ||
	    (p->width == 8 && (!read(p->table + k * p->width + 4, &high, arg) || high)))
		return false;
	*ret = p->width == 4 ? p->table + (uint64_t)(int64_t)word : (uint32_t)word;
	return true;
}

/* Does an instruction of the function begin there? */
static bool begins(const struct flow *f, uint64_t vaddr)
{
	size_t i = flow_find(f, vaddr);

	return i != SIZE_MAX && f->all[i].at == vaddr;
}

int jump_table_find(const struct flow *f, const struct code *c, size_t jump, flow_table read,
		    void *arg, struct jump_table *ret)
{
	struct place p;
	size_t n = find_place(f, c, jump, &p) ? find_count(f, c, jump) : 0, longest = 0;
	_cleanup_free_ uint64_t *targets = NULL;
	uint64_t target;

	ret->n = 0;
	if (n == 0)
		return 0;
	while (longest < MOST_TARGETS && read_target(&p, longest, read, arg, &target) &&
	       begins(f, target))
		if (array_add(targets, longest, target) < 0)
			return -ENOMEM;
	if (longest < n)
		return 0;
	ret->targets = TAKE_PTR(targets);
	ret->n = n;
	ret->n_longest = longest;
	return 0;
}
