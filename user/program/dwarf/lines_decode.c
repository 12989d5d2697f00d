// SPDX-License-Identifier: BSD-2-Clause
/* The names of a unit's files, and its rows. The names come from the header of the line program
 * alone: libdwarf would run the program for them, for all units when a user names a file. */
#include "program/dwarf/lines_private.h"

#include "base/array.h"
#include "base/cleanup.h"

#include <libdwarf/dwarf.h>
#include <stdlib.h>

/* A program has few files; the numbers in a hostile header are only counts. */
#define MAX_FILE_NUMBERS (1 << 20)
#define MAX_PATH 4096
#define MAX_FORMATS 32

/* A name in a header, to be read when it is needed; form 0: none. */
struct entry {
	struct debug_value path;
	uint64_t dir;
};

struct entries {
	struct entry *all;
	size_t n;
};

struct tables {
	struct line_table *t;
	struct debug_file *file; /* that has the program and the strings */
	const struct line_header *h;
	struct entries dirs, files;
	struct debug_unit unit; /* what forms need to know */
};

static bool add(struct entries *e, struct debug_value path, uint64_t dir)
{
	return e->n < MAX_FILE_NUMBERS && array_add(e->all, e->n, (struct entry){path, dir}) == 0;
}

/* Up to version 4: strings, closed by an empty one. Files have three numbers behind them. */
static bool read_old(struct tables *s, struct reader *r, struct entries *out, bool files)
{
	struct debug_value v;

	if (!add(out, (struct debug_value){0}, 0)) /* number 0 */
		return false;
	for (;;) {
		uint64_t dir = 0;

		if (!debug_form_read(r, s->h->bytes, 0, &s->unit, DW_FORM_string, &v))
			return false;
		if (!s->h->bytes[v.v])
			return true;
		if (files) {
			dir = leb(r, false);
			(void)leb(r, false);
			(void)leb(r, false);
		}
		if (r->bad || !add(out, v, dir))
			return false;
	}
}

/* Version 5: a table that describes itself. */
static bool read_new(struct tables *s, struct reader *r, struct entries *out)
{
	struct {
		uint64_t what, form;
	} formats[MAX_FORMATS];
	size_t n_formats = fixed(r, 1);
	uint64_t count;

	if (n_formats > MAX_FORMATS)
		return false;
	for (size_t i = 0; i < n_formats; i++) {
		formats[i].what = leb(r, false);
		formats[i].form = leb(r, false);
	}
	count = leb(r, false);
	if (r->bad || count > MAX_FILE_NUMBERS || (count && !n_formats))
		return false;
	for (uint64_t i = 0; i < count; i++) {
		struct debug_value path = {0}, v;
		uint64_t dir = 0;

		for (size_t k = 0; k < n_formats; k++) {
			if (formats[k].form > UINT16_MAX ||
			    !debug_form_read(r, s->h->bytes, 0, &s->unit,
					     (unsigned int)formats[k].form, &v))
				return false;
			if (formats[k].what == DW_LNCT_path)
				path = v;
			else if (formats[k].what == DW_LNCT_directory_index)
				dir = v.v;
		}
		if (!add(out, path, dir))
			return false;
	}
	return true;
}

static bool text_of(const struct tables *s, struct debug_value v, char *buf)
{
	if (v.form != DW_FORM_string)
		return debug_value_string(s->file, &s->unit, &(struct debug_root){0}, v, buf,
					  MAX_PATH);
	if (strlen((const char *)s->h->bytes + v.v) >= MAX_PATH)
		return false;
	memcpy(buf, s->h->bytes + v.v, strlen((const char *)s->h->bytes + v.v) + 1);
	return true;
}

/* Where the unit was compiled, by the first of its compilation units that says so. */
static bool comp_dir_of(struct line_table *t, const struct line_unit *u, char *buf)
{
	struct debug_unit unit;
	struct debug_root root;

	for (size_t i = 0; i < u->n_dies; i++)
		if (debug_unit_read(t->debug, u->dies[i], &unit) &&
		    debug_root_read(&t->roots, &unit, &root) &&
		    debug_value_string(t->debug, &unit, &root, root.values[ROOT_COMP_DIR], buf,
				       MAX_PATH))
			return true;
	return false;
}

