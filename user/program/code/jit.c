// SPDX-License-Identifier: BSD-2-Clause
/* Code that processes make as they run, as JIT compilers do. Each part of 4 GiB of a process's
 * memory in which there is such code is an object, whose addresses are the process's own; the
 * process's perf map names what is in it. */
#include "program/code/private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/jit.h"
#include "base/sort.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#define PART_BYTES MAP_PART /* what a place in the code can tell apart (ABI_CODE) */
#define MAX_RANGES 64	    /* of one process */
#define KEPT 64		    /* of processes that have gone: samples in their code may be left */
/* A map is read again when code is found that it does not name, and seldom also for code whose
 * place may be another function's by now; one that is not there is looked for again. All of that
 * takes a part of one CPU's time at most. */
#define SOON_NS (100 * NSEC_PER_MSEC)
#define ABSENT_NS (500 * NSEC_PER_MSEC)
#define LATER_NS (5 * NSEC_PER_SEC)
#define READ_PART 20
#define MAX_BYTES (256ULL << 20) /* of all maps that are kept */
/* A program can make names without end. */
#define MAX_NAMES 65536
#define INTERPRETED "py::"
#define PYTHON "python"
#define PYTHON_CODE "[python]"
#define FROZEN "<frozen " /* how modules that are built in are called */

/* Runtimes, by a file that they have mapped. */
static const struct {
	const char *name, *file;
	bool compiles; /* it has a compiler at work, whether or not it writes a map */
} runtimes[] = {
	{"node", "node", true},
	{"node", "nodejs", true},
	{"node", "libnode.so*", true},
	{"java", "libjvm.so", true},
	{"dotnet", "libcoreclr.so", true},
	{"luajit", "luajit*", true},
	{"luajit", "libluajit*", true},
	{"php", "opcache.so", true},
	{PYTHON, "python3*", false},
	{PYTHON, "libpython3*", false},
};

static bool is_called(const char *path, const char *runtime)
{
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(runtimes[0]); i++)
		if (!strcmp(runtimes[i].name, runtime) &&
		    !fnmatch(runtimes[i].file, basename(path), 0))
			return true;
	return false;
}

static void find_runtime(struct code_jit *j, const struct map_list *list)
{
	j->runtime = "program";
	j->compiles = false;
	for (size_t i = 0; i < list->n && !j->compiles; i++)
		for (size_t k = 0; k < sizeof(runtimes) / sizeof(runtimes[0]); k++)
			if (!fnmatch(runtimes[k].file, basename(list->entries[i].path), 0)) {
				j->runtime = runtimes[k].name;
				j->compiles = runtimes[k].compiles;
			}
}

static bool maps_python(const struct map_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		if (is_called(list->entries[i].path, PYTHON))
			return true;
	return false;
}

static uint64_t bytes_of(const struct perf_map *map)
{
	return map->n * sizeof(*map->all) + map->names_size;
}

static void forget_python(struct code_map *m, struct code_jit *j)
{
	m->jit_bytes -= j->python.bytes;
	python_free(&j->python);
}

static void forget_map(struct code_map *m, struct code_jit *j)
{
	m->jit_bytes -= bytes_of(&j->map);
	perf_map_free(&j->map);
}

/* Is it the name of a function that an interpreter runs? CPython's trampolines call its evaluator.
 */
static bool is_interpreted(const char *name)
{
	return !strncmp(name, INTERPRETED, strlen(INTERPRETED));
}

static bool names_interpreted(const struct perf_map *map)
{
	for (size_t i = 0; i < map->n; i++)
		if (is_interpreted(map->names + map->all[i].name))
			return true;
	return false;
}

/* @known: by a map that names the code in question. */
static void read_map(struct code_map *m, struct code_jit *j, bool known)
{
	uint64_t from = clock_monotonic_ns(), pause;
	struct perf_map map = {0};
	int r;

	if (from < (known ? j->later_ns : j->soon_ns))
		return;
	r = perf_map_read(j->pid, &j->file, &map);
	if (r == 0) {
		forget_map(m, j);
		m->jit_bytes += bytes_of(&map);
		j->map = map;
		j->interpreted = names_interpreted(&map);
	}
	if (m->jit_bytes > MAX_BYTES) {
		m->n_surplus_maps++;
		forget_map(m, j);
	}
	pause = READ_PART * (clock_monotonic_ns() - from);
	if (r < 0 && r != -EALREADY && pause < ABSENT_NS)
		pause = ABSENT_NS;
	j->soon_ns = from + (pause > SOON_NS ? pause : SOON_NS);
	j->later_ns = from + (pause > LATER_NS ? pause : LATER_NS);
}

