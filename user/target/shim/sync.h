/* SPDX-License-Identifier: BSD-2-Clause */
/* --sync pthread, the program's side: what stands around the wrapped calls. The ledger keeps the
 * books; here it is only seen, from memory shared with it, whether there is anything to tell it. So
 * a call that neither blocks nor has a debt to pay costs a few loads. */
#pragma once

#include "shim.h"

#include <stdbool.h>
#include <stddef.h>

/* What the calling thread knows. */
struct shim_self {
	struct shim_slot *slot;
	unsigned int skip;   /* calls until it looks for its slot again */
	unsigned int misses; /* how many it skipped the last time */
};
extern __thread struct shim_self shim_self;

/* The places where the controller puts its probes: an instruction that does nothing, and the
 * return. Without probes, that is all. */
void shim_site_wakes(void);
void shim_site_blocks(void);
void shim_site_back(long credit);

/* The slow ways of what follows. */
void shim_find_slot(void);
void shim_pay_all(const struct shim_sync *h);

static inline const struct shim_sync *shim_books(void)
{
	return shim_slots ? (const struct shim_sync *)&shim_slots[SHIM_SLOTS] : NULL;
}

static inline bool shim_active(const struct shim_sync *h)
{
	return h && __atomic_load_n(&h->active, __ATOMIC_RELAXED);
}

static inline bool shim_owes(const struct shim_sync *h, const struct shim_slot *s)
{
	long long local = __atomic_load_n(&s->level, __ATOMIC_RELAXED) +
			  (long long)__atomic_load_n(&s->paid_ns, __ATOMIC_RELAXED);

	return __atomic_load_n(&h->g, __ATOMIC_RELAXED) - local >= SHIM_THRESHOLD_NS;
}

/* Before a call that can end another thread's wait. */
static inline void shim_before_wake(void)
{
	const struct shim_sync *h = shim_books();

	if (!shim_active(h))
		return;
	if (!shim_self.slot)
		shim_find_slot();
	else if (shim_owes(h, shim_self.slot))
		shim_pay_all(h);
}

/* Around a call that waits: shim_after_wait needs what shim_before_wait returned. @credit: it did
 * not time out, and was not interrupted. */
static inline bool shim_before_wait(void)
{
	bool told = shim_active(shim_books());

	if (told)
		shim_site_blocks();
	return told;
}

static inline void shim_after_wait(bool told, bool credit)
{
	if (told || shim_active(shim_books()))
		shim_site_back(credit);
}
