// SPDX-License-Identifier: BSD-2-Clause
#include "collect/shares/private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/sort.h"

#include <math.h>
#include <string.h>

#define uthash_fatal(msg) out_of_memory()
#include <uthash.h>

#define MOST_UNREAD 10
/* Those with the most samples come first. A user can have made many that have hardly any. */
#define MOST_OPENED 2000

const char *const shares_by_names[] = {"image",	 "function", "line", "process",
				       "cgroup", "host",     NULL};

/* What adds up under one name; the key is the image, a zero, which no path has in it, and the name.
 */
struct sum {
	UT_hash_handle hh;
	struct share share;
	char key[];
};

struct summing {
	const struct shares_choice *c;
	struct shares *out;
	struct sum *sums;
	struct places *places;
	size_t opened;
};

static void add_sum(struct summing *s, const char *image, const char *name, uint64_t samples,
		    double amount)
{
	size_t image_n = strlen(image) + 1, n = image_n + strlen(name);
	_cleanup_free_ char *key = xcalloc(1, n + 1);
	struct sum *x;

	memcpy(key, image, image_n);
	memcpy(key + image_n, name, n - image_n + 1);
	HASH_FIND(hh, s->sums, key, n, x);
	if (!x) {
		x = xcalloc(1, sizeof(*x) + n + 1);
		memcpy(x->key, key, n);
		x->share.name = xstrdup(name);
		x->share.image = xstrdup(image);
		HASH_ADD_KEYPTR(hh, s->sums, x->key, n, x);
	}
	x->share.samples += samples;
	x->share.amount += amount;
}

static double amount(const struct counts *c, const struct counts_row *row)
{
	return (double)row->count * (double)c->events[row->event].every;
}

static void add_rows(struct counts *c, void *arg)
{
	struct summing *s = arg;

	for (size_t i = 0; i < c->n_rows; i++) {
		const struct counts_row *row = &c->rows[i];
		const struct counts_who *w = &c->who[row->who];
		const char *name = s->c->by == SHARES_PROCESS  ? w->process
				   : s->c->by == SHARES_CGROUP ? (*w->cgroup ? w->cgroup : "[none]")
				   : s->c->by == SHARES_HOST   ? w->host
							       : shares_called(&c->image);

		add_sum(s, "", name, row->count, amount(c, row));
	}
}

static void note_unread(struct shares *out, const struct counts_image *i, const char *why)
{
	if (out->n_unread < MOST_UNREAD)
		xarray_add(out->unread, out->n_unread, xasprintf("%s: %s", shares_called(i), why));
}

static int name_places(struct counts *c, void *arg)
{
	struct summing *s = arg;
	struct places *p = s->places;
	bool has_names = c->image.kind == COUNTS_FILE || c->image.kind == COUNTS_KERNEL,
	     lines = s->c->by == SHARES_LINE;
	const char *why = "further images are not read";
	bool read = has_names && s->opened < MOST_OPENED && places_take(p, &c->image, &why);

	if (has_names && !read)
		note_unread(s->out, &c->image, why);
	s->opened += has_names;
	for (size_t i = 0; i < c->n_rows; i++) {
		const struct counts_row *row = &c->rows[i];
		const char *name = read && lines ? places_line(p, row->offset) : NULL;

		/* Code without lines still is some function's. */
		if (read && !name)
			name = places_function(p, row->offset);
		add_sum(s, shares_called(&c->image),
			name	    ? name
			: has_names ? "(no name)"
				    : shares_called(&c->image),
			row->count, amount(c, row));
	}
	return 0;
}

static int largest_first(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	return sort_order(y->amount, x->amount) ?: strcmp(x->name, y->name);
}

/* The sums' strings go over into the list. */
static void list_sums(struct summing *s)
{
	size_t n = HASH_COUNT(s->sums);
	struct sum *x, *next;

	s->out->all = xcalloc(n, sizeof(*s->out->all));
	HASH_ITER (hh, s->sums, x, next) {
		HASH_DELETE(hh, s->sums, x);
		s->out->all[s->out->n++] = x->share;
		free(x);
	}
	qsort(s->out->all, n, sizeof(*s->out->all), largest_first);
}

int shares_of(struct database *d, const struct shares_choice *c, struct shares *ret,
	      struct error *e)
{
	struct shares_source from = shares_database(d);
	bool by_place = c->by == SHARES_FUNCTION || c->by == SHARES_LINE;
	struct summing s = {.c = c, .out = ret, .places = by_place ? places_open() : NULL};
	int r;

	*ret = (struct shares){0};
	r = by_place ? chosen_images(&from, c, ret, name_places, &s, e)
		     : chosen_each(&from, c, ret, add_rows, &s, e);
	places_close(s.places);
	list_sums(&s);
	if (r < 0)
		shares_free(ret);
	return r;
}

void shares_free(struct shares *s)
{
	for (size_t i = 0; i < s->n; i++) {
		free(s->all[i].name);
		free(s->all[i].image);
	}
	for (size_t i = 0; i < s->n_unread; i++)
		free(s->unread[i]);
	free((void *)s->unread);
	free(s->all);
	free(s->event);
	*s = (struct shares){0};
}

double shares_half_width(uint64_t samples, uint64_t all)
{
	double p = all ? (double)samples / (double)all : 0;

	return all ? 1.96 * sqrt(p * (1 - p) / (double)all) : NAN;
}
