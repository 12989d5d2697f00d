/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Maps, globals and kernel functions of the ledger's objects. All weak: every object defines them,
 * the linker keeps one. */
#pragma once

#include "bpf/kernel.h"
#include "bpf/task_work.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "shared/abi.h"
#include "bpf/namespace.h"
#include "bpf/clock.h"
#include "bpf/smooth.h"

const volatile struct abi_config config __weak SEC(".rodata") = {};
struct abi_control control __weak SEC(".bss") = {};
struct abi_global global __weak SEC(".bss") = {};
/* How many latency points there are; with none, all that is for them is dead code. */
const volatile abi_u32 n_latencies __weak SEC(".rodata") = 0;

/* Where a thread waits (S5). */
#define WAIT_PLACES 16
struct wait_place {
	u32 stands; /* for how many waits, in 1/256; 0: nobody has looked */
	u32 n;
	u64 waited;	     /* the length of its last wait, ns */
	u64 at[WAIT_PLACES]; /* its first frame in scope, or with inclusive attribution all of them
			      */
};

/* What is known of a thread. Who may write what, and when:
 *
 * clock.local and account: the thread's own interrupt or pause, its waker while it is blocked, the
 * switch that puts it on a CPU. Never two at once but for own interrupt against own pause, hence
 * atomic adds.
 *
 * wait.blocked_at: set when switched out, taken (exchanged) by the waker.
 *
 * Everything else belongs to the CPU that runs the thread or switches it. */
struct thread {
	struct clock clock;
	/* Of this experiment: clock.local - start is the sum of the rest. */
	struct {
		u64 epoch; /* the experiment */
		s64 start, earned, paid, credited, rq_credited;
	} account;
	struct {
		u64 blocked_at, runnable_at, running_at;
		u64 left_at;	  /* when it last left a CPU */
		u64 outside_mark; /* the CPU's time of tasks out of scope when the thread became
				     runnable */
		u64 stopped_mark; /* ... and for how long threads had been stopped on it */
		s64 stretch; /* of its waits, what samples have stopped others for and it does not
				owe yet: too little to sleep */
		u32 runnable_cpu;
		u64 weight;   /* of its last wait, if that is a sample and was ended from outside:
				 what it stands for, ns; else 0 */
		s64 cpu_edge; /* what R4 changed when it got the CPU last */
		u32 ended;    /* how many waits that sample stands for */
		u32 kind;     /* of that wait: enum abi_wait */
		u32 unbooked; /* wait_over is to book it: only then is known what the thread owes */
		u32 in_disk;  /* it left the CPU to wait uninterruptibly, or for a disk */
		u32 preempted; /* it took its CPU from a thread in scope that would have gone on */
		u32 came; /* ... and has earned since by the wait before: the next one on the CPU
			     does not take over its clock */
		u32 last_wake_external; /* it owed a sleep (pause.owes_sleep) at some time since it
					 * last blocked. In virtual time it is awake too early by
					 * its debt, so the next thread on the CPU does not take
					 * over its clock (R4) */
		u32 from_outside; /* ... woken from outside, and has waited for nobody in scope
				     since */
		u32 taken;	  /* a thread in scope took its CPU, which taken_by is of */
	} wait;
	struct {
		u64 hold_from;	  /* holding: the time up to which it is paid; 0: not holding */
		u64 held_until;	  /* the end of the last hold */
		u64 asked_at;	  /* when the debt was noticed, for the latency; 0: nothing asked */
		u64 signalled_at; /* when the last payment signal was raised */
		u64 paying_off;	  /* time off the CPU since then */
		u64 paying_waited;			 /* of that, runnable */
		u64 paid_seen, delivery_seen, spun_seen; /* of the slot's counters, folded in */
		u32 owes_sleep; /* an event outside of the scope ended its last wait: it must sleep
				   its debt, not be held for it (R6) */
		u32 sleeps;  /* the pause that the library takes, or is asked to take, is slept */
		u32 pending; /* a callback is scheduled */
		u32 work;    /* which of its two task works is next */
		u32 last_slice; /* holding, and no further callback will go on with it */
	} pause;
	struct {
		s64 unbooked;	   /* earned in the line and not booked yet: less than
				      abi_setup.quantum_ns */
		u64 unbooked_from; /* of that, what it began with and did not earn */
		struct {
			s64 exec;
			u64 seen, earned;
		} children; /* what those that ended have left: expected_transfer */
	} sample;
	/* --sync pthread: a call that blocks. */
	struct {
		u32 blocked; /* in one: pays nothing, what it owes may be credited when that returns
				... */
		u32 pays_once; /* ... but for once, before it wakes others */
		s64 paid;      /* its payments when the call began */
	} call;
	u32 slot;  /* index + 1; 0: none */
	u32 maker; /* the thread that made it */
	u32 polls; /* io_uring's polling thread: it looks for requests, and cannot be waited for */
	u32 ends;  /* the process that ends with it; 0: none */
	u64 visited_ip; /* where the probe stands that it passed last, of a point, in a window */
	struct smooth smooth; /* with latency points only */
	/* bpf/slopes.h; taken_by: of the thread that took its CPU, as it was then, if it is
	 * preempted */
	struct abi_vectors vectors, taken_by;
	struct wait_place place;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct thread);
} threads __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SHIM_ENTRIES);
	__type(key, u32);
	__type(value, struct shim_slot);
} slots __weak SEC(".maps");

