// SPDX-License-Identifier: BSD-2-Clause
#include "shares/private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "database/database.h"

#include <errno.h>
#include <fnmatch.h>
#include <math.h>
#include <string.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define MOST_UNREAD 10

const char *const shares_by_names[] = {"image", "function", "line", "process", "cgroup", "host", NULL};

/* What adds up under one name; the key is the image, a line's end, and the name. */
struct sum {
	UT_hash_handle hh;
	struct share share;
	char key[];
};

struct summing {
	const struct shares_choice *c;
	struct shares *out;
	struct sum *sums;
	/* By function and line: all of one image together, which is then read once. */
	struct image {
		struct counts c;
		size_t sorted; /* so many rows it had when they were sorted last */
	} * images;
	size_t n_images;
	struct error *e;
};

static bool fits(const char *glob, const char *s)
{
	return !glob || fnmatch(glob, s, 0) == 0;
}

/* What an image is called in tables. */
static const char *called(const struct counts_image *i)
{
	const char *kind = counts_kind_name(i->kind);

	return i->kind == COUNTS_FILE || (i->kind == COUNTS_KERNEL && *i->path) ? i->path : kind;
}

static int add_sum(struct summing *s, const char *image, const char *name, uint64_t samples, double amount)
{
	size_t image_n = strlen(image), n = image_n + 1 + strlen(name);
	_cleanup_free_ char *key = NULL;
	struct sum *x;

	if (asprintf(&key, "%s\n%s", image, name) < 0) {
		key = NULL;
		return -ENOMEM;
	}
	HASH_FIND(hh, s->sums, key, n, x);
	if (!x) {
		x = calloc(1, sizeof(*x) + n + 1);
		if (!x)
			return -ENOMEM;
		memcpy(x->key, key, n);
		x->share.name = strdup(name);
		x->share.image = strdup(image);
		if (x->share.name && x->share.image)
			HASH_ADD_KEYPTR(hh, s->sums, x->key, n, x);
		if (!x->share.name || !x->share.image || !x->hh.tbl) {
			free(x->share.name);
			free(x->share.image);
			free(x);
			return -ENOMEM;
		}
	}
	x->share.samples += samples;
	x->share.amount += amount;
	return 0;
}

static bool wanted_event(struct summing *s, const char *name)
{
	if (s->c->event ? strcmp(name, s->c->event) != 0 : strcmp(name, "cycles") != 0 && strcmp(name, "cpu-clock") != 0)
		return false;
	if (!s->out->event)
		s->out->event = strdup(name);
	return s->out->event && strcmp(s->out->event, name) == 0;
}

static bool wanted_who(const struct summing *s, const struct counts_who *w)
{
	return fits(s->c->process, w->process) && fits(s->c->cgroup, w->cgroup) && fits(s->c->host, w->host);
}

static bool wanted_image(const struct summing *s, const struct counts_image *i)
{
	const char *path = called(i), *slash = strrchr(path, '/');

	if (s->c->build_id && strncmp(i->build_id, s->c->build_id, strlen(s->c->build_id)) != 0)
		return false;
	return fits(s->c->image, path) || (slash && fits(s->c->image, slash + 1));
}

/* Keeps of @c the rows that are wanted. */
static void choose_rows(struct summing *s, struct counts *c)
{
	size_t used = 0;

	for (size_t i = 0; i < c->n_rows; i++)
		if (wanted_who(s, &c->who[c->rows[i].who]) && wanted_event(s, c->events[c->rows[i].event].name))
			c->rows[used++] = c->rows[i];
	c->n_rows = used;
}

static double amount(const struct counts *c, const struct counts_row *row)
{
	return (double)row->count * (double)c->events[row->event].every;
}

static int add_rows(struct summing *s, const struct counts *c)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < c->n_rows; i++) {
		const struct counts_row *row = &c->rows[i];
		const struct counts_who *w = &c->who[row->who];
		const char *name = s->c->by == SHARES_PROCESS  ? w->process
				   : s->c->by == SHARES_CGROUP ? (*w->cgroup ? w->cgroup : "[none]")
				   : s->c->by == SHARES_HOST   ? w->host
							       : called(&c->image);

		r = add_sum(s, "", name, row->count, amount(c, row));
	}
	return r;
}

/* Adds @c to the others of its image, without who it was; takes over what it has. */
static int keep(struct summing *s, struct counts *c)
{
	if (counts_forget_who(c) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < s->n_images; i++) {
		struct image *image = &s->images[i];

		if (!counts_same_image(&image->c.image, &c->image))
			continue;
		if (counts_append(&image->c, c) < 0)
			return -ENOMEM;
		/* Of hundreds of hours: not after each. */
		if (image->c.n_rows > 2 * image->sorted) {
			counts_sort(&image->c);
			image->sorted = image->c.n_rows;
		}
		return 0;
	}
	if (array_room(s->images, s->n_images) < 0)
		return -ENOMEM;
	s->images[s->n_images++] = (struct image){*c, c->n_rows};
	*c = (struct counts){0};
	return 0;
}

