// SPDX-License-Identifier: BSD-2-Clause
#include "annotate/classes.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/sort.h"

#include <stdlib.h>

#define NONE UINT32_MAX

/* An edge of the graph without directions: a block, an edge of the flow, or one that was added. */
struct edge {
	uint32_t ends[2]; /* nodes; NONE first: it leads nowhere */
	uint64_t cycles;  /* exclusive or of the numbers of those that it is in; 0: it is in none */
	uint32_t first;	  /* the first edge with these cycles */
	uint32_t class;
};

struct node {
	uint32_t above;	  /* in its tree, on the way to the node that stands for the tree */
	uint32_t n, tree; /* edges of the tree at it: how many, and exclusive or of their numbers */
	uint64_t cycles;  /* exclusive or of the numbers of those that are closed there */
};

struct graph {
	struct node *nodes;
	uint32_t n_nodes;
	struct edge *edges;
	uint32_t n_edges;
};

/* Two nodes for each block, where it is entered and where it is left; one for entry and exit, which
 * are joined: an edge from the exit to the entry would be in each cycle through both. */
static uint32_t entered(uint32_t block)
{
	return 2 * block;
}

static uint32_t left(const struct flow *f, uint32_t block)
{
	return block == flow_entry(f) || block == flow_exit(f) ? 2 * (uint32_t)f->n_blocks
							       : 2 * block + 1;
}

static uint32_t target(const struct flow *f, uint32_t block)
{
	return block == flow_exit(f) ? left(f, block) : entered(block);
}

static void add_edge(struct graph *g, uint32_t from, uint32_t to)
{
	g->edges[g->n_edges++] = (struct edge){.ends = {from, to}};
}

/* Marks the blocks from which the exit is reached, going back from @block. */
static void mark_leaving(const struct flow *f, const uint32_t *into, const uint32_t *begin,
			 uint32_t block, bool *leaving, uint32_t *stack)
{
	size_t depth = 0;

	leaving[block] = true;
	stack[depth++] = block;
	while (depth) {
		uint32_t to = stack[--depth];

		for (uint32_t i = begin[to]; i < begin[to + 1]; i++) {
			uint32_t from = f->edges[into[i]].from;

			if (leaving[from])
				continue;
			leaving[from] = true;
			stack[depth++] = from;
		}
	}
}

/* What never comes to an end still is left, by a signal or with the thread: a block of each such
 * loop gets an edge to the exit. */
static void add_exits(const struct flow *f, struct graph *g)
{
	size_t n = f->n_blocks + 2;
	_cleanup_free_ uint32_t *into = xcalloc(f->n_edges, sizeof(*into)),
				*begin = xcalloc(n + 2, sizeof(*begin)),
				*stack = xcalloc(n, sizeof(*stack));
	_cleanup_free_ bool *leaving = xcalloc(n, sizeof(*leaving));

	for (size_t i = 0; i < f->n_edges; i++)
		begin[f->edges[i].to + 2]++;
	for (size_t b = 2; b < n + 2; b++)
		begin[b] += begin[b - 1];
	for (size_t i = 0; i < f->n_edges; i++)
		into[begin[f->edges[i].to + 1]++] = (uint32_t)i;
	mark_leaving(f, into, begin, flow_exit(f), leaving, stack);
	for (uint32_t b = (uint32_t)f->n_blocks; b-- > 0;)
		if (!f->blocks[b].dead && !leaving[b]) {
			add_edge(g, left(f, b), target(f, flow_exit(f)));
			mark_leaving(f, into, begin, b, leaving, stack);
		}
}

static bool is_live(const struct flow *f, uint32_t block)
{
	return block >= f->n_blocks || !f->blocks[block].dead;
}

/* Blocks first, then the flow's edges, each with its number; those of dead blocks lead nowhere. */
static void make_graph(const struct flow *f, struct graph *g)
{
	uint32_t n = (uint32_t)f->n_blocks;

	g->n_nodes = 2 * n + 1;
	g->nodes = xcalloc(g->n_nodes, sizeof(*g->nodes));
	/* Exits that are added: at most one for each block. */
	g->edges = xcalloc(n + f->n_edges + n, sizeof(*g->edges));
	for (uint32_t b = 0; b < n; b++)
		add_edge(g, is_live(f, b) ? entered(b) : NONE, left(f, b));
	for (size_t i = 0; i < f->n_edges; i++)
		add_edge(g, is_live(f, f->edges[i].from) ? left(f, f->edges[i].from) : NONE,
			 target(f, f->edges[i].to));
	add_exits(f, g);
}

