// SPDX-License-Identifier: BSD-2-Clause
#include "profile/source_text.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/open_file.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define AROUND 5 /* lines before and after */
#define MOST_COLUMNS 200

/* A file's text, while lines of it are taken: locations are in order, so that those of one file
 * come together. */
struct text {
	char *name; /* of the file; NULL: none yet */
	char *bytes;
	size_t size;
};

static void text_free(struct text *t)
{
	free(t->name);
	free(t->bytes);
}

unsigned long source_line_number(const char *location, size_t *ret_file)
{
	const char *colon = strrchr(location, ':');
	const char *digits = colon ? colon + 1 : "";

	*ret_file = colon ? (size_t)(colon - location) : 0;
	if (!*digits || strlen(digits) > 9 || strspn(digits, "0123456789") != strlen(digits))
		return 0;
	return strtoul(digits, NULL, 10);
}

char *source_read(int fd, size_t *ret)
{
	char *bytes;
	struct stat st;
	size_t n = 0;

	if (fstat(fd, &st) || st.st_size <= 0 || (unsigned long)st.st_size > FILE_TEXT_MAX)
		return NULL;
	bytes = xcalloc(1, (size_t)st.st_size + 1);
	for (ssize_t got; n < (size_t)st.st_size; n += (size_t)got) {
		got = read(fd, bytes + n, (size_t)st.st_size - n);
		if (got <= 0)
			break;
	}
	*ret = n;
	return bytes;
}

static void load(struct text *t, const char *name, source_opener open, const struct file_rights *as)
{
	_cleanup_close_ int fd = -1;

	if (t->name && !strcmp(t->name, name))
		return;
	text_free(t);
	*t = (struct text){.name = xstrdup(name)};
	/* One that is relative would be looked for wherever we are. */
	fd = *name == '/' ? open(name, as) : -1;
	if (fd >= 0)
		t->bytes = source_read(fd, &t->size);
}

/* The lines around @line, each as "NUMBER\tTEXT\n". NULL: the file is not as long. */
static char *excerpt(const struct text *t, unsigned long line)
{
	const char *at = t->bytes, *end = t->bytes + t->size;
	char *text = NULL, *ret;
	size_t size;
	bool seen = false;
	FILE *f = xopen_memstream(&text, &size);

	for (unsigned long n = 1; at < end && n <= line + AROUND; n++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((stop ? stop : end) - at);

		if (length && at[length - 1] == '\r')
			length--;
		if (n + AROUND >= line) {
			(void)fprintf(f, "%lu\t%.*s\n", n,
				      (int)(length > MOST_COLUMNS ? MOST_COLUMNS : length), at);
			seen |= n == line;
		}
		at = stop ? stop + 1 : end;
	}
	xclose_memstream(f);
	ret = seen ? utf8_clean(text, PROFILE_MAX_SOURCE) : NULL;
	free(text);
	return ret;
}

static void mark(const struct profile *p, const char *location, bool *marks)
{
	const struct profile_samples *s = profile_find_samples(p, location);

	if (s)
		marks[s - p->samples] = true;
}

/* Those that have a slope. */
static void mark_places(const struct profile *p, const struct profile_slopes *s, bool *marks)
{
	_cleanup_free_ char *text = xstrdup(s->places);

	for (char *next = text, *line; (line = strsep(&next, "\n"));) {
		char *name = strchr(line, '\t');

		if (name && *line != '0')
			mark(p, name + 1, marks);
	}
}

void profile_take_sources(struct profile *p, source_opener open, const struct file_rights *as)
{
	_cleanup_free_ bool *tried = xcalloc(p->n_samples, sizeof(*tried));
	_cleanup_(text_free) struct text t = {0};

	for (size_t i = 0; i < p->n_experiments; i++)
		mark(p, p->experiments[i].x.selected, tried);
	for (size_t i = 0; i < p->n_slopes; i++)
		mark_places(p, &p->slopes[i], tried);
	for (size_t i = 0; i < p->n_samples; i++) {
		struct profile_samples *s = &p->samples[i];
		size_t length;
		unsigned long line = source_line_number(s->location, &length);
		_cleanup_free_ char *name = NULL;

		if (!line || !tried[i] || s->source)
			continue;
		name = xstrndup(s->location, length);
		load(&t, name, open, as);
		if (t.bytes)
			s->source = excerpt(&t, line);
	}
}

bool source_next(const char **at, struct source_line *ret)
{
	/* A file may hold anything: what is no line is passed over. */
	while (*at && **at) {
		size_t length = strcspn(*at, "\n"), digits = strspn(*at, "0123456789");
		const char *line = *at;

		*at += length + (line[length] == '\n');
		if (!digits || digits > 9 || digits >= length || line[digits] != '\t')
			continue;
		*ret = (struct source_line){.number = strtoul(line, NULL, 10),
					    .text = line + digits + 1,
					    .length = length - digits - 1};
		return true;
	}
	return false;
}
