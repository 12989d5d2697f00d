// SPDX-License-Identifier: BSD-2-Clause
#include "program/code/map.h"
#include "program/code/private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/jit.h"
#include "base/sort.h"
#include "program/elf/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct code_name *code_name_find(const struct code_map *m, const char *text)
{
	struct code_name *x;

	HASH_FIND(hh, m->names, text, strlen(text), x);
	return x;
}

struct code_name *code_name_intern(struct code_map *m, const char *text)
{
	struct code_name *x = code_name_find(m, text);
	size_t n = strlen(text);

	if (x)
		return x;
	x = xcalloc(1, sizeof(*x) + n + 1);
	memcpy(x->text, text, n);
	HASH_ADD_KEYPTR(hh, m->names, x->text, n, x);
	return x;
}

void code_names_free(struct code_map *m)
{
	struct code_name *x, *next;

	HASH_ITER (hh, m->names, x, next) {
		HASH_DELETE(hh, m->names, x);
		free(x->functions);
		free(x);
	}
}

/* What a compiler splits off a function, or makes of it for certain arguments, belongs to it. */
static struct code_name *function_name(struct code_map *m, const struct elf_symbol *s)
{
	_cleanup_free_ char *name = elf_demangle(s->function);

	return name ? code_name_intern(m, name) : NULL;
}

/* What is shown of a function: all its names, if its code is that of several. */
static struct code_name *make_shown_name(struct code_map *m, const struct code_object *o,
					 const struct elf_symbol *s, bool by_source)
{
	_cleanup_elf_names_ struct elf_names names = {0};
	_cleanup_free_ char *others = NULL, *text = NULL;

	if (elf_object_sharers(o->elf, s->addr, by_source, &names) < 0 || !names.n)
		return function_name(m, s);
	others = elf_names_join(&names, names.all[0]);
	if (!others)
		return NULL;
	text = xasprintf("%s, sharing its code with %s", names.all[0], others);
	return code_name_intern(m, text);
}

/* The same, found once for each function: it is asked for each sample. */
static struct code_name *shown_name(struct code_map *m, struct code_object *o,
				    const struct elf_symbol *s, bool by_source)
{
	struct code_name *name;
	struct code_shown *x;

	HASH_FIND(hh, o->shown, &s->addr, sizeof(s->addr), x);
	if (x)
		return x->name;
	name = make_shown_name(m, o, s, by_source);
	if (!name)
		return NULL;
	x = xcalloc(1, sizeof(*x));
	*x = (struct code_shown){.addr = s->addr, .name = name};
	HASH_ADD(hh, o->shown, addr, sizeof(x->addr), x);
	return name;
}

void code_shown_free(struct code_object *o)
{
	struct code_shown *x, *next;

	HASH_ITER (hh, o->shown, x, next) {
		HASH_DELETE(hh, o->shown, x);
		free(x);
	}
}

int code_place_name(struct code_map *m, uint64_t code, const char **ret_line,
		    const char **ret_function)
{
	size_t object = ABI_CODE_OBJECT(code);
	struct code_name *function = NULL;
	const char *line;
	struct code_object *o;
	struct elf_symbol s;
	bool by_function;
	uint64_t vaddr;
	int r;

	if (object == ABI_KERNEL_OBJECT) {
		r = code_kernel_name(m, ABI_CODE_PC(code), ret_line);
		if (r == 0 && ret_function)
			*ret_function = *ret_line;
		return r;
	}
	if (object >= m->n_objects)
		return -ENOENT;
	o = m->objects[object];
	if (o->jit && o->in_scope)
		return code_jit_name(m, object, ABI_CODE_PC(code), ret_line, ret_function);
	if (!o->in_scope || !o->elf || !o->rows_tried)
		return -ENOENT;
	vaddr = o->rows_base + ABI_CODE_PC(code);
	by_function = code_object_by_function(m, o);
	if (elf_object_function_at(o->elf, vaddr, &s) == 0) {
		if (by_function && !code_owner_function(m, o, &s))
			return -ENOENT;
		function = function_name(m, &s);
	}
	if (by_function) {
		if (!function)
			return elf_object_has_functions(o->elf) ? -ENOENT : -ENODATA;
		line = function->text;
	} else {
		if (!code_object_lines(o, NULL))
			return -ENODATA;
		r = code_owner_line(m, object, vaddr, &line);
		if (r < 0)
			return r;
	}
	*ret_line = line;
	if (function && ret_function)
		function = shown_name(m, o, &s, !by_function);
	if (ret_function)
		*ret_function = function ? function->text : NULL;
	return 0;
}

