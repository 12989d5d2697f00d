/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Sampling clocks cost the CPUs that they tick on, whoever runs there: those without a thread in scope have theirs rest
 * (user/session/clocks.c). Here the controller is told when one comes. */
#pragma once

#include "bpf/maps.h"

/* Numbers of CPUs, and ABI_REST_DELIVERIES. Each is in it once at most, until the controller has read it. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 32 * 1024);
} woken SEC(".maps");

/* enum abi_rest of each CPU. */
abi_u32 rests[ABI_MAX_CPUS] SEC(".bss") = {};

_Static_assert((ABI_MAX_CPUS + 1) * 16 <= 32 * 1024, "every CPU's number and its header fit");

/* The two events of the network softirq come with every packet of everybody. They rest as well while no thread in scope is woken by packets
 * of another one (user/session/deliveries.c). */
struct abi_delivery deliveries[ABI_MAX_CPUS] SEC(".bss") = {};
abi_u32 deliveries_rest SEC(".bss") = 0; /* enum abi_rest */
/* While they rest: wake-ups that may have been such ones, and how many it takes. */
abi_u32 deliveries_suspected SEC(".bss") = 0;
abi_u32 deliveries_patience SEC(".bss") = 0;

/* Calls that no packet ends: what wakes their callers out of an interrupt is a timer. */
#define SYS_NANOSLEEP 35
#define SYS_FUTEX 202
#define SYS_CLOCK_NANOSLEEP 230

/* @p, woken by an interrupt of another thread in scope, may have got a packet of that one. */
static __always_inline void delivery_suspected(struct task_struct *p)
{
	u32 number = ABI_REST_DELIVERIES;
	struct pt_regs *regs;
	u64 call;

	if (deliveries_rest != ABI_REST_RESTS)
		return;
	regs = (struct pt_regs *)bpf_task_pt_regs(p);
	call = regs->orig_ax;
	if (call == SYS_NANOSLEEP || call == SYS_CLOCK_NANOSLEEP || call == SYS_FUTEX)
		return;
	if (__sync_fetch_and_add(&deliveries_suspected, 1) + 1 < deliveries_patience ||
	    __sync_val_compare_and_swap(&deliveries_rest, ABI_REST_RESTS, ABI_REST_CALLED) != ABI_REST_RESTS)
		return;
	if (bpf_ringbuf_output(&woken, &number, sizeof(number), 0))
		count(COUNTER_rest_lost);
}

/* A thread in scope is about to run on this CPU, @me of cpu_index(), or does. */
static __always_inline void rest_ends(u32 me)
{
	if (rests[me] != ABI_REST_RESTS ||
	    __sync_val_compare_and_swap(&rests[me], ABI_REST_RESTS, ABI_REST_CALLED) != ABI_REST_RESTS)
		return;
	if (bpf_ringbuf_output(&woken, &me, sizeof(me), 0))
		count(COUNTER_rest_lost);
}

/* The first sample after a rest stands for what was executed until the clocks went again. That is next to nothing, unless the controller
 * was busy for long; then most of it remains without samples, rather than one line getting all of it. */
static __always_inline u64 rest_weight(u64 weight)
{
	u32 me = cpu_index();
	u64 most = 4 * control.spacing_ns;

	if (!rests[me])
		return weight;
	(void)__sync_val_compare_and_swap(&rests[me], ABI_REST_WOKEN, ABI_REST_AWAKE);
	return weight < most ? weight : most;
}
