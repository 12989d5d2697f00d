// SPDX-License-Identifier: BSD-2-Clause
#include "profile/same.h"

#include "base/error.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

typedef const char *(*startup_value)(const struct profile_startup *s);

static const char *build(const struct profile_startup *s)
{
	return s->build;
}

static const char *granularity(const struct profile_startup *s)
{
	return s->granularity;
}

static const char *attribution(const struct profile_startup *s)
{
	return s->attribution ? s->attribution : "first";
}

/* The first value of @b's that is another one than one of @a's; NULL: none. */
static const char *other_value(const struct profile *a, const struct profile *b, startup_value value, const char **ret_a)
{
	for (size_t i = 0; i < a->n_runs; i++)
		for (size_t j = 0; j < b->n_runs; j++) {
			const char *x = value(&a->runs[i]), *y = value(&b->runs[j]);

			if (x && y && strcmp(x, y) != 0) {
				*ret_a = x;
				return y;
			}
		}
	return NULL;
}

static bool has_point(const struct profile *p, const struct profile_point *point)
{
	for (size_t i = 0; i < p->n_experiments; i++)
		for (size_t j = 0; j < p->experiments[i].n_points; j++)
			if (p->experiments[i].points[j].kind == point->kind && !strcmp(p->experiments[i].points[j].name, point->name))
				return true;
	return false;
}

/* A point of @a's that @b does not have; NULL: none. All experiments of a run have the same points, so those of one tell, and runs are few. */
static const struct profile_point *lacking(const struct profile *a, const struct profile *b)
{
	for (size_t i = 0; i < a->n_experiments; i++) {
		if (i && a->experiments[i].run == a->experiments[i - 1].run)
			continue;
		for (size_t j = 0; j < a->experiments[i].n_points; j++)
			if (!has_point(b, &a->experiments[i].points[j]))
				return &a->experiments[i].points[j];
	}
	return NULL;
}

int profile_check_same(const struct profile *a, const char *a_name, const struct profile *b, const char *b_name, struct error *e)
{
	static const struct {
		startup_value value;
		const char *words;
	} keys[] = {{build, "of another build of the program (build id"},
		    {granularity, "of another granularity (it is"},
		    {attribution, "of another attribution (it is"}};
	const struct profile_point *point;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *x = NULL, *y = other_value(a, b, keys[i].value, &x);

		if (y)
			return fail(e, EINVAL, "'%s' is %s %s) than '%s' (%s)", b_name, keys[i].words, y, a_name, x);
	}
	if (!a->n_experiments || !b->n_experiments)
		return 0;
	point = lacking(a, b);
	if (point)
		return fail(e, EINVAL, "'%s' has no point '%s', which '%s' has", b_name, point->name, a_name);
	point = lacking(b, a);
	if (point)
		return fail(e, EINVAL, "'%s' has no point '%s', which '%s' has", a_name, point->name, b_name);
	return 0;
}
