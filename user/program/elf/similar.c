// SPDX-License-Identifier: BSD-2-Clause
#include "program/elf/similar.h"

#include "base/suggest.h"
#include "program/elf/demangle.h"
#include "program/elf/symbols_private.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

#define MAX_COMPARED 128 /* of a name */

unsigned int similar_distance(const char *wanted, const char *name)
{
	size_t nw = strnlen(wanted, MAX_COMPARED), nn = strnlen(name, MAX_COMPARED);
	size_t gap = nw > nn ? nw - nn : nn - nw;
	unsigned int limit = nw < 3 ? 1 : 1 + (unsigned int)nw / 3;
	unsigned int d;

	if (!strcasecmp(wanted, name))
		return 0;
	/* A part of the name was written, or too much of it. */
	if ((nw >= 3 && strcasestr(name, wanted)) ||
	    (nn >= 3 && nw > nn && nn * 2 >= nw && strcasestr(wanted, name)))
		return 1 + (unsigned int)gap / 8;
	if (gap > limit)
		return UINT_MAX;
	d = (unsigned int)edit_distance(wanted, name);
	return d <= limit ? d : UINT_MAX;
}

bool similar_offer(struct similar *s, const char *name, const void *item)
{
	unsigned int d = similar_distance(s->wanted, name);
	size_t at = s->n;

	if (d == UINT_MAX || !s->max)
		return false;
	while (at > 0 && s->best[at - 1].distance > d)
		at--;
	if (at >= s->max || at >= SIMILAR_MAX)
		return false;
	if (s->n < s->max && s->n < SIMILAR_MAX)
		s->n++;
	memmove(&s->best[at + 1], &s->best[at], (s->n - at - 1) * sizeof(s->best[0]));
	s->best[at].item = item;
	s->best[at].distance = d;
	return true;
}

/* @readable: without its arguments, since nobody types them; and by its last part alone. */
static int offer_symbol(const void *name, const char *readable, void *arg)
{
	const char *last = readable ? strrchr(readable, ':') : NULL;
	struct similar *s = arg;

	for (size_t i = 0; i < s->n; i++)
		if (!strcmp(s->best[i].item, name))
			return 0;
	if (!demangle_is_mangled(name))
		(void)similar_offer(s, name, name);
	else if (readable && !similar_offer(s, readable, name) && last)
		(void)similar_offer(s, last + 1, name);
	return 0;
}

size_t elf_object_similar_functions(const struct elf_object *o, const char *name, char **ret,
				    size_t max)
{
	struct similar s = {.wanted = name, .max = max < SIMILAR_MAX ? max : SIMILAR_MAX};
	struct demangle_batch b = {.take = offer_symbol, .arg = &s};
	const struct symbol_index *x = o->symbols;
	int r = symbols_load(o);
	size_t n = 0;

	for (size_t i = 0; r == 0 && i < x->n; i++)
		r = demangle_add(&b, x->all[i].own, x->all[i].own);
	(void)demangle_end(&b);
	for (size_t i = 0; i < s.n; i++) {
		ret[n] = elf_demangle(s.best[i].item);
		if (ret[n])
			n++;
	}
	return n;
}
