// SPDX-License-Identifier: BSD-2-Clause
#include "database/counts.h"

#include "base/array.h"
#include "base/cleanup.h"

#include <string.h>

const char *counts_kind_name(enum counts_kind kind)
{
	static const char *const names[N_COUNTS_KINDS] = {
		[COUNTS_UNKNOWN] = "[unknown]",	    [COUNTS_IDLE] = "[idle]", [COUNTS_KERNEL] = "[kernel]",
		[COUNTS_ANONYMOUS] = "[anonymous]", [COUNTS_VDSO] = "[vdso]", [COUNTS_SAMPLER] = "[sampler]",
	};

	return names[kind];
}

static void image_free(struct counts_image *i)
{
	free(i->path);
	free(i->build_id);
	*i = (struct counts_image){0};
}

static void free_who(struct counts *c)
{
	for (size_t i = 0; i < c->n_who; i++) {
		free(c->who[i].process);
		free(c->who[i].cgroup);
		free(c->who[i].host);
	}
	free(c->who);
	free(c->who_slots);
	c->who = NULL;
	c->who_slots = NULL;
	c->n_who = c->n_who_slots = 0;
}

void counts_free(struct counts *c)
{
	image_free(&c->image);
	free_who(c);
	for (size_t i = 0; i < c->n_events; i++)
		free(c->events[i].name);
	free(c->events);
	free(c->rows);
	*c = (struct counts){0};
}

int counts_copy_image(struct counts_image *ret, const struct counts_image *from)
{
	struct counts_image i = *from;

	i.path = strdup(from->path);
	i.build_id = strdup(from->build_id);
	if (!i.path || !i.build_id) {
		image_free(&i);
		return -ENOMEM;
	}
	*ret = i;
	return 0;
}

int counts_same_image(const struct counts_image *a, const struct counts_image *b)
{
	if (a->kind != b->kind || strcmp(a->build_id, b->build_id) != 0)
		return 0;
	if (a->kind == COUNTS_FILE && *a->build_id)
		return 1;
	return a->inode == b->inode && a->changed_ns == b->changed_ns && strcmp(a->path, b->path) == 0;
}

/* FNV-1a, of all three with their ends. */
static uint64_t hash_of(const char *process, const char *cgroup, const char *host)
{
	const char *all[] = {process, cgroup, host};
	uint64_t hash = 0xcbf29ce484222325;

	for (size_t i = 0; i < 3; i++)
		for (const char *p = all[i];; p++) {
			hash = (hash ^ (unsigned char)*p) * 0x100000001b3;
			if (!*p)
				break;
		}
	return hash ^ hash >> 32;
}

/* The slot that has them, or is free for them. There is a free one. */
static uint32_t *slot_of(const struct counts *c, const char *process, const char *cgroup, const char *host)
{
	for (size_t i = hash_of(process, cgroup, host);; i++) {
		uint32_t *slot = &c->who_slots[i & (c->n_who_slots - 1)];
		const struct counts_who *w = *slot ? &c->who[*slot - 1] : NULL;

		if (!w || (strcmp(w->process, process) == 0 && strcmp(w->cgroup, cgroup) == 0 && strcmp(w->host, host) == 0))
			return slot;
	}
}

/* A file can have ten thousand processes: at most half of the slots are taken. */
static int make_slots(struct counts *c)
{
	size_t n = c->n_who_slots ? 2 * c->n_who_slots : 16;
	uint32_t *slots = 2 * (c->n_who + 1) > c->n_who_slots ? calloc(n, sizeof(*slots)) : c->who_slots;

	if (!slots)
		return -ENOMEM;
	if (slots == c->who_slots)
		return 0;
	free(c->who_slots);
	c->who_slots = slots;
	c->n_who_slots = n;
	for (size_t i = 0; i < c->n_who; i++)
		*slot_of(c, c->who[i].process, c->who[i].cgroup, c->who[i].host) = (uint32_t)i + 1;
	return 0;
}

