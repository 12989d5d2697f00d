// SPDX-License-Identifier: BSD-2-Clause
/* Hands the unwinding tables of the code map to BPF (bpf/unwind.h). A library that goes and comes
 * back finds its own rows. The modules, which say where the rows belong in each address space, are
 * double-buffered, and so are the rows of objects whose scope changes. */
#include "experiment/session/internal.h"

#include "base/array.h"
#include "base/error.h"
#include "program/code/tables.h"
#include "cozbpf.skel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MODULES_BYTES (ABI_MODULE_POOL * sizeof(struct abi_module))

int unwind_open(struct session *s, struct error *e)
{
	struct unwind *u = xcalloc(1, sizeof(*u));

	s->unwind = u;
	u->modules = mmap(NULL, MODULES_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			  bpf_map__fd(s->skel->maps.modules), 0);
	if (u->modules == MAP_FAILED) {
		u->modules = NULL;
		return fail(e, errno, "cannot map the table of modules: %s", strerror(errno));
	}
	return unwind_rows_open(s, e);
}

void unwind_close(struct session *s)
{
	struct unwind *u = s->unwind;

	if (!u)
		return;
	unwind_rows_close(s);
	if (u->modules)
		(void)munmap(u->modules, MODULES_BYTES);
	free(u->free);
	free(u);
	s->unwind = NULL;
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
	if (!p.room)
		return;
	xarray_add(u->free, u->n_free, p);
}

static void publish(struct session *s, size_t space)
{
	struct unwind *u = s->unwind;
	const struct code_map *m = s->points.code;
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
	s->skel->bss->pythons[space] = k->jit ? k->jit->python.state : (struct abi_python){0};
	__atomic_store_n(&s->skel->bss->spaces[space], ABI_MODULES(p->first, n), __ATOMIC_RELEASE);
	used = *p;
	*p = u->spaces[space].now;
	u->spaces[space].now = used;
}

int unwind_set(struct session *s, size_t space, struct error *e)
{
	struct unwind *u = s->unwind;
	const struct code_map *m = s->points.code;
	int r = unwind_add_rows(s, e);

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
	give_part(u, u->spaces[space].now);
	give_part(u, u->spaces[space].spare);
	u->spaces[space] = (struct unwind_space){0};
}

void unwind_log_errors(const struct session *s, FILE *f)
{
	const struct unwind *u = s->unwind;
	const struct code_map *m = s->points.code;

	if (!u || !m)
		return;
	if (m->n_surplus)
		(void)fprintf(
			f,
			"%zu x no room for an executable or library (%d at most): samples and "
			"points in it were not counted\n",
			m->n_surplus, CODE_MAX_OBJECTS);
	if (m->n_surplus_maps)
		(void)fprintf(f,
			      "%zu x no room for a perf map: the code that it names is shown as "
			      "unnamed\n",
			      m->n_surplus_maps);
	if (m->n_without_rows)
		(void)fprintf(f, "%zu x an object's call frame information cannot be used: %s\n",
			      m->n_without_rows, m->rows_error.text);
	if (u->n_left_out)
		(void)fprintf(f,
			      "%zu x no room for an object's call frame information (%u rows in "
			      "all): %s; calls out of it are followed by frame "
			      "pointers\n",
			      u->n_left_out, ABI_MAX_ROWS, u->left_out);
	if (u->n_kept)
		(void)fprintf(f,
			      "%zu x no room to leave code out of scope as samples show it (%u "
			      "rows of call frame information in all): %s; name what is "
			      "in scope with --source\n",
			      u->n_kept, ABI_MAX_ROWS, u->kept);
	if (u->n_surplus_modules)
		(void)fprintf(f, "%zu x an executable mapping was left out (%d at most)\n",
			      u->n_surplus_modules, ABI_MAX_MODULES);
	if (u->n_surplus_spaces)
		(void)fprintf(f,
			      "%zu x no room for the mappings of a process (%d in all): its "
			      "samples are not counted\n",
			      u->n_surplus_spaces, ABI_MODULE_POOL);
}
