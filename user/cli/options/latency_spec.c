// SPDX-License-Identifier: BSD-2-Clause
#include "cli/options/latency_spec.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cli/options/run_option_rows.h"
#include "cli/options/run_options.h"
#include "shared/latency.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define FORM "NAME=BEGIN,END[,key=argN]"
#define NAME_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
#define KEY "key="
#define MAX_PARTS 3
#define SUFFIX " end" /* no name of a point has a space */

static bool starts_with(const char *text, const char *begin)
{
	return strncmp(text, begin, strlen(begin)) == 0;
}

/* Behind "operator" stand characters that are brackets or commas elsewhere. */
static size_t operator_symbol(const char *text, const char *at)
{
	static const char word[] = "operator";
	size_t n = sizeof(word) - 1;

	if ((size_t)(at - text) < n || strncmp(at - n, word, n) != 0)
		return 0;
	if (starts_with(at, "()") || starts_with(at, "[]"))
		return 2;
	return strspn(at, "<>-=,");
}

/* The comma that ends the part which begins at @from, or NULL. @text is where the whole begins. */
static const char *part_end(const char *text, const char *from)
{
	int depth = 0;

	for (const char *c = from; *c; c++) {
		size_t symbol = operator_symbol(text, c);

		/* Of "f operator,,g" the second one separates. */
		if (symbol > 1 && c[symbol - 1] == ',')
			symbol--;
		if (symbol) {
			c += symbol - 1;
			continue;
		}
		if (strchr("([{<", *c))
			depth++;
		else if (strchr(")]}", *c) || (*c == '>' && c > text && c[-1] != '-'))
			depth -= depth > 0;
		else if (*c == ',' && depth == 0)
			return c;
	}
	return NULL;
}

/* The parts between commas, the caller's; *ret_n of them, at most MAX_PARTS + 1. */
static void split(const char *text, const char *from, char *parts[MAX_PARTS + 1], size_t *ret_n)
{
	const char *end;

	for (*ret_n = 0; from && *ret_n <= MAX_PARTS; from = end ? end + 1 : NULL) {
		end = part_end(text, from);
		parts[*ret_n] = xstrndup(from, end ? (size_t)(end - from) : strlen(from));
		(*ret_n)++;
	}
}

/* "argN": what follows it, or NULL. */
static const char *parse_argument(const char *text, unsigned int *ret)
{
	if (!starts_with(text, "arg") || text[3] < '1' || text[3] > '0' + ABI_MAX_ARGUMENT)
		return NULL;
	*ret = (unsigned int)(text[3] - '0');
	return text + 4;
}

static int parse_key(const char *part, struct latency_spec *l, struct error *e)
{
	const char *rest = starts_with(part, KEY)
				   ? parse_argument(part + strlen(KEY), &l->arguments[0])
				   : NULL;

	l->arguments[1] = l->arguments[0];
	if (rest && *rest == ':')
		rest = parse_argument(rest + 1, &l->arguments[1]);
	if (rest && !*rest)
		return 0;
	return fail(e, EINVAL,
		    "'%s' is no key; allowed are key=argN and key=argN:argM, arg1 (a function's "
		    "first argument) to arg%d",
		    part, ABI_MAX_ARGUMENT);
}

/* @prefix of the message becomes "--latency NAME, BEGIN", or what else @what is. */
static void reword(struct error *e, const char *prefix, const char *name, const char *what)
{
	_cleanup_free_ char *rest = NULL;

	if (!e || !starts_with(e->text, prefix))
		return;
	rest = xstrdup(e->text + strlen(prefix));
	(void)fail(e, EINVAL, "--latency %s, %s%s", name, what, rest);
}

static int parse_end(const char *part, bool is_end, struct latency_spec *l, struct error *e)
{
	const char *what = is_end ? "END" : "BEGIN";
	struct point_spec *ret = &l->ends[is_end];
	bool keyed = l->arguments[0] > 0;
	int r;

	if (!*part || starts_with(part, KEY))
		return fail(e, EINVAL, "%s is missing; allowed is %s", what, FORM);
	if (starts_with(part, "sampled:"))
		return fail(e, EINVAL,
			    "%s cannot be sampled:, whose visits are not seen one by one; use "
			    "FILE:LINE or FUNCTION",
			    what);
	r = point_spec_parse(part, ret, e);
	if (r < 0) {
		reword(e, "--progress ", l->name, is_end ? "END " : "BEGIN ");
		return r;
	}
	if (strcmp(ret->name, part) != 0)
		return fail(e, EINVAL, "%s has a name of its own, '%s'; only the whole has one: %s",
			    what, ret->name, FORM);
	/* Elsewhere the registers hold what the code before left there. */
	if (keyed && ((ret->kind != POINT_FUNCTION && ret->kind != POINT_BINARY_FUNCTION) ||
		      strstr(part, "%return")))
		return fail(e, EINVAL,
			    "a key is an argument of a function, and '%s' is not the entry of one",
			    part);
	return 0;
}

