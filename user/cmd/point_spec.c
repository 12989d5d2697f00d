// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/point_spec.h"

#include "base/error.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Longer than any symbol that a linker writes, and short enough for a message. */
#define POINT_TEXT_MAX 4096
#define SUPPORTED "FUNCTION, BINARY:FUNCTION[+OFFSET] or FILE:LINE"
#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
#define DIGITS "0123456789"

/* Forms of the grammar that need another kind of probe. */
static const struct {
	const char *prefix, *what;
} other_kinds[] = {
	{"usdt:", "USDT probes"},
	{"syscall:", "system calls"},
	{"tracepoint:", "kernel tracepoints"},
	{"sampled:", "sampled lines"},
};

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

/* Splits "NAME=WHERE". 0: *ret_where is WHERE, *ret_name_len the length of NAME or 0. */
static int split_name(const char *text, size_t *ret_name_len, const char **ret_where, struct error *e)
{
	const char *equals = strchr(text, '=');
	size_t n;

	*ret_name_len = 0;
	*ret_where = text;
	/* "operator=" and "operator==(A, B)" are C++ functions. */
	if (!equals || (equals - text == 8 && strncmp(text, "operator", 8) == 0))
		return 0;
	n = (size_t)(equals - text);
	if (n == 0)
		return fail(e, EINVAL, "--progress '%s': the name before '=' is empty", text);
	if (strspn(text, NAME_CHARS) < n) {
		/* Before '=', these belong to a C++ or Rust function or to a path; anything else was meant as a name. */
		if (strcspn(text, ":<>()[]{}~*&+/%!^|,$@") < n)
			return 0;
		return fail(e, EINVAL, "--progress '%s': a name has letters, digits, '_', '.' and '-' only", text);
	}
	*ret_name_len = n;
	*ret_where = equals + 1;
	return 0;
}

/* The last ':' that is neither part of "::" nor of an ABI tag ("f[abi:cxx11]"). */
static const char *last_separator(const char *where)
{
	for (const char *c = where + strlen(where); c-- > where;) {
		if (*c != ':' || c[1] == ':' || (c > where && c[-1] == ':'))
			continue;
		if (c - where >= 4 && strncmp(c - 4, "[abi", 4) == 0)
			continue;
		return c;
	}
	return NULL;
}

static int parse_line(const char *text, const char *where, const char *colon, struct point_spec *p, struct error *e)
{
	const char *left = colon;
	uint64_t line = 0;

	for (const char *c = colon + 1; *c && line <= UINT32_MAX; c++)
		line = line * 10 + (uint64_t)(*c - '0');
	if (line == 0 || line > UINT32_MAX)
		return fail(e, EINVAL, "--progress '%s': lines are numbered from 1 to %u", text, UINT32_MAX);
	while (left > where && strchr(DIGITS, left[-1]))
		left--;
	if (left < colon && left > where + 1 && left[-1] == ':' && left[-2] != ':')
		return fail(e, EINVAL, "--progress '%s': a column is not part of FILE:LINE; write %.*s", text,
			    (int)(colon - where), where);
	p->kind = POINT_FILE_LINE;
	p->line = (uint32_t)line;
	p->file = strndup(where, (size_t)(colon - where));
	return p->file ? 0 : fail(e, ENOMEM, "out of memory");
}

/* FUNCTION[+OFFSET]. A '+' without a digit behind it is an operator's. */
static int parse_function(const char *text, const char *function, struct point_spec *p, struct error *e)
{
	const char *plus = strrchr(function, '+');
	size_t n = strlen(function);

	if (plus && plus > function && plus[1] && strchr(DIGITS, plus[1])) {
		char *end;

		errno = 0;
		p->offset = strtoull(plus + 1, &end, strncasecmp(plus + 1, "0x", 2) == 0 ? 16 : 10);
		if (*end || errno || p->offset > INT32_MAX)
			return fail(e, EINVAL, "--progress '%s': the offset behind '+' is a number of bytes, 12 or 0xc", text);
		n = (size_t)(plus - function);
	}
	p->function = strndup(function, n);
	return p->function ? 0 : fail(e, ENOMEM, "out of memory");
}

static int parse_where(const char *text, const char *where, struct point_spec *p, struct error *e)
{
	const char *colon, *right;

	if (!*where)
		return fail(e, EINVAL, "--progress '%s': no place is named; allowed are " SUPPORTED, text);
	for (size_t i = 0; i < sizeof(other_kinds) / sizeof(other_kinds[0]); i++)
		if (strncmp(where, other_kinds[i].prefix, strlen(other_kinds[i].prefix)) == 0)
			return fail(e, EOPNOTSUPP, "--progress '%s': %s are not supported; allowed are " SUPPORTED, text,
				    other_kinds[i].what);
	if (ends_with(where, "%return"))
		return fail(e, EOPNOTSUPP, "--progress '%s': returns of functions are not supported; allowed are " SUPPORTED, text);
	colon = last_separator(where);
	if (!colon) {
		p->kind = POINT_FUNCTION;
		return parse_function(text, where, p, e);
	}
	right = colon + 1;
	if (colon == where || !*right)
		return fail(e, EINVAL, "--progress '%s': nothing stands %s ':'; allowed are " SUPPORTED, text,
			    *right ? "before" : "behind");
	if (strspn(right, DIGITS) == strlen(right))
		return parse_line(text, where, colon, p, e);
	if (strchr(DIGITS, *right))
		return fail(e, EINVAL, "--progress '%s': '%s' is neither a line number nor a function", text, right);
	p->kind = POINT_BINARY_FUNCTION;
	p->binary = strndup(where, (size_t)(colon - where));
	if (!p->binary)
		return fail(e, ENOMEM, "out of memory");
	return parse_function(text, right, p, e);
}

int point_spec_parse(const char *text, struct point_spec *ret, struct error *e)
{
	struct point_spec p = {};
	const char *where;
	size_t name_len;
	int r;

	if (strnlen(text, POINT_TEXT_MAX + 1) > POINT_TEXT_MAX)
		return fail(e, EINVAL, "--progress: the point is longer than %d bytes", POINT_TEXT_MAX);
	/* The name goes into files whose text form has no escaping. */
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return fail(e, EINVAL, "--progress '%s': control characters are not allowed", text);
	r = split_name(text, &name_len, &where, e);
	if (r == 0)
		r = parse_where(text, where, &p, e);
	if (r == 0) {
		p.name = name_len ? strndup(text, name_len) : strdup(where);
		if (!p.name)
			r = fail(e, ENOMEM, "out of memory");
	}
	if (r < 0) {
		point_spec_free(&p);
		return r;
	}
	*ret = p;
	return 0;
}

void point_spec_free(struct point_spec *p)
{
	free(p->name);
	free(p->binary);
	free(p->function);
	free(p->file);
	*p = (struct point_spec){};
}
