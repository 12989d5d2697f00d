// SPDX-License-Identifier: BSD-2-Clause
#include "program/elf/perf_map.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/open_file.h"
#include "base/search.h"
#include "base/sort.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Above it no program has memory. */
#define MAX_ADDRESS (1ULL << 56)
#define NO_ENTRY UINT32_MAX
#define ANONYMOUS "(anonymous)"

struct line {
	uint64_t lo, hi;
	const char *name; /* in the text */
	uint32_t size;	  /* of it */
	uint32_t in_names;
};

static bool take_hex(const char **p, const char *end, uint64_t *ret)
{
	const char *at = *p, *start;
	uint64_t v = 0;

	if (end - at > 2 && at[0] == '0' && (at[1] | 0x20) == 'x')
		at += 2;
	for (start = at; at < end && *at != ' '; at++) {
		char c = (char)(*at | 0x20);
		unsigned int digit = c >= '0' && c <= '9'   ? (unsigned int)(c - '0')
				     : c >= 'a' && c <= 'f' ? (unsigned int)(c - 'a' + 10)
							    : 16;

		/* '|' makes digits of control characters. */
		if (digit > 15 || *at < '0' || v >> 60)
			return false;
		v = v << 4 | digit;
	}
	if (at == start)
		return false;
	while (at < end && *at == ' ')
		at++;
	*p = at;
	*ret = v;
	return true;
}

static bool begins(const char *p, size_t n, const char *with)
{
	return n >= strlen(with) && memcmp(p, with, strlen(with)) == 0;
}

/* V8 writes in front of a function how well it was compiled, "JS:*f" or "LazyCompile:~f", and .NET
 * behind it: "void f(int32)[Tier0]". By such names, one function would be several. */
static void without_tier(const char **name, size_t *n)
{
	static const char *const tags[] = {"JS:", "LazyCompile:", "Function:", "Script:", "Eval:"};
	const char *open;

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		size_t tag = strlen(tags[i]);

		if (begins(*name, *n, tags[i]) && *n > tag && strchr("*~^+", (*name)[tag])) {
			*name += tag + 1;
			*n -= tag + 1;
			return;
		}
	}
	open = *n && (*name)[*n - 1] == ']' ? memrchr(*name, '[', *n) : NULL;
	if (open && open > *name && open[-1] == ')')
		*n = (size_t)(open - *name);
}

static bool parse_line(const char *p, const char *end, struct line *ret)
{
	uint64_t size;
	size_t n;

	if (!take_hex(&p, end, &ret->lo) || !take_hex(&p, end, &size))
		return false;
	while (end > p && (end[-1] == ' ' || end[-1] == '\r'))
		end--;
	n = (size_t)(end - p);
	if (!n || !size || ret->lo >= MAX_ADDRESS || size > MAX_ADDRESS - ret->lo)
		return false;
	without_tier(&p, &n);
	ret->hi = ret->lo + size;
	ret->name = p;
	ret->size = n > PERF_MAP_MAX_NAME ? PERF_MAP_MAX_NAME : (uint32_t)n;
	/* Not within a character. */
	while (n > ret->size && ret->size && ((unsigned char)p[ret->size] & 0xc0) == 0x80)
		ret->size--;
	ret->in_names = NO_ENTRY;
	return true;
}

/* The last line first: whoever comes later gets what is left. */
static int read_lines(const char *text, size_t n, struct line **ret, size_t *ret_n)
{
	const char *end = n ? memrchr(text, '\n', n) : NULL, *begin;
	int r = 0;

	for (; r == 0 && end && *ret_n<PERF_MAP_MAX_LINES; end = begin> text ? begin - 1 : NULL) {
		struct line l;

		for (begin = end; begin > text && begin[-1] != '\n'; begin--)
			;
		if (parse_line(begin, end, &l))
			r = array_add(*ret, *ret_n, l);
	}
	return r;
}

/* Addresses at which a line begins or ends, and the line that each piece up to the next one
 * belongs to. */
struct pieces {
	uint64_t *at;
	uint32_t *owner; /* NO_ENTRY: none */
	uint32_t *next;	 /* the first piece from there on that has no owner, or a step to it */
	size_t n;
};

static void pieces_free(struct pieces *p)
{
	free(p->at);
	free(p->owner);
	free(p->next);
}

static uint32_t next_free(const struct pieces *p, uint32_t i)
{
	while (p->next[i] != i) {
		p->next[i] = p->next[p->next[i]];
		i = p->next[i];
	}
	return i;
}

