// SPDX-License-Identifier: BSD-2-Clause
#include "elf/lines_dwarf.h"
#include "elf/object_private.h"

#include "base/error.h"

#include <errno.h>

static bool line_program_of(Dwarf_Debug d, Dwarf_Die die, uint64_t *ret)
{
	Dwarf_Error e = NULL;
	Dwarf_Attribute attr;
	Dwarf_Off at;
	int r = dwarf_attr(die, DW_AT_stmt_list, &attr, &e);

	if (r == DW_DLV_OK) {
		r = dwarf_global_formref(attr, &at, &e);
		dwarf_dealloc_attribute(attr);
	}
	if (r != DW_DLV_OK) {
		dwarf_forget(d, &e);
		return false;
	}
	*ret = at;
	return true;
}

/* While the units are being listed: one entry a compilation unit. */
struct listing {
	struct line_table *t;
	struct found {
		uint64_t program, die;
		bool covers; /* it says itself which addresses it has */
	} *found;
	size_t n, capacity;
	size_t range_capacity;
};

/* Addresses of discarded code are 0, 1 or near the top, by linker: none of them is in a code segment. Until the units are
 * numbered a range's unit is the place of its entry in the listing. */
static int add_range(uint64_t lo, uint64_t hi, void *arg)
{
	struct listing *l = arg;
	struct line_table *t = l->t;
	uint64_t left = elf_object_code_left(t->object, lo);

	if (!lo || !left || hi <= lo)
		return 0;
	if (hi - lo > left)
		hi = lo + left;
	if (t->n_index == l->range_capacity) {
		size_t capacity = l->range_capacity ? 2 * l->range_capacity : 256;
		struct unit_range *grown = reallocarray(t->index, capacity, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		t->index = grown;
		l->range_capacity = capacity;
	}
	t->index[t->n_index++] = (struct unit_range){.lo = lo, .hi = hi, .unit = l->n - 1};
	return 0;
}

static int add_unit(struct listing *l, Dwarf_Debug d, Dwarf_Die die)
{
	size_t before = l->t->n_index;
	struct unit_bases bases;
	Dwarf_Error e = NULL;
	Dwarf_Off offset;
	uint64_t program;
	int r;

	if (!line_program_of(d, die, &program))
		return 0;
	if (dwarf_dieoffset(die, &offset, &e) != DW_DLV_OK) {
		dwarf_forget(d, &e);
		return 0;
	}
	if (l->n == l->capacity) {
		size_t capacity = l->capacity ? 2 * l->capacity : 64;
		struct found *grown = reallocarray(l->found, capacity, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		l->found = grown;
		l->capacity = capacity;
	}
	l->found[l->n++] = (struct found){.program = program, .die = offset};
	bases = dwarf_unit_bases(d, die);
	r = dwarf_die_ranges(l->t, die, &bases, add_range, l);
	l->found[l->n - 1].covers = l->t->n_index > before;
	return r;
}

static int list_units(struct listing *l, Dwarf_Debug d)
{
	Dwarf_Unsigned length, type_offset, next;
	Dwarf_Half version, address_size, offset_size, extension, kind;
	Dwarf_Off abbrev;
	Dwarf_Sig8 signature;
	Dwarf_Error e = NULL;
	Dwarf_Die die;
	int r;

	for (;;) {
		r = dwarf_next_cu_header_d(d, true, &length, &version, &abbrev, &address_size, &offset_size, &extension,
					   &signature, &type_offset, &next, &kind, &e);
		if (r == DW_DLV_NO_ENTRY)
			return 0;
		if (r == DW_DLV_ERROR) { /* there is no way to the units behind it */
			dwarf_forget(d, &e);
			l->t->bad++;
			return 0;
		}
		if (kind == DW_UT_type || kind == DW_UT_split_type)
			continue;
		r = dwarf_siblingof_b(d, NULL, true, &die, &e);
		if (r != DW_DLV_OK) {
			dwarf_forget(d, &e);
			l->t->bad++;
			continue;
		}
		r = add_unit(l, d, die);
		dwarf_dealloc_die(die);
		if (r < 0)
			return r;
	}
}

/* Units that do not say which code they have (split debug information, old assemblers) may be in .debug_aranges. */
static int add_aranges(struct listing *l, Dwarf_Debug d)
{
	Dwarf_Error e = NULL;
	Dwarf_Arange *all;
	Dwarf_Signed n;
	Dwarf_Unsigned segment, entry_size, length;
	Dwarf_Addr start;
	Dwarf_Off die;
	size_t total = l->n, k;
	int r = 0;

	for (k = 0; k < total && l->found[k].covers; k++)
		;
	if (k == total)
		return 0;
	if (dwarf_get_aranges(d, &all, &n, &e) != DW_DLV_OK) {
		dwarf_forget(d, &e);
		return 0;
	}
	for (Dwarf_Signed i = 0; i < n; i++) {
		if (r == 0 &&
		    dwarf_get_arange_info_b(all[i], &segment, &entry_size, &start, &length, &die, &e) == DW_DLV_OK) {
			size_t lo = 0, hi = total;

			while (lo < hi) { /* the listing is in file order */
				size_t mid = lo + (hi - lo) / 2;

				if (l->found[mid].die < die)
					lo = mid + 1;
				else
					hi = mid;
			}
			l->n = lo + 1; /* add_range files under the last one */
			if (lo < total && l->found[lo].die == die && !l->found[lo].covers)
				r = add_range(start, start + length, l);
		}
		dwarf_forget(d, &e);
		dwarf_dealloc(d, all[i], DW_DLA_ARANGE);
	}
	dwarf_dealloc(d, all, DW_DLA_LIST);
	l->n = total;
	return r;
}

static int by_unit(const void *pa, const void *pb)
{
	const struct line_die *a = pa, *b = pb;

	if (a->unit != b->unit)
		return a->unit < b->unit ? -1 : 1;
	return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static int by_program(const void *pa, const void *pb)
{
	const struct found *const *a = pa, *const *b = pb;

	if ((*a)->program != (*b)->program)
		return (*a)->program < (*b)->program ? -1 : 1;
	return (*a)->die < (*b)->die ? -1 : (*a)->die > (*b)->die;
}

static int by_lo(const void *pa, const void *pb)
{
	const struct unit_range *a = pa, *b = pb;

	if (a->lo != b->lo)
		return a->lo < b->lo ? -1 : 1;
	return a->hi < b->hi ? -1 : a->hi > b->hi;
}

/* One unit a line program; the ranges' units become their numbers. */
static int number_units(struct listing *l)
{
	struct line_table *t = l->t;
	struct found **sorted = reallocarray(NULL, l->n, sizeof(*sorted));
	size_t *number = reallocarray(NULL, l->n, sizeof(*number));

	t->units = calloc(l->n, sizeof(*t->units));
	t->dies = calloc(l->n, sizeof(*t->dies));
	if (!sorted || !number || !t->units || !t->dies) {
		free(sorted);
		free(number);
		return -ENOMEM;
	}
	for (size_t i = 0; i < l->n; i++)
		sorted[i] = &l->found[i];
	qsort(sorted, l->n, sizeof(*sorted), by_program);
	for (size_t i = 0; i < l->n; i++) {
		if (i == 0 || sorted[i]->program != sorted[i - 1]->program)
			t->units[t->n_units++] = (struct line_unit){.program = sorted[i]->program, .die = sorted[i]->die};
		number[sorted[i] - l->found] = t->n_units - 1;
		t->dies[t->n_dies++] = (struct line_die){.unit = t->n_units - 1, .offset = sorted[i]->die};
	}
	qsort(t->dies, t->n_dies, sizeof(*t->dies), by_unit);
	for (size_t i = 0; i < t->n_index; i++)
		t->index[i].unit = number[t->index[i].unit];
	free(sorted);
	free(number);
	if (t->n_index)
		qsort(t->index, t->n_index, sizeof(*t->index), by_lo);
	for (size_t i = 0; i + 1 < t->n_index; i++) /* no compiler lets them overlap; a search needs that they do not */
		if (t->index[i].hi > t->index[i + 1].lo)
			t->index[i].hi = t->index[i + 1].lo;
	return 0;
}

int line_units_open(struct line_table *t, struct error *e)
{
	struct listing l = {.t = t};
	const char *path = elf_object_path(t->object);
	Dwarf_Error de = NULL;
	int r;

	r = line_sections_check(t, e);
	if (r == -ENODATA)
		goto none;
	if (r < 0)
		return r;
	r = dwarf_init(elf_object_fd(t->object), DW_DLC_READ, NULL, NULL, &t->dwarf, &de);
	if (r != DW_DLV_OK) {
		t->dwarf = NULL;
		if (r == DW_DLV_NO_ENTRY)
			goto none;
		r = fail(e, ENODATA, "%s: unreadable debug information (%s); build it again with -g, or use --granularity function",
			 path, dwarf_errmsg(de));
		dwarf_forget(NULL, &de);
		return r;
	}
	r = list_units(&l, t->dwarf);
	if (r == 0)
		r = add_aranges(&l, t->dwarf);
	if (r == 0 && l.n)
		r = number_units(&l);
	free(l.found);
	if (r < 0)
		return fail(e, -r, "%s: out of memory for its debug information", path);
	if (t->n_index)
		return 0;
none:
	return fail(e, ENODATA, "%s: no line information; build with -g, or use --granularity function", path);
}

void line_units_close(struct line_table *t)
{
	Dwarf_Error e = NULL;

	if (t->dwarf)
		(void)dwarf_finish(t->dwarf, &e);
	t->dwarf = NULL;
	free(t->units);
	free(t->dies);
	free(t->index);
}
