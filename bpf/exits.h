/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Does an instruction with a probe on it leave its function this time? Only branches out of a
 * function and jumps by pointer are asked; the thread is about to execute them, so its registers
 * and flags say it. */
#pragma once

#include "bpf/maps.h"

struct abi_exit exits[ABI_MAX_EXITS] __weak SEC(".bss") = {};

/* A thread's registers, by number as in struct pt_regs. The verifier lets nobody choose a field of
 * the context at run time. */
union exit_registers {
	struct user_regs named;
	u64 all[ABI_NO_REGISTER];
};
_Static_assert(sizeof(union exit_registers) == 8 * ABI_NO_REGISTER, "exit_registers");

static __always_inline u64 exit_register(const union exit_registers *r, u32 number)
{
	return number < ABI_NO_REGISTER ? *(volatile const u64 *)&r->all[number] : 0;
}

/* Conditions in the order of the opcodes; an odd one is the opposite of the one before it. */
static __always_inline bool exit_condition(u64 flags, u32 condition)
{
	u32 carry = flags & 1, parity = flags >> 2 & 1, zero = flags >> 6 & 1,
	    sign = flags >> 7 & 1, overflow = flags >> 11 & 1, less = sign ^ overflow;
	u32 holds = overflow | carry << 1 | zero << 2 | (carry | zero) << 3 | sign << 4 |
		    parity << 5 | less << 6 | (zero | less) << 7;

	return (holds >> (condition >> 1 & 7) ^ condition) & 1;
}

static __always_inline bool exit_target(const union exit_registers *r, const struct abi_exit *x,
					u64 *ret)
{
	u64 at =
		exit_register(r, x->base) + exit_register(r, x->index) * x->scale + x->displacement;

	if (!x->memory) {
		*ret = at;
		return true;
	}
	return bpf_probe_read_user(ret, sizeof(*ret), (void *)at) == 0;
}

/* @context: of the probe's program. @number: of the exit, from 1 on; 0: it leaves each time. */
static __always_inline bool exit_leaves(const void *context, u32 number)
{
	union exit_registers r;
	const struct abi_exit *x;
	u64 target = 0;

	if (!number)
		return true;
	if (number > ABI_MAX_EXITS || bpf_probe_read_kernel(&r, sizeof(r), context))
		return false;
	x = &exits[index_below(number - 1, ABI_MAX_EXITS)];
	if (x->by_flags)
		return exit_condition(r.named.flags, x->condition);
	if (!exit_target(&r, x, &target)) {
		count(COUNTER_exit_unread);
		return false;
	}
	for (int i = 0; i < ABI_EXIT_PARTS; i++)
		if (target - r.named.ip - x->low[i] < x->size[i])
			return false;
	return true;
}
