// SPDX-License-Identifier: BSD-2-Clause
/* Where samples executed that belong to a place which had called that code, or to none. */
#include "report/text.h"

#include "base/cleanup.h"
#include "base/jit.h"
#include "base/memory.h"
#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

#define MOST_TOLD 3
#define LEAST_TOLD 0.05 /* of those in the first one */
#define MOST_OBJECTS 64 /* a file can name any number */
/* Of a line's samples, and of all, to be worth a sentence. */
#define LEAST_OF_LINE 0.5
#define LEAST_OF_ALL 0.1

struct object_count {
	const char *object;
	double count;
};

static int larger_first(const void *pa, const void *pb)
{
	const struct object_count *a = pa, *b = pb;

	return sort_order(b->count, a->count);
}

/* Objects that samples of @location (NULL: of none) executed, most samples first; the caller's. */
static struct object_count *objects_of(const struct profile *p, const char *location, size_t *ret_n)
{
	struct object_count *all = xcalloc(MOST_OBJECTS, sizeof(*all));
	size_t n = 0, k;

	for (size_t i = 0; i < p->n_elsewhere; i++) {
		const struct profile_elsewhere *e = &p->elsewhere[i];

		if (!e->location != !location || (location && strcmp(e->location, location) != 0))
			continue;
		for (k = 0; k < n && strcmp(all[k].object, e->object) != 0; k++)
			;
		if (k == MOST_OBJECTS)
			continue;
		all[k].object = e->object;
		all[k].count += (double)e->count;
		n += k == n;
	}
	qsort(all, n, sizeof(*all), larger_first);
	*ret_n = n;
	return all;
}

static const char *object_name(const char *object)
{
	if (!strcmp(object, "[kernel]"))
		return "the kernel";
	if (!strcmp(object, "[anonymous]"))
		return "memory of no file, such as code that is made at run time";
	return *object == '/' ? basename(object) : object;
}

char *elsewhere_text(const struct report *r, double of)
{
	size_t n, size;
	_cleanup_free_ struct object_count *all = objects_of(r->p, NULL, &n);
	char *text = NULL;
	FILE *f = n ? xopen_memstream(&text, &size) : NULL;

	for (size_t i = 0; i < n && i < MOST_TOLD && all[i].count >= LEAST_TOLD * all[0].count; i++)
		(void)fprintf(f, "%s%.0f %% in %s", i ? ", " : "", 100 * all[i].count / of,
			      object_name(all[i].object));
	if (f)
		xclose_memstream(f);
	return text;
}

/* "-b MAIN -b 'libz.so*'", whatever the library's version; NULL: it is no library. The caller's. */
static char *scope_with(const char *object)
{
	const char *name = basename(object), *so = strstr(name, ".so");

	if (*object != '/' || !so || strchr(name, '\''))
		return NULL;
	return xasprintf("-b MAIN -b '%.*s*'", (int)(so - name + 3), name);
}

void elsewhere_notes(const struct report *r, const struct analysis_point *point)
{
	size_t n_lines, n, told = 0;
	_cleanup_free_ const struct analysis_line **lines = shown_lines(r, point, &n_lines);
	double all = (double)(r->p->sampled + r->p->unattributed);

	for (size_t i = 0; i < n_lines && told < MOST_TOLD; i++) {
		const char *place = lines[i]->selected;
		_cleanup_free_ struct object_count *in = objects_of(r->p, place, &n);
		const struct profile_samples *s = profile_find_samples(r->p, place);
		_cleanup_free_ char *name = NULL, *scope = NULL;

		/* What runs JIT code is its runtime. */
		if (!n || !s || jit_is_name(place) || in[0].count < LEAST_OF_ALL * all ||
		    in[0].count < LEAST_OF_LINE * (double)s->count)
			continue;
		name = text_line_name(r, place, text_name_room(r));
		scope = scope_with(in[0].object);
		note(r, NOTE_PLAIN, "%.0f %% of the time of %s is in %s%s%s%s.",
		     100 * in[0].count / (double)s->count, name, object_name(in[0].object),
		     scope ? ": " : "", scope ? scope : "", scope ? " tries what is there" : "");
		told++;
	}
}
