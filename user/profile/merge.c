// SPDX-License-Identifier: BSD-2-Clause
#include "profile/merge.h"

#include "base/memory.h"
#include "base/sort.h"
#include "profile/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void profile_add_count(uint64_t *to, uint64_t more)
{
	if (__builtin_add_overflow(*to, more, to))
		*to = UINT64_MAX;
}

static int by_location(const void *a, const void *b)
{
	const struct profile_samples *x = a, *y = b;

	return strcmp(x->location, y->location);
}

static void take_missing(char **to, char **from)
{
	if (*to)
		return;
	*to = *from;
	*from = NULL;
}

void profile_add_up_samples(struct profile *p)
{
	struct profile_samples *s = p->samples;
	size_t out = 0;

	if (p->n_samples == 0)
		return;
	qsort(s, p->n_samples, sizeof(*s), by_location);
	for (size_t i = 1; i < p->n_samples; i++) {
		if (strcmp(s[i].location, s[out].location) == 0) {
			/* Of two runs' copies, those of the one with more samples. */
			if (s[i].inlined && (!s[out].inlined || s[i].count > s[out].count)) {
				char *other = s[out].inlined;

				s[out].inlined = s[i].inlined;
				s[i].inlined = other;
			}
			profile_add_count(&s[out].count, s[i].count);
			/* Of one run only it would be too little. */
			if (s[out].ns && s[i].ns)
				profile_add_count(&s[out].ns, s[i].ns);
			else
				s[out].ns = 0;
			take_missing(&s[out].source, &s[i].source);
			take_missing(&s[out].function, &s[i].function);
			take_missing(&s[out].object, &s[i].object);
			fields_free(&samples_fields, &s[i]);
		} else {
			s[++out] = s[i];
		}
	}
	p->n_samples = out + 1;
}

static int most_first(const void *a, const void *b)
{
	const struct profile_samples *const *x = a, *const *y = b;

	return sort_order((*y)->count, (*x)->count) ?: strcmp((*x)->location, (*y)->location);
}

const struct profile_samples **profile_samples_sorted(const struct profile *p)
{
	const struct profile_samples **all = xcalloc(p->n_samples + 1, sizeof(*all));

	for (size_t i = 0; i < p->n_samples; i++)
		all[i] = &p->samples[i];
	sort_array(all, p->n_samples, most_first);
	return all;
}

const struct profile_samples *profile_find_samples(const struct profile *p, const char *location)
{
	struct profile_samples key = {.location = (char *)location};

	return p->n_samples ? bsearch(&key, p->samples, p->n_samples, sizeof(key), by_location)
			    : NULL;
}

/* The @more elements of @from, which is freed, come after the *n that there are. */
static void move(void *list_ptr, size_t *n, void *from, size_t more, size_t size)
{
	void **list = list_ptr;

	if (more) {
		*list = xreallocarray(*list, *n + more, size);
		memcpy((char *)*list + *n * size, from, more * size);
		*n += more;
	}
	free(from);
}

void profile_clear_addresses(struct profile *p)
{
	fields_free_all(&addresses_fields, &p->addresses, &p->n_addresses, sizeof(*p->addresses));
}

void profile_clear_elsewhere(struct profile *p)
{
	fields_free_all(&elsewhere_fields, &p->elsewhere, &p->n_elsewhere, sizeof(*p->elsewhere));
}

void profile_set_elsewhere(struct profile *p, const struct profile_elsewhere *all, size_t n)
{
	profile_clear_elsewhere(p);
	p->elsewhere = xmemdup(all, n, sizeof(*all));
	p->n_elsewhere = n;
	for (size_t i = 0; i < n; i++) {
		p->elsewhere[i].location = all[i].location ? xstrdup(all[i].location) : NULL;
		p->elsewhere[i].object = xstrdup(all[i].object);
	}
}

void profile_clear_samples(struct profile *p)
{
	fields_free_all(&samples_fields, &p->samples, &p->n_samples, sizeof(*p->samples));
}

