// SPDX-License-Identifier: BSD-2-Clause
#include "collect/database/counts.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/memory.h"
#include "counts.pb-c.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <zlib.h>

static const char magic[] = "cozbpf counts 2\n";
#define MAGIC (sizeof(magic) - 1)
#define HEAD (MAGIC + 4) /* ... and the checksum, little-endian */

/* The message and what it points to, of which only the arrays are its own. */
struct outgoing {
	Counts__File file;
	Counts__Image image;
	Counts__Who *who;
	Counts__Event *events;
};

static void outgoing_free(struct outgoing *o)
{
	free(o->who);
	free((void *)o->file.who);
	free(o->events);
	free((void *)o->file.events);
	free(o->file.offset_steps);
	free(o->file.who_of);
	free(o->file.event_of);
	free(o->file.counts);
}

static void fill(struct outgoing *o, const struct counts *c)
{
	size_t n = c->n_rows;

	counts__file__init(&o->file);
	counts__image__init(&o->image);
	o->who = xcalloc(c->n_who, sizeof(*o->who));
	o->file.who = (Counts__Who **)xcalloc(c->n_who, sizeof(*o->file.who));
	o->events = xcalloc(c->n_events, sizeof(*o->events));
	o->file.events = (Counts__Event **)xcalloc(c->n_events, sizeof(*o->file.events));
	o->file.offset_steps = xcalloc(n, sizeof(*o->file.offset_steps));
	o->file.who_of = xcalloc(n, sizeof(*o->file.who_of));
	o->file.event_of = xcalloc(n, sizeof(*o->file.event_of));
	o->file.counts = xcalloc(n, sizeof(*o->file.counts));
	o->file.begin_s = c->begin_s;
	o->file.seconds = c->seconds;
	o->image.kind = c->image.kind;
	o->image.path = c->image.path;
	o->image.build_id = c->image.build_id;
	o->image.device = c->image.device;
	o->image.inode = c->image.inode;
	o->image.changed_ns = c->image.changed_ns;
	o->image.owner = c->image.owner;
	o->file.image = &o->image;
	for (size_t i = 0; i < c->n_who; i++) {
		counts__who__init(&o->who[i]);
		o->who[i].process = c->who[i].process;
		o->who[i].cgroup = c->who[i].cgroup;
		o->who[i].host = c->who[i].host;
		o->file.who[i] = &o->who[i];
	}
	for (size_t i = 0; i < c->n_events; i++) {
		counts__event__init(&o->events[i]);
		o->events[i].name = c->events[i].name;
		o->events[i].every = c->events[i].every;
		o->file.events[i] = &o->events[i];
	}
	for (size_t i = 0; i < n; i++) {
		o->file.offset_steps[i] = c->rows[i].offset - (i ? c->rows[i - 1].offset : 0);
		o->file.who_of[i] = c->rows[i].who;
		o->file.event_of[i] = c->rows[i].event;
		o->file.counts[i] = c->rows[i].count;
	}
	o->file.n_who = c->n_who;
	o->file.n_events = c->n_events;
	o->file.n_offset_steps = o->file.n_who_of = o->file.n_event_of = o->file.n_counts = n;
}

unsigned char *counts_encode(const struct counts *c, size_t *ret_n)
{
	_cleanup_(outgoing_free) struct outgoing o = {0};
	unsigned char *bytes;
	uint32_t sum;
	size_t n;

	fill(&o, c);
	n = counts__file__get_packed_size(&o.file);
	bytes = xcalloc(1, HEAD + n);
	memcpy(bytes, magic, MAGIC);
	(void)counts__file__pack(&o.file, bytes + HEAD);
	sum = (uint32_t)crc32_z(0, bytes + HEAD, n);
	for (size_t i = 0; i < 4; i++)
		bytes[MAGIC + i] = (unsigned char)(sum >> (8 * i));
	*ret_n = HEAD + n;
	return bytes;
}

static int take_names(struct counts *c, const Counts__File *f)
{
	for (size_t i = 0; i < f->n_who; i++)
		if (counts_who(c, f->who[i]->process, f->who[i]->cgroup, f->who[i]->host) != i)
			return -EINVAL;
	for (size_t i = 0; i < f->n_events; i++)
		if (counts_event(c, f->events[i]->name, f->events[i]->every) != i)
			return -EINVAL;
	return 0;
}

/* In order, none twice, of names that there are. */
static bool take_rows(struct counts *c, const Counts__File *f)
{
	uint64_t offset = 0;

	for (size_t i = 0; i < f->n_counts; i++) {
		const struct counts_row *last = i ? &c->rows[i - 1] : NULL;
		uint32_t who = f->who_of[i], event = f->event_of[i];

		if (who >= c->n_who || event >= c->n_events || !f->counts[i] ||
		    offset + f->offset_steps[i] < offset)
			return false;
		offset += f->offset_steps[i];
		if (last && last->offset == offset &&
		    (who < last->who || (who == last->who && event <= last->event)))
			return false;
		counts_add(c, offset, who, event, f->counts[i]);
	}
	return true;
}

static bool plausible(const Counts__File *f)
{
	if (!f->image || f->image->kind >= N_COUNTS_KINDS || !f->seconds ||
	    f->n_offset_steps != f->n_counts || f->n_who_of != f->n_counts ||
	    f->n_event_of != f->n_counts || f->begin_s > INT64_MAX / 2 || f->seconds > UINT32_MAX)
		return false;
	/* A name of a file. */
	return strspn(f->image->build_id, "0123456789abcdef") == strlen(f->image->build_id) &&
	       strlen(f->image->build_id) <= 128;
}

static int take(struct counts *c, const Counts__File *f)
{
	struct counts_image i;

	if (!plausible(f))
		return -EINVAL;
	i = (struct counts_image){.kind = f->image->kind,
				  .path = f->image->path,
				  .build_id = f->image->build_id,
				  .device = f->image->device,
				  .inode = f->image->inode,
				  .changed_ns = f->image->changed_ns,
				  .owner = f->image->owner};
	counts_copy_image(&c->image, &i);
	c->begin_s = f->begin_s;
	c->seconds = f->seconds;
	if (take_names(c, f) < 0 || !take_rows(c, f))
		return -EINVAL;
	return counts_samples(c) <= COUNTS_MOST_SAMPLES ? 0 : -EINVAL;
}

int counts_decode(const unsigned char *bytes, size_t n, struct counts *ret, struct error *e)
{
	struct counts c = {0};
	Counts__File *f;
	uint32_t sum = 0;
	int r;

	if (n < HEAD || memcmp(bytes, magic, MAGIC) != 0)
		return fail(e, EINVAL, "it is no file of counts, or of another version");
	for (size_t i = 0; i < 4; i++)
		sum |= (uint32_t)bytes[MAGIC + i] << (8 * i);
	if (sum != crc32_z(0, bytes + HEAD, n - HEAD))
		return fail(e, EINVAL, "it is damaged: its checksum is wrong");
	f = counts__file__unpack(NULL, n - HEAD, bytes + HEAD);
	r = f ? take(&c, f) : -EINVAL;
	if (f)
		counts__file__free_unpacked(f, NULL);
	if (r < 0) {
		counts_free(&c);
		return fail(e, -r, "what it says makes no sense");
	}
	*ret = c;
	return 0;
}