/* Is it worth an object? Of a program that only has a compiler for patterns, say, samples belong to
 * the lines that call what that has made. */
static bool is_wanted(struct code_map *m, struct code_jit *j)
{
	if (!j->map.n)
		read_map(m, j, false);
	return j->compiles || j->map.n || j->python.layout;
}

/* One for the process, which takes the place of the one that went first if many have. */
static struct code_jit *jit_for(struct code_map *m, pid_t pid)
{
	struct code_jit *j = NULL;
	size_t gone = 0;

	for (size_t i = 0; i < m->n_jits; i++) {
		gone += !m->jits[i]->used;
		if (!m->jits[i]->used && (!j || m->jits[i]->gone_ns < j->gone_ns))
			j = m->jits[i];
	}
	if (gone <= KEPT) {
		j = xcalloc(1, sizeof(*j));
		xarray_add(m->jits, m->n_jits, j);
	} else {
		forget_map(m, j);
		for (size_t i = 0; i < j->n_objects; i++)
			m->objects[j->objects[i]]->rows_base = UINT64_MAX;
		forget_python(m, j);
		j->python_start = 0;
		j->interpreted = false;
		j->file = (struct perf_map_file){0};
		j->soon_ns = j->later_ns = 0;
	}
	j->pid = pid;
	j->used = true;
	return j;
}

void code_jit_drop(struct code_space *s)
{
	if (s->jit) {
		s->jit->used = false;
		s->jit->gone_ns = clock_monotonic_ns();
	}
	s->jit = NULL;
}

void code_jits_free(struct code_map *m)
{
	for (size_t i = 0; i < m->n_jits; i++) {
		perf_map_free(&m->jits[i]->map);
		python_free(&m->jits[i]->python);
		free(m->jits[i]);
	}
	free(m->jits);
}

/* The object's number; SIZE_MAX: there are too many. */
static size_t object_of(struct code_map *m, struct code_jit *j, uint64_t base)
{
	const struct map_entry none = {
		.path = (char *)(uintptr_t)(j->python.layout ? PYTHON_CODE : "[jit]")};
	struct code_object *o = NULL;
	size_t i;

	for (i = 0; i < j->n_objects; i++)
		if (m->objects[j->objects[i]]->rows_base == base)
			return j->objects[i];
	for (i = 0; i < j->n_objects && !o; i++)
		if (m->objects[j->objects[i]]->rows_base == UINT64_MAX)
			o = m->objects[j->objects[i]];
	if (o) {
		o->rows_base = base;
		return j->objects[i - 1];
	}
	if (j->n_objects < CODE_JIT_PARTS)
		o = code_object_add(m, &none, 0);
	if (!o) {
		m->n_surplus++;
		return SIZE_MAX;
	}
	o->jit = j;
	o->elf_tried = o->lines_tried = o->rows_tried = true;
	o->in_scope = code_scope_binary(m, o);
	/* Such code keeps frame pointers, if anything. */
	o->rows = xcalloc(1, sizeof(*o->rows));
	o->rows->kind = ABI_ROW_NONE;
	if (o->in_scope)
		o->rows->kind |= ABI_ROW_IN_SCOPE;
	if (j->python.layout)
		o->rows->kind |= ABI_ROW_PYTHON;
	o->n_rows = 1;
	o->rows_new = true;
	o->rows_base = base;
	j->objects[j->n_objects++] = m->n_objects - 1;
	return m->n_objects - 1;
}

/* What is made in the address space, but for copies of files' code: stretches with no file in
 * between, so that most code that is new lies in one that is there already. @files: what is mapped,
 * by start; objects of such code among it are passed over. */
