// SPDX-License-Identifier: BSD-2-Clause
/* The rows of the unwinding tables, object by object, in the map that BPF searches: it grows by
 * chunks. */
#include "experiment/session/internal.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/memory.h"
#include "program/code/tables.h"
#include "cozbpf.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK_BYTES (ABI_ROW_CHUNK * sizeof(struct abi_row))

/* Makes the map of the next chunk; it is not in force yet. Returns its descriptor. */
static int make_chunk(struct unwind *u, struct error *e)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	_cleanup_close_ int fd =
		bpf_map_create(BPF_MAP_TYPE_ARRAY, "row_chunk", sizeof(unsigned int),
			       sizeof(struct abi_row), ABI_ROW_CHUNK, &opts);
	void *p;

	if (fd < 0)
		return fail(e, -fd, "no room for unwinding tables: %s", strerror(-fd));
	p = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED)
		return fail(e, errno, "cannot map the unwinding tables: %s", strerror(errno));
	u->chunks[u->n_chunks++] = p;
	return TAKE_FD(fd);
}

/* The kernel waits for all CPUs, some ten milliseconds: once for the whole batch. */
static int insert_chunks(int rows_fd, unsigned int *keys, int *fds, unsigned int n)
{
	LIBBPF_OPTS(bpf_map_batch_opts, opts);
	unsigned int done = n;

	return bpf_map_update_batch(rows_fd, keys, fds, &done, &opts) < 0 ? -errno : 0;
}

/* Room for @n rows in all, but for those that cannot have any. */
static int reserve(struct session *s, size_t n, struct error *e)
{
	struct unwind *u = s->unwind;
	unsigned int keys[UNWIND_MAX_CHUNKS], added = 0;
	int fds[UNWIND_MAX_CHUNKS], r = 0;

	while (u->n_chunks < UNWIND_MAX_CHUNKS && u->n_chunks * ABI_ROW_CHUNK < n) {
		r = make_chunk(u, e);
		if (r < 0)
			break;
		keys[added] = (unsigned int)u->n_chunks - 1;
		fds[added++] = r;
	}
	if (added && r >= 0) {
		r = insert_chunks(bpf_map__fd(s->skel->maps.rows), keys, fds, added);
		if (r < 0)
			(void)fail(e, -r, "cannot add to the unwinding tables: %s", strerror(-r));
	}
	while (added) {
		(void)close(fds[--added]);
		if (r < 0)
			(void)munmap(u->chunks[--u->n_chunks], CHUNK_BYTES);
	}
	return r < 0 ? r : 0;
}

static void *insert_first(void *arg)
{
	struct unwind *u = arg;

	u->first_error = insert_chunks(u->rows_fd, &(unsigned int){0}, &u->first_fd, 1);
	return NULL;
}

int unwind_rows_open(struct session *s, struct error *e)
{
	struct unwind *u = s->unwind;
	int r;

	u->rows_fd = bpf_map__fd(s->skel->maps.rows);
	u->first_fd = make_chunk(u, e);
	if (u->first_fd < 0)
		return u->first_fd;
	r = pthread_create(&u->inserter, NULL, insert_first, u);
	u->inserting = !r;
	if (!r)
		return 0;
	(void)close(u->first_fd);
	return fail(e, r, "cannot start a thread: %s", strerror(r));
}

int unwind_opened(struct session *s, struct error *e)
{
	struct unwind *u = s->unwind;

	if (u->inserting) {
		(void)pthread_join(u->inserter, NULL);
		u->inserting = false;
		(void)close(u->first_fd);
	}
	return u->first_error < 0
		       ? fail(e, -u->first_error, "cannot add to the unwinding tables: %s",
			      strerror(-u->first_error))
		       : 0;
}

void unwind_rows_close(struct session *s)
{
	struct unwind *u = s->unwind;

	(void)unwind_opened(s, NULL);
	for (size_t i = 0; i < u->n_chunks; i++)
		(void)munmap(u->chunks[i], CHUNK_BYTES);
	free(u->objects);
	free(u->left_out);
	free(u->kept);
}

