// SPDX-License-Identifier: BSD-2-Clause
/* The coz.h ABI: counters in the shared page, so that a visit costs the program one atomic add and
 * the controller a read.
 *
 * Several threads may ask for one name at the same time. An entry goes through `reserved`: claimed
 * (0) -> candidate (its name and type can be compared) -> published (`type` is set) or withdrawn. A
 * candidate looks at all entries below its own; if one of them is the same point, the lower wins
 * and the candidate withdraws. Nobody is ever given an entry that withdraws. */
#include "shim.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

/* Values of shim_counter.reserved; a candidate's is its type. */
#define STATE_CLAIMED 0U
#define STATE_WITHDRAWN 0x80000000U

/* How often to yield to a thread between two stores. It is bounded because that thread may be
 * ourselves (a visit in a signal handler that interrupted the claim); then the name gets a second
 * entry, which readers add to the first. */
#define PATIENCE 1000

typedef struct {
	size_t count;
	size_t backoff;
} coz_counter_t;
_Static_assert(sizeof(size_t) == sizeof(unsigned long long),
	       "coz_counter_t is the head of struct shim_counter");
_Static_assert(offsetof(struct shim_counter, backoff) == offsetof(coz_counter_t, backoff), "same");

EXPORT coz_counter_t *_coz_get_counter(int type, const char *name);
EXPORT void _coz_add_delays(void);
EXPORT void _coz_pre_block(void);
EXPORT void _coz_post_block(int skip_delays);

/* Names are compared as they are stored: cut. */
static bool same_name(const struct shim_counter *c, const char *name)
{
	return strncmp(c->name, name, sizeof(c->name) - 1) == 0;
}

/* Waits, within reason, for *@word to differ from @value; returns what it saw last. */
static unsigned int await_change(const unsigned int *word, unsigned int value)
{
	unsigned int seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);

	for (int i = 0; seen == value && i < PATIENCE; i++) {
		if (!shim_filtered)
			(void)raw_call(SYS_sched_yield);
		seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
	}
	return seen;
}

static struct shim_counter *find_published(struct shim_page *page, unsigned int type,
					   const char *name)
{
	unsigned int n = __atomic_load_n(&page->n_counters, __ATOMIC_ACQUIRE);

	for (unsigned int i = 0; i < n && i < SHIM_MAX_COUNTERS; i++) {
		struct shim_counter *c = &page->counters[i];

		if (__atomic_load_n(&c->type, __ATOMIC_ACQUIRE) == type && same_name(c, name))
			return c;
	}
	return NULL;
}

/* The same point among the entries below @limit, published by now; NULL if there is none. */
static struct shim_counter *find_lower(struct shim_page *page, unsigned int limit,
				       unsigned int type, const char *name)
{
	for (unsigned int i = 0; i < limit; i++) {
		struct shim_counter *c = &page->counters[i];

		if (await_change(&c->reserved, STATE_CLAIMED) != type || !same_name(c, name))
			continue;
		if (await_change(&c->type, SHIM_COUNTER_FREE) == type)
			return c;
		/* It withdrew for a still lower one, which is published then. */
		if (__atomic_load_n(&c->reserved, __ATOMIC_ACQUIRE) == STATE_WITHDRAWN)
			return find_published(page, type, name);
	}
	return NULL;
}

static struct shim_counter *add_counter(struct shim_page *page, unsigned int type, const char *name)
{
	struct shim_counter *c, *lower;
	unsigned int i = SHIM_MAX_COUNTERS;

	/* Looked at before, so that a full table does not count up until it wraps. */
	if (__atomic_load_n(&page->n_counters, __ATOMIC_ACQUIRE) < SHIM_MAX_COUNTERS)
		i = __atomic_fetch_add(&page->n_counters, 1, __ATOMIC_ACQ_REL);
	if (i >= SHIM_MAX_COUNTERS) {
		(void)__atomic_add_fetch(&page->lost_counters, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	c = &page->counters[i];
	for (size_t k = 0; k < sizeof(c->name) - 1 && name[k]; k++)
		c->name[k] = name[k];
	__atomic_store_n(&c->reserved, type, __ATOMIC_RELEASE);

	lower = find_lower(page, i, type, name);
	if (lower) {
		__atomic_store_n(&c->reserved, STATE_WITHDRAWN, __ATOMIC_RELEASE);
		return lower;
	}
	__atomic_store_n(&c->type, type, __ATOMIC_RELEASE);
	return c;
}

EXPORT coz_counter_t *_coz_get_counter(int type, const char *name)
{
	struct shim_page *page = shim_attach();
	struct shim_counter *c;

	if (!page || !name || type < SHIM_COUNTER_THROUGHPUT || type > SHIM_COUNTER_END)
		return NULL;
	c = find_published(page, (unsigned int)type, name);
	if (!c)
		c = add_counter(page, (unsigned int)type, name);
	return (coz_counter_t *)c;
}

/* The scheduler's edges make these unnecessary: a program that calls them before and after it
 * blocks loses nothing. */
EXPORT void _coz_add_delays(void)
{
}

EXPORT void _coz_pre_block(void)
{
}

EXPORT void _coz_post_block(int skip_delays)
{
	(void)skip_delays;
}
