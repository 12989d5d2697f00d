// SPDX-License-Identifier: BSD-2-Clause
#include "collect/database/counts.h"

#include "base/array.h"
#include "base/cleanup.h"

#include <search.h>
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
	tdestroy(c->whose, free);
	c->who = NULL;
	c->whose = NULL;
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
	tdestroy(c->what, free);
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

/* A node of a tree: of a process its three strings, of an event its name and number. The strings
 * are those of the array. */
struct counts_name {
	char *strings[3];
	uint64_t every;
	uint32_t at;
};

static int by_name(const void *a, const void *b)
{
	const struct counts_name *x = a, *y = b;
	int r = (x->every > y->every) - (x->every < y->every);

	for (size_t i = 0; r == 0 && i < 3 && x->strings[i]; i++)
		r = strcmp(x->strings[i], y->strings[i]);
	return r;
}

/* The index of @name, which @tree has, or else @n: it is added, and its strings are copies then. */
static uint32_t index_of(void **tree, struct counts_name *name, size_t n)
{
	struct counts_name **found = or_out_of_memory(tsearch(name, tree, by_name));

	if (*found == name) {
		name->at = (uint32_t)n;
		for (size_t i = 0; i < 3 && name->strings[i]; i++)
			name->strings[i] = xstrdup(name->strings[i]);
		*found = xmemdup(name, 1, sizeof(*name));
	}
	return (*found)->at;
}

uint32_t counts_who(struct counts *c, const char *process, const char *cgroup, const char *host)
{
	struct counts_name name = {.strings = {(char *)(uintptr_t)process,
					       (char *)(uintptr_t)cgroup, (char *)(uintptr_t)host}};
	uint32_t at = index_of(&c->whose, &name, c->n_who);

	if (at == c->n_who) {
		xarray_add(c->who, c->n_who,
			   (struct counts_who){name.strings[0], name.strings[1], name.strings[2]});
	}
	return at;
}

uint32_t counts_event(struct counts *c, const char *name, uint64_t every)
{
	struct counts_name event = {.strings = {(char *)(uintptr_t)name}, .every = every};
	uint32_t at = index_of(&c->what, &event, c->n_events);

	if (at == c->n_events) {
		xarray_add(c->events, c->n_events, (struct counts_event){event.strings[0], every});
	}
	return at;
}

void counts_add(struct counts *c, uint64_t offset, uint32_t who, uint32_t event, uint64_t count)
{
	xarray_add(c->rows, c->n_rows, (struct counts_row){offset, count, who, event});
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
