/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which address a sample belongs to: the first frame of its call chain that is in scope. */
#pragma once

#include "bpf/maps.h"

struct chain {
	u64 ip, bp;
	bool user; /* the interrupt hit user mode: ip and bp are the thread's own */
	bool done;
	u64 found;
	u64 base; /* of the ranges in force */
	u64 n;
};

struct range_search {
	u64 addr;
	u32 lo, hi, base;
	bool found;
};

static long range_step(u32 i, struct range_search *s)
{
	struct abi_interval *r;
	u32 mid;

	if (s->lo >= s->hi)
		return 1;
	mid = s->lo + (s->hi - s->lo) / 2;
	i = s->base + mid;
	r = bpf_map_lookup_elem(&ranges, &i);
	if (!r)
		return 1;
	if (s->addr < r->lo) {
		s->hi = mid;
	} else if (s->addr >= r->hi) {
		s->lo = mid + 1;
	} else {
		s->found = true;
		return 1;
	}
	return 0;
}

static __always_inline bool range_contains(const struct chain *c, u64 addr)
{
	struct range_search s = {.addr = addr, .lo = 0, .hi = c->n, .base = c->base};

	bpf_loop(14, range_step, &s, 0); /* 2^13 = ABI_MAX_RANGES */
	return s.found;
}

static long chain_step(u32 i, struct chain *c)
{
	u64 frame[2];

	/* Return addresses point behind the call: the call itself is the byte before. */
	u64 at = i ? c->ip - 1 : c->ip;

	if (range_contains(c, at)) {
		c->found = at;
		return 1;
	}
	if (!c->bp || (c->bp & 7))
		return 1;
	if (bpf_probe_read_user(frame, sizeof(frame), (void *)c->bp)) {
		count(COUNTER_frame_unreadable);
		return 1;
	}
	if (frame[0] <= c->bp)
		frame[0] = 0; /* the stack grows down: anything else is no frame pointer, and could go in a circle */
	c->bp = frame[0];
	c->ip = frame[1];
	return c->ip < 4096;
}

/* The address of the first frame in scope, or 0. By frame pointers; the interrupted user address comes first, from the registers saved
 * at kernel entry when the tick hit the kernel. */
static __always_inline u64 chain_first_in_scope(struct chain *c, struct task_struct *task)
{
	c->n = control.n_ranges;
	c->base = control.ranges_half ? ABI_MAX_RANGES : 0;
	if (!c->user) {
		struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(task);

		c->ip = BPF_CORE_READ(regs, ip);
		c->bp = BPF_CORE_READ(regs, bp);
	}
	bpf_loop(ABI_MAX_FRAMES, chain_step, c, 0);
	return c->found;
}
