// SPDX-License-Identifier: BSD-2-Clause
#include "cli/options/stop_spec.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/memory.h"
#include "cli/options/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct unit {
	const char *name; /* NULL: no further one */
	double factor;
};
static const struct unit plain[] = {{"", 1}, {NULL, 0}}, percent[] = {{"", 1}, {"%", 1}, {NULL, 0}},
			 times[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};

/* All conditions but those of latency points. */
static const struct {
	const char *head, *name; /* HEAD(NAME), or HEAD */
	enum stop_kind kind;
	const struct unit *units; /* of the bound */
} conditions[] = {
	{"load", "", STOP_LOAD, plain},	   {"restarts", "", STOP_RESTARTS, plain},
	{"psi", "cpu", STOP_PSI, percent}, {"psi", "memory", STOP_PSI, percent},
	{"psi", "io", STOP_PSI, percent},
};

void stop_spec_free(struct stop_spec *s)
{
	free(s->name);
	*s = (struct stop_spec){0};
}

/* A number, and behind it one of the units, which may be none. */
static bool number(const char *text, const struct unit *units, double *ret)
{
	static const struct option_row row = {.name = "stop-if"};
	size_t digits = strspn(text, "0123456789.");
	_cleanup_free_ char *head = xstrndup(text, digits);
	double v;

	if (option_real(&row, head, 0, 1e15, &v, NULL) < 0)
		return false;
	while (units->name && strcmp(text + digits, units->name) != 0)
		units++;
	*ret = v * units->factor;
	return units->name;
}

/* "p99.9": 0.999. */
static bool is_quantile(const char *text, double *ret)
{
	double share;

	*ret = -1;
	if (strcmp(text, "mean") == 0)
		return true;
	if (*text != 'p' || !number(text + 1, plain, &share) || share <= 0 || share >= 100)
		return false;
	*ret = share / 100;
	return true;
}

/* What stands in parentheses, which are cut off @head; NULL: nothing. */
static char *cut_name(char *head)
{
	char *open = strchr(head, '('), *close = strrchr(head, ')');

	if (!open || !close || close[1] || close == open + 1)
		return NULL;
	*open = *close = '\0';
	return open + 1;
}

static bool parse(char *head, const char *value, struct stop_spec *ret)
{
	char *name = cut_name(head);

	ret->name = name ? xstrdup(name) : NULL;
	for (size_t i = 0; i < sizeof(conditions) / sizeof(conditions[0]); i++)
		if (strcmp(head, conditions[i].head) == 0 &&
		    strcmp(name ? name : "", conditions[i].name) == 0) {
			ret->kind = conditions[i].kind;
			return number(value, conditions[i].units, &ret->bound);
		}
	ret->kind = STOP_LATENCY;
	return name && is_quantile(head, &ret->quantile) && number(value, times, &ret->bound);
}

int stop_spec_parse(const char *text, struct stop_spec *ret, struct error *e)
{
	const char *above = strchr(text, '>');
	_cleanup_free_ char *head = above ? xstrndup(text, (size_t)(above - text)) : NULL;
	struct stop_spec s = {.text = text};

	if (!head || !parse(head, above + 1, &s)) {
		stop_spec_free(&s);
		return fail(e, EINVAL,
			    "--stop-if '%s': allowed are 'p99(NAME)>50ms', 'mean(NAME)>2ms', "
			    "'load>8', 'psi(cpu)>20' (or memory, io), 'restarts>3'",
			    text);
	}
	*ret = s;
	return 0;
}