/* Of an object in scope at least that must be known. Returns how many rows say it. */
static size_t scope_only(struct abi_row *rows, size_t n)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char in = rows[i].kind & (ABI_ROW_IN_SCOPE | ABI_ROW_PYTHON);

		if (!used || in != rows[used - 1].kind)
			rows[used++] = (struct abi_row){.pc = rows[i].pc, .kind = in};
	}
	return used;
}

/* How much room the table takes behind all others: a table that has changed may do so again. */
static size_t wanted_room(const struct unwind_rows *x, size_t n)
{
	if (x->spare_room >= n)
		return 0;
	return x->added ? n + n / 4 + 64 : n;
}

static bool find_room(struct unwind *u, struct unwind_rows *x, size_t n)
{
	size_t room = u->n_chunks * ABI_ROW_CHUNK - u->n_rows, wanted = wanted_room(x, n);

	if (!wanted)
		return true;
	if (n > room)
		return false;
	x->spare_lo = (unsigned int)u->n_rows;
	x->spare_room = (unsigned int)(wanted < room ? wanted : room);
	u->n_rows += x->spare_room;
	return true;
}

static void write_rows(struct unwind *u, struct unwind_rows *x, const struct code_object *o)
{
	unsigned int lo = x->spare_lo, room = x->spare_room;

	for (size_t i = 0; i < o->n_rows; i++)
		u->chunks[(lo + i) / ABI_ROW_CHUNK][(lo + i) % ABI_ROW_CHUNK] = o->rows[i];
	x->spare_lo = x->lo;
	x->spare_room = x->room;
	x->lo = lo;
	x->hi = lo + (unsigned int)o->n_rows;
	x->room = room;
	x->added = true;
}

/* The table that is there stays. */
static void keep(struct unwind *u, struct unwind_rows *x, const struct code_object *o)
{
	if (!x->kept && !u->n_kept++)
		u->kept = xstrdup(o->entry.path);
	x->kept = true;
}

static void leave_out(struct unwind *u, struct unwind_rows *x, struct code_object *o)
{
	if (!x->left_out && !u->n_left_out++)
		u->left_out = xstrdup(o->entry.path);
	x->left_out = true;
	if (o->in_scope)
		o->n_rows = scope_only(o->rows, o->n_rows);
}

static void add_object(struct session *s, size_t index)
{
	struct unwind *u = s->unwind;
	struct code_object *o = s->points.code->objects[index];
	struct unwind_rows *x = &u->objects[index];
	bool fits;

	if (!o->rows_new)
		return;
	o->rows_new = false;
	fits = find_room(u, x, o->n_rows);
	if (!fits && x->added) {
		keep(u, x, o);
	} else if (!fits) {
		leave_out(u, x, o);
		fits = o->in_scope && find_room(u, x, o->n_rows);
	}
	u->moved |= fits && x->added;
	if (fits)
		write_rows(u, x, o);
	/* Naming can only cut from the scope of objects that are in it. */
	if (!o->in_scope) {
		free(o->rows);
		o->rows = NULL;
	}
}

int unwind_add_rows(struct session *s, struct error *e)
{
	struct unwind *u = s->unwind;
	const struct code_map *m = s->points.code;
	size_t n = u->n_rows;
	int r;

	if (m->n_objects > u->n_objects) {
		u->objects = xreallocarray(u->objects, m->n_objects, sizeof(*u->objects));
		memset(u->objects + u->n_objects, 0,
		       (m->n_objects - u->n_objects) * sizeof(*u->objects));
		u->n_objects = m->n_objects;
	}
	for (size_t i = 0; i < m->n_objects; i++)
		n += m->objects[i]->rows_new ? wanted_room(&u->objects[i], m->objects[i]->n_rows)
					     : 0;
	r = reserve(s, n, e);
	if (r < 0)
		return r;
	/* Should the room not do, then for those that matter most. */
	for (int in_scope = 1; in_scope >= 0; in_scope--)
		for (size_t i = 0; i < m->n_objects; i++)
			if (m->objects[i]->in_scope == in_scope)
				add_object(s, i);
	return 0;
}
