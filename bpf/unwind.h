/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Which address a sample belongs to: the first frame of its call chain that is in scope. The stack
 * is walked by tables that the controller makes of the objects' call frame information; a row also
 * says whether its code is in scope, so one search answers both. */
#pragma once

#include "bpf/maps.h"
#include "bpf/python.h"
#include "bpf/sampled.h"

static __always_inline long frame_read(void *to, u32 size, u64 from)
{
	return bpf_probe_read_user(to, size, (void *)from);
}

#include "bpf/frame.h"

struct row_chunk {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ABI_ROW_CHUNK);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(struct abi_row)); /* the compiler does not describe types that
						       only an inner map names */
};

/* In chunks, which the controller adds as objects are loaded: all of it at once would be 32 MiB. A
 * row does not change while a module in force refers to it. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, ABI_MAX_ROWS / ABI_ROW_CHUNK);
	__type(key, u32);
	__array(values, struct row_chunk);
} rows SEC(".maps");

/* Each address space has a part, sorted by start: the controller fills one that is not in use. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, ABI_MODULE_POOL);
	__type(key, u32);
	__type(value, struct abi_module);
} modules SEC(".maps");

/* An outcome beside those of enum frame_outcome: the frame is CPython's own. */
#define CHAIN_PYTHON 0x100

struct chain {
	struct frame frame;
	u64 modules;
	u64 found;   /* ABI_CODE */
	u32 outcome; /* enum frame_outcome; FRAME_CALLER: the chain goes on */
};

/* The module that @at lies in: its index in the map, or -1. Global functions are verified once,
 * however often they are called. */
__noinline int unwind_module(u64 at, u64 in_force)
{
	u32 lo = ABI_MODULES_FIRST(in_force), hi = lo + ABI_MODULES_N(in_force);
	int found = -1;

	for (int i = 0; i < 12 && lo < hi; i++) { /* 2^11 = ABI_MAX_MODULES */
		u32 mid = lo + (hi - lo) / 2;
		struct abi_module *m = bpf_map_lookup_elem(&modules, &mid);

		if (!m)
			break;
		if (at < m->start) {
			hi = mid;
		} else if (at >= m->end) {
			lo = mid + 1;
		} else {
			found = (int)mid;
			break;
		}
	}
	return found;
}

/* The last of the rows [@lo, @hi) that is not above @pc, as a number; 0 (a row that says nothing)
 * if there is none. */
