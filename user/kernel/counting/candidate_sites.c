// SPDX-License-Identifier: BSD-2-Clause
/* Places that a point may be: probes that a program's author put in, and functions. */
#include "kernel/counting/candidates_private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sort.h"
#include "program/code/map.h"
#include "program/elf/code.h"
#include "program/elf/names.h"
#include "program/elf/object.h"
#include "program/elf/usdt.h"
#include "shared/visit_rates.h"

#include <errno.h>
#include <string.h>

/* Of the functions of a program most are no units of its work: as of calls that connect or open. */
#define FUNCTION_RANK 2
#define MOST_FUNCTIONS 4096 /* the largest: small ones are seldom units of work, and mostly hot */
/* How long an instruction takes at most, on average; one has some four bytes. */
#define SLOW_INSTRUCTION_NS 10
#define INSTRUCTION_BYTES 4

/* What is found in one object. */
struct gathering {
	struct candidates *c;
	const struct elf_object *elf;
	size_t object;
	struct found {
		char *name; /* owned */
		uint64_t vaddr, size;
	} * all; /* functions */
	size_t n;
};

/* The point called @text, which is taken over; a new one unless @first or a later one is. */
static size_t point_called(struct candidates *c, size_t first, enum candidate_kind kind, char *text)
{
	for (size_t i = first; i < c->n_points; i++)
		if (strcmp(c->points[i].as.point, text) == 0) {
			free(text);
			return i;
		}
	xarray_add(
		c->points, c->n_points,
		(struct search_point){.as = {.kind = kind,
					     .rank = kind == CANDIDATE_FUNCTION ? FUNCTION_RANK : 0,
					     .point = text}});
	return c->n_points - 1;
}

/* One that was inlined has several places. */
static int add_probe(const struct usdt_probe *p, void *arg)
{
	struct gathering *g = arg;
	struct candidates *c = g->c;
	bool is_main = code_map_is_main(c->scope.code, g->object);
	const char *path = code_map_path(c->scope.code, g->object);
	struct search_site site = {
		.object = g->object, .vaddr = p->vaddr, .semaphore = p->semaphore};

	if (c->n_sites == VISIT_RATES_SITES - MOST_FUNCTIONS)
		return 0;
	site.point = point_called(c, 0, CANDIDATE_PROBE,
				  xasprintf("usdt:%s%s%s:%s", is_main ? "" : basename(path),
					    is_main ? "" : ":", p->provider, p->name));
	xarray_add(c->sites, c->n_sites, site);
	return 0;
}

static int each_object(struct candidates *c, int (*gather)(struct gathering *g))
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < code_map_count(c->scope.code); i++) {
		struct gathering g = {.c = c, .object = i};

		if (!c->scope.probed && !code_map_is_main(c->scope.code, i))
			continue;
		g.elf = code_map_elf(c->scope.code, i, NULL);
		r = g.elf ? gather(&g) : 0;
	}
	return r;
}

static int gather_probes(struct gathering *g)
{
	return usdt_each(g->elf, add_probe, g);
}

int search_add_probes(struct candidates *c)
{
	int r = each_object(c, gather_probes);

	c->n_probes = c->n_sites;
	return r;
}

static int find_function(const struct elf_symbol *s, const char *readable, void *arg)
{
	static const char *const of_startup[] = {"main", "_init", "_start", "_fini"};
	struct gathering *g = arg;

	for (size_t i = 0; i < sizeof(of_startup) / sizeof(of_startup[0]); i++)
		if (strcmp(readable, of_startup[i]) == 0)
			return 0;
	if (!s->is_indirect)
		xarray_add(g->all, g->n, (struct found){xstrdup(readable), s->addr, s->size});
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static int by_size(const void *a, const void *b)
{
	const struct search_site *x = a, *y = b;

	return -sort_order(x->size, y->size) ?: sort_order(x->vaddr, y->vaddr);
}

/* What --progress would not take is none: code of several functions. */
static int gather_functions(struct gathering *g)
{
	struct candidates *c = g->c;
	size_t first = c->n_points;
	int r = 0;

	if (!code_map_is_main(c->scope.code, g->object))
		return 0;
	r = elf_object_each_readable(g->elf, true, find_function, g);
	sort_array(g->all, g->n, by_name);
	for (size_t i = 0; r == 0 && i < g->n; i++) {
		_cleanup_elf_names_ struct elf_names sharers = {0};
		struct found *f = &g->all[i];
		bool again = i && strcmp(f->name, g->all[i - 1].name) == 0 && c->n_points > first;

		r = elf_object_sharers(g->elf, f->vaddr, false, &sharers);
		if (r < 0 || sharers.n)
			continue;
		/* Copies of one function follow each other. */
		xarray_add(c->sites, c->n_sites,
			   (struct search_site){
				   .point = point_called(c, again ? c->n_points - 1 : c->n_points,
							 CANDIDATE_FUNCTION, xstrdup(f->name)),
				   .object = g->object,
				   .vaddr = f->vaddr,
				   .size = f->size});
	}
	for (size_t i = 0; i < g->n; i++)
		free(g->all[i].name);
	free(g->all);
	return r < 0 ? r : 0;
}

int search_add_functions(struct candidates *c)
{
	int r = each_object(c, gather_functions);

	c->n_functions = c->n_sites - c->n_probes;
	sort_array(c->sites + c->n_probes, c->n_functions, by_size);
	if (c->n_functions > MOST_FUNCTIONS)
		c->n_sites = c->n_probes + MOST_FUNCTIONS;
	return r;
}

struct code_places *search_places(struct candidates *c, size_t object)
{
	while (c->n_places <= object)
		xarray_add(c->places, c->n_places, (struct code_places){0});
	if (!c->places[object].o)
		c->places[object].o = code_map_elf(c->scope.code, object, NULL);
	return &c->places[object];
}

static bool goes_back(const struct flow *f)
{
	for (size_t i = 0; i < f->n_edges; i++)
		if (f->edges[i].kind != FLOW_FALL && f->edges[i].to <= f->edges[i].from)
			return true;
	return false;
}

/* Without a loop, a function that takes so much time is passed often. */
static bool cannot_be_rare(const struct candidates *c, const struct search_site *s,
			   const struct flow *f)
{
	double longest_s =
		(double)s->size / INSTRUCTION_BYTES * SLOW_INSTRUCTION_NS / (double)NSEC_PER_SEC;

	return c->scope.busy && s->size && f->start == s->vaddr && !f->open && !goes_back(f) &&
	       c->scope.busy(s->object, s->vaddr, s->vaddr + s->size, c->scope.arg) >
		       longest_s * choice_bearable(CANDIDATE_FUNCTION);
}

int search_check_site(struct candidates *c, struct search_site *s)
{
	struct code_places *places = search_places(c, s->object);
	enum code_cost cost = CODE_REFUSED;
	int r;

	if (s->checked)
		return 0;
	s->checked = s->refused = true;
	if (!places->o)
		return 0;
	cost = code_cost_at(places->o, s->vaddr);
	if (cost == CODE_NOP5)
		s->vaddr = code_behind_nop(places->o, s->vaddr, &cost);
	if (cost >= CODE_NOP5)
		return 0;
	r = code_place_check(places, s->vaddr, NULL);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	if (cannot_be_rare(c, s, &places->flow)) {
		c->points[s->point].off = true;
		return 0;
	}
	s->refused = false;
	s->cost_ns = c->probe_ns[cost];
	return 0;
}