struct work {
	struct bpf_task_work tw;
};

/* Three for each slot: a payment that goes on schedules the other one of two, since the one that
 * runs cannot be scheduled; and the end of a wait. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 3 * SHIM_SLOTS);
	__type(key, u32);
	__type(value, struct work);
} works __weak SEC(".maps");

/* By the controller's number of the process. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ABI_MAX_PROCESSES);
	__type(key, u32);
	__type(value, struct abi_proc);
} procs __weak SEC(".maps");

/* The modules of each address space: ABI_MODULES. */
abi_u64 spaces[ABI_MAX_SPACES] __weak SEC(".bss") = {};

struct abi_cpu cpus[ABI_MAX_CPUS] __weak SEC(".bss") = {};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ABI_MAX_SAMPLES);
	__uint(map_flags, BPF_F_NO_PREALLOC); /* making them all takes a tenth of the loading */
	__type(key, u64);		      /* ABI_CODE */
	__type(value, struct abi_sample_sum);
} samples __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ABI_MAX_SAMPLES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct abi_elsewhere);
	__type(value, struct abi_sample_sum);
} elsewhere __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct abi_totals);
} totals __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ABI_MAX_POINTS);
	__type(key, u32);
	__type(value, struct abi_point);
} points __weak SEC(".maps");

extern struct task_struct *
bpf_task_from_vpid(s32 vpid) __ksym __weak;	     /* 6.13; the current task's namespace */
extern void bpf_preempt_disable(void) __ksym __weak; /* 6.11, as the next */
extern void bpf_preempt_enable(void) __ksym __weak;

static __always_inline struct abi_totals *totals_here(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&totals, &zero);
}

#define ADD(field, value) __sync_fetch_and_add(&(field), (value))

static __always_inline void count(enum abi_counter c)
{
	struct abi_totals *t = totals_here();

	if (t)
		ADD(t->counters[c], 1);
}

/* An index below @size, a power of two, that the verifier can see to be one. The barrier keeps
 * clang from dropping the mask where it knows the range by itself, and from indexing with another
 * copy than the one that was masked: the verifier of Linux 6.1 does not connect the two. */
static __always_inline u32 index_below(u32 i, u32 size)
{
	barrier_var(i);
	return i & (size - 1);
}

/* This CPU's number; there are no more of them, or the session is not opened. */
static __always_inline u32 cpu_index(void)
{
	_Static_assert((ABI_MAX_CPUS & (ABI_MAX_CPUS - 1)) == 0, "a mask bounds the index");
	return index_below(bpf_get_smp_processor_id(), ABI_MAX_CPUS);
}

static __always_inline struct abi_cpu *cpu_here(void)
{
	return &cpus[cpu_index()];
}

static __always_inline bool sync_by_calls(void)
{
	return config.sync == ABI_SYNC_PTHREAD;
}

static __always_inline bool experiment_active(u64 epoch)
{
	return epoch & 1;
}

static __always_inline struct abi_proc *proc_of(const struct task_struct *task)
{
	u32 process = task_process(task);

	return bpf_map_lookup_elem(&procs, &process);
}

static __always_inline bool in_scope(const struct task_struct *task)
{
	u32 process = task_process(task);
	struct abi_proc *p;

	if (process == control.tgid)
		return process;
	if (!config.many || !process)
		return false;
	p = bpf_map_lookup_elem(&procs, &process);
	return p && p->flags & ABI_PROC_IN;
}
