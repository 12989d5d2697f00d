/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* --attribution inclusive: a sample belongs to every frame of its call chain that is in scope.
 * Their call sites, each once however deep a recursion is, are what is counted and what is compared
 * with the selected line. */
#pragma once

#include "bpf/slopes.h"
#include "bpf/unwind.h"

/* Is @code in the selected line? */
static __always_inline bool selected(const struct abi_setup *s, u64 code)
{
	for (u32 i = 0; i < ABI_MAX_INTERVALS; i++) {
		if (i >= s->n_intervals)
			break;
		if (code >= s->intervals[i].lo && code < s->intervals[i].hi)
			return true;
	}
	return false;
}

/* Of this CPU's sample. Nothing else runs here between its walk and its count: samples do not
 * interrupt each other. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct abi_chain);
} chain_here SEC(".maps");

/* One entry where attribution is not inclusive: set before load. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ABI_MAX_CHAINS);
	__type(key, struct abi_chain);
	__type(value, struct abi_sample_sum);
} chains SEC(".maps");

struct chain_walk {
	struct frame frame;
	u64 modules;
	u32 outcome; /* enum frame_outcome; FRAME_CALLER: the chain goes on */
	u32 n;	     /* sites in chain_here */
};

/* Adds a site to the @n that are there, unless it is one of them; returns how many there are then.
 */
__noinline u32 chain_add(u32 n, u64 code)
{
	u32 zero = 0;
	struct abi_chain *c = bpf_map_lookup_elem(&chain_here, &zero);

	if (!c)
		return n;
	for (u32 i = 0; i < ABI_CHAIN_SITES; i++) {
		if (i >= n) {
			c->sites[i] = code;
			return i + 1;
		}
		if (c->sites[i] == code)
			return n;
	}
	return n;
}

static long chain_walk_step(u32 i, struct chain_walk *w)
{
	u64 code = 0;
	union row_bits row = unwind_row(frame_call_site(&w->frame), w->modules, &code);

	sampled_frame(code, row_in_scope(row));
	if (row_in_scope(row))
		w->n = chain_add(w->n, code);
	w->outcome = chain_up(&w->frame, row);
	return w->outcome != FRAME_CALLER;
}

static long python_gather_step(u32 i, struct python_chain *c)
{
	python_next(c);
	if (c->code)
		c->n = chain_add(c->n, c->code);
	return !c->at;
}

/* Adds those of CPython's list from the frame at @at on to the @n sites in chain_here; returns how
 * many there are then. */
__noinline u32 python_gather(u64 at, u64 modules, u32 space, u32 n)
{
	struct python_chain c = {.at = at, .modules = modules, .space = space, .n = n};

	if (at)
		bpf_loop(config.max_frames, python_gather_step, &c, 0);
	return c.n;
}

/* How many sites are in scope, all of them in chain_here. */
__noinline u32 chain_gather(u64 ip, u64 sp, u64 bp, u32 how, u64 in_force)
{
	struct chain_walk w = {.frame = {.ip = ip, .sp = sp, .bp = bp, .exact = 1},
			       .modules = in_force};
	u64 code;
	u32 zero = 0;
	struct abi_chain *c = bpf_map_lookup_elem(&chain_here, &zero);

	if (!c)
		return 0;
	__builtin_memset(c, 0, sizeof(*c));
	if (how & CHAIN_IN_CALL)
		w.frame.exact = unwind_row(ip, w.modules, &code).row.kind != ABI_ROW_NONE;
	bpf_loop(config.max_frames, chain_walk_step, &w, 0);
	if (w.outcome == CHAIN_PYTHON) {
		u32 space = space_of(bpf_get_current_task_btf());

		w.n = python_gather(python_top(space), w.modules, space, w.n);
		w.outcome = FRAME_END;
	}
	if ((w.outcome != FRAME_END || !w.n) && !(how & CHAIN_UNCOUNTED))
		chain_count(w.outcome);
	return w.n;
}

