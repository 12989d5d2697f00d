/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the rules of slopes (S1 to S6, slopes.h) make of vectors, without state and without the
 * kernel: compiled for BPF and, by the unit tests, natively. */
#pragma once

#include "shared/abi.h"

/* Vectors begin at 0 in each window. */
static __always_inline void vector_enter(struct abi_vector *v, u64 window)
{
	if (v->window == window)
		return;
	__builtin_memset(v->d, 0, sizeof(v->d));
	v->window = window;
}

static __always_inline void vector_add(struct abi_vector *v, u32 entry, u64 ns)
{
	v->d[entry] += (u32)((ns + ABI_D_UNIT / 2) / ABI_D_UNIT);
}

/* S2, S4: @w goes on where @k is. S3: a CPU keeps what the thread that leaves it has. */
static __always_inline void vector_take(struct abi_vector *w, struct abi_vector *k, u64 window)
{
	vector_enter(k, window);
	*w = *k;
}

/* S3, of @t, which leaves the CPU that keeps @c. It was woken from outside and has waited for
 * nobody since: it puts off who comes next by what it executed, but that one has not waited for the
 * thread's own past. The limit of R4's first exception, place by place. */
static __always_inline void vector_pass(struct abi_vector *c, const struct abi_vector *t,
					u64 window)
{
	vector_enter(c, window);
	if (t->window != window)
		return;
	for (int i = 0; i < ABI_ENTRIES; i++)
		c->d[i] = c->d[i] > t->d[i] ? c->d[i] : t->d[i];
}

/* S3, of @w, which gets a CPU that keeps @c, after it waited for @waited. @behind: for a thread in
 * scope, and so it is where that one was. What more CPUs would be worth is the wait itself. */
static __always_inline void vector_got_cpu(struct abi_vector *w, struct abi_vector *c, u32 behind,
					   u64 waited, u64 window)
{
	u32 before;

	vector_enter(w, window);
	before = w->d[ABI_ENTRY_CPU];
	if (behind)
		vector_take(w, c, window);
	w->d[ABI_ENTRY_CPU] = before;
	vector_add(w, ABI_ENTRY_CPU, waited);
}