static int take(struct counts *c, void *arg)
{
	struct summing *s = arg;
	struct shares *out = s->out;
	bool idle = c->image.kind == COUNTS_IDLE;
	int r;

	if (c->image.kind == COUNTS_SAMPLER)
		return 0;
	if (!idle && !wanted_image(s, &c->image))
		return 0;
	choose_rows(s, c);
	if (!c->n_rows)
		return 0;
	out->files++;
	out->from_s = out->from_s && out->from_s < c->begin_s ? out->from_s : c->begin_s;
	out->to_s = out->to_s > c->begin_s + c->seconds ? out->to_s : c->begin_s + c->seconds;
	for (size_t i = 0; i < c->n_rows; i++) {
		if (idle) {
			out->idle += c->rows[i].count;
			continue;
		}
		out->samples += c->rows[i].count;
		out->amount += amount(c, &c->rows[i]);
	}
	if (idle)
		return 0;
	r = s->c->by == SHARES_FUNCTION || s->c->by == SHARES_LINE ? keep(s, c) : add_rows(s, c);
	return r < 0 ? fail(s->e, ENOMEM, "out of memory") : 0;
}

static int note_unread(struct summing *s, const struct counts_image *i, const char *why)
{
	struct shares *out = s->out;
	char *text;

	if (out->n_unread == MOST_UNREAD || array_room(out->unread, out->n_unread) < 0)
		return 0;
	if (asprintf(&text, "%s: %s", called(i), why) < 0)
		return -ENOMEM;
	out->unread[out->n_unread++] = text;
	return 0;
}

static uint64_t samples_of(const struct counts *c)
{
	uint64_t n = 0;

	for (size_t i = 0; i < c->n_rows; i++)
		n += c->rows[i].count;
	return n;
}

static int by_samples(const void *a, const void *b)
{
	uint64_t x = samples_of(&((const struct image *)a)->c), y = samples_of(&((const struct image *)b)->c);

	return x > y ? -1 : x < y;
}

static int name_places(struct summing *s, struct places *p, const struct counts *c)
{
	bool has_names = c->image.kind == COUNTS_FILE || c->image.kind == COUNTS_KERNEL, lines = s->c->by == SHARES_LINE;
	const char *why = NULL;
	bool read = has_names && places_take(p, &c->image, &why);
	int r = has_names && !read ? note_unread(s, &c->image, why) : 0;

	for (size_t i = 0; r == 0 && i < c->n_rows; i++) {
		const struct counts_row *row = &c->rows[i];
		const char *name = read && lines ? places_line(p, row->offset) : NULL;

		/* Code without lines still is some function's. */
		if (read && !name)
			name = places_function(p, row->offset);
		r = add_sum(s, called(&c->image), name ? name : has_names ? "(no name)" : called(&c->image), row->count, amount(c, row));
	}
	return r;
}

static int name_all(struct summing *s)
{
	struct places *p;
	int r = places_open(&p);

	if (s->n_images)
		qsort(s->images, s->n_images, sizeof(*s->images), by_samples);
	for (size_t i = 0; r == 0 && i < s->n_images; i++)
		r = name_places(s, p, &s->images[i].c);
	places_close(p);
	return r;
}

static int largest_first(const void *a, const void *b)
{
	const struct share *x = a, *y = b;

	if (x->amount != y->amount)
		return x->amount > y->amount ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* The sums' strings go over into the list. */
static int list_sums(struct summing *s)
{
	size_t n = HASH_COUNT(s->sums);
	struct sum *x, *next;

	s->out->all = calloc(n + 1, sizeof(*s->out->all));
	HASH_ITER (hh, s->sums, x, next) {
		HASH_DELETE(hh, s->sums, x);
		if (s->out->all) {
			s->out->all[s->out->n++] = x->share;
		} else {
			free(x->share.name);
			free(x->share.image);
		}
		free(x);
	}
	if (!s->out->all)
		return -ENOMEM;
	if (n)
		qsort(s->out->all, n, sizeof(*s->out->all), largest_first);
	return 0;
}

int shares_of(struct database *d, const struct shares_choice *c, struct shares *ret, struct error *e)
{
	struct summing s = {.c = c, .out = ret, .e = e};
	int r, listed;

	*ret = (struct shares){0};
	r = database_each(d, c->from_s, c->to_s, take, &s, e);
	if (r == 0 && s.n_images && name_all(&s) < 0)
		r = fail(e, ENOMEM, "out of memory");
	listed = list_sums(&s);
	if (r == 0 && listed < 0)
		r = fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < s.n_images; i++)
		counts_free(&s.images[i].c);
	free(s.images);
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