void profile_set_samples(struct profile *p, const struct profile_samples *s, size_t n)
{
	profile_clear_samples(p);
	p->samples = xmemdup(s, n, sizeof(*s));
	p->n_samples = n;
	for (size_t i = 0; i < n; i++) {
		struct profile_samples *to = &p->samples[i];

		to->location = xstrdup(s[i].location);
		to->inlined = s[i].inlined ? xstrdup(s[i].inlined) : NULL;
		to->source = s[i].source ? xstrdup(s[i].source) : NULL;
		to->function = s[i].function ? xstrdup(s[i].function) : NULL;
		to->object = s[i].object ? xstrdup(s[i].object) : NULL;
	}
	profile_add_up_samples(p);
}

static void add_machine(struct profile_machine *m, const struct profile_machine *more)
{
	profile_add_count(&m->own_ns, more->own_ns);
	profile_add_count(&m->own_of_ns, more->own_of_ns);
	profile_add_count(&m->kernel_ns, more->kernel_ns);
	profile_add_count(&m->kernel_of_ns, more->kernel_of_ns);
	profile_add_count(&m->scope_ns, more->scope_ns);
	profile_add_count(&m->foreign_ns, more->foreign_ns);
	profile_add_count(&m->scope_of_ns, more->scope_of_ns);
}

void profile_machine_add_run(struct profile_machine *m, const struct profile_runtime *t)
{
	struct profile_machine run = {0};

	if (t->own_cpu_ns)
		run.own_ns = t->own_cpu_ns, run.own_of_ns = t->machine_ns;
	if (t->kernel_cpu_ns)
		run.kernel_ns = t->kernel_cpu_ns, run.kernel_of_ns = t->machine_ns;
	if (t->scope_cpu_ns || t->foreign_cpu_ns)
		run.scope_ns = t->scope_cpu_ns, run.foreign_ns = t->foreign_cpu_ns,
		run.scope_of_ns = t->machine_ns;
	add_machine(m, &run);
}

void profile_run_ended(struct profile_startup *run, const struct profile_runtime *t)
{
	run->run_ns = t->run_ns;
	run->user_ns = t->user_ns;
	run->system_ns = t->system_ns;
}

double profile_machine_share(uint64_t ns, uint64_t of_ns)
{
	if (!of_ns)
		return NAN;
	return ns < of_ns ? (double)ns / (double)of_ns : 1;
}

void profile_append(struct profile *into, struct profile *from)
{
	for (size_t i = 0; i < from->n_experiments; i++)
		from->experiments[i].run += into->n_runs;
	move(&into->experiments, &into->n_experiments, from->experiments, from->n_experiments,
	     sizeof(*from->experiments));
	move(&into->runs, &into->n_runs, from->runs, from->n_runs, sizeof(*from->runs));
	move(&into->slopes, &into->n_slopes, from->slopes, from->n_slopes, sizeof(*from->slopes));
	move(&into->samples, &into->n_samples, from->samples, from->n_samples,
	     sizeof(*from->samples));
	move(&into->elsewhere, &into->n_elsewhere, from->elsewhere, from->n_elsewhere,
	     sizeof(*from->elsewhere));
	move(&into->addresses, &into->n_addresses, from->addresses, from->n_addresses,
	     sizeof(*from->addresses));
	profile_add_count(&into->runtime_ns, from->runtime_ns);
	profile_add_count(&into->sampled, from->sampled);
	profile_add_count(&into->unattributed, from->unattributed);
	profile_add_count(&into->too_deep, from->too_deep);
	profile_add_count(&into->cut_short, from->cut_short);
	add_machine(&into->machine, &from->machine);
	if (!into->first_bad_line)
		into->first_bad_line = from->first_bad_line;
	into->bad_lines += from->bad_lines;
	into->kept += from->kept;
	*from = (struct profile){0};
}

void profile_merge(struct profile *into, struct profile *from)
{
	profile_append(into, from);
	profile_add_up_samples(into);
}
