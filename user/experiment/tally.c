// SPDX-License-Identifier: BSD-2-Clause
#include "experiment/tally.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/waits.h"
#include "profile/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define uthash_fatal(msg) out_of_memory()
#include <uthash.h>

/* A program can make code without end: past this many addresses the cache starts anew. Lines need
 * no bound of their own, they are interned from the line tables of files. */
#define MAX_ADDRESSES (1U << 18)
/* Of one line, as many as can be told apart by looking at them. */
#define MAX_COPIES 64
/* Further lines of one address. */
#define MAX_CALLERS 16
#define LEAST_WINDOWS 4 /* of slopes, for an interval */
#define GAIN_UNIT 1e6	/* of the draw by slopes: all of the time per visit */

/* An inlined copy of a line, or of what it calls. */
struct copy_entry {
	const char *text; /* interned by the backend */
	uint64_t count;
	struct copy_entry *next;
};

struct line_entry {
	struct tally_line line;	   /* first: callers hold a pointer to it */
	uint64_t group;		   /* the last group of samples that was counted for it */
	struct copy_entry *copies; /* as they were seen first, at most MAX_COPIES */
	char *inlined;		   /* all of them in words, made by tally_list */
	UT_hash_handle hh;	   /* by the address of the interned name */
};

struct address_entry {
	uint64_t addr;
	bool changes;		     /* it is named again in each drain */
	uint64_t count;		     /* samples of execution that it was the first frame of */
	struct line_entry *line;     /* NULL: none */
	struct copy_entry *copy;     /* the line's; NULL: it was not inlined */
	struct line_entry **callers; /* further lines that its samples count for */
	size_t n_callers;
	UT_hash_handle hh;
};

struct tally {
	const struct backend_ops *ops;
	void *backend;
	struct line_entry *lines;
	struct address_entry *addresses;
	struct tally_sums sums;
	uint64_t group; /* of samples with one call chain: they count once for each of its lines */
	bool apart;	/* they are not recent ones */
};

/* Counts come from a table that the program fills: a wrapped sum would upset the draw. */
static void add(uint64_t *sum, uint64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = UINT64_MAX;
}

struct tally *tally_new(const struct backend_ops *ops, void *backend)
{
	struct tally *t = xcalloc(1, sizeof(*t));

	t->ops = ops;
	t->backend = backend;
	return t;
}

static void clear_addresses(struct tally *t)
{
	struct address_entry *a, *tmp;

	HASH_ITER (hh, t->addresses, a, tmp) {
		HASH_DEL(t->addresses, a);
		free(a->callers);
		free(a);
	}
}

void tally_free(struct tally *t)
{
	struct line_entry *l, *tmp;

	if (!t)
		return;
	clear_addresses(t);
	HASH_ITER (hh, t->lines, l, tmp) {
		HASH_DEL(t->lines, l);
		while (l->copies) {
			struct copy_entry *next = l->copies->next;

			free(l->copies);
			l->copies = next;
		}
		free(l->inlined);
		free(l);
	}
	free(t);
}

/* The entry of an interned name, made if need be. */
static struct line_entry *line_entry(struct tally *t, const char *name, const char *function)
{
	struct line_entry *l;

	HASH_FIND_PTR(t->lines, &name, l);
	if (!l) {
		l = xcalloc(1, sizeof(*l));
		l->line.name = name;
		l->line.wait = wait_of(name, NULL);
		HASH_ADD_PTR(t->lines, line.name, l);
	}
	if (!l->line.function)
		l->line.function = function;
	return l;
}

/* The copy of @l's called @text. NULL: there are too many; nothing depends on them. */
static struct copy_entry *copy_entry(struct line_entry *l, const char *text)
{
	struct copy_entry **at = &l->copies;

	for (size_t n = 0; n < MAX_COPIES; n++, at = &(*at)->next) {
		if (!*at) {
			*at = xcalloc(1, sizeof(**at));
			(*at)->text = text;
			return *at;
		}
		if ((*at)->text == text)
			return *at;
	}
	return NULL;
}

