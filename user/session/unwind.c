// SPDX-License-Identifier: BSD-2-Clause
/* Hands the unwinding tables of the code map to BPF (bpf/unwind.h). A library that goes and comes back finds its own rows. The modules, which
 * say where the rows belong in each address space, are double-buffered, and so are the rows of objects whose scope changes. */
#include "session/internal.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "cozbpf.skel.h"
#include "session/code_map_private.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_CHUNKS (ABI_MAX_ROWS / ABI_ROW_CHUNK)
#define CHUNK_BYTES (ABI_ROW_CHUNK * sizeof(struct abi_row))
#define MODULES_BYTES (ABI_MODULE_POOL * sizeof(struct abi_module))

/* An object's rows in the map. */
struct unwind_rows {
	bool added, left_out, kept; /* is it in the map; was there no room for it, or for what came in its stead? */
	unsigned int lo, hi, room;  /* from lo on */
	/* The place for the next table: that of the one before, which nothing has searched since the modules were swapped. */
	unsigned int spare_lo, spare_room;
};

/* A part of the map of modules. */
struct unwind_part {
	unsigned int first, room;
};

/* An address space's modules: those in force, and the place for the next. */
struct unwind_space {
	struct unwind_part now, spare;
};

struct unwind {
	struct abi_row *chunks[MAX_CHUNKS];
	size_t n_chunks, n_rows;
	struct abi_module *modules; /* the map */
	unsigned int n_pool;        /* of it given away so far */
	struct unwind_part *free;   /* of spaces that are gone */
	size_t n_free;
	struct unwind_space *spaces; /* by the code map's index */
	size_t n_spaces;
	size_t n_surplus_spaces;
	bool moved; /* rows of an object that was there already are elsewhere now */
	struct unwind_rows *objects; /* by the code map's index */
	size_t n_objects;
	size_t n_left_out;
	char *left_out; /* the first one's path */
	size_t n_kept;
	char *kept; /* likewise */
	size_t n_surplus_modules;
	/* The first chunk comes into force while unwind_open's caller does something else. */
	pthread_t inserter;
	bool inserting;
	int rows_fd, first_fd, first_error;
};

/* Makes the map of the next chunk; it is not in force yet. Returns its descriptor. */
static int make_chunk(struct unwind *u, struct error *e)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	_cleanup_close_ int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "row_chunk", sizeof(unsigned int), sizeof(struct abi_row), ABI_ROW_CHUNK,
						&opts);
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
	unsigned int keys[MAX_CHUNKS], added = 0;
	int fds[MAX_CHUNKS], r = 0;

	while (u->n_chunks < MAX_CHUNKS && u->n_chunks * ABI_ROW_CHUNK < n) {
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

int unwind_open(struct session *s, struct error *e)
{
	struct unwind *u = calloc(1, sizeof(*u));
	int r;

	s->unwind = u;
	if (!u)
		return fail(e, ENOMEM, "out of memory");
	u->modules = mmap(NULL, MODULES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(s->skel->maps.modules), 0);
	if (u->modules == MAP_FAILED) {
		u->modules = NULL;
		return fail(e, errno, "cannot map the table of modules: %s", strerror(errno));
	}
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
	return u->first_error < 0 ? fail(e, -u->first_error, "cannot add to the unwinding tables: %s", strerror(-u->first_error)) : 0;
}

void unwind_close(struct session *s)
{
	struct unwind *u = s->unwind;

	if (!u)
		return;
	(void)unwind_opened(s, NULL);
	for (size_t i = 0; i < u->n_chunks; i++)
		(void)munmap(u->chunks[i], CHUNK_BYTES);
	if (u->modules)
		(void)munmap(u->modules, MODULES_BYTES);
	free(u->objects);
	free(u->spaces);
	free(u->free);
	free(u->left_out);
	free(u->kept);
	free(u);
	s->unwind = NULL;
}

/* Of an object in scope at least that must be known. Returns how many rows say it. */
static size_t scope_only(struct abi_row *rows, size_t n)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char in = rows[i].kind & ABI_ROW_IN_SCOPE;

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
		u->kept = strdup(o->entry.path);
	x->kept = true;
}

static void leave_out(struct unwind *u, struct unwind_rows *x, struct code_object *o)
{
	if (!x->left_out && !u->n_left_out++)
		u->left_out = strdup(o->entry.path);
	x->left_out = true;
	if (o->in_scope)
		o->n_rows = scope_only(o->rows, o->n_rows);
}