/* Returns the code of the first frame in scope of the interrupted stack. With inclusive attribution
 * it returns how many sites of the stack are in scope. */
static __always_inline u64 code_of_sample(const struct frame *interrupted, bool user,
					  struct task_struct *task)
{
	struct frame own = *interrupted;
	bool in_call = frame_of_thread(&own, user, task);

	return config.inclusive
		       ? chain_gather(own.ip, own.sp, own.bp, in_call, modules_of(task))
		       : chain_first_in_scope(own.ip, own.sp, own.bp, in_call, modules_of(task));
}

/* Adds a sample that stands for @weight ns to the sum of @key in @map. False: @map is full. */
static __always_inline bool count_in(void *map, const void *key, u64 weight)
{
	struct abi_sample_sum one = {1, weight}, *n = bpf_map_lookup_elem(map, key);

	if (!n) {
		if (!bpf_map_update_elem(map, key, &one, BPF_NOEXIST))
			return true;
		n = bpf_map_lookup_elem(map, key);
		if (!n) {
			count(COUNTER_sample_table_full);
			return false;
		}
	}
	ADD(n->count, 1);
	ADD(n->ns, weight);
	return true;
}

/* Counts the sites in chain_here together, for a sample that stands for @weight ns. Verified once,
 * like all that returns a number and is not inlined.
 */
__noinline int chain_count_sample(u64 weight)
{
	u32 zero = 0;
	struct abi_chain *c = bpf_map_lookup_elem(&chain_here, &zero);

	return c && count_in(&chains, c, weight);
}

struct chain_match {
	u64 epoch, hit;
};

/* The first @n sites in chain_here. */
static __always_inline void chain_copy(u64 to[WAIT_PLACES], u32 n)
{
	u32 zero = 0;
	struct abi_chain *c = bpf_map_lookup_elem(&chain_here, &zero);

	for (u32 i = 0; c && i < WAIT_PLACES && i < ABI_CHAIN_SITES; i++)
		to[i] = i < n ? c->sites[i] : 0;
}

static long chain_match_step(u32 i, struct chain_match *m)
{
	u32 zero = 0;
	struct abi_chain *c = bpf_map_lookup_elem(&chain_here, &zero);

	if (!c || i >= ABI_CHAIN_SITES)
		return 1;
	m->hit = selected(&control.setups[(m->epoch >> 1) & 1], c->sites[i]);
	return m->hit;
}

/* Is one of the first @n sites in the selected line? */
__noinline int chain_selected(u64 epoch, u32 n)
{
	struct chain_match m = {.epoch = epoch};

	bpf_loop(n, chain_match_step, &m, 0);
	return m.hit != 0;
}

/* S1 where a sample belongs to all of its call chain: to each entry once. @n: how many sites
 * chain_here has. */
__noinline int slope_tick_chain(struct abi_vectors *v, u32 n, u64 distance, u64 begun, u32 passes)
{
	struct abi_vectors *passed = &slope_cpus[cpu_index()].passed;
	struct abi_chain *c;
	u64 window = slope_window(), seen = 0;
	u32 zero = 0;

	if (!window || !v)
		return 0;
	slope_enter(passed);
	c = bpf_map_lookup_elem(&chain_here, &zero);
	if (!c)
		return 0;
	slope_enter(v);
	distance = slope_ticks(v, distance, begun);
	if (!n)
		slope_add(v, ABI_ENTRY_REST, distance);
	for (u32 i = 0; i < ABI_CHAIN_SITES; i++) {
		u32 entry;

		if (i >= n)
			break;
		entry = index_below(slope_entry(c->sites[i]), ABI_ENTRIES);
		if (!(seen >> entry & 1)) {
			slope_add(v, entry, distance);
			if (passes)
				slope_add(passed, entry, distance);
		}
		seen |= 1ULL << entry;
	}
	return 0;
}
