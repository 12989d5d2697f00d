// SPDX-License-Identifier: BSD-2-Clause
#include "points/point_spec.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Longer than any symbol that a linker writes, and short enough for a message. */
#define POINT_TEXT_MAX 4096
#define SUPPORTED                                                                            \
	"FUNCTION, BINARY:FUNCTION[+OFFSET], FUNCTION%%return, FILE:LINE, usdt:, syscall:, " \
	"tracepoint: and sampled:"
#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
#define DIGITS "0123456789"

#define RETURN "%return"

/* The length of @text without "%return" behind it. */
static size_t without_return(const char *text)
{
	size_t n = strlen(text), m = strlen(RETURN);

	return n >= m && strcmp(text + n - m, RETURN) == 0 ? n - m : n;
}

static char *copy(const char *from, const char *end)
{
	return xstrndup(from, (size_t)(end - from));
}

/* Splits "NAME=WHERE". 0: *ret_where is WHERE, *ret_name_len the length of NAME or 0. */
static int split_name(const char *text, size_t *ret_name_len, const char **ret_where,
		      struct error *e)
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
		return fail(e, EINVAL, "the name before '=' is empty");
	if (strspn(text, NAME_CHARS) < n) {
		/* Before '=', these belong to a C++ or Rust function or to a path; anything else
		 * was meant as a name. */
		if (strcspn(text, ":<>()[]{}~*&+/%!^|,$@") < n)
			return 0;
		return fail(e, EINVAL, "a name has letters, digits, '_', '.' and '-' only");
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

static int parse_line(const char *where, const char *colon, struct point_spec *p, struct error *e)
{
	const char *left = colon;
	uint64_t line = strtoull(colon + 1, NULL, 10); /* of digits */

	if (line == 0 || line > UINT32_MAX)
		return fail(e, EINVAL, "lines are numbered from 1 to %u", UINT32_MAX);
	while (left > where && strchr(DIGITS, left[-1]))
		left--;
	if (left < colon && left > where + 1 && left[-1] == ':' && left[-2] != ':')
		return fail(e, EINVAL, "a column is not part of FILE:LINE; write %.*s",
			    (int)(colon - where), where);
	p->kind = POINT_FILE_LINE;
	p->line = (uint32_t)line;
	p->file = copy(where, colon);
	return 0;
}

/* FUNCTION[+OFFSET] or FUNCTION%return. A '+' without a digit behind it is an operator's. */
static int parse_function(const char *function, struct point_spec *p, struct error *e)
{
	size_t n = without_return(function);
	const char *plus = memrchr(function, '+', n);

	p->at_return = function[n];
	if (n == 0)
		return fail(e, EINVAL, "no function stands before %s", RETURN);
	if (plus && plus > function && plus[1] && strchr(DIGITS, plus[1])) {
		char *end;

		errno = 0;
		p->offset = strtoull(plus + 1, &end, strncasecmp(plus + 1, "0x", 2) == 0 ? 16 : 10);
		if (end != function + n || errno || p->offset > INT32_MAX)
			return fail(e, EINVAL,
				    "the offset behind '+' is a number of bytes, 12 or 0xc");
		if (p->at_return)
			return fail(e, EINVAL,
				    "only a whole function returns; leave out the offset or %s",
				    RETURN);
		n = (size_t)(plus - function);
	}
	p->function = xstrndup(function, n);
	return 0;
}

/* Probes and tracepoints: words of letters, digits and what their makers join them by. */
static bool is_word(const char *from, const char *end)
{
	return from < end && strspn(from, NAME_CHARS) >= (size_t)(end - from);
}

/* [BINARY:]PROVIDER:NAME */
static int parse_usdt(const char *where, struct point_spec *p, struct error *e)
{
	const char *end = where + strlen(where), *name = strrchr(where, ':'), *provider;

	provider = name ? memrchr(where, ':', (size_t)(name - where)) : NULL;
	if (!name || !is_word(name + 1, end) || !is_word(provider ? provider + 1 : where, name) ||
	    provider == where)
		return fail(
			e, EINVAL,
			"a USDT probe is written usdt:PROVIDER:NAME or usdt:BINARY:PROVIDER:NAME");
	p->kind = POINT_USDT;
	p->event = xstrdup(name + 1);
	p->provider = provider ? copy(provider + 1, name) : copy(where, name);
	p->binary = provider ? copy(where, provider) : NULL;
	return 0;
}

/* NAME[%return] */
static int parse_syscall(const char *where, struct point_spec *p, struct error *e)
{
	size_t n = without_return(where);

	if (!is_word(where, where + n))
		return fail(e, EINVAL, "a system call is written syscall:NAME or syscall:NAME%s",
			    RETURN);
	p->kind = POINT_SYSCALL;
	p->at_return = where[n];
	p->event = xstrndup(where, n);
	return 0;
}

/* CATEGORY:NAME */
static int parse_tracepoint(const char *where, struct point_spec *p, struct error *e)
{
	const char *colon = strchr(where, ':');

	if (!colon || !is_word(where, colon) || !is_word(colon + 1, where + strlen(where)))
		return fail(e, EINVAL, "a kernel tracepoint is written tracepoint:CATEGORY:NAME");
	p->kind = POINT_TRACEPOINT;
	p->provider = copy(where, colon);
	p->event = xstrdup(colon + 1);
	return 0;
}

/* Is it called as shared objects are: "libz.so", "libz.so.1"? No function of C is. */
static bool is_library(const char *name)
{
	for (const char *so = strstr(name, ".so"); so; so = strstr(so + 3, ".so"))
		if (!so[3] || so[3] == '.')
			return true;
	return false;
}

/* A library's function without a name is called after its place there, which reads like an offset:
 * "libz.so.1+0x2f40". */
static void library_of_place(struct point_spec *p)
{
	if (p->offset && is_library(p->function))
		p->binary = xstrdup(p->function);
}

/* FILE:LINE or [BINARY:]FUNCTION */
static int parse_sampled(const char *where, struct point_spec *p, struct error *e)
{
	const char *colon = last_separator(where), *right = colon ? colon + 1 : where;
	int r;

	if (!*right || colon == where ||
	    (strchr(DIGITS, *right) && (!colon || strspn(right, DIGITS) != strlen(right))))
		return fail(e, EINVAL,
			    "samples are counted of a line or a function: sampled:FILE:LINE, "
			    "sampled:[BINARY:]FUNCTION");
	if (strchr(DIGITS, *right)) {
		r = parse_line(where, colon, p, e);
		p->kind = POINT_SAMPLED_LINE;
		return r;
	}
	p->kind = POINT_SAMPLED_FUNCTION;
	r = parse_function(right, p, e);
	if (r == 0 && p->at_return)
		return fail(
			e, EINVAL,
			"samples are counted of a whole function; leave out what stands behind %s",
			p->function);
	if (r < 0)
		return r;
	if (colon)
		p->binary = copy(where, colon);
	else
		library_of_place(p);
	return 0;
}

static const struct {
	const char *prefix;
	int (*parse)(const char *where, struct point_spec *p, struct error *e);
} prefixed[] = {
	{"usdt:", parse_usdt},
	{"syscall:", parse_syscall},
	{"tracepoint:", parse_tracepoint},
	{"sampled:", parse_sampled},
};

static int parse_where(const char *where, struct point_spec *p, struct error *e)
{
	const char *colon, *right;
	int r;

	if (!*where)
		return fail(e, EINVAL, "no place is named; allowed are " SUPPORTED);
	for (size_t i = 0; i < sizeof(prefixed) / sizeof(prefixed[0]); i++)
		if (strncmp(where, prefixed[i].prefix, strlen(prefixed[i].prefix)) == 0)
			return prefixed[i].parse(where + strlen(prefixed[i].prefix), p, e);
	colon = last_separator(where);
	if (!colon) {
		p->kind = POINT_FUNCTION;
		r = parse_function(where, p, e);
		if (r == 0)
			library_of_place(p);
		if (p->binary)
			p->kind = POINT_BINARY_FUNCTION;
		return r;
	}
	right = colon + 1;
	if (colon == where || !*right)
		return fail(e, EINVAL, "nothing stands %s ':'; allowed are " SUPPORTED,
			    *right ? "before" : "behind");
	if (strspn(right, DIGITS) == strlen(right))
		return parse_line(where, colon, p, e);
	if (strspn(right, DIGITS) == without_return(right) && strchr(DIGITS, *right))
		return fail(e, EINVAL, "a line does not return; name the function: FUNCTION%s",
			    RETURN);
	if (strchr(DIGITS, *right))
		return fail(e, EINVAL, "'%s' is neither a line number nor a function", right);
	p->kind = POINT_BINARY_FUNCTION;
	p->binary = copy(where, colon);
	return parse_function(right, p, e);
}

static int parse(const char *text, struct point_spec *p, struct error *e)
{
	const char *where;
	size_t name_len;
	int r;

	/* Reports, and the formats of other tools, have a name within a line. */
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < 0x20 || *c == 0x7f)
			return fail(e, EINVAL, "control characters are not allowed");
	r = split_name(text, &name_len, &where, e);
	if (r == 0)
		r = parse_where(where, p, e);
	if (r == 0)
		p->name = name_len ? xstrndup(text, name_len) : xstrdup(where);
	return r;
}

int point_spec_parse(const char *text, struct point_spec *ret, struct error *e)
{
	_cleanup_(point_spec_free) struct point_spec p = {};
	struct error why = {};
	int r;

	if (strnlen(text, POINT_TEXT_MAX + 1) > POINT_TEXT_MAX)
		return fail(e, EINVAL, "--progress: the point is longer than %d bytes",
			    POINT_TEXT_MAX);
	r = parse(text, &p, &why);
	if (r < 0)
		return fail(e, -r, "--progress '%s': %s", text, why.text);
	*ret = p;
	p = (struct point_spec){};
	return 0;
}

void point_spec_free(struct point_spec *p)
{
	free(p->name);
	free(p->binary);
	free(p->function);
	free(p->file);
	free(p->provider);
	free(p->event);
	*p = (struct point_spec){};
}
