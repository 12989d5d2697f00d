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

/* S4: @w begins where @k is. S3: a CPU keeps what the thread that leaves it has. */
static __always_inline void vector_take(struct abi_vector *w, struct abi_vector *k, u64 window)
{
	vector_enter(k, window);
	*w = *k;
}

/* S2 and S3, of @w, which waited for @k for @waited ns, @age ns after the window's begin: it goes
 * on where @k is. That is so for speedups by which the one is not earlier, or the other later, by
 * more than the wait: beyond, they would not have met. A wait carries what is worth no more than it
 * is at a speedup of 1 / VECTOR_REACH. So threads that meet by chance, at a lock that is nearly
 * always free, keep what they have, and those that wait for each other in each round go on
 * together. */
#define VECTOR_REACH 500
static __always_inline void vector_meet(struct abi_vector *w, struct abi_vector *k, u64 waited,
					u64 age, u64 window)
{
	u32 reach;

	if (waited >= age / VECTOR_REACH) {
		vector_take(w, k, window);
		return;
	}
	vector_enter(w, window);
	vector_enter(k, window);
	reach = (u32)(waited * VECTOR_REACH / ABI_D_UNIT);
	for (int i = 0; i < ABI_ENTRIES; i++) {
		u32 least = w->d[i] > reach ? w->d[i] - reach : 0, most = w->d[i] + reach;

		w->d[i] = k->d[i] < least ? least : k->d[i] > most ? most : k->d[i];
	}
}

/* S3, of @w, which goes on where @left left a CPU, and which @came had taken one from, as it was
 * then. Had either come earlier, @w would have had less time before and as much more after, so it
 * is later by what lies between the two. */
static __always_inline void vector_resume(struct abi_vector *w, struct abi_vector *left,
					  struct abi_vector *came, u64 window)
{
	vector_enter(w, window);
	vector_enter(left, window);
	vector_enter(came, window);
	for (int i = 0; i < ABI_ENTRIES; i++) {
		u32 before = came->d[i], after = w->d[i] + left->d[i];

		w->d[i] = after > before ? after - before : 0;
	}
}

/* Adds to @w so much of @passed: @part_q16 / 65536. */
static __always_inline void vector_add_part(struct abi_vector *w, const struct abi_vector *passed,
					    u32 part_q16)
{
	for (int i = 0; i < ABI_ENTRIES; i++)
		w->d[i] += (u32)((u64)passed->d[i] * part_q16 >> 16);
}
