// SPDX-License-Identifier: BSD-2-Clause
#include "options/stop_spec.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/memory.h"
#include "options/options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const resources[] = {"cpu", "memory", "io"};

void stop_spec_free(struct stop_spec *s)
{
	free(s->name);
	*s = (struct stop_spec){0};
}

/* A number, and behind it one of the units, which may be none. */
static bool number(const char *text, const char *const *units, const double *factors, size_t n,
		   double *ret)
{
	static const struct option_row row = {.name = "stop-if"};
	size_t digits = strspn(text, "0123456789.");
	_cleanup_free_ char *head = xstrndup(text, digits);
	double v;

	if (option_real(&row, head, 0, 1e15, &v, NULL) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		if (strcmp(text + digits, units[i]) == 0) {
			*ret = v * factors[i];
			return true;
		}
	return false;
}

static bool is_plain(const char *text, double *ret)
{
	static const char *const units[] = {""};
	static const double factors[] = {1};

	return number(text, units, factors, 1, ret);
}

static bool is_percent(const char *text, double *ret)
{
	static const char *const units[] = {"", "%"};
	static const double factors[] = {1, 1};

	return number(text, units, factors, 2, ret);
}

static bool is_time(const char *text, double *ret)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	static const double factors[] = {1, 1e3, 1e6, 1e9};

	return number(text, units, factors, 4, ret);
}

/* "p99.9": 0.999. */
static bool is_quantile(const char *text, double *ret)
{
	double percent;

	*ret = -1;
	if (strcmp(text, "mean") == 0)
		return true;
	if (*text != 'p' || !is_plain(text + 1, &percent) || percent <= 0 || percent >= 100)
		return false;
	*ret = percent / 100;
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

	if (!name && strcmp(head, "load") == 0) {
		ret->kind = STOP_LOAD;
		return is_plain(value, &ret->bound);
	}
	if (!name && strcmp(head, "restarts") == 0) {
		ret->kind = STOP_RESTARTS;
		return is_plain(value, &ret->bound);
	}
	if (!name)
		return false;
	ret->name = xstrdup(name);
	if (strcmp(head, "psi") == 0) {
		ret->kind = STOP_PSI;
		for (size_t i = 0; i < sizeof(resources) / sizeof(resources[0]); i++)
			if (strcmp(name, resources[i]) == 0)
				return is_percent(value, &ret->bound);
		return false;
	}
	ret->kind = STOP_LATENCY;
	return is_quantile(head, &ret->quantile) && is_time(value, &ret->bound);
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