/* Finds the further lines of @a, which are in @function as well. */
static void find_callers(struct tally *t, struct address_entry *a, const char *function)
{
	const char *names[MAX_CALLERS];
	size_t n = t->ops->callers ? t->ops->callers(t->backend, a->addr, names, MAX_CALLERS) : 0;

	if (!n)
		return;
	a->callers = xcalloc(n, sizeof(struct line_entry *));
	for (; a->n_callers < n; a->n_callers++)
		a->callers[a->n_callers] = line_entry(t, names[a->n_callers], function);
}

static int address_entry(struct tally *t, uint64_t addr, struct address_entry **ret)
{
	const char *name = NULL, *function = NULL, *copy;
	struct line_entry *line = NULL;
	struct address_entry *a;
	int r;

	HASH_FIND(hh, t->addresses, &addr, sizeof(addr), a);
	if (a && !a->changes) {
		*ret = a;
		return 0;
	}
	r = t->ops->name(t->backend, addr, &name, &function);
	if (r == -ENODATA)
		t->sums.no_debug_info = true;
	else if (r < 0 && r != -ENOENT)
		return r;
	if (r >= 0 && name)
		line = line_entry(t, name, function);
	if (line && !line->line.object && t->ops->object)
		line->line.object = t->ops->object(t->backend, addr);
	if (a) {
		a->line = line;
		*ret = a;
		return 0;
	}
	if (HASH_COUNT(t->addresses) >= MAX_ADDRESSES)
		clear_addresses(t);
	a = xcalloc(1, sizeof(*a));
	a->addr = addr;
	a->line = line;
	a->changes = r > 0;
	copy = line && t->ops->inlined ? t->ops->inlined(t->backend, addr) : NULL;
	a->copy = copy ? copy_entry(line, copy) : NULL;
	if (line)
		find_callers(t, a, function);
	HASH_ADD(hh, t->addresses, addr, sizeof(a->addr), a);
	*ret = a;
	return 0;
}

/* Once in a group. */
static bool count_line(struct tally *t, struct line_entry *l, const struct backend_sample *s)
{
	if (l->group == t->group)
		return false;
	l->group = t->group;
	add(&l->line.total, s->count);
	add(&l->line.ns, s->ns);
	l->line.gone = false;
	if (l->line.wait || t->apart)
		return true;
	add(&l->line.recent, s->count);
	add(&t->sums.recent, s->count);
	return true;
}

int tally_drain(struct tally *t)
{
	_cleanup_free_ struct backend_sample *samples = NULL;
	struct address_entry *a;
	bool found = false, wait;
	size_t n = 0;
	int r;

	r = t->ops->samples(t->backend, &samples, &n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		r = address_entry(t, samples[i].addr, &a);
		if (r < 0)
			return r;
		wait = samples[i].wait;
		if (!i || !samples[i - 1].more) {
			t->group++;
			found = wait;
			add(&t->sums.samples, wait ? 0 : samples[i].count);
			add(&a->count, wait ? 0 : samples[i].count);
		}
		if (a->line && count_line(t, a->line, &samples[i]) && a->copy)
			add(&a->copy->count, samples[i].count);
		for (size_t k = 0; k < a->n_callers; k++)
			(void)count_line(t, a->callers[k], &samples[i]);
		found |= a->line != NULL;
		if (!samples[i].more && !found)
			add(&t->sums.without_line, samples[i].count);
	}
	return 0;
}

int tally_drain_apart(struct tally *t)
{
	int r;

	t->apart = true;
	r = tally_drain(t);
	t->apart = false;
	return r;
}

void tally_add_window(struct tally_line *l, double part, double length)
{
	struct tally_windows *w = &l->windows;

	if (!(length > 0))
		return;
	w->n++;
	w->x += length;
	w->y += part;
	w->xx += length * length;
	w->xy += length * part;
	w->yy += part * part;
}

/* The upper end of the interval of a slope, as a ratio estimator has it (Cochran, Sampling
 * Techniques, 6.4); @else_most where there are too few windows for one. */
