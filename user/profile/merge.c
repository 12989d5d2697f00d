// SPDX-License-Identifier: BSD-2-Clause
#include "profile/merge.h"

#include "profile/record.h"

#include <errno.h>
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
			fields_free(&samples_fields, &s[i]);
		} else {
			s[++out] = s[i];
		}
	}
	p->n_samples = out + 1;
}

const struct profile_samples *profile_find_samples(const struct profile *p, const char *location)
{
	struct profile_samples key = {.location = (char *)location};

	return p->n_samples ? bsearch(&key, p->samples, p->n_samples, sizeof(key), by_location)
			    : NULL;
}

/* Room for @more elements after the @n that there are. */
static int grow(void *list, size_t n, size_t more, size_t size)
{
	void *grown;

	if (more == 0)
		return 0;
	grown = reallocarray(*(void **)list, n + more, size);
	if (!grown)
		return -ENOMEM;
	*(void **)list = grown;
	return 0;
}

int profile_move_samples(struct profile *p, const struct profile_samples *s, size_t n)
{
	if (grow(&p->samples, p->n_samples, n, sizeof(*s)) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		p->samples[p->n_samples++] = s[i];
	return 0;
}

int profile_move_addresses(struct profile *p, const struct profile_addresses *a, size_t n)
{
	if (grow(&p->addresses, p->n_addresses, n, sizeof(*a)) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		p->addresses[p->n_addresses++] = a[i];
	return 0;
}

void profile_clear_addresses(struct profile *p)
{
	for (size_t i = 0; i < p->n_addresses; i++)
		fields_free(&addresses_fields, &p->addresses[i]);
	free(p->addresses);
	p->addresses = NULL;
	p->n_addresses = 0;
}

void profile_clear_samples(struct profile *p)
{
	for (size_t i = 0; i < p->n_samples; i++)
		fields_free(&samples_fields, &p->samples[i]);
	free(p->samples);
	p->samples = NULL;
	p->n_samples = 0;
}

int profile_set_samples(struct profile *p, const struct profile_samples *s, size_t n)
{
	profile_clear_samples(p);
	p->samples = calloc(n + 1, sizeof(*p->samples));
	for (size_t i = 0; p->samples && i < n; i++) {
		struct profile_samples *to = &p->samples[p->n_samples++];

		*to = s[i];
		to->location = strdup(s[i].location);
		to->inlined = s[i].inlined ? strdup(s[i].inlined) : NULL;
		to->source = s[i].source ? strdup(s[i].source) : NULL;
		to->function = s[i].function ? strdup(s[i].function) : NULL;
		if (!to->location || (s[i].inlined && !to->inlined) ||
		    (s[i].source && !to->source) || (s[i].function && !to->function)) {
			profile_clear_samples(p);
			break;
		}
	}
	profile_add_up_samples(p);
	return p->samples ? 0 : -ENOMEM;
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

double profile_machine_share(uint64_t ns, uint64_t of_ns)
{
	if (!of_ns)
		return NAN;
	return ns < of_ns ? (double)ns / (double)of_ns : 1;
}

int profile_append(struct profile *into, struct profile *from)
{
	if (grow(&into->runs, into->n_runs, from->n_runs, sizeof(*into->runs)) < 0 ||
	    grow(&into->experiments, into->n_experiments, from->n_experiments,
		 sizeof(*into->experiments)) < 0 ||
	    grow(&into->slopes, into->n_slopes, from->n_slopes, sizeof(*into->slopes)) < 0 ||
	    grow(&into->addresses, into->n_addresses, from->n_addresses, sizeof(*into->addresses)) <
		    0 ||
	    profile_move_samples(into, from->samples, from->n_samples) < 0)
		return -ENOMEM;
	(void)profile_move_addresses(into, from->addresses, from->n_addresses); /* there is room */
	for (size_t i = 0; i < from->n_experiments; i++) {
		from->experiments[i].run += into->n_runs;
		into->experiments[into->n_experiments++] = from->experiments[i];
	}
	for (size_t i = 0; i < from->n_slopes; i++)
		into->slopes[into->n_slopes++] = from->slopes[i];
	for (size_t i = 0; i < from->n_runs; i++)
		into->runs[into->n_runs++] = from->runs[i];
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
	free(from->runs);
	free(from->experiments);
	free(from->slopes);
	free(from->samples);
	free(from->addresses);
	*from = (struct profile){0};
	return 0;
}

int profile_merge(struct profile *into, struct profile *from)
{
	int r = profile_append(into, from);

	if (r == 0)
		profile_add_up_samples(into);
	return r;
}
