/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Slowing the selected line for real: a sample in it has its own thread stopped, and nobody else
 * owes anything. G stays where it is, so there is nothing to credit: threads that wait for the
 * slowed one really wait longer. */
#pragma once

#include "bpf/thread.h"

/* Only a session that validates pays for the look. */
static __always_inline bool experiment_slows(u64 epoch)
{
	return config.slows && control.setups[(epoch >> 1) & 1].slow_q16;
}

/* The opposite of a selected sample's earning. The payer stops the thread until it is level with G
 * again, before it goes on. */
static __always_inline void thread_slow(struct thread *t, s64 ns, struct abi_totals *sum)
{
	ADD(t->clock.local, -ns);
	ADD(t->account.earned, -ns);
	thread_publish(t);
	ADD(sum->hits, 1);
	ADD(sum->hit_ns, ns);
}
