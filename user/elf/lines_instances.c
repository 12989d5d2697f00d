// SPDX-License-Identifier: BSD-2-Clause
#include "elf/lines_dwarf.h"

#include <errno.h>
#include <stdlib.h>

/* Deeper trees than any compiler writes are cut: their inner parts count as the function around them. */
#define MAX_DEPTH 512

struct walk {
	struct line_table *t;
	struct line_instances *out;
	size_t capacity, range_capacity;
	struct unit_bases bases;
	size_t instance; /* the one whose ranges are being added */
};

static int add_instance_range(uint64_t lo, uint64_t hi, void *arg)
{
	struct walk *w = arg;
	struct line_instances *o = w->out;

	if (!lo || hi <= lo || !elf_object_is_code(w->t->object, lo))
		return 0;
	if (o->n_ranges == w->range_capacity) {
		size_t capacity = w->range_capacity ? 2 * w->range_capacity : 64;
		struct instance_range *grown = reallocarray(o->ranges, capacity, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		o->ranges = grown;
		w->range_capacity = capacity;
	}
	o->ranges[o->n_ranges++] = (struct instance_range){lo, hi, w->instance};
	return 0;
}

/* Compilers list a function's ranges hot part first; an inlined copy may say where it is entered. */
static void find_entry(struct walk *w, Dwarf_Die die, size_t first)
{
	struct line_instances *o = w->out;
	struct line_instance *i = &o->all[w->instance];
	const struct instance_range *r = &o->ranges[first];
	Dwarf_Attribute attr;
	Dwarf_Error e = NULL;
	Dwarf_Addr entry;

	i->entry = r->lo;
	i->entry_end = r->hi;
	if (o->n_ranges - first == 1 || dwarf_attr(die, DW_AT_entry_pc, &attr, &e) != DW_DLV_OK) {
		dwarf_forget(w->t->dwarf, &e);
		return;
	}
	if (dwarf_formaddr(attr, &entry, &e) == DW_DLV_OK)
		for (size_t k = first; k < o->n_ranges; k++)
			if (entry >= o->ranges[k].lo && entry < o->ranges[k].hi) {
				i->entry = o->ranges[k].lo;
				i->entry_end = o->ranges[k].hi;
			}
	dwarf_forget(w->t->dwarf, &e);
	dwarf_dealloc_attribute(attr);
}

/* Sets *ret to the instance that @die's children are in. */
static int visit(struct walk *w, Dwarf_Die die, size_t parent, size_t *ret)
{
	struct line_instances *o = w->out;
	size_t before = o->n_ranges;
	Dwarf_Error e = NULL;
	Dwarf_Half tag;
	int r;

	*ret = parent;
	if (dwarf_tag(die, &tag, &e) != DW_DLV_OK) {
		dwarf_forget(w->t->dwarf, &e);
		return 0;
	}
	if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
		return 0;
	if (o->n == w->capacity) {
		size_t capacity = w->capacity ? 2 * w->capacity : 64;
		struct line_instance *grown = reallocarray(o->all, capacity, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		o->all = grown;
		w->capacity = capacity;
	}
	w->instance = o->n;
	r = dwarf_die_ranges(w->t, die, &w->bases, add_instance_range, w);
	if (r < 0 || o->n_ranges == before) /* a declaration, or the abstract function behind the copies */
		return r;
	o->all[o->n++].parent = parent;
	find_entry(w, die, before);
	*ret = w->instance;
	return 0;
}

static uint64_t offset_of(Dwarf_Debug d, Dwarf_Die die)
{
	Dwarf_Error e = NULL;
	Dwarf_Off at;

	if (dwarf_dieoffset(die, &at, &e) == DW_DLV_OK)
		return at;
	dwarf_forget(d, &e);
	return 0;
}

static Dwarf_Die next_die(Dwarf_Debug d, Dwarf_Die die, bool child)
{
	Dwarf_Error e = NULL;
	Dwarf_Die next;
	int r = child ? dwarf_child(die, &next, &e) : dwarf_siblingof_b(d, die, true, &next, &e);

	if (r != DW_DLV_OK) {
		dwarf_forget(d, &e);
		return NULL;
	}
	/* A sibling attribute may point anywhere: only forward is an end in sight. */
	if (offset_of(d, next) <= offset_of(d, die)) {
		dwarf_dealloc_die(next);
		return NULL;
	}
	return next;
}

static int walk_unit(struct walk *w, Dwarf_Die unit)
{
	struct level {
		Dwarf_Die die;
		size_t instance;
	} stack[MAX_DEPTH];
	Dwarf_Debug d = w->t->dwarf;
	size_t depth = 0, inner;
	uint64_t last = offset_of(d, unit);
	Dwarf_Die die = next_die(d, unit, true), child;
	int r = 0;

	w->bases = dwarf_unit_bases(d, unit);
	while (die || depth) {
		if (!die) { /* the children are done: on to what follows their parent */
			depth--;
			die = next_die(d, stack[depth].die, false);
			dwarf_dealloc_die(stack[depth].die);
			/* Also across levels, or a sibling attribute could lead into the children again and again. */
			if (die && offset_of(d, die) <= last) {
				dwarf_dealloc_die(die);
				die = NULL;
			}
			continue;
		}
		last = offset_of(d, die);
		r = visit(w, die, depth ? stack[depth - 1].instance : SIZE_MAX, &inner);
		if (r < 0)
			break;
		child = depth < MAX_DEPTH ? next_die(d, die, true) : NULL;
		if (child) {
			stack[depth++] = (struct level){die, inner};
			die = child;
		} else {
			child = next_die(d, die, false);
			dwarf_dealloc_die(die);
			die = child;
		}
	}
	if (die)
		dwarf_dealloc_die(die);
	while (depth)
		dwarf_dealloc_die(stack[--depth].die);
	return r;
}

static int outer_first(const void *pa, const void *pb)
{
	const struct instance_range *a = pa, *b = pb;

	if (a->lo != b->lo)
		return a->lo < b->lo ? -1 : 1;
	return a->instance < b->instance ? -1 : a->instance > b->instance; /* parents are numbered before their children */
}

int line_instances_read(struct line_table *t, const struct line_unit *u, struct line_instances *ret)
{
	struct walk w = {.t = t, .out = ret};
	Dwarf_Error e = NULL;
	Dwarf_Die die;
	int r = 0;

	size_t unit = (size_t)(u - t->units), first = 0, hi = t->n_dies;

	*ret = (struct line_instances){0};
	while (first < hi) {
		size_t mid = first + (hi - first) / 2;

		if (t->dies[mid].unit < unit)
			first = mid + 1;
		else
			hi = mid;
	}
	for (size_t i = first; r == 0 && i < t->n_dies && t->dies[i].unit == unit; i++) {
		if (dwarf_offdie_b(t->dwarf, t->dies[i].offset, true, &die, &e) != DW_DLV_OK) {
			dwarf_forget(t->dwarf, &e);
			continue;
		}
		r = walk_unit(&w, die);
		dwarf_dealloc_die(die);
	}
	if (ret->n_ranges)
		qsort(ret->ranges, ret->n_ranges, sizeof(*ret->ranges), outer_first);
	if (r < 0)
		line_instances_free(ret);
	return r;
}

void line_instances_free(struct line_instances *i)
{
	free(i->all);
	free(i->ranges);
	*i = (struct line_instances){0};
}