static void add_object(struct session *s, size_t index)
{
	struct unwind *u = s->unwind;
	struct code_object *o = s->code->objects[index];
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

static int add_objects(struct session *s, struct error *e)
{
	struct unwind *u = s->unwind;
	const struct code_map *m = s->code;
	size_t n = u->n_rows;
	int r;

	if (m->n_objects > u->n_objects) {
		struct unwind_rows *grown = reallocarray(u->objects, m->n_objects, sizeof(*grown));

		if (!grown)
			return fail(e, ENOMEM, "out of memory");
		memset(grown + u->n_objects, 0, (m->n_objects - u->n_objects) * sizeof(*grown));
		u->objects = grown;
		u->n_objects = m->n_objects;
	}
	for (size_t i = 0; i < m->n_objects; i++)
		n += m->objects[i]->rows_new ? wanted_room(&u->objects[i], m->objects[i]->n_rows) : 0;
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

/* Room for @n modules. What is given back has been out of force for a while. */
static bool take_part(struct unwind *u, struct unwind_part *p, unsigned int n)
{
	unsigned int room = (n + n / 4 + 16) & ~15U;

	if (p->room >= n)
		return true;
	for (size_t i = 0; i < u->n_free; i++) {
		struct unwind_part had = *p;

		if (u->free[i].room < n)
			continue;
		*p = u->free[i];
		if (had.room)
			u->free[i] = had;
		else
			u->free[i] = u->free[--u->n_free];
		return true;
	}
	if (room > ABI_MODULE_POOL - u->n_pool)
		return false;
	*p = (struct unwind_part){u->n_pool, room};
	u->n_pool += room;
	return true;
}

static void give_part(struct unwind *u, struct unwind_part p)
{
	struct unwind_part *grown = p.room ? reallocarray(u->free, u->n_free + 1, sizeof(*grown)) : NULL;

	if (!grown) /* lost until the end, which the next in want says */
		return;
	u->free = grown;
	u->free[u->n_free++] = p;
}

static int grow_spaces(struct unwind *u, size_t n)
{
	struct unwind_space *grown;

	if (n <= u->n_spaces)
		return 0;
	grown = reallocarray(u->spaces, n, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memset(grown + u->n_spaces, 0, (n - u->n_spaces) * sizeof(*grown));
	u->spaces = grown;
	u->n_spaces = n;
	return 0;
}

static void publish(struct session *s, size_t space)
{
	struct unwind *u = s->unwind;
	const struct code_map *m = s->code;
	const struct code_space *k = &m->spaces[space];
	struct unwind_part *p = &u->spaces[space].spare, used;
	unsigned int n = 0, wanted = k->n < ABI_MAX_MODULES ? (unsigned int)k->n : ABI_MAX_MODULES;

	u->n_surplus_modules += k->n - wanted;
	if (!take_part(u, p, wanted)) {
		u->n_surplus_spaces++;
		__atomic_store_n(&s->skel->bss->spaces[space], 0, __ATOMIC_RELEASE);
		return;
	}
	for (size_t i = 0; i < k->n && n < wanted; i++) {
		const struct code_mapping *from = &k->mappings[i];
		const struct unwind_rows *x = &u->objects[from->object];

		if (!from->placed || !x->added)
			continue;
		u->modules[p->first + n++] = (struct abi_module){
			.start = from->start,
			.end = from->end,
			.base = m->objects[from->object]->rows_base + from->bias,
			.row_lo = x->lo,
			.row_hi = x->hi,
			.object = (unsigned int)from->object,
		};
	}
	__atomic_store_n(&s->skel->bss->spaces[space], ABI_MODULES(p->first, n), __ATOMIC_RELEASE);
	used = *p;
	*p = u->spaces[space].now;
	u->spaces[space].now = used;
}

int unwind_set(struct session *s, size_t space, struct error *e)
{
	struct unwind *u = s->unwind;
	const struct code_map *m = s->code;
	int r = add_objects(s, e);

	if (r == 0 && grow_spaces(u, m->n_spaces) < 0)
		r = fail(e, ENOMEM, "out of memory");
	if (r < 0)
		return r;
	u->n_surplus_modules = u->n_surplus_spaces = 0;
	for (size_t i = 0; i < m->n_spaces; i++)
		if (i == space || (u->moved && m->spaces[i].mappings))
			publish(s, i);
	u->moved = false;
	return 0;
}

void unwind_drop(struct session *s, size_t space)
{
	struct unwind *u = s->unwind;

	__atomic_store_n(&s->skel->bss->spaces[space], 0, __ATOMIC_RELEASE);
	if (space >= u->n_spaces)
		return;
	give_part(u, u->spaces[space].now);
	give_part(u, u->spaces[space].spare);
	u->spaces[space] = (struct unwind_space){0};
}

void unwind_complain(const struct session *s, FILE *f)
{
	const struct unwind *u = s->unwind;
	const struct code_map *m = s->code;

	if (!u || !m)
		return;
	if (m->n_without_rows)
		(void)fprintf(f, "%zu x an object's call frame information cannot be used: %s\n", m->n_without_rows, m->rows_error.text);
	if (u->n_left_out)
		(void)fprintf(f, "%zu x no room for an object's call frame information (%u rows in all): %s; calls out of it are followed by frame "
			      "pointers\n", u->n_left_out, ABI_MAX_ROWS, u->left_out ? u->left_out : "?");
	if (u->n_kept)
		(void)fprintf(f, "%zu x no room to leave code out of scope as samples show it (%u rows of call frame information in all): %s; name what is "
			      "in scope with --source\n", u->n_kept, ABI_MAX_ROWS, u->kept ? u->kept : "?");
	if (u->n_surplus_modules)
		(void)fprintf(f, "%zu x an executable mapping was left out (%d at most)\n", u->n_surplus_modules, ABI_MAX_MODULES);
	if (u->n_surplus_spaces)
		(void)fprintf(f, "%zu x no room for the mappings of a process (%d in all): its samples are not counted\n", u->n_surplus_spaces,
			      ABI_MODULE_POOL);
}
