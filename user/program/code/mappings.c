// SPDX-License-Identifier: BSD-2-Clause
/* Where an address space has the objects, as /proc/PID/maps says: read anew whenever it may have
 * changed. */
#include "program/code/private.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/search.h"
#include "base/sort.h"
#include "target/process.h"

#include <stdlib.h>
#include <string.h>

/* Time of one look for the files that are new to a process: they may be many, and slow. */
#define LOOK_NS (10 * NSEC_PER_SEC)

/* What an earlier refresh found out about a mapping in the same place. */
static const struct code_mapping *before(const struct code_space *s, const struct code_mapping *p)
{
	size_t at = search_front(s->n, i, s->mappings[i].start < p->start);
	const struct code_mapping *k = at < s->n ? &s->mappings[at] : NULL;

	return k && !k->is_late && k->start == p->start && k->end == p->end &&
			       k->offset == p->offset && k->is_copy == p->is_copy
		       ? k
		       : NULL;
}

/* @p: a mapping of @pid's, whose object becomes SIZE_MAX if there are too many of them. @entry: the
 * same as /proc/PID/maps has it; NULL: it is of no file's.
 * @until: time of the monotonic clock from which on new mappings are left to the next look. */
static int place(struct code_map *m, const struct code_space *s, pid_t pid, struct code_mapping *p,
		 const struct map_entry *entry, uint64_t until)
{
	struct code_object *o = m->objects[p->object];
	_cleanup_elf_object_ struct elf_object *passing = NULL;
	const struct code_mapping *k = before(s, p);
	const struct elf_object *elf;
	int r;

	if (k && (entry ? code_object_is_at(m->objects[k->object], entry, pid)
			: k->object == p->object)) {
		*p = *k;
		return 0;
	}
	p->is_late = clock_monotonic_ns() > until;
	if (p->is_late)
		return 0;
	if (entry) {
		p->object = code_map_tell_apart(m, p->object, entry, pid);
		if (p->object == SIZE_MAX)
			return 0;
		o = m->objects[p->object];
		/* Who may not follow the kernel's links opens it by its name. */
		code_object_name(m, o, entry);
	}
	/* Through a process that lives: the one that had it mapped before may have ended. */
	code_object_through(o, pid, p);
	/* Libraries out of scope are looked at once and closed again: a program may have more of
	 * them than we may have files open. */
	if (o->in_scope || o->elf)
		elf = code_object_elf(o, NULL);
	else
		elf = code_object_open(o, &passing, NULL) == 0 ? passing : NULL;
	/* By what has been opened, where the numbers did not say it. */
	if (entry)
		code_object_name(m, o, entry);
	if (o->in_scope && passing)
		elf = code_object_elf(o, NULL);
	if (!elf)
		return 0;
	p->placed = elf_object_mapping_bias(elf, p->start, p->offset, &p->bias) == 0;
	r = o->in_scope ? code_scope_read(m, o) : 0;
	return r < 0 ? r : code_rows_read(m, o, elf);
}

static struct code_object *vdso(struct code_map *m, size_t *ret_index)
{
	struct map_entry entry = {.path = (char *)(uintptr_t) "[vdso]"};
	struct code_object *o;
	size_t size;

	for (size_t i = 0; i < m->n_objects; i++)
		if (m->objects[i]->is_vdso) {
			*ret_index = i;
			return m->objects[i];
		}
	o = code_object_add(m, &entry, 0);
	if (!o)
		return NULL;
	o->is_vdso = o->elf_tried = true;
	o->in_scope = false; /* nobody writes it */
	if (code_vdso_open(&o->elf, &size) == 0)
		o->entry.end = size;
	*ret_index = m->n_objects - 1;
	return o;
}

/* The kernel's own code: not a file, so it is not in the list. */
static int place_vdso(struct code_map *m, const struct code_space *s, pid_t pid,
		      struct code_mapping *ret, bool *ret_placed)
{
	uint64_t start = process_vdso(pid);
	struct code_object *o;
	int r;

	*ret_placed = false;
	*ret = (struct code_mapping){0};
	if (!start)
		return 0;
	o = vdso(m, &ret->object);
	if (!o || !o->elf || start > UINT64_MAX - o->entry.end)
		return 0;
	ret->start = start;
	ret->end = start + o->entry.end;
	r = place(m, s, pid, ret, NULL, UINT64_MAX);
	*ret_placed = r == 0 && ret->placed;
	return r;
}

