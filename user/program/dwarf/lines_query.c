// SPDX-License-Identifier: BSD-2-Clause
#include "program/dwarf/lines_private.h"
#include "program/elf/similar.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool file_filter_wants(struct file_filter *f, uint32_t id)
{
	if (id >= f->n) { /* reading units brings new files */
		unsigned char *grown = realloc(f->known, f->t->n_files);

		if (!grown)
			return false;
		memset(grown + f->n, 0, f->t->n_files - f->n);
		f->known = grown;
		f->n = f->t->n_files;
	}
	if (!f->known[id])
		f->known[id] = f->match(f->t->files[id]->name, f->arg) ? 2 : 1;
	return f->known[id] == 2;
}

static bool match_written(const char *file, void *arg)
{
	return line_file_matches(arg, file);
}

struct file_filter file_filter_named(struct line_table *t, const char *written)
{
	return (struct file_filter){
		.t = t, .match = match_written, .arg = (void *)(uintptr_t)written};
}

bool file_filter_unit(struct file_filter *f, struct line_unit *u)
{
	if (!line_unit_files(f->t, u))
		return false;
	for (size_t i = 0; i < u->n_files; i++)
		if (file_filter_wants(f, u->files[i]))
			return true;
	return false;
}

void file_filter_free(struct file_filter *f)
{
	free(f->known);
}

/* The address ranges of the wanted files in one unit; @line 0: of all their lines. */
static int unit_ranges(struct file_filter *f, const struct line_unit *u, uint32_t line,
		       struct range_list *out)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i + 1 < u->n_rows; i++) {
		const struct line_row *row = &u->rows[i];

		/* Of rows at one address only the last has room before the next. */
		if (row->end || !row->line || row[1].addr <= row->addr ||
		    (line && row->line != line))
			continue;
		if (file_filter_wants(f, row->file))
			r = range_list_add(out, row->addr, row[1].addr);
	}
	return r;
}

int range_list_finish(struct range_list *l, int r, struct addr_range **ret, size_t *ret_n)
{
	if (r == 0)
		l->n = addr_ranges_merge(l->all, l->n);
	if (r == 0 && !l->n)
		r = -ENOENT;
	if (r < 0) {
		free(l->all);
		return r;
	}
	*ret = l->all;
	*ret_n = l->n;
	return 0;
}

int line_table_ranges(struct line_table *t, const char *file, uint32_t line,
		      struct addr_range **ret, size_t *ret_n)
{
	_cleanup_(file_filter_free) struct file_filter f = file_filter_named(t, file);
	struct range_list out = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && line && i < t->n_units; i++)
		if (t->units[i].rows_state == UNIT_READ)
			r = unit_ranges(&f, &t->units[i], line, &out);
	return range_list_finish(&out, r, ret, ret_n);
}

int line_table_read_file(struct line_table *t, const char *file)
{
	_cleanup_(file_filter_free) struct file_filter f = file_filter_named(t, file);
	int r = -ENXIO;

	for (size_t i = 0; i < t->n_units; i++)
		if (file_filter_unit(&f, &t->units[i])) {
			(void)line_unit_rows(t, &t->units[i]);
			r = 0;
		}
	return r;
}

int line_table_scope(struct line_table *t, bool (*match)(const char *file, void *arg), void *arg,
		     struct addr_range **ret, size_t *ret_n)
{
	_cleanup_(file_filter_free) struct file_filter f = {.t = t, .match = match, .arg = arg};
	struct range_list out = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < t->n_units; i++)
		if (line_unit_rows(t, &t->units[i]))
			r = unit_ranges(&f, &t->units[i], 0, &out);
	return range_list_finish(&out, r, ret, ret_n);
}

int line_table_each(struct line_table *t, int (*cb)(const char *file, uint32_t line, void *arg),
		    void *arg)
{
	_cleanup_free_ uint64_t *all = NULL;
	size_t n = 0;
	int r = 0;

	for (size_t i = 0; i < t->n_units; i++) {
		const struct line_unit *u = &t->units[i];
		size_t first = n;
		uint64_t *grown;

		if (!line_unit_rows(t, &t->units[i]) || !u->n_rows)
			continue;
		grown = reallocarray(all, n + u->n_rows, sizeof(*all));
		if (!grown)
			return -ENOMEM;
		all = grown;
		for (size_t k = 0; k + 1 < u->n_rows; k++)
			if (!u->rows[k].end && u->rows[k].line &&
			    u->rows[k + 1].addr > u->rows[k].addr)
				all[n++] = (uint64_t)u->rows[k].file << 32 | u->rows[k].line;
		n = first + sort_unique(all + first, n - first, sizeof(*all), compare_u64);
	}
	n = sort_unique(all, n, sizeof(*all), compare_u64);
	for (size_t i = 0; r == 0 && i < n; i++)
		r = cb(t->files[all[i] >> 32]->name, (uint32_t)all[i], arg);
	return r;
}

size_t line_table_similar_files(struct line_table *t, const char *file, const char **ret,
				size_t max)
{
	struct similar s = {.wanted = basename(file), .max = max < SIMILAR_MAX ? max : SIMILAR_MAX};

	for (size_t i = 0; i < t->n_units; i++)
		(void)line_unit_files(t, &t->units[i]);
	for (size_t i = 0; i < t->n_files; i++)
		(void)similar_offer(&s, basename(t->files[i]->name), t->files[i]->name);
	for (size_t i = 0; i < s.n; i++)
		ret[i] = s.best[i].item;
	return s.n;
}
