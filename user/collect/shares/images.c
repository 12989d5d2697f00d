// SPDX-License-Identifier: BSD-2-Clause
/* What of a database is asked for. */
#include "collect/shares/private.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/memory.h"
#include "collect/database/database.h"

#include <fnmatch.h>
#include <string.h>

#define uthash_fatal(msg) out_of_memory()
#include <uthash.h>

/* All of one image together. */
struct image {
	UT_hash_handle hh;
	struct counts c;
	size_t sorted; /* so many rows it had when they were sorted last */
	char *key;     /* owned */
};

struct choosing {
	const struct shares_choice *c;
	struct shares *out;
	void (*cb)(struct counts *c, void *arg);
	void *arg;
};

static bool fits(const char *glob, const char *s)
{
	return !glob || fnmatch(glob, s, 0) == 0;
}

const char *shares_called(const struct counts_image *i)
{
	const char *kind = counts_kind_name(i->kind);

	return i->kind == COUNTS_FILE || (i->kind == COUNTS_KERNEL && *i->path) ? i->path : kind;
}

static bool wanted_event(struct choosing *s, const char *name)
{
	if (s->c->event ? strcmp(name, s->c->event) != 0
			: strcmp(name, "cycles") != 0 && strcmp(name, "cpu-clock") != 0)
		return false;
	if (!s->out->event)
		s->out->event = xstrdup(name);
	return strcmp(s->out->event, name) == 0;
}

static bool wanted_who(const struct choosing *s, const struct counts_who *w)
{
	return fits(s->c->process, w->process) && fits(s->c->cgroup, w->cgroup) &&
	       fits(s->c->host, w->host);
}

static bool wanted_image(const struct choosing *s, const struct counts_image *i)
{
	const char *path = shares_called(i), *slash = strrchr(path, '/');

	if (s->c->build_id && strncmp(i->build_id, s->c->build_id, strlen(s->c->build_id)) != 0)
		return false;
	return fits(s->c->image, path) || (slash && fits(s->c->image, slash + 1));
}

/* Keeps of @c the rows that are wanted. */
static void choose_rows(struct choosing *s, struct counts *c)
{
	size_t used = 0;

	for (size_t i = 0; i < c->n_rows; i++)
		if (wanted_who(s, &c->who[c->rows[i].who]) &&
		    wanted_event(s, c->events[c->rows[i].event].name))
			c->rows[used++] = c->rows[i];
	c->n_rows = used;
}

/* The same of images that are the same (counts_same_image). */
static char *key_of(const struct counts_image *i)
{
	bool by_id = i->kind == COUNTS_FILE && *i->build_id;

	return xasprintf("%d %u %s %llu %llu %s", (int)i->kind, i->owner, i->build_id,
			 (unsigned long long)(by_id ? 0 : i->inode),
			 (unsigned long long)(by_id ? 0 : i->changed_ns), by_id ? "" : i->path);
}

static void image_free(struct image *image)
{
	counts_free(&image->c);
	free(image->key);
	free(image);
}

/* Takes over @key and what @c has. */
static void add_image(struct image **all, struct counts *c, char *key)
{
	struct image *image = xcalloc(1, sizeof(*image));

	image->key = key;
	HASH_ADD_KEYPTR(hh, *all, image->key, strlen(image->key), image);
	image->c = *c;
	image->sorted = c->n_rows;
	*c = (struct counts){0};
}

/* Adds @c to the others of its image, without who it was; takes over what it has. There can be
 * hundreds of thousands, which a user has made. */
static void keep(struct counts *c, void *arg)
{
	_cleanup_free_ char *key = key_of(&c->image);
	struct image **all = arg, *image = NULL; /* a hash */

	counts_forget_who(c);
	HASH_FIND_STR(*all, key, image);
	if (!image) {
		add_image(all, c, TAKE_PTR(key));
		return;
	}
	counts_append(&image->c, c);
	/* Of hundreds of hours: not after each. */
	if (image->c.n_rows > 2 * image->sorted) {
		counts_sort(&image->c);
		image->sorted = image->c.n_rows;
	}
}

static int take(struct counts *c, void *arg)
{
	struct choosing *s = arg;
	struct shares *out = s->out;
	bool idle = c->image.kind == COUNTS_IDLE;

	if (c->image.kind == COUNTS_SAMPLER)
		return 0;
	if (!idle && !wanted_image(s, &c->image))
		return 0;
	choose_rows(s, c);
	if (!c->n_rows)
		return 0;
	out->from_s = out->from_s && out->from_s < c->begin_s ? out->from_s : c->begin_s;
	out->to_s = out->to_s > c->begin_s + c->seconds ? out->to_s : c->begin_s + c->seconds;
	for (size_t i = 0; i < c->n_rows; i++) {
		if (idle) {
			out->idle += c->rows[i].count;
			continue;
		}
		out->samples += c->rows[i].count;
		out->amount += (double)c->rows[i].count * (double)c->events[c->rows[i].event].every;
	}
	if (!idle)
		s->cb(c, s->arg);
	return 0;
}

static int by_samples(const struct image *a, const struct image *b)
{
	uint64_t x = counts_samples(&a->c), y = counts_samples(&b->c);

	return x > y ? -1 : x < y;
}

static int each_of_database(void *from, uint64_t from_s, uint64_t to_s,
			    int (*cb)(struct counts *c, void *arg), void *arg, struct error *e)
{
	return database_each(from, from_s, to_s, cb, arg, e);
}

struct shares_source shares_database(struct database *d)
{
	return (struct shares_source){each_of_database, d};
}

int chosen_each(const struct shares_source *from, const struct shares_choice *c, struct shares *out,
		void (*cb)(struct counts *c, void *arg), void *arg, struct error *e)
{
	struct choosing s = {c, out, cb, arg};

	return from->each(from->from, c->from_s, c->to_s, take, &s, e);
}

int chosen_images(const struct shares_source *from, const struct shares_choice *c,
		  struct shares *out, int (*cb)(struct counts *c, void *arg), void *arg,
		  struct error *e)
{
	struct image *all = NULL, *image, *next;
	int r = chosen_each(from, c, out, keep, &all, e);

	HASH_SORT(all, by_samples);
	HASH_ITER (hh, all, image, next) {
		HASH_DELETE(hh, all, image);
		if (r == 0) {
			counts_sort(&image->c);
			r = cb(&image->c, arg);
			if (r < 0)
				(void)fail(e, -r, "out of memory");
		}
		image_free(image);
	}
	return r < 0 ? r : 0;
}
