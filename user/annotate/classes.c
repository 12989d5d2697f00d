// SPDX-License-Identifier: BSD-2-Clause
#include "annotate/classes.h"

#include "base/cleanup.h"
#include "base/memory.h"

#include <stdlib.h>

#define NONE UINT32_MAX

/* An edge of the graph without directions: a block, an edge of the flow, what was added, or a
 * capping edge of the algorithm. */
struct edge {
	uint32_t ends[2];
	uint32_t class, recent_class, recent_size;
	uint32_t above, below; /* in the list of brackets that it is in */
};

/* A list of brackets: back edges from below a node to above it. The top is the last one that came.
 */
struct list {
	uint32_t top, bottom, size;
};

struct node {
	uint32_t first, n; /* in graph.out: its edges */
	uint32_t parent;   /* the tree edge to it; NONE: the root */
	uint32_t number;   /* in depth first order; NONE: not reached */
	uint32_t high;	   /* the least number that a back edge from here or below goes to */
	uint32_t capping;  /* the first of the capping edges that end here, by next */
	struct list list;
};

struct graph {
	struct node *nodes;
	uint32_t n_nodes;
	struct edge *edges;
	uint32_t n_edges, room;
	uint32_t *out;	 /* edges, by node */
	uint32_t *order; /* nodes by number */
	uint32_t *next;	 /* of a capping edge: the next one that ends in the same node */
	uint32_t n_classes;
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
	g->edges[g->n_edges++] = (struct edge){.ends = {from, to},
					       .class = NONE,
					       .recent_class = NONE,
					       .above = NONE,
					       .below = NONE};
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
	/* Exits that are added: at most one for each block; capping edges: one for each node. */
	g->room = n + (uint32_t)f->n_edges + n + g->n_nodes;
	g->edges = xcalloc(g->room, sizeof(*g->edges));
	g->nodes = xcalloc(g->n_nodes, sizeof(*g->nodes));
	g->order = xcalloc(g->n_nodes, sizeof(*g->order));
	g->next = xcalloc(g->room, sizeof(*g->next));
	for (uint32_t b = 0; b < n; b++)
		add_edge(g, is_live(f, b) ? entered(b) : NONE, left(f, b));
	for (size_t i = 0; i < f->n_edges; i++)
		add_edge(g, is_live(f, f->edges[i].from) ? left(f, f->edges[i].from) : NONE,
			 target(f, f->edges[i].to));
	add_exits(f, g);
	g->out = xcalloc(2 * (size_t)g->n_edges, sizeof(*g->out));
}

static void list_edges(struct graph *g)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < g->n_edges; i++)
		for (int k = 0; k < 2 && g->edges[i].ends[0] != NONE; k++)
			g->nodes[g->edges[i].ends[k]].n++;
	for (uint32_t v = 0; v < g->n_nodes; v++) {
		g->nodes[v].first = at;
		at += g->nodes[v].n;
		g->nodes[v].n = 0;
		g->nodes[v].number = g->nodes[v].parent = g->nodes[v].capping = NONE;
		g->nodes[v].list = (struct list){NONE, NONE, 0};
	}
	for (uint32_t i = 0; i < g->n_edges; i++)
		for (int k = 0; k < 2 && g->edges[i].ends[0] != NONE; k++) {
			struct node *v = &g->nodes[g->edges[i].ends[k]];

			g->out[v->first + v->n++] = i;
		}
}

static uint32_t other_end(const struct edge *e, uint32_t node)
{
	return e->ends[e->ends[0] == node];
}

/* Numbers the nodes from @root on, depth first. */
static void walk(struct graph *g, uint32_t root)
{
	_cleanup_free_ uint32_t *stack = xcalloc(g->n_nodes, sizeof(*stack)),
				*at = xcalloc(g->n_nodes, sizeof(*at));
	uint32_t depth = 0, number = 0;

	g->nodes[root].number = number;
	g->order[number++] = root;
	stack[depth++] = root;
	while (depth) {
		uint32_t v = stack[depth - 1], e, to;

		if (at[v] == g->nodes[v].n) {
			depth--;
			continue;
		}
		e = g->out[g->nodes[v].first + at[v]++];
		to = other_end(&g->edges[e], v);
		if (g->nodes[to].number != NONE)
			continue;
		g->nodes[to].parent = e;
		g->nodes[to].number = number;
		g->order[number++] = to;
		stack[depth++] = to;
	}
	g->n_nodes = number;
}

static void push(struct graph *g, struct list *l, uint32_t e)
{
	g->edges[e].below = l->top;
	g->edges[e].above = NONE;
	if (l->top != NONE)
		g->edges[l->top].above = e;
	else
		l->bottom = e;
	l->top = e;
	l->size++;
}

static void delete (struct graph *g, struct list *l, uint32_t e)
{
	struct edge *x = &g->edges[e];

	if (x->above != NONE)
		g->edges[x->above].below = x->below;
	else
		l->top = x->below;
	if (x->below != NONE)
		g->edges[x->below].above = x->above;
	else
		l->bottom = x->above;
	l->size--;
}