/* The node that stands for the tree that @v is in. */
static uint32_t tree_of(struct node *nodes, uint32_t v)
{
	while (nodes[v].above != v) {
		nodes[v].above = nodes[nodes[v].above].above;
		v = nodes[v].above;
	}
	return v;
}

/* Edges that join two trees make one tree of them, until it spans the graph. Each other edge closes
 * a cycle with the tree, which gets a number. */
static void span(struct graph *g)
{
	struct rng r;

	rng_seed(&r, 1);
	for (uint32_t v = 0; v < g->n_nodes; v++)
		g->nodes[v].above = v;
	for (uint32_t i = 0; i < g->n_edges; i++) {
		struct edge *e = &g->edges[i];
		uint32_t from, to;

		if (e->ends[0] == NONE)
			continue;
		from = tree_of(g->nodes, e->ends[0]);
		to = tree_of(g->nodes, e->ends[1]);
		if (from == to)
			e->cycles = rng_next(&r);
		g->nodes[from].above = to;
		for (int k = 0; k < 2; k++) {
			struct node *v = &g->nodes[e->ends[k]];

			v->cycles ^= e->cycles;
			v->n += from != to;
			v->tree ^= from != to ? i : 0;
		}
	}
}

/* Takes the tree's leaves off, one after the other. The cycles that the edge to a leaf is in are
 * those that go on from the leaf, or from what was taken off behind it. */
static void find_cycles(struct graph *g)
{
	for (uint32_t leaf = 0; leaf < g->n_nodes; leaf++)
		for (uint32_t at = leaf, next; g->nodes[at].n == 1; at = next) {
			struct node *v = &g->nodes[at];
			struct edge *e = &g->edges[v->tree];

			next = e->ends[e->ends[0] == at];
			e->cycles = v->cycles;
			g->nodes[next].cycles ^= v->cycles;
			g->nodes[next].tree ^= v->tree;
			g->nodes[next].n--;
			v->n = 0;
		}
}

static int by_cycles(const void *pa, const void *pb)
{
	const struct edge *const *a = pa, *const *b = pb;

	return sort_order((*a)->cycles, (*b)->cycles) ?: sort_order(*a, *b);
}

/* Numbers the classes in the order of blocks and edges. An edge in no cycle has a class of its own:
 * what leads there never comes back. */
static void take(const struct flow *f, const struct graph *g, struct classes *ret)
{
	uint32_t n = (uint32_t)f->n_blocks, all = n + (uint32_t)f->n_edges;
	_cleanup_free_ struct edge **order = xcalloc(all, sizeof(*order));

	ret->blocks = xcalloc(n, sizeof(*ret->blocks));
	ret->edges = xcalloc(f->n_edges, sizeof(*ret->edges));
	for (uint32_t i = 0; i < all; i++)
		order[i] = &g->edges[i];
	sort_array(order, all, by_cycles);
	for (uint32_t i = 0; i < all; i++)
		order[i]->first = i && order[i]->cycles && order[i]->cycles == order[i - 1]->cycles
					  ? order[i - 1]->first
					  : (uint32_t)(order[i] - g->edges);
	for (uint32_t i = 0; i < all; i++) {
		struct edge *e = &g->edges[i];

		e->class = e->ends[0] == NONE ? CLASS_NONE
			   : e->first == i    ? ret->n++
					      : g->edges[e->first].class;
		*(i < n ? &ret->blocks[i] : &ret->edges[i - n]) = e->class;
	}
}

void classes_of(const struct flow *f, struct classes *ret)
{
	struct graph g = {0};

	*ret = (struct classes){0};
	make_graph(f, &g);
	span(&g);
	find_cycles(&g);
	take(f, &g, ret);
	free(g.nodes);
	free(g.edges);
}

void classes_free(struct classes *c)
{
	free(c->blocks);
	free(c->edges);
	*c = (struct classes){0};
}