/* The object that @code is in, if it has lines to name it by; *ret_vaddr: where in the file. */
static struct code_object *object_with_lines(struct code_map *m, uint64_t code, uint64_t *ret_vaddr)
{
	size_t object = ABI_CODE_OBJECT(code);

	if (object >= m->n_objects || !m->objects[object]->in_scope ||
	    !m->objects[object]->rows_tried || code_object_by_function(m, m->objects[object]))
		return NULL;
	*ret_vaddr = m->objects[object]->rows_base + ABI_CODE_PC(code);
	return m->objects[object];
}

int code_map_file_place(const struct code_map *m, uint64_t code, size_t *ret_object,
			uint64_t *ret_offset)
{
	size_t object = ABI_CODE_OBJECT(code);
	const struct code_object *o;

	if (object >= m->n_objects)
		return -ENOENT;
	o = m->objects[object];
	if (o->is_vdso || !o->elf || !o->rows_tried ||
	    elf_object_vaddr_to_offset(o->elf, o->rows_base + ABI_CODE_PC(code), ret_offset) < 0)
		return -ENOENT;
	*ret_object = object;
	return 0;
}

size_t code_map_callers(struct code_map *m, uint64_t code, const char **ret, size_t max)
{
	uint64_t vaddr;
	struct code_object *o = m->inclusive ? object_with_lines(m, code, &vaddr) : NULL;

	return o ? code_inlined_callers(m, o, vaddr, ret, max) : 0;
}

const char *code_map_inlined(struct code_map *m, uint64_t code)
{
	uint64_t vaddr;
	struct code_object *o = object_with_lines(m, code, &vaddr);

	return o ? code_inlined_text(m, o, vaddr) : NULL;
}

const char *code_map_object_of(struct code_map *m, uint64_t code)
{
	uint32_t object = ABI_CODE_OBJECT(code);

	if (object == ABI_KERNEL_OBJECT)
		return code_name_intern(m, "[kernel]")->text;
	return object < m->n_objects ? code_name_intern(m, m->objects[object]->entry.path)->text
				     : NULL;
}

bool code_map_place(const struct code_map *m, size_t i, struct addr_range r, struct addr_range *ret)
{
	const struct code_object *o = m->objects[i];

	if (!o->rows_tried)
		return false;
	if (r.lo < o->rows_base)
		r.lo = o->rows_base;
	if (r.lo >= r.hi || r.hi - o->rows_base > UINT32_MAX)
		return false;
	*ret = (struct addr_range){ABI_CODE(i, r.lo - o->rows_base),
				   ABI_CODE(i, r.hi - o->rows_base)};
	return true;
}

/* Adds an object's range, if anybody maps it. */
static void add_found(struct code_ranges *f, const struct code_map *m, size_t object,
		      struct addr_range r)
{
	if (code_map_place(m, object, r, &r))
		xarray_add(f->all, f->n, r);
}

void code_name_add(struct code_name *x, size_t object, struct addr_range range)
{
	xarray_add(x->functions, x->n_functions, (struct code_function){object, range});
}

static void add_name(const struct code_map *m, const struct code_name *x, struct code_ranges *out)
{
	for (size_t i = 0; i < x->n_functions; i++)
		add_found(out, m, x->functions[i].object, x->functions[i].range);
}

struct filing {
	struct code_map *m;
	size_t object;
};

static int file_function(const struct elf_symbol *s, const char *readable, void *arg)
{
	struct filing *w = arg;

	code_name_add(code_name_intern(w->m, readable), w->object,
		      (struct addr_range){s->addr, s->addr + s->size});
	return 0;
}

static bool has_function_names(const struct code_map *m, size_t i)
{
	return m->objects[i]->in_scope && m->objects[i]->elf &&
	       code_object_by_function(m, m->objects[i]);
}

static int find_function(struct code_map *m, const char *name, struct code_ranges *out)
{
	struct code_name *x;
	struct elf_symbol s;

	for (size_t i = 0; i < m->n_objects; i++) {
		struct filing w = {m, i};
		int r;

		if (!has_function_names(m, i) || m->objects[i]->functions_tried)
			continue;
		m->objects[i]->functions_tried = true;
		r = elf_object_each_readable(m->objects[i]->elf, false, file_function, &w);
		if (r < 0)
			return r;
	}
	x = code_name_find(m, name);
	/* Not as we write it: a raw symbol, or without its arguments. */
	for (size_t i = 0; (!x || !x->n_functions) && i < m->n_objects; i++)
		if (has_function_names(m, i) &&
		    elf_object_find_function(m->objects[i]->elf, name, &s) == 0 &&
		    /* by the name under which its code is filed */
		    elf_object_function_at(m->objects[i]->elf, s.addr, &s) == 0)
			x = function_name(m, &s);
	if (x)
		add_name(m, x, out);
	return 0;
}

