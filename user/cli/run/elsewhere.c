// SPDX-License-Identifier: BSD-2-Clause
/* What samples executed that is not the code of the place that they belong to. */
#include "cli/run/run.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/sort.h"
#include "program/code/map.h"
#include "experiment/runner.h"
#include "experiment/tally.h"
#include "profile/merge.h"

#include <stdlib.h>

#define MOST_ELSEWHERE 64 /* records of a run: those with most samples */

/* Names are interned: equal ones are equal pointers. */
static int by_names(const void *pa, const void *pb)
{
	const struct profile_elsewhere *a = pa, *b = pb;

	if (a->location != b->location)
		return a->location < b->location ? -1 : 1;
	return a->object < b->object ? -1 : a->object > b->object;
}

static int larger_first(const void *pa, const void *pb)
{
	const struct profile_elsewhere *a = pa, *b = pb;

	return sort_order(b->count, a->count);
}

/* One for all that have equal names. */
static size_t add_up(struct profile_elsewhere *all, size_t n)
{
	size_t used = 0;

	qsort(all, n, sizeof(*all), by_names);
	for (size_t i = 0; i < n; i++) {
		if (used && by_names(&all[used - 1], &all[i]) == 0)
			profile_add_count(&all[used - 1].count, all[i].count);
		else
			all[used++] = all[i];
	}
	qsort(all, used, sizeof(*all), larger_first);
	return used;
}

static struct profile_elsewhere elsewhere(const char *location, const char *object, uint64_t count)
{
	return (struct profile_elsewhere){(char *)(uintptr_t)location,
					  (char *)(uintptr_t)(object ? object : "[anonymous]"),
					  count};
}

void run_take_elsewhere(struct run *r)
{
	_cleanup_free_ struct session_elsewhere *list = NULL;
	_cleanup_free_ struct backend_sample *places = NULL;
	_cleanup_free_ struct profile_elsewhere *all = NULL;
	size_t n_list = 0, n_places = 0, n = 0;
	const char *location;

	if (session_elsewhere(r->session, &list, &n_list) < 0)
		return;
	tally_places(runner_tally(r->runner), &places, &n_places);
	all = xcalloc(n_list + n_places, sizeof(*all));
	/* Samples in scope of which nothing says the line are of no location as a whole. */
	for (size_t i = 0; i < n_places; i++)
		if (code_map_name(r->code, places[i].addr, &location, NULL) < 0)
			all[n++] = elsewhere(NULL, code_map_object_of(r->code, places[i].addr),
					     places[i].count);
	for (size_t i = 0; i < n_list; i++) {
		location = NULL;
		if (list[i].code && list[i].object < code_map_count(r->code) &&
		    code_map_interprets(r->code, list[i].object))
			continue;
		if (!list[i].code || code_map_name(r->code, list[i].code, &location, NULL) >= 0)
			all[n++] = elsewhere(
				location, code_map_object_of(r->code, ABI_CODE(list[i].object, 0)),
				list[i].count);
	}
	n = add_up(all, n);
	profile_set_elsewhere(&r->profile, all, n < MOST_ELSEWHERE ? n : MOST_ELSEWHERE);
}