int counts_who(struct counts *c, const char *process, const char *cgroup, const char *host)
{
	struct counts_who w;
	uint32_t *slot;

	if (make_slots(c) < 0)
		return -ENOMEM;
	slot = slot_of(c, process, cgroup, host);
	if (*slot)
		return (int)*slot - 1;
	w = (struct counts_who){strdup(process), strdup(cgroup), strdup(host)};
	if (!w.process || !w.cgroup || !w.host || array_room(c->who, c->n_who) < 0) {
		free(w.process);
		free(w.cgroup);
		free(w.host);
		return -ENOMEM;
	}
	c->who[c->n_who] = w;
	*slot = (uint32_t)++c->n_who;
	return (int)c->n_who - 1;
}

int counts_event(struct counts *c, const char *name, uint64_t every)
{
	char *copy;

	for (size_t i = 0; i < c->n_events; i++)
		if (c->events[i].every == every && strcmp(c->events[i].name, name) == 0)
			return (int)i;
	copy = strdup(name);
	if (!copy || array_room(c->events, c->n_events) < 0) {
		free(copy);
		return -ENOMEM;
	}
	c->events[c->n_events] = (struct counts_event){copy, every};
	return (int)c->n_events++;
}

int counts_add(struct counts *c, uint64_t offset, uint32_t who, uint32_t event, uint64_t count)
{
	if (array_room(c->rows, c->n_rows) < 0)
		return -ENOMEM;
	c->rows[c->n_rows++] = (struct counts_row){offset, count, who, event};
	return 0;
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

void counts_sort(struct counts *c)
{
	size_t used = 0;

	if (c->n_rows)
		qsort(c->rows, c->n_rows, sizeof(*c->rows), by_place);
	for (size_t i = 0; i < c->n_rows; i++) {
		if (used && by_place(&c->rows[used - 1], &c->rows[i]) == 0)
			c->rows[used - 1].count += c->rows[i].count;
		else
			c->rows[used++] = c->rows[i];
	}
	/* array_room() goes by the number of rows. */
	if (used < c->n_rows) {
		size_t room = 1;
		struct counts_row *smaller;

		while (room < used)
			room *= 2;
		smaller = reallocarray(c->rows, room, sizeof(*c->rows));
		c->rows = smaller ? smaller : c->rows;
	}
	c->n_rows = used;
}

/* The indices in @c of what @from names. */
static int translate(struct counts *c, const struct counts *from, uint32_t *who, uint32_t *events)
{
	for (size_t i = 0; i < from->n_who; i++) {
		int at = counts_who(c, from->who[i].process, from->who[i].cgroup, from->who[i].host);

		if (at < 0)
			return at;
		who[i] = (uint32_t)at;
	}
	for (size_t i = 0; i < from->n_events; i++) {
		int at = counts_event(c, from->events[i].name, from->events[i].every);

		if (at < 0)
			return at;
		events[i] = (uint32_t)at;
	}
	return 0;
}

int counts_append(struct counts *c, const struct counts *from)
{
	_cleanup_free_ uint32_t *who = calloc(from->n_who + 1, sizeof(*who)), *events = calloc(from->n_events + 1, sizeof(*events));
	size_t before = c->n_rows;
	int r = who && events ? translate(c, from, who, events) : -ENOMEM;

	for (size_t i = 0; r == 0 && i < from->n_rows; i++) {
		const struct counts_row *row = &from->rows[i];

		r = counts_add(c, row->offset, who[row->who], events[row->event], row->count);
	}
	if (r < 0)
		c->n_rows = before;
	return r;
}

int counts_merge(struct counts *c, const struct counts *from)
{
	int r = counts_append(c, from);

	if (r == 0)
		counts_sort(c);
	return r;
}

int counts_forget_who(struct counts *c)
{
	free_who(c);
	if (counts_who(c, "", "", "") < 0) {
		c->n_rows = 0;
		return -ENOMEM;
	}
	for (size_t i = 0; i < c->n_rows; i++)
		c->rows[i].who = 0;
	counts_sort(c);
	return 0;
}
