// SPDX-License-Identifier: BSD-2-Clause
#include "collect/shares/code.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "program/dwarf/lines.h"
#include "collect/shares/private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Images are opened in the order of their samples; what is called is seldom in one that has few. */
#define MOST_OPENED 100

struct finding {
	const char *name, *file; /* file: owned, of "FILE:LINE"; NULL: it is a function's name */
	uint32_t line;
	struct shares_code *out;
	size_t opened, without; /* images that have it, but no samples in it */
	char *similar; /* owned; a function that is called much like it, of the first image that has
			  one */
};

/* "FILE:LINE", if the end is a number. */
static void split(struct finding *f)
{
	const char *colon = strrchr(f->name, ':');
	char *end;
	unsigned long line = colon && colon[1] ? strtoul(colon + 1, &end, 10) : 0;

	if (!line || line > UINT32_MAX || *end)
		return;
	f->file = xstrndup(f->name, (size_t)(colon - f->name));
	f->line = (uint32_t)line;
}

/* Of several functions that have code of the line, the first. */
static int of_line(const struct finding *f, struct places *p, struct elf_symbol *ret)
{
	_cleanup_free_ uint64_t *all = NULL;
	struct line_table *t = places_lines(p);
	uint32_t nearest;
	size_t n = 0;

	if (!t || line_table_statements(t, f->file, f->line, &all, &n, &nearest) < 0 || !n)
		return -ENOENT;
	return elf_object_function_at(places_object(p), all[0], ret);
}

static int note_similar(struct finding *f, const struct elf_object *o)
{
	char *name;

	if (!f->similar && !f->file && elf_object_similar_functions(o, f->name, &name, 1) == 1)
		f->similar = name;
	return 0;
}

static void take_rows(struct shares_code *out, const struct counts *c)
{
	for (size_t i = 0; i < c->n_rows; i++) {
		uint64_t vaddr;

		if (elf_object_offset_to_vaddr(out->object, c->rows[i].offset, &vaddr) < 0 ||
		    vaddr - out->symbol.addr >= out->symbol.size)
			continue;
		xarray_add(out->all, out->n, (struct shares_place){vaddr, c->rows[i].count});
		out->samples += c->rows[i].count;
	}
}

static int take_image(struct counts *c, void *arg)
{
	struct finding *f = arg;
	struct shares_code *out = f->out;
	const char *why;
	int r;

	if (c->image.kind != COUNTS_FILE || f->opened == MOST_OPENED)
		return 0;
	f->opened++;
	if (!places_take(out->places, &c->image, &why))
		return 0;
	out->object = places_object(out->places);
	r = f->file ? of_line(f, out->places, &out->symbol)
		    : elf_object_find_function(out->object, f->name, &out->symbol);
	if (r < 0)
		return r == -ENOMEM ? r : note_similar(f, out->object);
	take_rows(out, c);
	if (!out->samples) {
		f->without++;
		return 0;
	}
	out->lines = places_lines(out->places);
	out->image = xstrdup(c->image.path);
	return 1;
}

static int say_none(const struct finding *f, struct error *e)
{
	if (f->without)
		return fail(e, ENOENT,
			    "there are no samples in '%s': a longer time has more (--since)",
			    f->name);
	if (f->similar)
		return fail(e, ENOENT,
			    "no image that was sampled has a function '%s'; did you mean '%s'?",
			    f->name, f->similar);
	return fail(e, ENOENT, "no image that was sampled and can be read has '%s'", f->name);
}

int shares_find_code(const struct shares_source *from, const struct shares_choice *c,
		     const char *name, struct shares_code *ret, struct error *e)
{
	_cleanup_(shares_free) struct shares totals = {0};
	_cleanup_(shares_code_free) struct shares_code out = {.places = places_open()};
	struct finding f = {.name = name, .out = &out};
	int r;

	split(&f);
	r = chosen_images(from, c, &totals, take_image, &f, e);
	if (r == 0 && !out.samples)
		r = say_none(&f, e);
	free((void *)(uintptr_t)f.file);
	free(f.similar);
	if (r < 0)
		return r;
	out.total = totals.samples;
	out.event = totals.event;
	totals.event = NULL;
	*ret = out;
	out = (struct shares_code){0};
	return 0;
}

void shares_code_free(struct shares_code *c)
{
	places_close(c->places);
	free(c->all);
	free(c->image);
	free(c->event);
	*c = (struct shares_code){0};
}
