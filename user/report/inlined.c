// SPDX-License-Identifier: BSD-2-Clause
#include "report/text.h"

#include "base/cleanup.h"
#include "base/memory.h"

#include <string.h>

/* Of one line. */
#define MAX_SHOWN 5

bool inlined_next(char **at, struct inlined_copy *ret)
{
	char *line, *word;

	/* A file may hold anything: what is no copy is passed over. */
	while ((line = strsep(at, "\n"))) {
		*ret = (struct inlined_copy){0};
		word = strsep(&line, "\t");
		if (!*word || strspn(word, "0123456789") != strlen(word))
			continue;
		ret->count = strtoull(word, NULL, 10);
		while (ret->n < INLINED_MAX_LINES && (word = strsep(&line, "\t")))
			if (*word)
				ret->lines[ret->n++] = word;
		if (ret->n)
			return true;
	}
	return false;
}

/* Code of other files is not in the directory that the tried lines share. */
static char *line_name(const struct report *r, const char *line)
{
	bool shares = r->directory.n && strncmp(line, r->directory.name, r->directory.n) == 0;

	return shares ? text_line_name(r, line, SIZE_MAX) : text_clean(r, line);
}

static void print_copy(const struct report *r, const struct inlined_copy *c, uint64_t of)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = xopen_memstream(&text, &size);
	double share = of && c->count < of ? 100 * (double)c->count / (double)of : 100;

	for (size_t i = 0; i < c->n; i++) {
		_cleanup_free_ char *name = line_name(r, c->lines[i]);

		(void)fprintf(f, "%s%s", i ? " in " : "", name);
	}
	xclose_memstream(f);
	(void)fprintf(r->out, "    %5.1f %%  ", share);
	paragraph_rest(r, 13, 13, "%s", text);
	free(text);
}

static void print_line(const struct report *r, const struct analysis_line *line, bool *headed)
{
	const struct profile_samples *s = profile_find_samples(r->p, line->selected);
	_cleanup_free_ char *text = s && s->inlined ? xstrdup(s->inlined) : NULL, *name = NULL;
	struct inlined_copy c;
	char *at = text;
	size_t shown = 0, more = 0;

	while (at && inlined_next(&at, &c)) {
		if (shown == MAX_SHOWN) {
			more++;
			continue;
		}
		if (!*headed)
			(void)fputs("Inlined code, with its share of the line's samples:\n",
				    r->out);
		*headed = true;
		if (!shown++) {
			name = line_name(r, line->selected);
			(void)fputs("  ", r->out);
			paragraph_rest(r, 2, 4, "%s", name);
		}
		print_copy(r, &c, s->count);
	}
	if (more)
		(void)fprintf(r->out, "    (%zu more)\n", more);
}

void inlined_print(const struct report *r, const struct analysis_point *point)
{
	bool headed = false;
	size_t n;
	_cleanup_free_ const struct analysis_line **lines = shown_lines(r, point, &n);

	for (size_t i = 0; i < n; i++)
		print_line(r, lines[i], &headed);
}
