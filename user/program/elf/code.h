/* SPDX-License-Identifier: BSD-2-Clause */
/* Machine code, one instruction after the other: for probes, which must stand on an instruction and
 * cost more on some than on others. Uses Zydis. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elf_object;
struct elf_symbol;

enum code_flow {
	CODE_NEXT,   /* goes on behind it */
	CODE_BRANCH, /* there or at its target */
	CODE_JUMP,
	CODE_CALL,
	CODE_RETURN,
	CODE_KERNEL, /* enters the kernel, and mostly comes back */
	CODE_STOP,   /* ends there */
};

/* What a probe on it costs. The kernel carries out some instructions itself
 * (arch/x86/kernel/uprobes.c); any other it copies elsewhere and steps through, which takes a
 * second exception. Best first. */
enum code_cost {
	CODE_EMULATED, /* push of a register, one-byte nop, near jumps, branches and calls: all
			  kernels that have uprobes on x86-64 */
	CODE_STEPPED,
	/* The nop of five bytes, which newer kernels turn into a call, and so cheap. But on 6.18 a
	 * child that the program forks meets the call without what it calls, and crashes: the last
	 * resort. */
	CODE_NOP5,
	CODE_REFUSED, /* atomic, or with the prefix of a segment: the kernel puts no probe there,
			 and says nothing */
	CODE_COSTS,
};

struct code_instruction {
	uint64_t at;
	unsigned int length;
	enum code_flow flow;
	enum code_cost cost;
	bool direct; /* jumps, branches, calls: the target is known */
	uint64_t target;
	bool leaves;   /* not direct, but through a slot of the linker's: to another function */
	int condition; /* of a branch by flags, as in its opcode: 0 to 15, of which an odd one is
			  the opposite of the one before; -1: by something else */
	bool fills;    /* does nothing: what stands between functions and before loops */
};

struct code {
	unsigned char *bytes;
	uint64_t start;
	size_t size, at; /* at: of the next instruction */
};

/* Reads the code of [vaddr, vaddr + size), cut off at a few megabytes. -ERANGE: not in the file;
 * -ENOMEM. code_close frees. */
int code_open(const struct elf_object *o, uint64_t vaddr, uint64_t size, struct code *ret);
void code_close(struct code *c); /* frees the contents; all zero is allowed */
/* The next instruction. False at the end, or where the bytes are none. */
bool code_next(struct code *c, struct code_instruction *ret);
bool code_at_end(const struct code *c);

/* Is there an instruction at @offset of the function? -EINVAL: no, those before and behind it begin
 * at *ret_before and *ret_behind (0: the function ends). 0 also if that cannot be told, since there
 * is something in between that is not code. */
int code_check_offset(const struct elf_object *o, const struct elf_symbol *s, uint64_t offset,
		      uint64_t *ret_before, uint64_t *ret_behind);
/* Where a jump that is not direct goes: what a register has, or the word in memory there. Registers
 * as the CPU numbers them, rax 0 to r15 15. */
struct code_target {
	bool memory;
	int base, index; /* registers; -1: none */
	unsigned int scale;
	int64_t displacement;
};
/* The target of the jump at @vaddr. -EOPNOTSUPP: it is of another form (relative to a segment). */
int code_jump_target(const struct elf_object *o, uint64_t vaddr, struct code_target *ret);

/* Of the instruction at @vaddr. */
enum code_cost code_cost_at(const struct elf_object *o, uint64_t vaddr);
/* Where to put the probe for the code that begins at @vaddr: the cheapest instruction of the same
 * basic block from there on, which is visited as often as the first since nothing jumps to it, or
 * between, from elsewhere; @vaddr itself where that cannot be told. *ret_cost is of what is
 * returned. */
uint64_t code_cheap_site(const struct elf_object *o, uint64_t vaddr, enum code_cost *ret_cost);
/* For a probe at @vaddr, a nop of five bytes: the first instruction behind it that is none, where
 * nothing comes to that without having passed the nop. It is visited as often and with the same
 * registers and stack, so that arguments and the return can be had there as well. @vaddr where
 * there is no such instruction or that cannot be told; *ret_cost is not set then. */
uint64_t code_behind_nop(const struct elf_object *o, uint64_t vaddr, enum code_cost *ret_cost);
/* A search for direct jumps from elsewhere in the object into (lo, hi): from what is not in the @n
 * extents @own. True: there is one. Where there is too much to search, false. */
struct cfi_extent;
bool code_is_entered(const struct elf_object *o, const struct cfi_extent *own, size_t n,
		     uint64_t lo, uint64_t hi);
