/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* A sampling clock costs time on its CPU, whatever runs there. The controller stops the clocks of
 * CPUs where no thread in scope runs (user/experiment/session/clocks.c). Here it is told when such
 * a thread comes. */
#pragma once

#include "bpf/maps.h"

/* Numbers of CPUs, and ABI_IDLE_LOOPBACK. Each is in it once at most, until the controller has read
 * it. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 32 * 1024);
} woken SEC(".maps");

/* enum abi_idle of each CPU. */
abi_u32 clock_states[ABI_MAX_CPUS] SEC(".bss") = {};

_Static_assert((ABI_MAX_CPUS + 1) * 16 <= 32 * 1024, "every CPU's number and its header fit");

/* The two events of the network softirq come with every packet of everybody. They are detached as
 * well while no thread in scope is woken by packets of another one
 * (user/experiment/session/loopback.c). */
struct abi_loopback loopback[ABI_MAX_CPUS] SEC(".bss") = {};
abi_u32 loopback_idle SEC(".bss") = 0; /* enum abi_idle */
/* While they are detached: how many wake-ups may have been by such packets, and at how many the
 * events are attached again. */
abi_u32 loopback_suspected SEC(".bss") = 0;
abi_u32 loopback_rearm_at SEC(".bss") = 0;

/* @p, woken by an interrupt of another thread in scope, may have got a packet of that one. Not in a
 * call that no packet ends: what wakes its caller out of an interrupt is a timer. */
static __always_inline void loopback_suspect(struct task_struct *p)
{
	u32 number = ABI_IDLE_LOOPBACK;
	struct pt_regs *regs;
	u64 call;

	if (loopback_idle != ABI_IDLE_STOPPED)
		return;
	regs = (struct pt_regs *)bpf_task_pt_regs(p);
	call = regs->orig_ax;
	if (call == SYS_NANOSLEEP || call == SYS_CLOCK_NANOSLEEP || call == SYS_FUTEX)
		return;
	if (__sync_fetch_and_add(&loopback_suspected, 1) + 1 < loopback_rearm_at ||
	    __sync_val_compare_and_swap(&loopback_idle, ABI_IDLE_STOPPED, ABI_IDLE_CALLED) !=
		    ABI_IDLE_STOPPED)
		return;
	if (bpf_ringbuf_output(&woken, &number, sizeof(number), 0))
		count(COUNTER_idle_lost);
}

/* A thread in scope is about to run on this CPU, @me of cpu_index(), or does. */
static __always_inline void idle_ends(u32 me)
{
	if (clock_states[me] != ABI_IDLE_STOPPED ||
	    __sync_val_compare_and_swap(&clock_states[me], ABI_IDLE_STOPPED, ABI_IDLE_CALLED) !=
		    ABI_IDLE_STOPPED)
		return;
	if (bpf_ringbuf_output(&woken, &me, sizeof(me), 0))
		count(COUNTER_idle_lost);
}

/* The first sample after an idle time stands for what was executed until the clocks went again.
 * That is next to nothing, unless the controller was busy for long; then most of it remains without
 * samples, so that one line does not get all of it. */
static __always_inline u64 idle_weight(u64 weight)
{
	u32 me = cpu_index();
	u64 most = 4 * control.spacing_ns;

	if (!clock_states[me])
		return weight;
	(void)__sync_val_compare_and_swap(&clock_states[me], ABI_IDLE_WOKEN, ABI_IDLE_RUNNING);
	return weight < most ? weight : most;
}
