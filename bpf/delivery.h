/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Packets over the loopback device: who delivers them. */
#pragma once

#include "bpf/context.h"
#include "bpf/idle.h"

#define NET_RX_SOFTIRQ 3 /* include/linux/interrupt.h */

/* What a thread sends over the loopback device is delivered by a softirq, on the interrupt stack
 * but before its system call returns: who is woken by that waited for the sender. From its own
 * raise of the softirq to the end of that, the thread is the waker. */
static __always_inline bool delivers_own(const struct task_struct *current)
{
	u32 me = cpu_index();

	return loopback[me].sender == (u32)current->pid && !loopback[me].timer;
}

static __always_inline void loopback_used(void)
{
	loopback[cpu_index()].used = 1;
}

SEC("tp_btf/softirq_raise")
int BPF_PROG(edge_raise, unsigned int vec)
{
	u32 me = cpu_index();
	struct task_struct *current;
	u32 tid;

	if (vec != NET_RX_SOFTIRQ)
		return 0;
	loopback[me].raised++;
	/* One for each packet of everybody: the switch has found out already whose turn it is. */
	tid = cpus[me].tid;
	if (!tid)
		return 0;
	current = bpf_get_current_task_btf();
	if (tid == (u32)current->pid && in_task_context(ctx, current))
		loopback[me].sender = tid;
	return 0;
}

SEC("tp_btf/softirq_exit")
int BPF_PROG(edge_softirq_exit, unsigned int vec)
{
	if (vec == NET_RX_SOFTIRQ)
		loopback[cpu_index()].sender = 0;
	return 0;
}

/* A timer can interrupt a delivery, and whom it wakes has not waited for the sender: by chance
 * alone, a busy server would wake the threads that sleep beside it. */
SEC("tp_btf/hrtimer_expire_entry")
int edge_timer(void *ctx)
{
	loopback[cpu_index()].timer = 1;
	return 0;
}

SEC("tp_btf/hrtimer_expire_exit")
int edge_timer_exit(void *ctx)
{
	loopback[cpu_index()].timer = 0;
	return 0;
}
