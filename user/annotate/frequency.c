// SPDX-License-Identifier: BSD-2-Clause
#include "annotate/frequency.h"

#include "base/array.h"
#include "base/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* Instructions are taken together until they take so many cycles: which of two neighbours a sample hits is decided by how the CPU retires them. */
#define GROUP_CYCLES 3.0
/* The lowest quotients are taken up to so much of a class' cycles, whatever they say, and until they rest on so many samples. */
#define LEAST_PART 0.15
#define LEAST_SAMPLES 12
/* Beyond, a quotient belongs to them if it is no higher than by this, or by so many standard deviations. */
#define SPREAD 0.2
#define SURE 1.5
/* What the model of the CPU may be off by, relative. */
#define MODEL_ERROR 0.1
/* A class of which nothing is known may be anything: its error, in terms of the largest frequency. */
#define ANYTHING 10.0
#define MOST_ROUNDS 400
#define SETTLED 1e-4

/* Some instructions of a block that stand together. */
struct group {
	uint32_t class;
	double samples, cycles;
};

struct groups {
	struct group *all;
	size_t n;
};

void frequency_free(struct frequency *f)
{
	free(f->classes);
	free(f->errors);
	*f = (struct frequency){0};
}

static int add_group(struct groups *g, uint32_t class, double samples, double cycles)
{
	if (array_room(g->all, g->n) < 0)
		return -ENOMEM;
	g->all[g->n++] = (struct group){class, samples, cycles};
	return 0;
}

/* What is left at a block's end goes to the group before it, if that is the block's. */
static int group_block(const struct flow_block *b, uint32_t class, const double *samples, const double *cycles, struct groups *g)
{
	size_t before = g->n;
	double s = 0, c = 0;

	for (uint32_t i = b->first; i < b->first + b->n; i++) {
		s += samples[i];
		c += cycles[i];
		if (c < GROUP_CYCLES)
			continue;
		if (add_group(g, class, s, c) < 0)
			return -ENOMEM;
		s = c = 0;
	}
	if (!(c > 0 || s > 0))
		return 0;
	if (g->n == before)
		return add_group(g, class, s, c);
	g->all[g->n - 1].samples += s;
	g->all[g->n - 1].cycles += c;
	return 0;
}

static double quotient(const struct group *g)
{
	return g->cycles > 0 ? g->samples / g->cycles : INFINITY;
}

static int by_class(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	if (x->class != y->class)
		return x->class < y->class ? -1 : 1;
	return (quotient(x) > quotient(y)) - (quotient(x) < quotient(y));
}

/* The lowest of one class' @n groups, which are in order of their quotients. */
static void take_lowest(const struct group *g, size_t n, double *ret, double *ret_error)
{
	double all = 0, samples = 0, cycles = 0, part;

	for (size_t i = 0; i < n; i++)
		all += g[i].cycles;
	for (size_t i = 0; i < n; i++) {
		double expected = cycles > 0 ? samples / cycles * g[i].cycles : 0;

		if (cycles >= LEAST_PART * all && samples >= LEAST_SAMPLES && g[i].samples > (1 + SPREAD) * expected + SURE * sqrt(expected))
			break;
		samples += g[i].samples;
		cycles += g[i].cycles;
	}
	part = all > 0 ? cycles / all : 0;
	*ret = cycles > 0 ? samples / cycles : 0;
	/* Where most of the class stalls, the rest may as well. */
	*ret_error = cycles > 0 ? hypot(sqrt(fmax(samples, 1)) / cycles, *ret * hypot(MODEL_ERROR, (1 - part) / 2)) : INFINITY;
}

static int estimate_alone(const struct flow *f, const struct classes *c, const double *samples, const double *cycles, struct frequency *ret)
{
	_cleanup_free_ struct group *all = NULL;
	struct groups g = {0};
	int r = 0;

	for (size_t b = 0; r == 0 && b < f->n_blocks; b++)
		if (c->blocks[b] != CLASS_NONE)
			r = group_block(&f->blocks[b], c->blocks[b], samples, cycles, &g);
	all = g.all;
	if (r < 0)
		return r;
	if (g.n)
		qsort(g.all, g.n, sizeof(*g.all), by_class);
	for (uint32_t k = 0; k < c->n; k++)
		ret->errors[k] = INFINITY;
	for (size_t i = 0, n; i < g.n; i += n) {
		for (n = 1; i + n < g.n && g.all[i + n].class == g.all[i].class;)
			n++;
		take_lowest(g.all + i, n, &ret->classes[g.all[i].class], &ret->errors[g.all[i].class]);
	}
	return 0;
}

/* One equation: what goes into a block, or comes out of it, is what the block executes. Terms are in solver.terms. */
struct equation {
	uint32_t first, n;
};

struct term {
	uint32_t class;
	double factor;
};

struct solver {
	struct equation *equations;
	struct term *terms;
	size_t n_equations, n_terms;
	double *variances; /* of each class' estimate: how far it may move */
	double *lifts;	   /* of each class: what keeps it from falling below 0 has added so far (Hildreth, 1957) */
};

static void solver_free(struct solver *s)
{
	free(s->equations);
	free(s->terms);
	free(s->variances);
	free(s->lifts);
}

