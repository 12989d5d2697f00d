// SPDX-License-Identifier: BSD-2-Clause
#include "profile/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int by_location(const void *a, const void *b)
{
	const struct profile_samples *x = a, *y = b;

	return strcmp(x->location, y->location);
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* One of each location. */
static size_t add_up(struct profile_samples *s, size_t n)
{
	size_t used = 0;

	if (n)
		qsort(s, n, sizeof(*s), by_location);
	for (size_t i = 0; i < n; i++) {
		if (used && !strcmp(s[used - 1].location, s[i].location)) {
			s[used - 1].count = sum(s[used - 1].count, s[i].count);
			free(s[i].location);
		} else {
			s[used++] = s[i];
		}
	}
	return used;
}

static int grow(void *list, size_t n, size_t size)
{
	void *grown = reallocarray(*(void **)list, n ? n : 1, size);

	if (!grown)
		return -ENOMEM;
	*(void **)list = grown;
	return 0;
}

int profile_merge(struct profile *into, struct profile *from)
{
	if (grow(&into->runs, into->n_runs + from->n_runs, sizeof(*into->runs)) < 0 ||
	    grow(&into->experiments, into->n_experiments + from->n_experiments, sizeof(*into->experiments)) < 0 ||
	    grow(&into->samples, into->n_samples + from->n_samples, sizeof(*into->samples)) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < from->n_experiments; i++) {
		from->experiments[i].run += into->n_runs;
		into->experiments[into->n_experiments++] = from->experiments[i];
	}
	for (size_t i = 0; i < from->n_runs; i++)
		into->runs[into->n_runs++] = from->runs[i];
	for (size_t i = 0; i < from->n_samples; i++)
		into->samples[into->n_samples++] = from->samples[i];
	into->n_samples = add_up(into->samples, into->n_samples);
	into->runtime_ns = sum(into->runtime_ns, from->runtime_ns);
	profile_machine_add(&into->machine, &from->machine);
	into->bad_lines += from->bad_lines;
	free(from->runs);
	free(from->experiments);
	free(from->samples);
	*from = (struct profile){0};
	return 0;
}