/* Code of a known object that the program has copied, and runs in the copy: in the same place of
 * the process, with the same bytes. */
static bool place_copy(struct code_map *m, const struct code_space *s, pid_t pid,
		       const struct map_copy *c, struct code_mapping *ret)
{
	const struct map_entry *near = &c->near;
	const struct elf_object *elf;
	struct code_object *o = NULL;
	uint64_t bias, vaddr;

	*ret = (struct code_mapping){.start = c->start, .end = c->end, .is_copy = true};
	for (; ret->object < m->n_objects && !o; ret->object++) {
		struct code_object *x = m->objects[ret->object];

		if ((x->in_scope || x->is_main) && (code_object_is_at(x, near, pid) ||
						    (!x->mapped && x->entry.inode == near->inode &&
						     !strcmp(x->entry.path, near->path))))
			o = x;
	}
	elf = o ? code_object_elf(o, NULL) : NULL;
	if (!elf)
		return false;
	ret->object--;
	if (elf_object_mapping_bias(elf, near->start, near->offset, &bias) < 0) {
		if (elf_object_offset_to_vaddr(elf, near->offset, &vaddr) < 0)
			return false;
		bias = near->start - vaddr;
	}
	return elf_object_is_code(elf, c->start - bias) &&
	       elf_object_vaddr_to_offset(elf, c->start - bias, &ret->offset) == 0 &&
	       place(m, s, pid, ret, NULL, UINT64_MAX) == 0 && ret->placed;
}

static bool same(const struct code_space *s, const struct code_mapping *all, size_t n)
{
	if (n != s->n)
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct code_mapping *k = before(s, &all[i]);

		if (!k || k->object != all[i].object)
			return false;
	}
	return true;
}

static int read_mappings(struct code_map *m, struct code_space *s, const struct map_list *list,
			 pid_t pid, bool *ret_changed)
{
	struct code_mapping *all =
		xcalloc(list->n + list->n_copies + 2 + code_jit_room(list), sizeof(*all));
	uint64_t until = clock_monotonic_ns() + LOOK_NS;
	bool has_vdso = false, is_late = false;
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < list->n; i++) {
		const struct map_entry *p = &list->entries[i];
		size_t object = code_map_find_object(m, p, pid);

		if (object == SIZE_MAX || p->end <= p->start)
			continue;
		all[n] = (struct code_mapping){
			.start = p->start, .end = p->end, .offset = p->offset, .object = object};
		r = place(m, s, pid, &all[n], p, until);
		is_late |= all[n].is_late;
		n += all[n].object != SIZE_MAX;
	}
	for (size_t i = 0; r == 0 && i < list->n_copies; i++)
		n += place_copy(m, s, pid, &list->copies[i], &all[n]);
	if (r == 0)
		r = place_vdso(m, s, pid, &all[n], &has_vdso);
	n += has_vdso;
	if (r == 0)
		r = code_jit_place(m, s, pid, list, all, &n);
	if (r < 0) {
		free(all);
		return r;
	}
	qsort(all, n, sizeof(*all), compare_u64);
	*ret_changed = !s->mappings || !same(s, all, n);
	free(s->mappings);
	s->mappings = all;
	s->n = n;
	s->is_late = is_late;
	s->n_copies = list->n_copies;
	return 0;
}

/* Takes what naming has found out of scope out of the tables. */
void code_map_cut(struct code_map *m, bool *ret_changed)
{
	*ret_changed |= m->remade;
	m->remade = false;
	for (size_t i = 0; i < m->n_objects; i++)
		code_rows_cut(m->objects[i], ret_changed);
}

int code_map_refresh(struct code_map *m, size_t space, pid_t pid, bool *ret_changed,
		     struct error *e)
{
	struct map_list list = {0};
	int r = map_list_read(pid, &list, e);

	if (r < 0)
		return r;
	r = read_mappings(m, &m->spaces[space], &list, pid, ret_changed);
	map_list_free(&list);
	if (r < 0)
		return fail(e, -r, "out of memory for the code map");
	code_map_cut(m, ret_changed);
	return 0;
}