static int add_term(struct solver *s, uint32_t class, double factor)
{
	struct equation *e = &s->equations[s->n_equations];

	for (uint32_t i = e->first; i < e->first + e->n; i++)
		if (s->terms[i].class == class) {
			s->terms[i].factor += factor;
			return 0;
		}
	if (array_room(s->terms, s->n_terms) < 0)
		return -ENOMEM;
	s->terms[s->n_terms++] = (struct term){class, factor};
	e->n++;
	return 0;
}

/* Of one class alone it says nothing: 0 = 0. */
static int begin_equation(struct solver *s)
{
	if (array_room(s->equations, s->n_equations) < 0)
		return -ENOMEM;
	s->equations[s->n_equations] = (struct equation){(uint32_t)s->n_terms, 0};
	return 0;
}

static void end_equation(struct solver *s)
{
	if (s->equations[s->n_equations].n > 1)
		s->n_equations++;
	else
		s->n_terms = s->equations[s->n_equations].first;
}

/* @order: edges in the order of the block that they lead to. */
static int make_equations(const struct flow *f, const struct classes *c, const uint32_t *order, struct solver *s)
{
	size_t in = 0;

	for (uint32_t b = 0; b < f->n_blocks; b++) {
		const struct flow_block *block = &f->blocks[b];
		int r = 0;

		if (block->dead) {
			while (in < f->n_edges && f->edges[order[in]].to == b)
				in++;
			continue;
		}
		if (begin_equation(s) < 0)
			return -ENOMEM;
		r = add_term(s, c->blocks[b], -1);
		for (uint32_t i = block->out; r == 0 && i < block->out + block->n_out; i++)
			r = add_term(s, c->edges[i], 1);
		if (r < 0)
			return r;
		end_equation(s);
		if (begin_equation(s) < 0)
			return -ENOMEM;
		r = add_term(s, c->blocks[b], -1);
		for (; r == 0 && in < f->n_edges && f->edges[order[in]].to == b; in++)
			if (c->edges[order[in]] != CLASS_NONE)
				r = add_term(s, c->edges[order[in]], 1);
		if (r < 0)
			return r;
		end_equation(s);
	}
	return 0;
}

/* Moves the classes of one equation so that it holds, each by as much as its variance allows. Returns how much was missing, relative to the flow. */
static double satisfy(const struct solver *s, const struct equation *e, double *values)
{
	double missing = 0, room = 0, flow = 0;

	for (uint32_t i = e->first; i < e->first + e->n; i++) {
		const struct term *t = &s->terms[i];

		missing += t->factor * values[t->class];
		flow += fabs(t->factor) * values[t->class];
		room += t->factor * t->factor * s->variances[t->class];
	}
	if (!(room > 0))
		return 0;
	for (uint32_t i = e->first; i < e->first + e->n; i++) {
		const struct term *t = &s->terms[i];

		values[t->class] -= missing / room * t->factor * s->variances[t->class];
	}
	return flow > 0 ? fabs(missing) / flow : 0;
}

/* Least squares, weighted by the variances, under the equations and with nothing below 0: projections in turn. */
static void solve(const struct solver *s, uint32_t n_classes, double *values)
{
	for (int round = 0; round < MOST_ROUNDS; round++) {
		double worst = 0;

		for (size_t i = 0; i < s->n_equations; i++)
			worst = fmax(worst, satisfy(s, &s->equations[i], values));
		for (uint32_t k = 0; k < n_classes; k++) {
			double bare = values[k] - s->lifts[k];

			s->lifts[k] = bare < 0 ? -bare : 0;
			values[k] = bare < 0 ? 0 : bare;
		}
		if (worst < SETTLED)
			break;
	}
}

static int by_target(const void *a, const void *b, void *arg)
{
	const struct flow *f = arg;
	uint32_t x = f->edges[*(const uint32_t *)a].to, y = f->edges[*(const uint32_t *)b].to;

	return (x > y) - (x < y);
}

static int make_solver(const struct flow *f, const struct classes *c, const struct frequency *from, struct solver *s)
{
	_cleanup_free_ uint32_t *order = calloc(f->n_edges + 1, sizeof(*order));
	double most = 0;

	s->variances = calloc(c->n + 1, sizeof(*s->variances));
	s->lifts = calloc(c->n + 1, sizeof(*s->lifts));
	if (!order || !s->variances || !s->lifts)
		return -ENOMEM;
	for (uint32_t k = 0; k < c->n; k++)
		most = fmax(most, from->classes[k]);
	for (uint32_t k = 0; k < c->n; k++) {
		double error = isfinite(from->errors[k]) ? from->errors[k] : ANYTHING * most;

		s->variances[k] = error * error;
	}
	for (uint32_t i = 0; i < f->n_edges; i++)
		order[i] = i;
	qsort_r(order, f->n_edges, sizeof(*order), by_target, (void *)(uintptr_t)f);
	return make_equations(f, c, order, s);
}

int frequency_estimate(const struct flow *f, const struct classes *c, const double *samples, const double *cycles, struct frequency *ret)
{
	_cleanup_(frequency_free) struct frequency x = {calloc(c->n + 1, sizeof(double)), calloc(c->n + 1, sizeof(double))};
	_cleanup_(solver_free) struct solver s = {0};
	int r;

	if (!x.classes || !x.errors)
		return -ENOMEM;
	r = estimate_alone(f, c, samples, cycles, &x);
	if (r == 0)
		r = make_solver(f, c, &x, &s);
	if (r < 0)
		return r;
	solve(&s, c->n, x.classes);
	*ret = x;
	x = (struct frequency){0};
	return 0;
}
