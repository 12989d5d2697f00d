/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Latency points: intervals from a visit of one point to a visit of another, by the same thread or
 * with the same key.
 *
 * An interval's length is the difference of the virtual clocks (now - local) of the thread that
 * ends it and the one that began it. That is what it would be if the selected line were as fast as
 * pretended: the ledger makes all events happen in the order of the virtual clocks (thread.h; the
 * virtual clock is Coz's: Curtsinger and Berger, SOSP 2015: a pause that a thread executes shifts
 * what it does next, and the effective time is what remains without the pauses). So a pause in the
 * interval is no latency of the program (local grows by exactly that much, R2), nor is one that the
 * thread still owes (at its end the interval is as far behind as at its begin); the line's own
 * execution counts (1 - s) of itself (R1); and of the time that a thread was blocked there goes
 * what its waker had been paused for (R3). The growth of G would do for the mean, as Coz has it in
 * Little's law, since everybody pays sooner or later; a single interval of a millisecond needs to
 * know whether this thread paid in it.
 *
 * What a selected sample earns stands for all execution since the sample before, so single
 * intervals would be off by up to what the line gains between two samples, one up and the next one
 * down. Their sum is not, with what is expected to be booked (expected.h), and the mean is made of
 * it; it is signed, since an interval may end before it began. For the histogram the clocks are
 * smoothed (smooth.h). Where one thread begins and another ends, their smoothed clocks must have
 * something to do with each other: a thread that is woken, and takes over the waker's clock, takes
 * over its smoothed one (latency_woken).
 *
 * Local starts anew with each experiment (R7), and speedups differ: only an interval that lies in
 * one experiment has a length.
 *
 * In windows between experiments it is found out what intervals are made of, by how long they are:
 * one at a time is followed, from its begin to its end (slopes.h). */
#pragma once

#include "bpf/slopes.h"
#include "bpf/thread.h"
#include "shared/latency.h"

struct abi_latency_role latency_roles[ABI_MAX_POINTS] __weak SEC(".bss") = {};

struct latency_key {
	u64 value; /* of the argument, or a thread's id */
	u32 tgid;  /* whose argument; 0: value is a thread */
	u32 latency;
};

struct latency_begin {
	u64 epoch;  /* 0: no experiment ran */
	u64 window; /* of slopes; 0: none was open */
	u64 ns;
	s64 local, expected;
	u64 tid;
	struct smooth smooth;
};

/* The controller makes it this large only if there are latency points. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ABI_MAX_BEGINS);
	__type(key, struct latency_key);
	__type(value, struct latency_begin);
} begins __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ABI_MAX_LATENCIES);
	__type(key, u32);
	__type(value, struct abi_latency);
} latencies __weak SEC(".maps");

/* What those that were followed were made of; the classes of a latency point follow each other. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ABI_MAX_LATENCIES *ABI_CLASSES);
	__type(key, u32);
	__type(value, struct abi_slopes);
} interval_slopes __weak SEC(".maps");

struct abi_latency_bounds latency_bounds[ABI_MAX_LATENCIES] __weak SEC(".bss") = {};

/* What is learnt of intervals, for better guesses. */
struct latency_shares {
	struct smooth_share of[SMOOTH_SHARES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ABI_MAX_LATENCIES);
	__type(key, u32);
	__type(value, struct latency_shares);
} shares __weak SEC(".maps");

/* The argument registers of the System V calling convention. The barriers keep the compiler from
 * joining the loads into one of a computed address, which the verifier refuses for a context. */
static __always_inline u64 latency_argument(const struct pt_regs *regs, u32 n)
{
	u64 v = 0;

#define ARGUMENT(number, reg)                  \
	if (n == (number)) {                   \
		v = regs->reg;                 \
		asm volatile("" ::: "memory"); \
	}
	ARGUMENT(1, di)
	ARGUMENT(2, si)
	ARGUMENT(3, dx)
	ARGUMENT(4, cx)
	ARGUMENT(5, r8)
	ARGUMENT(6, r9)
#undef ARGUMENT
	return v;
}

static __always_inline u64 latency_speedup(u64 epoch)
{
	return control.setups[(epoch >> 1) & 1].speedup_q16;
}

/* What @t executed since its last mark. @now is this CPU's, where it runs or ran last; a thread
 * that is off its CPU executes nothing. */
static __always_inline s64 latency_exec(const struct thread *t, u64 now)
{
	const struct abi_cpu *c = cpu_here();
	u64 from = t->wait.running_at;

	if (n_latencies == 0)
		return 0;
	/* Without the scheduler's events nobody notes when it began to run: what of that was
	 * waiting is taken off (latency_waited). */
	if (sync_by_calls() && c)
		from = c->sampled_at;
	return t->smooth.exec + (from && now > from ? (s64)(now - from) : 0);
}

