// SPDX-License-Identifier: BSD-2-Clause
/* From the tables to the database. */
#include "collect/private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "collect.skel.h"
#include "collect/database/database.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#define COMPACT_FROM 65536 /* rows */
#define MOST_ROWS 65536	   /* that are added to a file at once */

static int by_place(const void *pa, const void *pb)
{
	const struct pending *a = pa, *b = pb;

	if (a->image != b->image)
		return a->image < b->image ? -1 : 1;
	if (a->offset != b->offset)
		return a->offset < b->offset ? -1 : 1;
	if (a->who != b->who)
		return a->who < b->who ? -1 : 1;
	return a->event < b->event ? -1 : a->event > b->event;
}

/* Sorted, and each place once. */
static void compact(struct collector *c)
{
	size_t used = 0;

	if (c->n_pending)
		qsort(c->pending, c->n_pending, sizeof(*c->pending), by_place);
	for (size_t i = 0; i < c->n_pending; i++) {
		if (used && by_place(&c->pending[used - 1], &c->pending[i]) == 0)
			c->pending[used - 1].count += c->pending[i].count;
		else
			c->pending[used++] = c->pending[i];
	}
	c->n_pending = used;
	c->compact_at = 2 * used > COMPACT_FROM ? 2 * used : COMPACT_FROM;
}

static void add(void *arg, const struct collect_entry *e)
{
	struct collector *c = arg;

	if (c->n_pending >= c->compact_at)
		compact(c);
	xarray_add(c->pending, c->n_pending,
		   (struct pending){e->offset, e->count, e->image, e->who, e->event});
}

static int on_news(void *arg, void *data, size_t size)
{
	struct collector *c = arg;
	struct collect_news news;

	if (size != sizeof(news))
		return 0;
	memcpy(&news, data, sizeof(news));
	names_learn(&c->names, c->skel, &news);
	return 0;
}

static int on_evicted(void *arg, void *data, size_t size)
{
	struct collect_entry e;

	if (size != sizeof(e))
		return 0;
	memcpy(&e, data, sizeof(e));
	add(arg, &e);
	return 0;
}

static int open_rings(struct collector *c)
{
	c->rings = ring_buffer__new(bpf_map__fd(c->skel->maps.collect_news), on_news, c, NULL);
	return c->rings ? ring_buffer__add(c->rings, bpf_map__fd(c->skel->maps.collect_evicted),
					   on_evicted, c)
			: -errno;
}

int collector_open(const struct collect_settings *s, void (*say)(const char *text, void *arg),
		   void *arg, struct collector **ret, struct error *e)
{
	struct collector *c = xcalloc(1, sizeof(*c));
	struct utsname u;
	int r;

	c->compact_at = COMPACT_FROM;
	names_open(&c->names);
	if (uname(&u) == 0)
		memcpy(c->host, u.nodename, sizeof(c->host));
	kernel_parts_read(&c->kernel);
	c->say = say;
	c->arg = arg;
	r = sampler_open(c, s, e);
	if (r == 0) {
		r = open_rings(c);
		if (r < 0)
			r = fail(e, -r, "cannot map what the kernel tells of images and counts: %s",
				 strerror(-r));
	}
	if (r < 0)
		collector_close(c);
	else
		*ret = c;
	return r;
}

void collector_close(struct collector *c)
{
	if (!c)
		return;
	ring_buffer__free(c->rings);
	sampler_close(c);
	names_close(&c->names);
	kernel_parts_free(&c->kernel);
	counts_free(&c->other);
	free(c->pending);
	free(c);
}

int collector_fd(const struct collector *c)
{
	return ring_buffer__epoll_fd(c->rings);
}

void collector_serve(struct collector *c)
{
	(void)ring_buffer__consume(c->rings);
}

/* A process's index in @to. */
static uint32_t who_in(const struct collector *c, struct counts *to, uint32_t who)
{
	const struct named *w = name_find(&c->names.who, who);

	if (w)
		return counts_who(to, w->texts[0], w->texts[1], c->host);
	return counts_who(to,
			  who == COLLECT_INTERRUPTS ? "[interrupts]"
			  : who == COLLECT_SWAPPER  ? "[idle]"
						    : "[unknown]",
			  "", c->host);
}

/* What the image with number @id is called; of the kernel's, of the part that has @offset, whose
 * begin is *ret_base. False: there is no such part. */
static bool image_is(const struct collector *c, uint32_t id, uint64_t offset,
		     struct counts_image *ret, uint64_t *ret_base, uint64_t *ret_end)
{
	static const enum counts_kind kinds[] = {[COLLECT_UNKNOWN] = COUNTS_UNKNOWN,
						 [COLLECT_IDLE] = COUNTS_IDLE,
						 [COLLECT_KERNEL] = COUNTS_KERNEL,
						 [COLLECT_ANONYMOUS] = COUNTS_ANONYMOUS,
						 [COLLECT_VDSO] = COUNTS_VDSO};
	static char nothing[] = "";
	const struct named *file = id >= COLLECT_FILES ? name_find(&c->names.images, id) : NULL;
	const struct kernel_part *part =
		id == COLLECT_KERNEL ? kernel_parts_at(&c->kernel, offset) : NULL;

	*ret = file ? file->image
		    : (struct counts_image){.kind = id < COLLECT_FILES ? kinds[id] : COUNTS_UNKNOWN,
					    .path = nothing,
					    .build_id = nothing};
	*ret_base = 0;
	*ret_end = UINT64_MAX;
	if (part) {
		ret->path = part->name;
		ret->build_id = part->build_id;
		*ret_base = part->start;
		*ret_end = part->end;
	}
	return part || id != COLLECT_KERNEL;
}