static int object_line(struct code_map *m, size_t object, const char *file, uint32_t line,
		       bool read, struct code_ranges *out)
{
	struct line_table *lines = code_object_lines(m->objects[object], NULL);
	_cleanup_free_ struct addr_range *all = NULL, *called = NULL;
	size_t n = 0, n_called = 0;
	int r;

	if (!lines)
		return 0;
	if (read)
		(void)line_table_read_file(lines, file);
	r = line_table_ranges(lines, file, line, &all, &n);
	if (m->inclusive && (r == 0 || r == -ENOENT))
		r = line_table_called(lines, file, line, &called, &n_called);
	if (r < 0 && r != -ENOENT)
		return r;
	for (size_t i = 0; i < n; i++)
		add_found(out, m, object, all[i]);
	for (size_t i = 0; i < n_called; i++)
		add_found(out, m, object, called[i]);
	return 0;
}

/* What was inlined into a line that a person wrote, by the whole name that samples gave it. */
static void add_names(struct code_map *m, const char *file, uint32_t line, struct code_ranges *out)
{
	struct code_name *x, *next;

	HASH_ITER (hh, m->names, x, next) {
		const char *colon = strrchr(x->text, ':');
		_cleanup_free_ char *of = NULL;

		if (!x->n_functions || !colon || strtoul(colon + 1, NULL, 10) != line)
			continue;
		of = xstrndup(x->text, (size_t)(colon - x->text));
		if (line_file_matches(file, of))
			add_name(m, x, out);
	}
}

static int find_line(struct code_map *m, const char *name, struct code_ranges *out)
{
	_cleanup_free_ char *file = xstrdup(name);
	char *colon = strrchr(file, ':'), *end;
	struct code_name *x = code_name_intern(m, name);
	unsigned long line;
	bool ours;
	int r = 0;

	if (!colon || colon == file || colon[1] < '0' || colon[1] > '9')
		return -ENOENT;
	line = strtoul(colon + 1, &end, 10);
	if (*end || !line || line > UINT32_MAX)
		return -ENOENT;
	*colon = 0;
	/* What code_map_name returned came from a unit that is read, as are all that have been
	 * sampled. What a person wrote may be in units that nobody has asked for yet. */
	ours = x->text == name;
	for (size_t i = 0; r == 0 && i < m->n_objects; i++)
		if (m->objects[i]->in_scope && m->objects[i]->elf)
			r = object_line(m, i, file, (uint32_t)line, !ours && i >= x->n_read, out);
	if (r < 0)
		return r;
	if (ours) {
		add_name(m, x, out);
		return 0;
	}
	add_names(m, file, (uint32_t)line, out);
	x->n_read = m->n_objects;
	return 0;
}

static int by_size(const void *pa, const void *pb)
{
	const struct addr_range *a = pa, *b = pb;
	uint64_t sa = a->hi - a->lo, sb = b->hi - b->lo;

	return sort_order(sb, sa) ?: sort_order(a->lo, b->lo);
}

int code_place_intervals(struct code_map *m, const char *name, struct addr_range *ret, size_t max,
			 size_t *ret_n)
{
	struct code_ranges f = {0};
	int r;

	if (code_kernel_has(m, name)) {
		*ret_n = code_kernel_ranges(m, name, ret, max);
		return *ret_n ? 0 : -ENOENT;
	}
	if (jit_is_name(name)) {
		code_jit_ranges(m, name, &f);
		r = 0;
	} else {
		r = m->functions ? -ENOENT : find_line(m, name, &f);
	}
	if (r == -ENOENT || (r == 0 && !f.n && m->automatic))
		r = find_function(m, name, &f);
	f.n = r == 0 ? addr_ranges_merge(f.all, f.n) : 0;
	if (f.n > max) {
		qsort(f.all, f.n, sizeof(*f.all), by_size);
		f.n = addr_ranges_merge(f.all, max);
	}
	if (r == 0 && !f.n)
		r = -ENOENT;
	if (r == 0) {
		memcpy(ret, f.all, f.n * sizeof(*ret));
		*ret_n = f.n;
	}
	free(f.all);
	return r;
}