static double most_gain(const struct tally_windows *w, double else_most)
{
	double b, squares;

	if (w->n < LEAST_WINDOWS)
		return else_most;
	b = w->y / w->x;
	squares = w->yy - 2 * b * w->xy + b * b * w->xx;
	return b + 2 * sqrt(w->n / (w->n - 1) * fmax(squares, 0)) / w->x;
}

static uint64_t draw_weight(const struct tally *t, const struct tally_line *l, bool by_gain)
{
	double gain;

	if (!by_gain || !l->recent)
		return l->recent;
	gain = most_gain(&l->windows, (double)l->recent / (double)t->sums.recent);
	return 1 + (uint64_t)(GAIN_UNIT * fmin(gain, 1));
}

uint64_t tally_gains(const struct tally *t)
{
	uint64_t sum = 0;

	for (const struct line_entry *l = t->lines; l; l = l->hh.next)
		add(&sum, draw_weight(t, &l->line, true));
	return sum;
}

struct tally_line *tally_nth_recent(struct tally *t, bool by_gain, uint64_t n)
{
	struct line_entry *last = NULL;

	for (struct line_entry *l = t->lines; l; l = l->hh.next) {
		uint64_t weight = draw_weight(t, &l->line, by_gain);

		if (weight == 0)
			continue;
		if (n < weight)
			return &l->line;
		n -= weight;
		last = l;
	}
	return last ? &last->line : NULL;
}

/* Of @l alone, if it may be drawn. */
static uint64_t weight(const struct tally_line *l, const struct tally_waits *w,
		       const uint64_t by_kind[])
{
	if (!l->wait || l->gone || !l->total || !(w->kinds >> l->wait & 1) ||
	    l->ns / l->total > w->longest_ns ||
	    (double)by_kind[l->wait] < w->least_share * (double)w->run_ns)
		return 0;
	return l->ns < w->run_ns ? l->ns : w->run_ns;
}

/* The wait at the @n-th ns, or the last one; *ret_sum: of all. */
static struct tally_line *nth_waiting(const struct tally *t, const struct tally_waits *w,
				      uint64_t n, uint64_t *ret_sum, uint64_t *ret_executed)
{
	uint64_t by_kind[WAIT_KINDS] = {0}, sum = 0;
	struct tally_line *found = NULL;

	for (const struct line_entry *l = t->lines; l; l = l->hh.next)
		add(&by_kind[l->line.wait], l->line.ns);
	for (struct line_entry *l = t->lines; l; l = l->hh.next) {
		uint64_t own = weight(&l->line, w, by_kind);

		if (own && sum <= n)
			found = &l->line;
		add(&sum, own);
	}
	*ret_sum = sum;
	*ret_executed = by_kind[WAIT_NONE];
	return found;
}

uint64_t tally_waiting(const struct tally *t, const struct tally_waits *w, uint64_t *ret_executed)
{
	uint64_t sum;

	(void)nth_waiting(t, w, 0, &sum, ret_executed);
	return sum;
}

struct tally_line *tally_nth_waiting(struct tally *t, const struct tally_waits *w, uint64_t n)
{
	uint64_t sum, executed;

	return nth_waiting(t, w, n, &sum, &executed);
}

uint64_t tally_waited(const struct tally *t, const struct tally_line *l, uint64_t *ret_n)
{
	bool all = *l->name == '[';
	uint64_t ns = 0;

	*ret_n = 0;
	for (const struct line_entry *other = t->lines; other; other = other->hh.next)
		if (all ? other->line.wait == l->wait : &other->line == l) {
			add(&ns, other->line.ns);
			add(ret_n, other->line.total);
		}
	return ns;
}

size_t tally_most(const struct tally *t, unsigned int kinds, struct tally_line **ret, size_t max)
{
	size_t n = 0;

	for (struct line_entry *l = t->lines; l; l = l->hh.next) {
		size_t at = n;

		if (!(kinds >> l->line.wait & 1) || l->line.gone || !l->line.ns)
			continue;
		while (at > 0 && ret[at - 1]->ns < l->line.ns)
			at--;
		if (at == max)
			continue;
		n += n < max;
		memmove(&ret[at + 1], &ret[at], (n - at - 1) * sizeof(*ret));
		ret[at] = &l->line;
	}
	return n;
}