/* What an image had is counted as that of others: whose it was, not where. */
static void give_to_other(struct collector *c, struct counts *from)
{
	for (size_t i = 0; i < from->n_rows; i++)
		from->rows[i].offset = 0;
	counts_sort(from);
	counts_append(&c->other, from);
	if (c->other.n_rows > COMPACT_FROM)
		counts_bound_who(&c->other);
}

static int write_other(struct collector *c, struct database *d, uint64_t begin_s, struct error *e)
{
	static char nothing[] = "";
	const struct counts_image image = {
		.kind = COUNTS_OTHER, .path = nothing, .build_id = nothing};
	int r = 0;

	if (!c->other.n_rows)
		return 0;
	c->other.begin_s = begin_s;
	c->other.seconds = DATABASE_EPOCH_S;
	if (!c->other.image.path)
		counts_copy_image(&c->other.image, &image);
	counts_sort(&c->other);
	r = database_add(d, &c->other, e);
	if (r == 0)
		counts_free(&c->other);
	return r;
}

/* Adds the rows from @from on that are of one image to the database; *ret_end: those of the next
 * one. */
static int write_image(struct collector *c, struct database *d, uint64_t begin_s, size_t from,
		       size_t *ret_end, struct error *e)
{
	_cleanup_(counts_free) struct counts to = {.begin_s = begin_s, .seconds = DATABASE_EPOCH_S};
	const struct pending *p = c->pending;
	struct counts_image image;
	uint64_t base, end;
	bool has_places = image_is(c, p[from].image, p[from].offset, &image, &base, &end);
	size_t i = from;
	uint32_t who = 0;
	int r;

	counts_copy_image(&to.image, &image);
	for (; i < c->n_pending && i - from < MOST_ROWS && p[i].image == p[from].image &&
	       p[i].offset < end;
	     i++) {
		const struct collect_event *v = &c->events[p[i].event];
		uint32_t event = counts_event(&to, v->name, v->every);

		/* Of code between the parts, which BPF and tracing made, a place says nothing once
		 * it is gone. */
		if (!has_places && kernel_parts_at(&c->kernel, p[i].offset))
			break;
		if (i == from || p[i].who != p[i - 1].who)
			who = who_in(c, &to,
				     p[i].who); /* ten thousand of them are looked up by hashes */
		counts_add(&to, has_places ? p[i].offset - base : 0, who, event, p[i].count);
	}
	*ret_end = i;
	counts_sort(&to);
	r = database_add(d, &to, e);
	if (r != -E2BIG)
		return r;
	give_to_other(c, &to);
	return 0;
}

/* How sampling itself went, as numbers of an image of its own. */
static int write_totals(struct collector *c, struct database *d, uint64_t begin_s, struct error *e)
{
	_cleanup_(counts_free) struct counts to = {.begin_s = begin_s, .seconds = DATABASE_EPOCH_S};
	static char nothing[] = "";
	const struct counts_image image = {
		.kind = COUNTS_SAMPLER, .path = nothing, .build_id = nothing};
	struct collect_totals now = collector_totals(c), before = c->written;
	const struct {
		const char *name;
		uint64_t n;
	} numbers[] = {
		{"ticks", now.ticks - before.ticks},
		{"hits", now.hits - before.hits},
		{"evicted", now.evicted - before.evicted},
		{"lost", now.lost - before.lost},
		{"unknown", now.unknown - before.unknown},
		{"outside", now.outside - before.outside},
	};
	uint32_t who = counts_who(&to, "cozbpf", "", c->host);
	int r;

	counts_copy_image(&to.image, &image);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		uint32_t event = counts_event(&to, numbers[i].name, 1);

		if (numbers[i].n)
			counts_add(&to, 0, who, event, numbers[i].n);
	}
	counts_sort(&to);
	r = to.n_rows ? database_add(d, &to, e) : 0;
	if (r == 0)
		c->written = now;
	return r;
}

static int write_all(struct collector *c, struct database *d, uint64_t begin_s, struct error *e)
{
	size_t done = 0, end = 0;
	int r = 0;

	while (r == 0 && done < c->n_pending) {
		r = write_image(c, d, begin_s, done, &end, e);
		if (r == 0)
			done = end;
	}
	if (done) {
		c->n_pending -= done;
		memmove(c->pending, c->pending + done, c->n_pending * sizeof(*c->pending));
	}
	if (r == 0)
		r = write_other(c, d, begin_s, e);
	return r == 0 ? write_totals(c, d, begin_s, e) : r;
}

int collector_flush(struct collector *c, struct database *d, uint64_t now_s, size_t *ret_kept,
		    struct error *e)
{
	int r;

	sampler_harvest(c, add, c);
	(void)ring_buffer__consume(c->rings);
	names_complete(&c->names, c->skel);
	kernel_parts_refresh(&c->kernel);
	compact(c);
	r = write_all(c, d, now_s - now_s % DATABASE_EPOCH_S, e);
	if (r == 0)
		names_make_room(&c->names, c->skel);
	sampler_look_after(c);
	*ret_kept = c->n_pending + c->other.n_rows;
	return r;
}

uint64_t collector_forget(struct collector *c)
{
	uint64_t n = counts_samples(&c->other);

	for (size_t i = 0; i < c->n_pending; i++)
		n += c->pending[i].count;
	counts_free(&c->other);
	free(c->pending);
	c->pending = NULL;
	c->n_pending = 0;
	return n;
}