static int cut(const struct line *lines, size_t n, struct pieces *p)
{
	p->at = malloc((2 * n + 1) * sizeof(*p->at));
	p->owner = malloc((2 * n + 1) * sizeof(*p->owner));
	p->next = malloc((2 * n + 1) * sizeof(*p->next));
	if (!p->at || !p->owner || !p->next)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		p->at[p->n++] = lines[i].lo;
		p->at[p->n++] = lines[i].hi;
	}
	p->n = sort_unique(p->at, p->n, sizeof(*p->at), compare_u64);
	for (uint32_t i = 0; i < p->n; i++) {
		p->owner[i] = NO_ENTRY;
		p->next[i] = i;
	}
	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = (uint32_t)search_front(p->n, j, p->at[j] < lines[k].lo);

		/* The last piece is none: it begins where the last line ends. */
		for (i = next_free(p, i); p->at[i] < lines[k].hi; i = next_free(p, i)) {
			p->owner[i] = k;
			p->next[i] = i + 1;
		}
	}
	return 0;
}

static void put_name(struct perf_map *m, struct line *l)
{
	char *to = m->names + m->names_size;

	if (l->in_names != NO_ENTRY)
		return;
	l->in_names = (uint32_t)m->names_size;
	/* V8 names a function without a name by its place alone. */
	if (!l->size || *l->name == ' ') {
		memcpy(to, ANONYMOUS, strlen(ANONYMOUS));
		to += strlen(ANONYMOUS);
	}
	for (uint32_t i = 0; i < l->size; i++) {
		unsigned char c = (unsigned char)l->name[i];

		*to++ = (char)(c < 0x20 || c == 0x7f ? '?' : c);
	}
	*to++ = '\0';
	m->names_size = (size_t)(to - m->names);
}

static int collect(const struct pieces *p, struct line *lines, size_t n, struct perf_map *m)
{
	uint32_t last = NO_ENTRY;
	size_t room = 1;

	for (size_t i = 0; i < n; i++)
		room += lines[i].size + sizeof(ANONYMOUS);
	m->all = malloc((p->n + 1) * sizeof(*m->all));
	m->names = malloc(room);
	if (!m->all || !m->names)
		return -ENOMEM;
	for (size_t i = 0; i < p->n; last = p->owner[i++]) {
		struct line *l = p->owner[i] == NO_ENTRY ? NULL : &lines[p->owner[i]];

		if (l && p->owner[i] == last) {
			m->all[m->n - 1].hi = p->at[i + 1];
			continue;
		}
		if (!l)
			continue;
		put_name(m, l);
		m->all[m->n++] = (struct perf_map_entry){
			p->at[i], p->at[i + 1], l->in_names,
			perf_map_hash(m->names + l->in_names, strlen(m->names + l->in_names))};
	}
	return 0;
}

int perf_map_parse(const char *text, size_t n, struct perf_map *ret)
{
	_cleanup_(pieces_free) struct pieces pieces = {0};
	_cleanup_free_ struct line *lines = NULL;
	struct perf_map m = {0};
	size_t n_lines = 0;
	int r = read_lines(text, n, &lines, &n_lines);

	if (r == 0)
		r = cut(lines, n_lines, &pieces);
	if (r == 0)
		r = collect(&pieces, lines, n_lines, &m);
	if (r < 0)
		perf_map_free(&m);
	else
		*ret = m;
	return r;
}

int perf_map_read_here(int fd, struct perf_map *ret)
{
	int64_t size = file_size(fd),
		from = size > PERF_MAP_MAX_BYTES ? size - PERF_MAP_MAX_BYTES : 0;
	_cleanup_free_ char *text = NULL;
	const char *begin, *line;
	size_t room, n = 0;
	ssize_t got = 1;

	if (size < 0)
		return (int)size;
	room = (size_t)(size - from);
	text = malloc(room + 1);
	if (!text)
		return -ENOMEM;
	for (; n < room && got > 0; n += got > 0 ? (size_t)got : 0)
		got = pread(fd, text + n, room - n, from + (int64_t)n);
	if (got < 0)
		return -errno;
	/* What was cut begins within a line. */
	begin = text;
	line = from ? memchr(text, '\n', n) : NULL;
	if (from)
		begin = line ? line + 1 : text + n;
	return perf_map_parse(begin, n - (size_t)(begin - text), ret);
}

void perf_map_free(struct perf_map *m)
{
	free(m->all);
	free(m->names);
	*m = (struct perf_map){0};
}

bool perf_map_is_sound(const struct perf_map *m)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct perf_map_entry *x = &m->all[i];

		if (x->lo >= x->hi || x->hi > MAX_ADDRESS || (i && x->lo < m->all[i - 1].hi) ||
		    x->name >= m->names_size || !m->names[x->name])
			return false;
	}
	return !m->names_size || !m->names[m->names_size - 1];
}

const struct perf_map_entry *perf_map_at(const struct perf_map *m, uint64_t addr)
{
	size_t n = search_front(m->n, i, m->all[i].lo <= addr);

	return n && addr < m->all[n - 1].hi ? &m->all[n - 1] : NULL;
}

/* FNV-1a. */
uint32_t perf_map_hash(const char *name, size_t n)
{
	uint32_t h = 2166136261U;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)name[i]) * 16777619U;
	return h;
}