/* Puts @from on top of @to. */
static void concatenate(struct graph *g, struct list *to, const struct list *from)
{
	if (from->size == 0)
		return;
	if (to->size == 0) {
		*to = *from;
		return;
	}
	g->edges[from->bottom].below = to->top;
	g->edges[to->top].above = from->bottom;
	to->top = from->top;
	to->size += from->size;
}

static bool is_tree(const struct graph *g, uint32_t e)
{
	const struct edge *x = &g->edges[e];

	return g->nodes[x->ends[0]].parent == e || g->nodes[x->ends[1]].parent == e;
}

/* The least numbers that back edges go to: from the node itself, from below one child, and from
 * below another one. */
struct highs {
	uint32_t own, first, second;
};

static struct highs find_highs(const struct graph *g, uint32_t v)
{
	const struct node *node = &g->nodes[v];
	struct highs h = {NONE, NONE, NONE};

	for (uint32_t i = 0; i < node->n; i++) {
		uint32_t e = g->out[node->first + i], to = other_end(&g->edges[e], v);
		const struct node *t = &g->nodes[to];

		if (t->parent == e) {
			if (t->high < h.first) {
				h.second = h.first;
				h.first = t->high;
			} else if (t->high < h.second) {
				h.second = t->high;
			}
		} else if (node->parent != e && t->number < node->number && t->number < h.own) {
			h.own = t->number;
		}
	}
	return h;
}

/* The brackets of the node: those of its children, without those that end here, and with those that
 * begin here. */
static void gather(struct graph *g, uint32_t v)
{
	struct node *node = &g->nodes[v];

	for (uint32_t i = 0; i < node->n; i++) {
		uint32_t e = g->out[node->first + i];
		const struct node *t = &g->nodes[other_end(&g->edges[e], v)];

		if (t->parent == e)
			concatenate(g, &node->list, &t->list);
	}
	for (uint32_t e = node->capping; e != NONE; e = g->next[e])
		delete (g, &node->list, e);
	for (uint32_t i = 0; i < node->n; i++) {
		uint32_t e = g->out[node->first + i];

		if (is_tree(g, e) || g->nodes[other_end(&g->edges[e], v)].number <= node->number)
			continue;
		delete (g, &node->list, e);
		if (g->edges[e].class == NONE)
			g->edges[e].class = g->n_classes++;
	}
	for (uint32_t i = 0; i < node->n; i++) {
		uint32_t e = g->out[node->first + i];

		if (!is_tree(g, e) && g->nodes[other_end(&g->edges[e], v)].number < node->number)
			push(g, &node->list, e);
	}
}

static void cap(struct graph *g, uint32_t v, uint32_t high)
{
	uint32_t e = g->n_edges, to = g->order[high];

	add_edge(g, v, to);
	g->next[e] = g->nodes[to].capping;
	g->nodes[to].capping = e;
	push(g, &g->nodes[v].list, e);
}

static void classify(struct graph *g, uint32_t v)
{
	struct node *node = &g->nodes[v];
	struct highs h = find_highs(g, v);
	struct edge *tree, *top;

	node->high = h.own < h.first ? h.own : h.first;
	gather(g, v);
	if (h.second < h.own)
		cap(g, v, h.second);
	if (node->parent == NONE)
		return;
	tree = &g->edges[node->parent];
	/* A bridge, which is in no cycle: what leads there never comes back. */
	if (node->list.size == 0) {
		tree->class = g->n_classes++;
		return;
	}
	top = &g->edges[node->list.top];
	if (top->recent_size != node->list.size || top->recent_class == NONE) {
		top->recent_size = node->list.size;
		top->recent_class = g->n_classes++;
	}
	tree->class = top->recent_class;
	if (top->recent_size == 1)
		top->class = tree->class;
}

static void graph_free(struct graph *g)
{
	free(g->nodes);
	free(g->edges);
	free(g->out);
	free(g->order);
	free(g->next);
}

/* Numbers the classes that are in use, in the order of blocks and edges. */
static void take(const struct flow *f, const struct graph *g, struct classes *ret)
{
	_cleanup_free_ uint32_t *number = xcalloc(g->n_classes, sizeof(*number));
	uint32_t n = (uint32_t)f->n_blocks, all = n + (uint32_t)f->n_edges;

	ret->blocks = xcalloc(n, sizeof(*ret->blocks));
	ret->edges = xcalloc(f->n_edges, sizeof(*ret->edges));
	for (uint32_t i = 0; i < all; i++) {
		uint32_t class = g->edges[i].class;

		if (class != NONE && number[class] == 0)
			number[class] = ++ret->n;
		*(i < n ? &ret->blocks[i] : &ret->edges[i - n]) =
			class == NONE ? CLASS_NONE : number[class] - 1;
	}
}

void classes_of(const struct flow *f, struct classes *ret)
{
	struct graph g = {0};

	*ret = (struct classes){0};
	make_graph(f, &g);
	list_edges(&g);
	walk(&g, left(f, flow_exit(f)));
	for (uint32_t i = g.n_nodes; i-- > 0;)
		classify(&g, g.order[i]);
	take(f, &g, ret);
	graph_free(&g);
}

void classes_free(struct classes *c)
{
	free(c->blocks);
	free(c->edges);
	*c = (struct classes){0};
}
