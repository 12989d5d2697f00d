// SPDX-License-Identifier: BSD-2-Clause
#include "database/counts.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/rng.h"

#include <stdbool.h>
#include <string.h>

const char *counts_kind_name(enum counts_kind kind)
{
	static const char *const names[N_COUNTS_KINDS] = {
		[COUNTS_UNKNOWN] = "[unknown]", [COUNTS_IDLE] = "[idle]",
		[COUNTS_KERNEL] = "[kernel]",	[COUNTS_ANONYMOUS] = "[anonymous]",
		[COUNTS_VDSO] = "[vdso]",	[COUNTS_SAMPLER] = "[sampler]",
		[COUNTS_OTHER] = "[other]",
	};

	return names[kind];
}

static void free_who(struct counts *c)
{
	for (size_t i = 0; i < c->n_who; i++) {
		free(c->who[i].process);
		free(c->who[i].cgroup);
		free(c->who[i].host);
	}
	free(c->who);
	free(c->whose.slots);
	c->who = NULL;
	c->whose = (struct counts_index){0};
	c->n_who = 0;
}

void counts_free(struct counts *c)
{
	free(c->image.path);
	free(c->image.build_id);
	free_who(c);
	for (size_t i = 0; i < c->n_events; i++)
		free(c->events[i].name);
	free(c->events);
	free(c->what.slots);
	free(c->rows);
	*c = (struct counts){0};
}

void counts_copy_image(struct counts_image *ret, const struct counts_image *from)
{
	*ret = *from;
	ret->path = xstrdup(from->path);
	ret->build_id = xstrdup(from->build_id);
}

int counts_same_image(const struct counts_image *a, const struct counts_image *b)
{
	if (a->kind != b->kind || a->owner != b->owner || strcmp(a->build_id, b->build_id) != 0)
		return 0;
	if (a->kind == COUNTS_FILE && *a->build_id)
		return 1;
	return a->inode == b->inode && a->changed_ns == b->changed_ns &&
	       strcmp(a->path, b->path) == 0;
}

/* As FNV-1a, with a secret factor: which names share a slot differs from table to table. */
static uint32_t hash_more(struct counts_index *x, uint32_t before, const void *bytes, size_t n)
{
	uint64_t hash = before;

	if (!x->key)
		x->key = rng_fresh_seed() | 1;
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ ((const unsigned char *)bytes)[i]) * x->key;
	return (uint32_t)(hash >> 32);
}

typedef bool counts_is(const struct counts *c, uint32_t i, const void *what);

/* At most half of the slots are taken. */
static void make_slots(struct counts_index *x, size_t n)
{
	size_t room = x->n_slots ? 2 * x->n_slots : 16;
	struct counts_slot *slots;

	if (2 * (n + 1) <= x->n_slots)
		return;
	slots = xcalloc(room, sizeof(*slots));
	for (size_t i = 0; i < x->n_slots; i++) {
		size_t k = x->slots[i].hash;

		while (slots[k & (room - 1)].at)
			k++;
		slots[k & (room - 1)] = x->slots[i];
	}
	free(x->slots);
	x->slots = slots;
	x->n_slots = room;
}

/* The slot of @what, whose hash is @hash, or a free one for it. */
static struct counts_slot *slot_of(const struct counts *c, struct counts_index *x, size_t n,
				   uint32_t hash, counts_is *is, const void *what)
{
	make_slots(x, n);
	for (size_t i = hash;; i++) {
		struct counts_slot *slot = &x->slots[i & (x->n_slots - 1)];

		if (!slot->at)
			slot->hash = hash;
		if (!slot->at || (slot->hash == hash && is(c, slot->at - 1, what)))
			return slot;
	}
}

static bool is_who(const struct counts *c, uint32_t i, const void *what)
{
	const struct counts_who *a = &c->who[i], *b = what;

	return strcmp(a->process, b->process) == 0 && strcmp(a->cgroup, b->cgroup) == 0 &&
	       strcmp(a->host, b->host) == 0;
}

static bool is_event(const struct counts *c, uint32_t i, const void *what)
{
	const struct counts_event *a = &c->events[i], *b = what;

	return a->every == b->every && strcmp(a->name, b->name) == 0;
}

uint32_t counts_who(struct counts *c, const char *process, const char *cgroup, const char *host)
{
	const char *all[] = {process, cgroup, host};
	const struct counts_who wanted = {(char *)(uintptr_t)process, (char *)(uintptr_t)cgroup,
					  (char *)(uintptr_t)host};
	struct counts_slot *slot;
	uint32_t hash = 0;

	for (size_t i = 0; i < 3; i++)
		hash = hash_more(&c->whose, hash, all[i], strlen(all[i]) + 1);
	slot = slot_of(c, &c->whose, c->n_who, hash, is_who, &wanted);
	if (!slot->at) {
		xarray_room(c->who, c->n_who);
		c->who[c->n_who] =
			(struct counts_who){xstrdup(process), xstrdup(cgroup), xstrdup(host)};
		slot->at = (uint32_t)++c->n_who;
	}
	return slot->at - 1;
}

