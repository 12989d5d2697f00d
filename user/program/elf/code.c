// SPDX-License-Identifier: BSD-2-Clause
#include "program/elf/code.h"

#include "program/elf/object.h"
#include "program/elf/object_private.h"

#include "base/cleanup.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Generated parsers have functions of some hundred kilobytes. */
#define MAX_CODE (4U << 20)

int code_open(const struct elf_object *o, uint64_t vaddr, uint64_t size, struct code *ret)
{
	uint64_t left = elf_object_code_left(o, vaddr);
	size_t n = size < left ? size : left;
	_cleanup_free_ unsigned char *bytes = NULL;
	int r;

	if (n == 0)
		return -ERANGE;
	if (n > MAX_CODE)
		n = MAX_CODE;
	bytes = malloc(n);
	if (!bytes)
		return -ENOMEM;
	r = elf_object_read(o, vaddr, bytes, n);
	if (r <= 0)
		return r < 0 ? r : -ERANGE;
	*ret = (struct code){.bytes = TAKE_PTR(bytes), .start = vaddr, .size = (size_t)r};
	return 0;
}

void code_close(struct code *c)
{
	free(c->bytes);
	*c = (struct code){0};
}

static enum code_flow flow_of(const ZydisDecodedInstruction *x)
{
	switch (x->meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
		return CODE_BRANCH;
	case ZYDIS_CATEGORY_UNCOND_BR:
		return CODE_JUMP;
	case ZYDIS_CATEGORY_CALL:
		return CODE_CALL;
	case ZYDIS_CATEGORY_RET:
		return CODE_RETURN;
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
		return CODE_KERNEL;
	case ZYDIS_CATEGORY_INTERRUPT:
		return x->mnemonic == ZYDIS_MNEMONIC_INT ? CODE_KERNEL : CODE_STOP;
	default:
		break;
	}
	switch (x->mnemonic) {
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_HLT:
		return CODE_STOP;
	case ZYDIS_MNEMONIC_XBEGIN:
		return CODE_BRANCH;
	default:
		return CODE_NEXT;
	}
}

/* The condition of a branch by flags. */
static int condition_of(const ZydisDecodedInstruction *x)
{
	if ((x->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (x->opcode & 0xf0) == 0x70) ||
	    (x->opcode_map == ZYDIS_OPCODE_MAP_0F && (x->opcode & 0xf0) == 0x80))
		return x->opcode & 15;
	return -1;
}

/* As the kernel decides it, in is_prefix_bad, push_setup_xol_ops and branch_setup_xol_ops. */
static enum code_cost cost_of(const ZydisDecodedInstruction *x, const unsigned char *bytes)
{
	static const unsigned char nop5[] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
	static const unsigned char refused[] = {0xf0, 0x26, 0x2e, 0x36,
						0x3e}; /* lock; es, cs, ss, ds */
	bool word = x->attributes & ZYDIS_ATTRIB_HAS_OPERANDSIZE,
	     one_byte = x->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT;

	for (int i = 0; i < x->raw.prefix_count; i++)
		if (memchr(refused, x->raw.prefixes[i].value, sizeof(refused)))
			return CODE_REFUSED;
	/* The kernel places no probe there, but takes the program's breakpoint for that probe: the
	 * thread runs into it for ever (Linux 6.18). */
	if (x->mnemonic == ZYDIS_MNEMONIC_INT3)
		return CODE_REFUSED;
	if (x->length == sizeof(nop5) && !memcmp(bytes, nop5, sizeof(nop5)))
		return CODE_NOP5;
	if (x->encoding != ZYDIS_INSTRUCTION_ENCODING_LEGACY)
		return CODE_STEPPED;
	if (one_byte && x->opcode >= 0x50 && x->opcode <= 0x57)
		return x->length == 1 || (x->length == 2 && bytes[0] == 0x41) ? CODE_EMULATED
									      : CODE_STEPPED;
	if (one_byte && x->opcode == 0x90)
		return x->mnemonic == ZYDIS_MNEMONIC_NOP ? CODE_EMULATED : CODE_STEPPED;
	if (word)
		return CODE_STEPPED;
	if (one_byte && (x->opcode == 0xe8 || x->opcode == 0xe9 || x->opcode == 0xeb ||
			 (x->opcode & 0xf0) == 0x70))
		return CODE_EMULATED;
	return x->opcode_map == ZYDIS_OPCODE_MAP_0F && (x->opcode & 0xf0) == 0x80 ? CODE_EMULATED
										  : CODE_STEPPED;
}