__noinline u64 unwind_search(u32 lo, u32 hi, u32 pc)
{
	u64 found = 0;

	for (int i = 0; i < 23 && lo < hi; i++) { /* 2^22 = ABI_MAX_ROWS */
		u32 mid = lo + (hi - lo) / 2, chunk = mid / ABI_ROW_CHUNK, at = mid % ABI_ROW_CHUNK;
		void *inner = bpf_map_lookup_elem(&rows, &chunk);
		u64 *row = inner ? bpf_map_lookup_elem(inner, &at) : NULL;

		if (!row)
			break;
		if ((u32)*row <= pc) {
			found = *row;
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return found;
}

union row_bits {
	u64 bits;
	struct abi_row row;
};

/* *ret_code: where that is, as ABI_CODE. */
static __always_inline union row_bits unwind_row(u64 at, u64 in_force, u64 *ret_code)
{
	union row_bits row = {.bits = 0};
	u32 module = unwind_module(at, in_force);
	struct abi_module *m = bpf_map_lookup_elem(&modules, &module);

	if (m) {
		row.bits = unwind_search(m->row_lo, m->row_hi, at - m->base);
		*ret_code = ABI_CODE(m->object, at - m->base);
	}
	return row;
}

/* The address space that @task runs in. */
static __always_inline u32 space_of(const struct task_struct *task)
{
	struct abi_proc *p = config.many ? proc_of(task) : NULL;

	return !config.many ? 0 : p ? p->space : ABI_SPACE_NONE;
}

/* Is it code in scope that a stack leads to? A row with both flags is memory of CPython's
 * functions, which only its list of frames leads to. */
static __always_inline bool row_in_scope(union row_bits row)
{
	return (row.row.kind & (ABI_ROW_IN_SCOPE | ABI_ROW_PYTHON)) == ABI_ROW_IN_SCOPE;
}

/* One step up the stack. */
static __always_inline u32 chain_up(struct frame *f, union row_bits row)
{
	return row.row.kind & ABI_ROW_PYTHON ? (u32)CHAIN_PYTHON : (u32)frame_step(f, row.row);
}

static long chain_step(u32 i, struct chain *c)
{
	u64 code = 0;
	union row_bits row = unwind_row(frame_call_site(&c->frame), c->modules, &code);

	sampled_frame(code, row_in_scope(row));
	if (row_in_scope(row)) {
		c->found = code;
		return 1;
	}
	/* Without unwinding not even the first caller is read. */
	c->outcome = config.max_frames == 1 ? FRAME_LOST : chain_up(&c->frame, row);
	return c->outcome != FRAME_CALLER;
}

struct python_chain {
	u64 at;		   /* a frame; 0: the list is over */
	u64 modules, code; /* the last one's, if that is in scope, or 0 */
	u32 space, n;
};

static __always_inline void python_next(struct python_chain *c)
{
	u32 space = c->space;
	union row_bits row;
	u64 code = 0;

	if (space >= ABI_MAX_SPACES)
		return;
	row = unwind_row(python_read(c->at + pythons[space].instr), c->modules, &code);
	c->code = (row.row.kind & ABI_ROW_PYTHON) && (row.row.kind & ABI_ROW_IN_SCOPE) ? code : 0;
	c->at = python_read(c->at + pythons[space].previous);
}

static long python_chain_step(u32 i, struct python_chain *c)
{
	python_next(c);
	return c->code || !c->at;
}

/* The first frame in scope of CPython's list from that at @at on: its code, or 0. A function of its
 * own, since the stack is small: all that is called has 512 bytes of it together. */
__noinline u64 python_first_in_scope(u64 at, u64 modules, u32 space)
{
	struct python_chain c = {.at = at, .modules = modules, .space = space};

	if (at)
		bpf_loop(config.max_frames, python_chain_step, &c, 0);
	return c.code;
}

/* What cut call chains short on this CPU so far: a sample compares it with what it was before. */
struct chain_cuts {
	u64 too_deep, lost;
};

static __always_inline struct chain_cuts chain_cuts(const struct abi_totals *sum)
{
	const u64 *n = sum->counters;

	return (struct chain_cuts){n[COUNTER_stack_too_deep],
				   n[COUNTER_frame_unreadable] + n[COUNTER_frame_lost]};
}

static __always_inline void chain_count(u32 outcome)
{
	if (outcome == FRAME_END)
		count(COUNTER_stack_ended);
	else if (outcome == FRAME_UNREADABLE)
		count(COUNTER_frame_unreadable);
	else if (outcome == FRAME_LOST)
		count(COUNTER_frame_lost);
	else
		count(COUNTER_stack_too_deep);
}

enum chain_how { CHAIN_IN_CALL = 1, CHAIN_UNCOUNTED = 2 /* it is no sample's */ };

/* The code of the first frame in scope, or 0. A global function: what its many ways out would
 * multiply is verified apart. In a system call rip is behind the instruction, which may be the last
 * of a function (that of the way back from a signal); or it is the first instruction of a handler,
 * if a signal has just been delivered. */
__noinline u64 chain_first_in_scope(u64 ip, u64 sp, u64 bp, u32 how, u64 in_force)
{
	struct chain c = {.frame = {.ip = ip, .sp = sp, .bp = bp, .exact = 1}, .modules = in_force};
	u64 code;

	if (how & CHAIN_IN_CALL)
		c.frame.exact = unwind_row(ip, c.modules, &code).row.kind != ABI_ROW_NONE;

	bpf_loop(config.max_frames, chain_step, &c, 0);
	if (c.outcome == CHAIN_PYTHON) {
		u32 space = space_of(bpf_get_current_task_btf());

		c.found = python_first_in_scope(python_top(space), c.modules, space);
		c.outcome = FRAME_END;
	}
	if (!c.found && !(how & CHAIN_UNCOUNTED))
		chain_count(c.outcome);
	return c.found;
}

/* The modules of the address space that @task runs in. */
static __always_inline u64 modules_of(struct task_struct *task)
{
	u32 space = space_of(task);

	return space < ABI_MAX_SPACES ? *(volatile u64 *)&spaces[space] : 0;
}

/* Makes of what a tick interrupted the thread's own frame. Where the tick hit the kernel, the
 * thread's registers are those saved at kernel entry, with the number of the system call (negative:
 * none). Returns whether the thread is in one. */
static __always_inline bool frame_of_thread(struct frame *f, bool user, struct task_struct *task)
{
	struct pt_regs *regs;

	if (user)
		return false;
	regs = (struct pt_regs *)bpf_task_pt_regs(task);
	f->ip = BPF_CORE_READ(regs, ip);
	f->sp = BPF_CORE_READ(regs, sp);
	f->bp = BPF_CORE_READ(regs, bp);
	return (s64)BPF_CORE_READ(regs, orig_ax) >= 0;
}