static size_t find_ranges(const struct code_map *m, const struct map_made *made, size_t n_made,
			  const struct code_mapping *files, size_t n_files, struct addr_range *ret)
{
	uint64_t below = 0; /* where the last file below begins */
	size_t n = 0, next = 0;

	for (size_t i = 0; i < n_made; i++) {
		uint64_t at = made[i].start, end;

		for (; at < made[i].end; at = end) {
			end = (at | (PART_BYTES - 1)) + 1;
			if (end > made[i].end || end < at)
				end = made[i].end;
			for (; next < n_files; next++) {
				if (m->objects[files[next].object]->jit)
					continue;
				if (files[next].end > at)
					break;
				below = files[next].start;
			}
			/* A copy of a file's code has that file's names. */
			if (next < n_files && files[next].start <= at) {
				end = files[next].end < end ? files[next].end : end;
				continue;
			}
			if (next < n_files && files[next].start < end)
				end = files[next].start;
			if (n && ret[n - 1].lo / PART_BYTES == at / PART_BYTES &&
			    below < ret[n - 1].lo)
				ret[n - 1].hi = end;
			else if (n < MAX_RANGES)
				ret[n++] = (struct addr_range){at, end};
		}
	}
	return n;
}

/* CPython's functions are in memory that nobody executes: all of that which is no file's, as much
 * as it may still become. */
static size_t ranges_of(const struct code_map *m, const struct code_jit *j,
			const struct map_list *list, const struct code_mapping *files,
			size_t n_files, struct addr_range *ret)
{
	struct map_made parts[MAP_PARTS_MAX];

	if (!j || !j->python.layout)
		return find_ranges(m, list->made, list->n_made, files, n_files, ret);
	for (size_t i = 0; i < list->n_parts; i++)
		parts[i] = (struct map_made){list->parts[i], list->parts[i] + MAP_PART};
	return find_ranges(m, parts, list->n_parts, files, n_files, ret);
}

/* The interpreter whose functions the map names is not what is looked for: its samples are theirs.
 * Unless the user says what is in scope. */
static int leave_out_interpreter(struct code_map *m, const struct code_jit *j,
				 const struct code_mapping *all, size_t n)
{
	int r = 0;

	if (!j->interpreted || m->binaries.n_includes)
		return 0;
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct code_object *o = m->objects[all[i].object];

		if (!o->in_scope || o->jit || !is_called(o->entry.path, j->runtime))
			continue;
		o->interprets = true;
		o->in_scope = false;
		r = code_object_make_again(m, o);
	}
	return r;
}

/* Looks for CPython among what is mapped: in python3 itself, or in libpython3. Not if what it runs
 * is in no scope: then the interpreter's own functions may be. */
static int find_python(struct code_map *m, struct code_jit *j, const struct code_mapping *all,
		       size_t n)
{
	const struct code_object made = {.entry.path = (char *)(uintptr_t)PYTHON_CODE, .jit = j};
	int r = 0;

	if (strcmp(j->runtime, PYTHON) != 0 || !code_scope_binary(m, &made) || j->map.n)
		return 0;
	for (size_t i = 0; r == 0 && i < n; i++) {
		struct code_object *o = m->objects[all[i].object];
		const struct elf_object *elf;
		struct python found;

		if (o->jit || !all[i].placed || !is_called(o->entry.path, PYTHON))
			continue;
		if (j->python_start == all[i].start)
			return 0;
		elf = code_object_elf(o, NULL);
		if (!elf || !python_find(elf, all[i].bias, j->pid, &found))
			continue;
		forget_python(m, j);
		j->python = found;
		j->python_start = all[i].start;
		j->interpreted = true;
		if (o->is_python)
			continue;
		o->is_python = true;
		/* Else leave_out_interpreter makes its table again. */
		if (!o->in_scope || m->binaries.n_includes)
			r = code_object_make_again(m, o);
	}
	return r;
}

int code_jit_place(struct code_map *m, struct code_space *s, pid_t pid, const struct map_list *list,
		   struct code_mapping *all, size_t *n)
{
	struct addr_range ranges[MAX_RANGES];
	size_t n_ranges, n_files = *n;
	int r;

