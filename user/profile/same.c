// SPDX-License-Identifier: BSD-2-Clause
#include "profile/same.h"

#include "base/error.h"
#include "base/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What all runs must have in common: a string of struct profile_startup. */
struct key {
	size_t offset;
	const char *unsaid; /* what a run has that does not say; NULL: nothing is known then */
	const char *words;
};

static const char *value(const struct key *k, const struct profile_startup *s)
{
	const char *x = *(char *const *)((const char *)s + k->offset);

	return x ? x : k->unsaid;
}

/* The first value of the runs' that is another one than @x (NULL is allowed); NULL: none. */
static const char *unlike(const struct profile *p, const struct key *k, const char *x)
{
	for (size_t i = 0; i < p->n_runs; i++) {
		const char *y = value(k, &p->runs[i]);

		if (y && (!x || strcmp(x, y) != 0))
			return y;
	}
	return NULL;
}

/* A value of @b's that is another one than one of @a's; NULL: none. */
static const char *other_value(const struct profile *a, const struct profile *b,
			       const struct key *k, const char **ret_a)
{
	const char *x = unlike(a, k, NULL), *y = x ? unlike(b, k, x) : NULL;

	if (x && !y && unlike(b, k, NULL)) {
		/* All of @b's are @x. */
		x = unlike(a, k, x);
		y = x ? unlike(b, k, NULL) : NULL;
	}
	*ret_a = x;
	return y;
}

static int by_name(const void *a, const void *b)
{
	const struct profile_point *x = *(const struct profile_point *const *)a,
				   *y = *(const struct profile_point *const *)b;

	return x->kind != y->kind ? (x->kind > y->kind) - (x->kind < y->kind)
				  : strcmp(x->name, y->name);
}

/* Does experiment @i have the points of the one before it, as all of a run do? */
static bool as_before(const struct profile *p, size_t i)
{
	const struct profile_run_experiment *x = &p->experiments[i], *before = x - 1;

	if (!i || x->n_points != before->n_points)
		return false;
	for (size_t j = 0; j < x->n_points; j++) {
		const struct profile_point *a = &x->points[j], *b = &before->points[j];

		if (by_name(&a, &b) != 0)
			return false;
	}
	return true;
}

/* All points of all experiments, in order. */
static const struct profile_point **sorted_points(const struct profile *p, size_t *ret_n)
{
	const struct profile_point **all;
	size_t n = 0;

	for (size_t i = 0; i < p->n_experiments; i++)
		n += as_before(p, i) ? 0 : p->experiments[i].n_points;
	all = (const struct profile_point **)xcalloc(n, sizeof(*all));
	*ret_n = n;
	n = 0;
	for (size_t i = 0; i < p->n_experiments; i++)
		for (size_t j = 0, end = as_before(p, i) ? 0 : p->experiments[i].n_points; j < end;
		     j++)
			all[n++] = &p->experiments[i].points[j];
	qsort((void *)all, n, sizeof(*all), by_name);
	return all;
}

/* A point of @a's that @b does not have; NULL: none. All experiments of a run have the same points,
 * so those of one tell. */
static const struct profile_point *lacking(const struct profile *a, const struct profile *b)
{
	size_t n;
	const struct profile_point **all = sorted_points(b, &n), *point = NULL;

	for (size_t i = 0; i < a->n_experiments && !point; i++) {
		if (i && a->experiments[i].run == a->experiments[i - 1].run)
			continue;
		for (size_t j = 0; j < a->experiments[i].n_points && !point; j++) {
			const struct profile_point *wanted = &a->experiments[i].points[j];

			if (!bsearch(&wanted, (const void *)all, n, sizeof(*all), by_name))
				point = wanted;
		}
	}
	free((void *)all);
	return point;
}

int profile_check_same(const struct profile *a, const char *a_name, const struct profile *b,
		       const char *b_name, struct error *e)
{
	static const struct key keys[] = {
		{offsetof(struct profile_startup, build), NULL,
		 "of another build of the program (build id"},
		{offsetof(struct profile_startup, granularity), NULL,
		 "of another granularity (it is"},
		{offsetof(struct profile_startup, attribution), "first",
		 "of another attribution (it is"},
	};
	const struct profile_point *point;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		const char *x = NULL, *y = other_value(a, b, &keys[i], &x);

		if (y)
			return fail(e, EINVAL, "'%s' is %s %s) than '%s' (%s)", b_name,
				    keys[i].words, y, a_name, x);
	}
	if (!a->n_experiments || !b->n_experiments)
		return 0;
	point = lacking(a, b);
	if (point)
		return fail(e, EINVAL, "'%s' has no point '%s', which '%s' has", b_name,
			    point->name, a_name);
	point = lacking(b, a);
	if (point)
		return fail(e, EINVAL, "'%s' has no point '%s', which '%s' has", a_name,
			    point->name, b_name);
	return 0;
}