bool code_at_end(const struct code *c)
{
	return c->at >= c->size;
}

bool code_next(struct code *c, struct code_instruction *ret)
{
	const unsigned char *bytes = c->bytes + c->at;
	ZydisDecodedInstruction x;
	ZydisDecoder d;

	if (code_at_end(c) ||
	    !ZYAN_SUCCESS(ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&d, NULL, bytes, c->size - c->at, &x)))
		return false;
	*ret = (struct code_instruction){
		.at = c->start + c->at,
		.length = x.length,
		.flow = flow_of(&x),
		.cost = cost_of(&x, bytes),
		.condition = condition_of(&x),
		.fills = x.mnemonic == ZYDIS_MNEMONIC_NOP || x.mnemonic == ZYDIS_MNEMONIC_INT3,
	};
	if (ret->flow == CODE_BRANCH || ret->flow == CODE_JUMP || ret->flow == CODE_CALL) {
		ret->direct = x.raw.imm[0].is_relative;
		ret->target = ret->direct ? ret->at + x.length + (uint64_t)x.raw.imm[0].value.s : 0;
		/* jmp *slot(%rip) */
		ret->leaves = !ret->direct && (x.attributes & ZYDIS_ATTRIB_HAS_MODRM) &&
			      x.raw.modrm.mod == 0 && x.raw.modrm.rm == 5;
	}
	c->at += x.length;
	return true;
}

int code_check_offset(const struct elf_object *o, const struct elf_symbol *s, uint64_t offset,
		      uint64_t *ret_before, uint64_t *ret_behind)
{
	struct code_instruction x;
	_cleanup_(code_close) struct code c = {0};

	if (code_open(o, s->addr, s->size, &c) < 0)
		return 0;
	while (c.at < offset) {
		size_t before = c.at;

		if (!code_next(&c, &x))
			break;
		if (c.at > offset) {
			*ret_before = before;
			*ret_behind = code_at_end(&c) ? 0 : c.at;
			return -EINVAL;
		}
	}
	return 0;
}

static int number_of(ZydisRegister r)
{
	return r == ZYDIS_REGISTER_NONE ? -1 : ZydisRegisterGetId(r);
}

int code_jump_target(const struct elf_object *o, uint64_t vaddr, struct code_target *ret)
{
	_cleanup_(code_close) struct code c = {0};
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT], *to = &operands[0];
	ZydisDecodedInstruction x;
	ZydisDecoder d;

	if (code_open(o, vaddr, ZYDIS_MAX_INSTRUCTION_LENGTH, &c) < 0 ||
	    !ZYAN_SUCCESS(ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64)) ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&d, c.bytes, c.size, &x, operands)) ||
	    !x.operand_count || to->size != 64)
		return -EOPNOTSUPP;
	*ret = (struct code_target){.base = -1, .index = -1};
	if (to->type == ZYDIS_OPERAND_TYPE_REGISTER) {
		ret->base = number_of(to->reg.value);
		return 0;
	}
	if (to->type != ZYDIS_OPERAND_TYPE_MEMORY || to->mem.segment == ZYDIS_REGISTER_FS ||
	    to->mem.segment == ZYDIS_REGISTER_GS || to->mem.base == ZYDIS_REGISTER_RIP ||
	    x.address_width != 64)
		return -EOPNOTSUPP;
	ret->memory = true;
	ret->base = number_of(to->mem.base);
	ret->index = number_of(to->mem.index);
	ret->scale = to->mem.scale;
	ret->displacement = to->mem.disp.has_displacement ? to->mem.disp.value : 0;
	return 0;
}

enum code_cost code_cost_at(const struct elf_object *o, uint64_t vaddr)
{
	_cleanup_(code_close) struct code c = {0};
	struct code_instruction x;

	return code_open(o, vaddr, ZYDIS_MAX_INSTRUCTION_LENGTH, &c) == 0 && code_next(&c, &x)
		       ? x.cost
		       : CODE_STEPPED;
}