	sort_array(all, n_files, compare_u64);
	if (s->jit && s->jit->pid != pid)
		code_jit_drop(s);
	if (!list->n_made && !maps_python(list))
		return 0;
	if (!s->jit)
		s->jit = jit_for(m, pid);
	find_runtime(s->jit, list);
	r = find_python(m, s->jit, all, n_files);
	if (r < 0)
		return r;
	n_ranges = ranges_of(m, s->jit, list, all, n_files, ranges);
	if (!n_ranges || !is_wanted(m, s->jit))
		return 0;
	for (size_t i = 0; i < n_ranges; i++) {
		size_t object = object_of(m, s->jit, ranges[i].lo & ~(PART_BYTES - 1));

		if (object != SIZE_MAX)
			all[(*n)++] = (struct code_mapping){.start = ranges[i].lo,
							    .end = ranges[i].hi,
							    .placed = true,
							    .object = object};
	}
	return leave_out_interpreter(m, s->jit, all, n_files);
}

size_t code_jit_room(const struct map_list *list)
{
	return list->n_made || maps_python(list) ? MAX_RANGES : 0;
}

bool code_jit_same(struct code_map *m, const struct code_space *s, pid_t pid,
		   const struct map_list *list)
{
	struct addr_range ranges[MAX_RANGES];
	size_t n = ranges_of(m, s->jit, list, s->mappings, s->n, ranges), at = 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct code_mapping *k = &s->mappings[i];

		if (!m->objects[k->object]->jit)
			continue;
		/* Each process has a map of its own, and what it names is in no other. */
		if (at == n || s->jit->pid != pid || k->start != ranges[at].lo ||
		    k->end != ranges[at].hi)
			return false;
		at++;
	}
	return at == n || (at == 0 && s->jit && !is_wanted(m, s->jit));
}

static const char *unnamed(struct code_map *m, const struct code_jit *j)
{
	_cleanup_free_ char *text = xasprintf(JIT_UNNAMED "%s" JIT_UNNAMED_END, j->runtime);

	return code_name_intern(m, text)->text;
}

/* Some runtimes say in a name where the function is: "f /a.js:1:13" (V8), "py::f:/a.py" (CPython).
 * The caller's; NULL: the name is the function's alone. */
static char *function_of(const char *name)
{
	const char *space = strchr(name, ' '), *colon = space ? strrchr(space, ':') : NULL;

	if (is_interpreted(name))
		return xstrndup(name + strlen(INTERPRETED),
				strcspn(name + strlen(INTERPRETED), ":"));
	return colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1)
		       ? xstrndup(name, (size_t)(space - name))
		       : NULL;
}

/* All lines of a function become known with it. */
static void add_lines(struct code_map *m, size_t object, const struct python_code *c)
{
	for (size_t i = 0; i < c->n_lines; i++) {
		uint64_t end = i + 1 < c->n_lines ? c->range.lo + c->lines[i + 1].at : c->range.hi;
		struct line_location where = {.file = c->file, .line = c->lines[i].line};

		if (where.line)
			code_name_add(m->functions ? code_name_intern(m, c->function)
						   : code_line_name(m, &where),
				      object,
				      (struct addr_range){c->range.lo + c->lines[i].at, end});
	}
}

/* Once for each function. What is out of scope leaves the tables, so that its samples become those
 * of the function that called it. */
static void decide_scope(struct code_map *m, size_t object, struct python_code *c)
{
	struct code_object *o = m->objects[object];

	c->is_decided = true;
	c->in_scope = *c->file == '<' ? strncmp(c->file, FROZEN, strlen(FROZEN)) != 0
				      : code_map_has_source(m, c->file);
	if (c->in_scope) {
		add_lines(m, object, c);
	} else {
		xarray_add(o->cuts, o->n_cuts, c->range);
		m->n_learned++;
	}
}

static struct python_code *find_code(struct code_map *m, struct python *p, uint64_t addr)
{
	uint64_t others = m->jit_bytes - p->bytes;
	struct python_code *c;

	if (m->n_jit_names >= MAX_NAMES || m->jit_bytes >= MAX_BYTES)
		return NULL;
	c = python_code_at(p, addr);
	m->jit_bytes = others + p->bytes;
	return c;
}

