/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Slopes: what a little of each place is worth, of all places at once, while nobody is paused.
 *
 * Each thread carries a vector, D: for each place how much earlier the thread would be where it is
 * if the place took no time, to first order. It grows where the thread executes (S1), and goes
 * along the events that end waits: who was woken (S2) or got a CPU that another one had (S3) or was
 * born (S4) is where it is because of the thread that did it, and takes over its D. At a visit of a
 * progress point, D over the time since all D were 0 is the share of each place in the chain of
 * events that led there, which is the slope of the place's causal profile at 0 %. These are the
 * limits of R1 to R6 for a speedup that goes to 0. The chain is the one of critical paths (Yang and
 * Miller, ICDCS 1988; online: Hollingsworth, SIGMETRICS 1996), and that its derivative can be
 * carried along one run is infinitesimal perturbation analysis (Ho and Cao, JOTA 40, 1983).
 *
 * All D begin at 0 in each window of some tenths of a second. Of a latency point one interval at a
 * time is a window of its own, in which each thread has a second vector: what it has at the
 * interval's end is what the interval was made of, whichever threads did it. So what the thread
 * that ends it owes to events before the begin is no part of it: threads that do not meet have
 * nothing to do with each other's D, and a lock's holder that a request meets has one of its own.
 *
 * Nothing here takes a lock: a vector is written by the CPU that runs its thread, or by the waker
 * of a thread that is blocked. */
#pragma once

#include "bpf/maps.h"
#include "bpf/vector.h"

struct abi_slopes_control slopes_control __weak SEC(".bss") = {};

struct abi_slope_cpu slope_cpus[ABI_MAX_CPUS] __weak SEC(".bss") = {};
#define PASSED_NS 50000000 /* what is older counts half */

struct abi_slope_interval slope_interval __weak SEC(".bss") = {};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 2 * ABI_MAX_PLACES);
	__type(key, u32);
	__type(value, struct abi_place);
} places __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ABI_MAX_POINTS);
	__type(key, u32);
	__type(value, struct abi_slopes);
} slopes __weak SEC(".maps");

/* The window that is open; 0: none is. */
static __always_inline u64 slope_window(void)
{
	return config.slopes ? *(volatile u64 *)&slopes_control.window : 0;
}

/* The window that vectors since @since begin at 0 in; 0: none is open. */
static __always_inline u64 slope_number(int since)
{
	u64 window = slope_window();

	if (since == ABI_SINCE_WINDOW || !window)
		return window;
	return n_latencies ? *(volatile u64 *)&slope_interval.number : 0;
}