struct tally_line *tally_line_named(struct tally *t, const char *name, const char *function)
{
	return &line_entry(t, name, function)->line;
}

void tally_mark_tried(struct tally *t, struct tally_line *l)
{
	if (!l->tried)
		t->sums.tried++;
	l->tried = true;
}

void tally_drop_recent(struct tally *t, struct tally_line *l)
{
	l->gone = true;
	l->recent = 0;
	t->sums.recent = 0;
	for (struct line_entry *other = t->lines; other; other = other->hh.next)
		add(&t->sums.recent, other->line.recent);
}

void tally_forget_recent(struct tally *t)
{
	for (struct line_entry *l = t->lines; l; l = l->hh.next)
		l->line.recent = 0;
	t->sums.recent = 0;
}

struct tally_sums tally_get_sums(const struct tally *t)
{
	return t->sums;
}

static int larger_first(const void *pa, const void *pb)
{
	const struct profile_samples *a = pa, *b = pb;

	if (a->count != b->count)
		return a->count < b->count ? 1 : -1;
	return strcmp(a->location, b->location);
}

static int more_first(const void *pa, const void *pb)
{
	const struct copy_entry *const *a = pa, *const *b = pb;

	if ((*a)->count != (*b)->count)
		return (*a)->count < (*b)->count ? 1 : -1;
	return strcmp((*a)->text, (*b)->text);
}

/* See profile_samples.inlined. The line keeps it. */
static char *describe_copies(struct line_entry *l)
{
	const struct copy_entry *sorted[MAX_COPIES];
	size_t n = 0, used = 0;
	char *text;

	for (const struct copy_entry *c = l->copies; c; c = c->next)
		if (c->count)
			sorted[n++] = c;
	free(l->inlined);
	l->inlined = text = n ? xcalloc(1, PROFILE_MAX_INLINED) : NULL;
	if (!text)
		return NULL;
	qsort(sorted, n, sizeof(struct copy_entry *), more_first);
	for (size_t i = 0; i < n; i++) {
		int add = snprintf(text + used, PROFILE_MAX_INLINED - used, "%s%" PRIu64 "\t%s",
				   i ? "\n" : "", sorted[i]->count, sorted[i]->text);

		if (add < 0 || (size_t)add >= PROFILE_MAX_INLINED - used) {
			text[used] = '\0';
			break;
		}
		used += (size_t)add;
	}
	return used ? text : NULL;
}

void tally_list(struct tally *t, struct profile_samples **ret, size_t *ret_n)
{
	_cleanup_free_ struct profile_samples *list = xcalloc(HASH_COUNT(t->lines), sizeof(*list));
	size_t n = 0;

	for (struct line_entry *l = t->lines; l; l = l->hh.next)
		if (l->line.total > 0)
			list[n++] = (struct profile_samples){
				.location = (char *)l->line.name,
				.count = l->line.total,
				.function = (char *)(uintptr_t)l->line.function,
				.object = (char *)(uintptr_t)l->line.object,
				.ns = l->line.ns,
				.inlined = describe_copies(l),
			};
	qsort(list, n, sizeof(*list), larger_first);
	*ret = n ? TAKE_PTR(list) : NULL;
	*ret_n = n;
}

static int by_place(const void *pa, const void *pb)
{
	const struct backend_sample *a = pa, *b = pb;

	return a->addr < b->addr ? -1 : a->addr > b->addr;
}

void tally_places(const struct tally *t, struct backend_sample **ret, size_t *ret_n)
{
	_cleanup_free_ struct backend_sample *list =
		xcalloc(HASH_COUNT(t->addresses), sizeof(*list));
	size_t n = 0;

	for (const struct address_entry *a = t->addresses; a; a = a->hh.next)
		if (a->count)
			list[n++] = (struct backend_sample){.addr = a->addr, .count = a->count};
	qsort(list, n, sizeof(*list), by_place);
	*ret = n ? TAKE_PTR(list) : NULL;
	*ret_n = n;
}