/* As code_jit_name; -ENOENT: it is out of scope. */
static int python_name(struct code_map *m, size_t object, uint64_t addr, const char **ret_line,
		       const char **ret_function)
{
	struct code_jit *j = m->objects[object]->jit;
	size_t n = HASH_COUNT(m->names);
	struct python_code *c = find_code(m, &j->python, addr);
	struct line_location where;

	if (ret_function)
		*ret_function = NULL;
	/* The caller asks again later. */
	if (!c) {
		*ret_line = unnamed(m, j);
		return 1;
	}
	if (!c->is_decided)
		decide_scope(m, object, c);
	where = (struct line_location){.file = c->file, .line = python_line_at(c, addr)};
	if (!c->in_scope || (!where.line && !m->functions))
		return -ENOENT;
	*ret_line =
		(m->functions ? code_name_intern(m, c->function) : code_line_name(m, &where))->text;
	if (ret_function)
		*ret_function = code_name_intern(m, c->function)->text;
	m->n_jit_names += HASH_COUNT(m->names) - n;
	return 1;
}

int code_jit_name(struct code_map *m, size_t object, uint32_t pc, const char **ret_line,
		  const char **ret_function)
{
	uint64_t addr = m->objects[object]->rows_base + pc;
	struct code_jit *j = m->objects[object]->jit;
	_cleanup_free_ char *line = NULL, *function = NULL;
	const struct perf_map_entry *x;
	size_t n = HASH_COUNT(m->names);
	const char *name;

	if (j->python.layout)
		return python_name(m, object, addr, ret_line, ret_function);
	read_map(m, j, perf_map_at(&j->map, addr));
	x = perf_map_at(&j->map, addr);
	name = x ? j->map.names + x->name : NULL;
	line = x ? xasprintf("%s" JIT_MARK, name) : NULL;
	if (ret_function)
		*ret_function = NULL;
	if (!x || (m->n_jit_names >= MAX_NAMES && !code_name_find(m, line))) {
		*ret_line = unnamed(m, j);
		return 1;
	}
	function = function_of(name);
	*ret_line = code_name_intern(m, line)->text;
	if (function && ret_function)
		*ret_function = code_name_intern(m, function)->text;
	m->n_jit_names += HASH_COUNT(m->names) - n;
	return 1;
}

static void add_range(const struct code_map *m, const struct code_jit *j, struct addr_range r,
		      struct code_ranges *out)
{
	for (size_t i = 0; i < j->n_objects; i++) {
		uint64_t base = m->objects[j->objects[i]]->rows_base, last = base + UINT32_MAX;
		struct addr_range part = {r.lo > base ? r.lo : base, r.hi < last ? r.hi : last};

		if (part.lo < part.hi && code_map_place(m, j->objects[i], part, &part))
			xarray_add(out->all, out->n, part);
	}
}

/* @exactly: else also those of which it is the first word. */
static void add_named(const struct code_map *m, const struct code_jit *j, const char *name,
		      size_t n, bool exactly, struct code_ranges *out)
{
	uint32_t hash = perf_map_hash(name, n);

	for (size_t i = 0; i < j->map.n; i++) {
		const struct perf_map_entry *x = &j->map.all[i];
		const char *own = j->map.names + x->name;

		if ((x->hash == hash || !exactly) && !strncmp(own, name, n) &&
		    (!own[n] || (own[n] == ' ' && !exactly)))
			add_range(m, j, (struct addr_range){x->lo, x->hi}, out);
	}
}

void code_jit_ranges(struct code_map *m, const char *name, struct code_ranges *out)
{
	size_t n = strlen(name) - strlen(JIT_MARK);
	/* A person need not write where the function is. */
	bool ours = code_name_find(m, name);

	for (size_t i = 0; i < m->n_jits; i++) {
		const struct code_jit *j = m->jits[i];

		if (!j->used)
			continue;
		if (!jit_unnamed(name))
			add_named(m, j, name, n, ours, out);
		/* All that it makes, where no map says what that is. */
		else if (!j->map.n && !strcmp(unnamed(m, j), name))
			add_range(m, j, (struct addr_range){0, UINT64_MAX}, out);
	}
}
