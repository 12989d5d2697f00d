// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/counting/counting.h"

#include "annotate/annotation.h"
#include "annotate/counted.h"
#include "annotate/executions.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "kernel/counting/private.h"
#include "program/elf/object.h"
#include "shared/visit_rates.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A place is rare if, by samples, it is passed less often in a second of CPU time. */
#define RARE_BY_SAMPLES 5000
/* A rough lower bound of a block's time: cycles for each instruction, and cycles of the CPU in a
 * second. */
#define CYCLES 0.4
#define CLOCK_HZ 3e9
#define MOST_ANCHORS 1024

static void counting_free(struct counting *c)
{
	for (size_t i = 0; i < c->n_all; i++)
		free((void *)(uintptr_t)c->all[i].hits);
	free(c->all);
	windows_close(c->windows);
	code_places_close(&c->code);
	free(c->places);
	free(c->counted);
	free(c->rare);
	free(c->useless);
	free(c->rates);
	free(c->errors);
	free(c->levels);
}

static int add_place(struct counting *c, uint64_t vaddr)
{
	if (c->n >= VISIT_RATES_SITES)
		return -ERANGE;
	xarray_add(c->places, c->n, (struct window_place){.vaddr = vaddr});
	return 0;
}

struct gathering {
	struct counting *c;
	const struct flow *f;
	size_t functions, each; /* how many there are; of so many, one is taken */
};

static int count_function(const struct elf_symbol *s, void *arg)
{
	(void)s;
	(*(size_t *)arg)++;
	return 0;
}

/* Functions that are called rarely tell how fast time goes for the program. */
static int add_anchor(const struct elf_symbol *s, void *arg)
{
	struct gathering *g = arg;

	int r;

	if (g->functions++ % g->each || s->is_indirect || s->addr - g->f->start < g->f->size ||
	    code_cost_at(g->c->o, s->addr) >= CODE_NOP5)
		return 0;
	r = code_place_check(&g->c->code, s->addr, NULL);
	if (r >= 0)
		(void)add_place(g->c, s->addr);
	return r == -ENOMEM ? r : 0;
}

/* Leaves the places that are instructions by the code alone. Samples do not prove it: a profile is
 * what someone wrote down, and in a database are samples of all users, whose threads can jump into
 * the data of any library. */
static int keep_certain(struct counting *c, struct error *e)
{
	struct error why = {0};
	size_t kept = 0;
	int r = 0;

	for (size_t i = 0; r != -ENOMEM && i < c->n_counted; i++) {
		r = code_place_check(&c->code, c->counted[i].vaddr, &why);
		if (r == 0)
			c->counted[kept++] = c->counted[i];
	}
	if (r == -ENOMEM)
		return fail(e, ENOMEM, "out of memory");
	r = c->n_counted && !kept ? fail(e, ENODATA, "%s: leave out --count", why.text) : 0;
	c->n_counted = kept;
	return r;
}

static int gather(struct counting *c, const struct annotation *a, const struct classes *classes,
		  struct error *e)
{
	struct gathering g = {.c = c, .f = &a->flow};
	size_t functions = 0;
	bool begins;
	int r;

	if (a->flow.inside)
		return fail(e, ENODATA,
			    "instructions of the function overlap, so a probe on one would change "
			    "another: leave out --count");
	begins = code_place_check(&c->code, a->flow.start, NULL) == 0;
	counted_places(&a->flow, classes, a->found, begins, &c->counted, &c->n_counted);
	r = keep_certain(c, e);
	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < c->n_counted; i++)
		r = add_place(c, c->counted[i].vaddr);
	if (r == -ERANGE)
		return fail(e, ENODATA,
			    "the function has more than %d blocks, too many to count: leave out "
			    "--count",
			    VISIT_RATES_SITES);
	(void)elf_object_each_function(c->o, count_function, &functions);
	g.each = functions / MOST_ANCHORS + 1;
	if (r == 0)
		r = elf_object_each_function(c->o, add_anchor, &g);
	c->rare = xcalloc(c->n + 1, sizeof(*c->rare));
	c->useless = xcalloc(c->n + 1, sizeof(*c->useless));
	c->rates = xcalloc(c->n + 1, sizeof(*c->rates));
	c->errors = xcalloc(c->n + 1, sizeof(*c->errors));
	c->levels = xcalloc(c->n + 1, sizeof(*c->levels));
	return r < 0 ? fail(e, ENOMEM, "out of memory") : 0;
}

/* Rough rates of places, from the time and the number of instructions of their blocks. Where
 * instructions wait, the real rate is lower. @part: the share of the process's CPU time that one
 * sample stands for. */
static void rate_by_samples(struct counting *c, const struct annotation *a,
			    const struct classes *classes, double part)
{
	for (size_t i = 0; i < c->n; i++) {
		double samples = 0, cycles = 0;

		for (size_t b = 0; i < c->n_counted && b < a->flow.n_blocks; b++) {
			const struct flow_block *block = &a->flow.blocks[b];

			if (classes->blocks[b] != c->counted[i].class)
				continue;
			cycles += fmax(1, CYCLES * block->n);
			for (uint32_t k = block->first; k < block->first + block->n; k++)
				samples += a->samples[k];
		}
		c->rates[i] = cycles > 0 ? samples * part * CLOCK_HZ / cycles : 0;
		c->rare[i] = c->rates[i] < RARE_BY_SAMPLES;
	}
}

/* The present clock of the first CPU; 0: the kernel does not say. */
static double clock_hz(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/cpuinfo", "re");
	double mhz = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "cpu MHz : %lf", &mhz) == 1)
			break;
	return mhz * 1e6;
}

static void keep(const struct counting *c, const struct classes *classes, struct annotation *a)
{
	a->executed = xcalloc(a->flow.n_blocks + 1, sizeof(*a->executed));
	a->executed_errors = xcalloc(a->flow.n_blocks + 1, sizeof(*a->executed_errors));
	a->clock_hz = clock_hz();
	for (size_t b = 0; b < a->flow.n_blocks; b++) {
		a->executed_errors[b] = INFINITY;
		for (size_t i = 0; i < c->n_counted; i++)
			if (c->counted[i].class == classes->blocks[b]) {
				a->executed[b] = c->rates[i];
				a->executed_errors[b] = c->errors[i];
			}
	}
}

int counting_run(pid_t pid, const struct elf_object *o, struct annotation *a, uint64_t all_samples,
		 double seconds, struct error *e)
{
	_cleanup_(counting_free) struct counting c = {.o = o, .code = {.o = o}};
	_cleanup_(classes_free) struct classes classes = {0};
	int r;

	classes_of(&a->flow, &classes);
	r = gather(&c, a, &classes, e);
	if (r == 0)
		r = windows_open(pid, o, &c.windows, e);
	if (r == 0) {
		rate_by_samples(&c, a, &classes, 1 / fmax((double)all_samples, 1));
		r = counting_rounds(&c, seconds, e);
	}
	if (r == 0)
		keep(&c, &classes, a);
	return r;
}