static void set_name(struct point_spec *p, const char *name, const char *suffix)
{
	free(p->name);
	p->name = xasprintf("%s%s", name, suffix);
}

static int parse_parts(char *const parts[], size_t n, struct latency_spec *l, struct error *e)
{
	int r = 0;

	if (n > MAX_PARTS)
		return fail(e, EINVAL, "too many commas; allowed is %s", FORM);
	if (n == MAX_PARTS)
		r = parse_key(parts[2], l, e);
	if (r == 0)
		r = parse_end(parts[0], false, l, e);
	if (r == 0)
		r = parse_end(n > 1 ? parts[1] : "", true, l, e);
	if (r < 0)
		return r;
	if (strcmp(parts[0], parts[1]) == 0)
		return fail(e, EINVAL, "BEGIN and END are the same place");
	for (size_t i = 0; i < 2; i++)
		l->ends[i].exact = l->arguments[i] > 0;
	set_name(&l->ends[0], l->name, "");
	set_name(&l->ends[1], l->name, SUFFIX);
	return 0;
}

int latency_spec_parse(const char *text, struct latency_spec *ret, struct error *e)
{
	size_t name = strspn(text, NAME_CHARS), n = 0;
	char *parts[MAX_PARTS + 1] = {NULL};
	struct latency_spec l = {0};
	struct error why = {0};
	int r;

	if (text[name] != '=' || name == 0)
		return fail(e, EINVAL,
			    "--latency '%s': it begins with no name (letters, digits, '_', '.', "
			    "'-') and '='; allowed is %s",
			    text, FORM);
	l.name = xstrndup(text, name);
	split(text, text + name + 1, parts, &n);
	r = parse_parts(parts, n, &l, &why);
	for (size_t i = 0; i <= MAX_PARTS; i++)
		free(parts[i]);
	if (r == 0) {
		*ret = l;
		return 0;
	}
	latency_spec_free(&l);
	/* What is wrong with an end has been said of that. */
	return starts_with(why.text, "--latency ") || starts_with(why.text, "--progress: ")
		       ? fail(e, -r, "%s", why.text)
		       : fail(e, -r, "--latency '%s': %s", text, why.text);
}

void latency_spec_free(struct latency_spec *l)
{
	free(l->name);
	point_spec_free(&l->ends[0]);
	point_spec_free(&l->ends[1]);
	*l = (struct latency_spec){0};
}

void latency_reword(const char *name, struct error *e)
{
	for (int is_end = 0; is_end < 2; is_end++) {
		_cleanup_free_ char *prefix = xasprintf("-p %s%s:", name, is_end ? SUFFIX : "");

		reword(e, prefix, name, is_end ? "END:" : "BEGIN:");
	}
}

int option_add_latency(void *target, const struct option_row *row, const char *value,
		       struct error *e)
{
	_cleanup_(latency_spec_free) struct latency_spec spec = {0};
	struct run_options *o = target;
	int r;

	if (o->n_latencies == ABI_MAX_LATENCIES || o->n_points + 2 > ABI_MAX_POINTS)
		return fail(e, E2BIG,
			    "--%s '%s': allowed are at most %d latency points, and with their two "
			    "ends %d points in all",
			    row->name, value, ABI_MAX_LATENCIES, ABI_MAX_POINTS);
	r = latency_spec_parse(value, &spec, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < o->n_points; i++)
		if (strcmp(o->points[i].name, spec.name) == 0)
			return fail(e, EEXIST,
				    "--%s '%s': there is a point of this name; choose another",
				    row->name, value);
	xarray_add(o->latencies, o->n_latencies,
		   (struct run_latency){o->n_points, {spec.arguments[0], spec.arguments[1]}});
	for (size_t i = 0; i < 2; i++)
		run_options_add_point(o, &spec.ends[i]);
	return 0;
}