static uint32_t intern(const struct tables *s, const char *comp_dir, const struct entry *e)
{
	char name[MAX_PATH], dir[MAX_PATH];
	bool has_dir = e->dir < s->dirs.n && text_of(s, s->dirs.all[e->dir].path, dir);

	if (!text_of(s, e->path, name) || !*name)
		return NO_FILE;
	return line_file_intern(s->t, comp_dir, has_dir ? dir : NULL, name);
}

static bool read_names(struct tables *s, const struct line_unit *u, struct file_numbers *ret)
{
	char comp_dir[MAX_PATH];
	bool has_comp_dir =
		comp_dir_of(s->t, u, comp_dir) ||
		(s->h->version >= 5 && s->dirs.n && text_of(s, s->dirs.all[0].path, comp_dir));

	ret->ids = reallocarray(NULL, s->files.n + 1, sizeof(*ret->ids));
	if (!ret->ids)
		return false;
	for (size_t i = 0; i < s->files.n; i++)
		ret->ids[ret->n++] =
			s->files.all[i].path.form
				? intern(s, has_comp_dir ? comp_dir : NULL, &s->files.all[i])
				: NO_FILE;
	return true;
}

bool line_files_read(struct line_table *t, const struct line_unit *u, struct debug_file *f,
		     uint64_t program, struct file_numbers *ret)
{
	_cleanup_(line_header_free) struct line_header h = {0};
	struct tables s = {.t = t, .file = f};
	struct reader r;
	bool ok;

	if (!line_header_read(f, program, false, &h))
		return false;
	s.h = &h;
	s.unit = (struct debug_unit){.version = h.version, .word = h.word, .address_size = 8};
	r = (struct reader){.at = h.tables, .end = h.tables_end};
	if (h.version >= 5)
		ok = read_new(&s, &r, &s.dirs) && read_new(&s, &r, &s.files);
	else
		ok = read_old(&s, &r, &s.dirs, false) && read_old(&s, &r, &s.files, true);
	ok = ok && read_names(&s, u, ret);
	free(s.dirs.all);
	free(s.files.all);
	return ok;
}

static int by_id(const void *pa, const void *pb)
{
	const uint32_t *a = pa, *b = pb;

	return sort_order(*a, *b);
}

/* False, with a warning. */
static bool damaged(struct line_table *t, const struct line_unit *u)
{
	line_table_warn(t,
			"%s: damaged line information (program at 0x%llx of %s); its lines are "
			"missing",
			t->debug->path, (unsigned long long)u->program,
			t->go ? ".gopclntab" : ".debug_line");
	return false;
}

static bool keep_files(struct line_unit *u)
{
	u->files = reallocarray(NULL, u->numbers.n + 1, sizeof(*u->files));
	for (size_t i = 0; u->files && i < u->numbers.n; i++)
		if (u->numbers.ids[i] != NO_FILE)
			u->files[u->n_files++] = u->numbers.ids[i];
	u->n_files = sort_unique(u->files, u->n_files, sizeof(*u->files), by_id);
	return u->files;
}

bool line_unit_files_here(struct line_table *t, struct line_unit *u)
{
	bool read = t->go ? line_go_files(t, u)
			  : line_files_read(t, u, t->debug, u->program, &u->numbers);

	return (read && keep_files(u)) || damaged(t, u);
}

bool line_unit_files(struct line_table *t, struct line_unit *u)
{
	if (u->files_state == UNIT_UNREAD)
		u->files_state = t->readers->files(t, u) ? UNIT_READ : UNIT_BAD;
	return u->files_state == UNIT_READ;
}

bool line_unit_rows_here(struct line_table *t, struct line_unit *u)
{
	return (line_unit_files(t, u) && (t->go ? line_go_rows(t, u) : line_program_run(t, u))) ||
	       damaged(t, u);
}

bool line_unit_rows(struct line_table *t, struct line_unit *u)
{
	if (u->rows_state == UNIT_UNREAD)
		u->rows_state = t->readers->rows(t, u) ? UNIT_READ : UNIT_BAD;
	return u->rows_state == UNIT_READ;
}