/* A sample of @t, @exec after its last mark, for which @booked was added to its local. */
static __always_inline void latency_sampled(struct thread *t, s64 exec, bool in_line, s64 booked,
					    u64 q16)
{
	if (n_latencies == 0)
		return;
	smooth_sampled(&t->smooth, exec > 0 ? exec : 0, in_line, booked, q16);
	t->smooth.exec = 0;
}

/* @t, the current thread, is at a latency point. */
static __always_inline void latency_mark(struct thread *t, u64 epoch, u64 now)
{
	s64 exec = latency_exec(t, now);

	if (exec < 0)
		exec = 0;
	smooth_visited(&t->smooth, exec, latency_speedup(epoch));
	ADD(t->smooth.exec, -exec);
}

/* @w was woken by @k at @now and goes on by its clock; local_k: the waker's local. @k: NULL where
 * nobody knows who it was. If its clock was not the waker's it was behind already, and its own goes
 * on: this is not called. */
static __always_inline void latency_woken(struct thread *w, const struct thread *k, s64 local_k,
					  u64 epoch, u64 now)
{
	u64 q16 = latency_speedup(epoch);
	s64 ahead;

	if (n_latencies == 0)
		return;
	/* The edge compared what is expected of both; the smoothed clocks say better. */
	ahead = local_k - w->clock.local +
		(k ? smooth_now(&k->smooth, latency_exec(k, now), q16) : 0);
	smooth_woken(&w->smooth, latency_exec(w, now), ahead, q16, now);
}

/* --sync pthread: @t was in a call for @ns in which it executed nothing. */
static __always_inline void latency_waited(struct thread *t, s64 ns)
{
	if (n_latencies)
		ADD(t->smooth.exec, -ns);
}

static __always_inline u64 latency_tgid(const struct latency_key *key)
{
	return (u64)key->tgid << 32 | key->latency;
}

static __always_inline bool latency_is_followed(const struct latency_key *key)
{
	return *(volatile u64 *)&slope_interval.number && slope_interval.value == key->value &&
	       slope_interval.tgid_latency == latency_tgid(key);
}

static __always_inline void latency_unfollow(void)
{
	*(volatile u64 *)&slope_interval.number = 0;
	*(volatile u64 *)&slope_interval.busy = 0;
}

/* The next interval that begins, once the one before has ended; of one latency point in each
 * window. */
static __always_inline void latency_follow(const struct latency_key *key)
{
	if (key->latency != slope_window() % n_latencies)
		return;
	if (latency_is_followed(key))
		latency_unfollow();
	if (slope_interval.busy || __sync_val_compare_and_swap(&slope_interval.busy, 0, 1))
		return;
	slope_interval.value = key->value;
	slope_interval.tgid_latency = latency_tgid(key);
	slope_interval.begun_ns = bpf_ktime_get_ns();
	*(volatile u64 *)&slope_interval.number = ++slope_interval.last_number;
}

/* One of @length ns has ended where @v is. A global function: it is verified once. */
__weak __noinline int latency_made_of(struct abi_vectors *v, u32 latency, u64 length)
{
	const struct abi_latency_bounds *bounds =
		&latency_bounds[index_below(latency, ABI_MAX_LATENCIES)];
	struct abi_slopes *s;
	u32 key = latency * ABI_CLASSES;
	u64 own, expected;

	_Static_assert((ABI_MAX_LATENCIES & (ABI_MAX_LATENCIES - 1)) == 0,
		       "a mask bounds the index");
	if (!v)
		return 0;
	slope_enter(v);
	/* One that a tick has met is longer for that, and has nothing else in its vector. But the
	 * bounds are of lengths with what ticks take of them on average. */
	own = (u64)v->since[ABI_SINCE_BEGIN].d[ABI_ENTRY_OWN] * ABI_D_UNIT;
	expected = (length * slopes_control.own_q16) >> 16;
	for (int i = 0; i < ABI_CLASSES - 1; i++)
		key += length + expected > bounds->ns[i] + own;
	s = bpf_map_lookup_elem(&interval_slopes, &key);
	if (!s)
		return 0;
	slope_sums_enter(s, slope_window());
	s->seen++;
	slope_sum(s, &v->since[ABI_SINCE_BEGIN], length);
	return 0;
}

/* @v: the thread's vectors if a window is open, else NULL; so in latency_closes. */
static __always_inline void latency_opens(struct abi_latency *l, struct latency_key *key,
					  struct thread *t, u32 tid, u64 epoch,
					  struct abi_vectors *v)
{
	struct latency_begin b = {}, *open = bpf_map_lookup_elem(&begins, key);