uint32_t counts_event(struct counts *c, const char *name, uint64_t every)
{
	const struct counts_event wanted = {(char *)(uintptr_t)name, every};
	uint32_t hash = hash_more(&c->what, 0, name, strlen(name) + 1);
	struct counts_slot *slot;

	hash = hash_more(&c->what, hash, &every, sizeof(every));
	slot = slot_of(c, &c->what, c->n_events, hash, is_event, &wanted);
	if (!slot->at) {
		xarray_room(c->events, c->n_events);
		c->events[c->n_events] = (struct counts_event){xstrdup(name), every};
		slot->at = (uint32_t)++c->n_events;
	}
	return slot->at - 1;
}

void counts_add(struct counts *c, uint64_t offset, uint32_t who, uint32_t event, uint64_t count)
{
	xarray_room(c->rows, c->n_rows);
	c->rows[c->n_rows++] = (struct counts_row){offset, count, who, event};
}

static int by_place(const void *a, const void *b)
{
	const struct counts_row *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->who != y->who)
		return x->who < y->who ? -1 : 1;
	return x->event < y->event ? -1 : x->event > y->event;
}

/* Numbers in files are anybody's: a sum ends at the largest one. */
static void add_count(uint64_t *sum, uint64_t more)
{
	if (__builtin_add_overflow(*sum, more, sum))
		*sum = UINT64_MAX;
}

uint64_t counts_samples(const struct counts *c)
{
	uint64_t n = 0;

	for (size_t i = 0; i < c->n_rows; i++)
		add_count(&n, c->rows[i].count);
	return n;
}

void counts_sort(struct counts *c)
{
	size_t used = 0;

	if (c->n_rows)
		qsort(c->rows, c->n_rows, sizeof(*c->rows), by_place);
	for (size_t i = 0; i < c->n_rows; i++) {
		if (used && by_place(&c->rows[used - 1], &c->rows[i]) == 0)
			add_count(&c->rows[used - 1].count, c->rows[i].count);
		else
			c->rows[used++] = c->rows[i];
	}
	/* xarray_room() goes by the number of rows. */
	if (used < c->n_rows) {
		size_t room = 1;

		while (room < used)
			room *= 2;
		c->rows = xreallocarray(c->rows, room, sizeof(*c->rows));
	}
	c->n_rows = used;
}

void counts_append(struct counts *c, const struct counts *from)
{
	/* The indices in @c of what @from names. */
	_cleanup_free_ uint32_t *who = xcalloc(from->n_who, sizeof(*who)),
				*events = xcalloc(from->n_events, sizeof(*events));

	for (size_t i = 0; i < from->n_who; i++)
		who[i] =
			counts_who(c, from->who[i].process, from->who[i].cgroup, from->who[i].host);
	for (size_t i = 0; i < from->n_events; i++)
		events[i] = counts_event(c, from->events[i].name, from->events[i].every);
	for (size_t i = 0; i < from->n_rows; i++) {
		const struct counts_row *row = &from->rows[i];

		counts_add(c, row->offset, who[row->who], events[row->event], row->count);
	}
}

void counts_merge(struct counts *c, const struct counts *from)
{
	counts_append(c, from);
	counts_sort(c);
}

void counts_forget_who(struct counts *c)
{
	free_who(c);
	(void)counts_who(c, "", "", "");
	for (size_t i = 0; i < c->n_rows; i++)
		c->rows[i].who = 0;
	counts_sort(c);
}

struct weighed {
	const struct counts_who *who;
	uint64_t samples;
	uint32_t index;
};

/* By host; those with the most samples first, then those that came first. */
static int by_weight(const void *a, const void *b)
{
	const struct weighed *x = a, *y = b;
	int hosts = strcmp(x->who->host, y->who->host);

	if (hosts)
		return hosts;
	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* Adds to @to who is left of @all, which are sorted; @ret_map has their indices by the old ones. */
static void keep_heaviest(struct counts *to, const struct weighed *all, size_t n, uint32_t *ret_map)
{
	for (size_t i = 0, of_host = 0; i < n; i++) {
		const struct counts_who *w = all[i].who;

		of_host = i && strcmp(all[i - 1].who->host, w->host) == 0 ? of_host + 1 : 0;
		ret_map[all[i].index] = of_host < COUNTS_MOST_WHO - 1
						? counts_who(to, w->process, w->cgroup, w->host)
						: counts_who(to, "[other]", "", w->host);
	}
}

void counts_bound_who(struct counts *c)
{
	_cleanup_free_ struct weighed *all = NULL;
	_cleanup_free_ uint32_t *map = NULL;
	struct counts left = {0};

	if (c->n_who <= COUNTS_MOST_WHO)
		return;
	all = xcalloc(c->n_who, sizeof(*all));
	map = xcalloc(c->n_who, sizeof(*map));
	for (uint32_t i = 0; i < c->n_who; i++)
		all[i] = (struct weighed){.who = &c->who[i], .index = i};
	for (size_t i = 0; i < c->n_rows; i++)
		add_count(&all[c->rows[i].who].samples, c->rows[i].count);
	qsort(all, c->n_who, sizeof(*all), by_weight);
	keep_heaviest(&left, all, c->n_who, map);
	free_who(c);
	c->who = left.who;
	c->n_who = left.n_who;
	c->whose = left.whose;
	for (size_t i = 0; i < c->n_rows; i++)
		c->rows[i].who = map[c->rows[i].who];
	counts_sort(c);
}