/* Which entry the place at @code has: the last interval that begins at or before it. */
__weak __noinline u32 slope_entry(u64 code)
{
	u32 half = *(volatile u32 *)&slopes_control.half & 1;
	u32 first = half ? ABI_MAX_PLACES : 0, lo = 0, hi;
	u32 found = ABI_ENTRY_REST;

	hi = *(volatile u32 *)&slopes_control.n_places[half];
	for (int i = 0; i < 13 && lo < hi; i++) { /* 2^12 = ABI_MAX_PLACES */
		u32 mid = lo + (hi - lo) / 2, at = first + mid;
		struct abi_place *p = bpf_map_lookup_elem(&places, &at);

		if (!p)
			break;
		if (p->lo <= code) {
			found = code < p->hi ? p->entry : ABI_ENTRY_REST;
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return found;
}

/* Of all ticks of each CPU that found threads in scope: what they stood for, ns, ever. */
abi_u64 slope_ticked[ABI_MAX_CPUS * ABI_TICKED_STEP] __weak SEC(".bss") = {};

static __always_inline void slope_add(struct abi_vectors *v, u32 entry, u64 ns)
{
	for (int i = 0; i < ABI_SINCES; i++)
		if (slope_number(i))
			vector_add(&v->since[i], entry, ns);
}

static __always_inline void slope_enter(struct abi_vectors *v)
{
	for (int i = 0; i < ABI_SINCES; i++)
		if (slope_number(i))
			vector_enter(&v->since[i], slope_number(i));
}

/* S7, for a tick that began at @begun and stands for @distance: the interrupt, as calibrated, and
 * what its program does are ours. Returns the rest, which is the place's. */
static __always_inline u64 slope_ticks(struct abi_vectors *v, u64 distance, u64 begun)
{
	u64 own = control.costs.tick_ns + bpf_ktime_get_ns() - begun;

	own = own < distance ? own : distance;
	slope_ticked[index_below(cpu_index() * ABI_TICKED_STEP, ABI_MAX_CPUS * ABI_TICKED_STEP)] +=
		distance;
	slope_add(v, ABI_ENTRY_OWN, own);
	return distance - own;
}

/* A tick in the probe of a point. The visit's calibrated cost includes that time, so no place gets
 * it. */
static __always_inline void slope_probed(struct abi_vectors *v, u64 distance, u64 begun)
{
	slope_enter(v);
	(void)slope_ticks(v, distance, begun);
}

/* S1, for a sample in the place @code (0: in none) of the current thread. Each stands for the mean
 * distance of this CPU's ticks, not for what the thread has executed since its last one: so D is
 * never late. @passes: the thread was woken from outside and has waited for nobody since. */
static __always_inline void slope_tick(struct abi_vectors *v, u64 code, u64 distance, u64 begun,
				       bool passes)
{
	u64 window = slope_window(), ns;
	u32 entry;

	if (!window)
		return;
	slope_enter(v);
	ns = slope_ticks(v, distance, begun);
	entry = code ? index_below(slope_entry(code), ABI_ENTRIES) : ABI_ENTRY_REST;
	slope_add(v, entry, ns);
	if (passes) {
		slope_enter(&slope_cpus[cpu_index()].passed);
		slope_add(&slope_cpus[cpu_index()].passed, entry, ns);
	}
}

/* S4: @w begins where @k is. A global function: it is verified once. */
__weak __noinline int slope_take(struct abi_vectors *w, struct abi_vectors *k)
{
	for (int i = 0; w && k && i < ABI_SINCES; i++)
		if (slope_number(i))
			vector_take(&w->since[i], &k->since[i], slope_number(i));
	return 0;
}

/* How much of the time from @from to @now is in the window. */
static __always_inline u64 slope_since(int since, u64 from, u64 now)
{
	u64 begun = since == ABI_SINCE_WINDOW ? slopes_control.begun_ns : slope_interval.begun_ns;

	from = from > begun ? from : begun;
	return now > from ? now - from : 0;
}

/* S5: something outside of the scope ended a wait that began at @from. Waits for a CPU are added in
 * the same way. */
static __always_inline void slope_waited(struct abi_vectors *w, u32 entry, u64 from, u64 now)
{
	entry = index_below(entry, ABI_ENTRIES);
	slope_enter(w);
	for (int i = 0; i < ABI_SINCES; i++)
		if (slope_number(i))
			vector_add(&w->since[i], entry, slope_since(i, from, now));
}

/* A global function: it is verified once. */
__weak __noinline int slope_meets(struct abi_vector *w, struct abi_vector *k, u64 waited, u64 age,
				  u64 window)
{
	if (w && k)
		vector_meet(w, k, waited, age, window);
	return 0;
}

/* S2 and S3: @w, which waited since @from, goes on where @k is. */
static __always_inline void slope_meet(struct abi_vectors *w, struct abi_vectors *k, u64 from,
				       u64 now)
{
	for (int i = 0; i < ABI_SINCES; i++)
		if (slope_number(i))
			slope_meets(&w->since[i], &k->since[i], now > from ? now - from : 0,
				    slope_since(i, 0, now), slope_number(i));
}

static __always_inline void slope_passed_anew(struct abi_slope_cpu *c, u64 now)
{
	for (int i = 0; i < ABI_SINCES; i++)
		c->passed.since[i].window = 0;
	c->passed_from = now;
}

/* A global function: it is verified once. */
__weak __noinline int slope_halve(struct abi_vectors *v)
{
	for (int i = 0; v && i < ABI_SINCES; i++)
		for (int k = 0; k < ABI_ENTRIES; k++)
			v->since[i].d[k] /= 2;
	return 0;
}

/* A thread in scope leaves this CPU. A global function: it is verified once. */
__weak __noinline int slope_leave(struct abi_vectors *v, u32 passes, u64 now)
{
	struct abi_slope_cpu *c = &slope_cpus[cpu_index()];

	if (!v || !slope_window())
		return 0;
	if (!passes) {
		slope_take(&c->left, v);
		slope_passed_anew(c, now);
		c->left_at = now;
	} else if (now - c->passed_from > PASSED_NS) {
		slope_halve(&c->passed);
		c->passed_from = now - (now - c->passed_from) / 2;
	}
	return 0;
}

/* A global function: it is verified once. */
__weak __noinline int slope_put_off(struct abi_vectors *w, u64 from, u64 now)
{
	struct abi_slope_cpu *c = &slope_cpus[cpu_index()];
	u64 waited = now - from, since = now - c->passed_from;
	u32 part = waited < since ? (u32)((waited << 16) / (since | 1)) : 1 << 16;

	for (int i = 0; w && i < ABI_SINCES; i++)
		if (slope_number(i) && c->passed.since[i].window == slope_number(i))
			vector_add_part(&w->since[i], &c->passed.since[i], part);
	return 0;
}

/* A global function: it is verified once. */
__weak __noinline int slope_resume(struct abi_vector *w, struct abi_vector *left,
				   struct abi_vector *came, u64 window)
{
	if (w && left && came)
		vector_resume(w, left, came, window);
	return 0;
}

/* S3: @w gets this CPU, for which it waited since @from, behind threads in scope. @came: what the
 * one had that took the CPU from @w; NULL: @w was woken. Returns whether it is where one of them
 * was. A global function: it is verified once. */
__weak __noinline int slope_behind(struct abi_vectors *w, struct abi_vectors *came, u64 from,
				   u64 now)
{
	struct abi_slope_cpu *c = &slope_cpus[cpu_index()];
	bool met = c->left_at > from;
	u32 before[ABI_SINCES];

	if (!w)
		return 0;
	slope_enter(w);
	/* What more CPUs would be worth is the wait itself. */
	for (int i = 0; i < ABI_SINCES; i++)
		before[i] = w->since[i].d[ABI_ENTRY_CPU];
	for (int i = 0; met && came && i < ABI_SINCES; i++)
		if (slope_number(i))
			slope_resume(&w->since[i], &c->left.since[i], &came->since[i],
				     slope_number(i));
	if (met && !came)
		slope_meet(w, &c->left, from, now);
	slope_put_off(w, from, now);
	for (int i = 0; i < ABI_SINCES; i++)
		w->since[i].d[ABI_ENTRY_CPU] = before[i];
	return met;
}

static __always_inline u64 slope_coarse(u64 x, int shift)
{
	return (x + (1ULL << (shift - 1))) >> shift;
}

/* Adds what @v has to @s, for a visit or an interval of @length ns. */
static __always_inline void slope_sum(struct abi_slopes *s, const struct abi_vector *v, u64 length)
{
	u64 time = slope_coarse(length, ABI_TIME_SHIFT);
	/* The first one writes over what an earlier window has left. */
	u64 kept = s->visits++ ? ~0ULL : 0;

	s->time = (s->time & kept) + length;
	s->coarse = (s->coarse & kept) + time;
	s->time2 = (s->time2 & kept) + time * time;
	for (int i = 0; i < ABI_ENTRIES; i++) {
		s->sum[i] = (s->sum[i] & kept) + v->d[i];
		s->product[i] = (s->product[i] & kept) + time * slope_coarse(v->d[i], ABI_D_SHIFT);
	}
}

static __always_inline void slope_sums_enter(struct abi_slopes *s, u64 window)
{
	if (s->window == window)
		return;
	s->window = window;
	s->seen = s->visits = 0;
}

/* S6, and S7 for the visit itself. A global function: it is verified once. */
__weak __noinline int slope_visit(struct abi_vectors *v, u32 point, u64 now)
{
	struct abi_slopes *s = bpf_map_lookup_elem(&slopes, &point);
	u64 window = slope_window(), begun = slopes_control.begun_ns;

	if (!v || !s || !window || now <= begun)
		return 0;
	slope_enter(v);
	slope_sums_enter(s, window);
	s->seen++;
	if (s->seen <= ABI_POINT_MANY || s->seen % ABI_POINT_SKIP == 0)
		slope_sum(s, &v->since[ABI_SINCE_WINDOW], now - begun);
	slope_add(v, ABI_ENTRY_OWN, slopes_control.visit_ns[index_below(point, ABI_MAX_POINTS)]);
	return 0;
}

/* The window in which the program's end has been visited. */
abi_u64 slope_ended __weak SEC(".bss") = 0;

/* The program's end, by the current thread of it, is a visit of the point that stands for it. Where
 * a thread ends all of them, it is the first to end; else the last one is what the end waited for.
 */
static __always_inline void slope_end(struct task_struct *p, struct abi_vectors *v, u64 now)
{
	u64 window = slope_window();
	u32 point = *(volatile u32 *)&slopes_control.end_point;
	struct abi_point *visited;

	if (!window || !point || slope_ended == window || task_process(p) != control.main)
		return;
	if (BPF_CORE_READ(p, signal, live.counter) &&
	    !(BPF_CORE_READ(p, signal, flags) & SIGNAL_GROUP_EXIT))
		return;
	slope_ended = window;
	point--;
	visited = bpf_map_lookup_elem(&points, &point);
	if (visited)
		ADD(visited->visits, 1);
	slope_visit(v, point, now);
}