	/* The clock is read last, so that what we do here is not in the interval. */
	if (t) {
		b.epoch = epoch;
		b.ns = bpf_ktime_get_ns();
		thread_fold(t, b.ns);
		b.local = t->clock.local;
		b.expected = expected_local(t, b.ns);
		latency_mark(t, epoch, b.ns);
		b.tid = tid;
		b.smooth = t->smooth;
	} else if (v) {
		b.window = slope_window();
		b.ns = bpf_ktime_get_ns();
	}
	if (open) {
		*open = b;
		ADD(l->unended, 1);
	} else if (bpf_map_update_elem(&begins, key, &b, BPF_ANY)) {
		ADD(l->lost, 1);
	} else {
		ADD(l->opened, 1);
	}
	if (v)
		latency_follow(key);
}

static __always_inline void latency_closes(struct abi_latency *l, struct latency_key *key,
					   struct thread *t, u32 tid, u64 epoch, u64 now,
					   struct abi_vectors *v)
{
	const struct abi_setup *setup = &control.setups[(epoch >> 1) & 1];
	struct latency_shares *learnt = bpf_map_lookup_elem(&shares, &key->latency);
	struct latency_begin *b = bpf_map_lookup_elem(&begins, key);
	s64 length = -1;
	u32 bucket;

	if (t)
		latency_mark(t, epoch, now);
	if (v && latency_is_followed(key)) {
		latency_made_of(v, key->latency, now - slope_interval.begun_ns);
		latency_unfollow();
	}
	if (!b) {
		ADD(l->unmatched, 1);
		return;
	}
	if (t && b->epoch == epoch) {
		length = (s64)(now - b->ns);
		ADD(l->sum, length - (expected_local(t, now) - b->expected));
		length -= t->clock.local - b->local;
		length -= t->smooth.ahead - b->smooth.ahead;
		if (learnt)
			length = smooth_length(&t->smooth, &b->smooth, b->ns, b->tid == tid, length,
					       setup->speedup_q16, learnt->of,
					       setup->intervals[0].lo);
		length = length > 0 ? length : 0;
	} else if (t) {
		ADD(l->crossed, 1);
	} else if (v && b->window &&
		   (b->window == slope_window() || config.payer == ABI_PAY_NONE)) {
		/* Or one that is longer than a window; else it may have pauses in it. */
		length = (s64)(now - b->ns);
	}
	if (length >= 0) {
		bucket = histogram_bucket((u64)length);
		if (bucket < HISTOGRAM_BUCKETS)
			ADD(l->buckets[bucket], 1);
	}
	bpf_map_delete_elem(&begins, key);
	ADD(l->closed, 1);
}

/* A visit of point @i at @now. @regs: where the point has a function's arguments, else NULL. @t:
 * the visitor with its payments folded in, NULL while no experiment runs. @v: its vectors if a
 * window of slopes is open, else NULL. */
static __always_inline void latency_visit(u32 i, struct task_struct *task,
					  const struct pt_regs *regs, struct thread *t, u64 epoch,
					  u64 now, struct abi_vectors *v)
{
	const struct abi_latency_role *role = &latency_roles[index_below(i, ABI_MAX_POINTS)];
	struct latency_key key = {};
	struct abi_latency *l;

	_Static_assert((ABI_MAX_POINTS & (ABI_MAX_POINTS - 1)) == 0, "a mask bounds the index");
	if (n_latencies == 0 || role->latency == 0)
		return;
	key.latency = role->latency - 1;
	l = bpf_map_lookup_elem(&latencies, &key.latency);
	if (!l)
		return;
	if (role->argument && regs) {
		key.value = latency_argument(regs, role->argument);
		key.tgid = task->tgid;
	} else {
		key.value = (u32)task->pid;
	}
	if (role->is_end)
		latency_closes(l, &key, t, task->pid, epoch, now, v);
	else
		latency_opens(l, &key, t, task->pid, epoch, v);
}

static long latency_forget(u32 i, u32 *tid)
{
	struct latency_key key = {.value = *tid, .latency = i};
	struct abi_latency *l;

	if (bpf_map_delete_elem(&begins, &key))
		return 0;
	if (latency_is_followed(&key))
		latency_unfollow();
	l = bpf_map_lookup_elem(&latencies, &key.latency);
	if (l) {
		ADD(l->unended, 1);
		ADD(l->closed, 1);
	}
	return 0;
}

/* What a thread that exits had begun will not end; and its id may come again. */
static __always_inline void latency_exit(const struct task_struct *task)
{
	u32 tid = task->pid;

	if (n_latencies)
		bpf_loop(n_latencies, latency_forget, &tid, 0);
}
