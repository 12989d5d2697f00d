// SPDX-License-Identifier: BSD-2-Clause
#include "program/elf/flow.h"

#include "program/elf/jump_table.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/search.h"
#include "program/elf/code_place.h"
#include "program/elf/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LOCK 0xf0

/* While it is made. */
struct making {
	struct flow *f;
	const struct code *code;
	uint32_t *index; /* by offset: which instruction begins there, and 1 more */
	bool *leads;	 /* by instruction: a block begins with it */
	uint32_t *block; /* by instruction */
	struct jump_table *tables;
	size_t n_tables;
	const uint64_t *entered; /* by unwinding, or from other parts of the function */
	size_t n_entered;
};

void flow_free(struct flow *f)
{
	free(f->all);
	free(f->blocks);
	free(f->edges);
	*f = (struct flow){0};
}

static int decode(struct code *c, struct flow *f)
{
	while (!code_at_end(c)) {
		if (array_room(f->all, f->n) < 0)
			return -ENOMEM;
		if (code_next(c, &f->all[f->n])) {
			f->n++;
		} else {
			c->at++;
			f->holes++;
		}
	}
	return 0;
}

/* The instruction that begins there; SIZE_MAX: none does. A jump behind the lock prefix of an
 * instruction, as C libraries have it for processes of one thread, is one to that instruction. */
static size_t starts(const struct making *m, uint64_t vaddr)
{
	uint64_t offset = vaddr - m->f->start;

	if (offset >= m->f->size)
		return SIZE_MAX;
	if (!m->index[offset] && offset && m->code->bytes[offset - 1] == LOCK)
		offset--;
	return m->index[offset] ? m->index[offset] - 1 : SIZE_MAX;
}

static bool is_inside(const struct flow *f, uint64_t vaddr)
{
	return vaddr - f->start < f->size;
}

static bool ends_block(const struct code_instruction *x)
{
	return x->flow == CODE_BRANCH || x->flow == CODE_JUMP || x->flow == CODE_RETURN ||
	       x->flow == CODE_STOP;
}

static bool falls_through(const struct code_instruction *x)
{
	return x->flow != CODE_JUMP && x->flow != CODE_RETURN && x->flow != CODE_STOP;
}

static bool is_indirect(const struct code_instruction *x)
{
	return x->flow == CODE_JUMP && !x->direct && !x->leaves;
}

static void lead(struct making *m, uint64_t vaddr)
{
	size_t i = starts(m, vaddr);

	if (i != SIZE_MAX)
		m->leads[i] = true;
}

static int find_tables(struct making *m, flow_table table, void *arg)
{
	struct flow *f = m->f;

	for (size_t i = 0; i < f->n && table; i++) {
		struct jump_table t = {.jump = (uint32_t)i};

		if (!is_indirect(&f->all[i]))
			continue;
		if (jump_table_find(f, m->code, i, table, arg, &t) < 0)
			return -ENOMEM;
		if (!t.n)
			continue;
		if (array_add(m->tables, m->n_tables, t) < 0) {
			free(t.targets);
			return -ENOMEM;
		}
		for (size_t k = 0; k < t.n_longest; k++)
			lead(m, t.targets[k]);
	}
	return 0;
}

static void find_leaders(struct making *m)
{
	struct flow *f = m->f;

	if (f->n)
		m->leads[0] = true;
	for (size_t i = 0; i < f->n; i++) {
		const struct code_instruction *x = &f->all[i];

		/* Bytes between two instructions that are none. */
		if (i + 1 < f->n && (ends_block(x) || x[1].at != x->at + x->length))
			m->leads[i + 1] = true;
		if ((x->flow == CODE_BRANCH || x->flow == CODE_JUMP) && x->direct)
			lead(m, x->target);
	}
	for (size_t i = 0; i < m->n_entered; i++)
		lead(m, m->entered[i]);
}

static int make_blocks(struct making *m)
{
	struct flow *f = m->f;

	for (size_t i = 0; i < f->n; i++) {
		if (m->leads[i] && array_add(f->blocks, f->n_blocks,
					     (struct flow_block){.first = (uint32_t)i}) < 0)
			return -ENOMEM;
		f->blocks[f->n_blocks - 1].n++;
		m->block[i] = (uint32_t)f->n_blocks - 1;
	}
	return 0;
}

static int add_edge(struct flow *f, uint32_t from, uint32_t to, enum flow_edge_kind kind)
{
	return array_add(f->edges, f->n_edges, (struct flow_edge){from, to, kind});
}

/* Where a direct jump goes. */
static int add_jump(struct making *m, uint32_t from, uint64_t target)
{
	struct flow *f = m->f;
	size_t to = starts(m, target);

	if (to != SIZE_MAX)
		return add_edge(f, from, m->block[to], FLOW_TAKEN);
	if (!is_inside(f, target))
		return add_edge(f, from, flow_exit(f), FLOW_LEAVE);
	f->inside++;
	f->open = true;
	return add_edge(f, from, flow_exit(f), FLOW_LOST);
}

static int add_table(struct making *m, uint32_t from, const struct jump_table *t)
{
	int r = 0;

	for (size_t k = 0; r == 0 && k < t->n; k++)
		r = add_edge(m->f, from, m->block[starts(m, t->targets[k])], FLOW_TABLE);
	return r;
}

/* The edges out of the block whose last instruction is @i. @next_table: the tables not used so far,
 * which are in order of their jumps. */
static int add_edges(struct making *m, uint32_t from, size_t i, size_t *next_table)
{
	struct flow *f = m->f;
	const struct code_instruction *x = &f->all[i];
	int r = 0;

	if (is_indirect(x)) {
		if (*next_table < m->n_tables && m->tables[*next_table].jump == i)
			return add_table(m, from, &m->tables[(*next_table)++]);
		f->lost++;
		f->open = true;
		return add_edge(f, from, flow_exit(f), FLOW_LOST);
	}
	if ((x->flow == CODE_BRANCH || x->flow == CODE_JUMP) && x->direct)
		r = add_jump(m, from, x->target);
	else if (x->flow == CODE_JUMP || x->flow == CODE_RETURN || x->flow == CODE_STOP)
		r = add_edge(f, from, flow_exit(f), FLOW_LEAVE);
	if (r < 0 || !falls_through(x))
		return r;
	if (i + 1 < f->n && x[1].at == x->at + x->length)
		return add_edge(f, from, m->block[i + 1], FLOW_FALL);
	/* Into bytes that are no instruction, or out of the function. */
	return add_edge(f, from, flow_exit(f),
			is_inside(f, x->at + x->length) ? FLOW_LOST : FLOW_LEAVE);
}

static bool is_filling(const struct flow *f, const struct flow_block *b)
{
	for (uint32_t i = b->first; i < b->first + b->n; i++)
		if (!f->all[i].fills)
			return false;
	return true;
}

/* Marks what is led to from @block. */
static void reach(const struct flow *f, uint32_t block, bool *reached, uint32_t *stack)
{
	size_t depth = 0;

	reached[block] = true;
	stack[depth++] = block;
	while (depth) {
		const struct flow_block *b = &f->blocks[stack[--depth]];

		for (uint32_t i = b->out; i < b->out + b->n_out; i++) {
			uint32_t to = f->edges[i].to;

			if (to == flow_exit(f) || reached[to])
				continue;
			reached[to] = true;
			stack[depth++] = to;
		}
	}
}

/* What nothing leads to is dead, or (in a function with jumps that nobody could follow) begins
 * where one of those may go. */
static int find_dead(struct making *m)
{
	struct flow *f = m->f;
	_cleanup_free_ bool *reached = calloc(f->n_blocks + 1, sizeof(*reached));
	_cleanup_free_ uint32_t *stack = calloc(f->n_blocks + 1, sizeof(*stack));

	if (!reached || !stack)
		return -ENOMEM;
	if (f->n_blocks)
		reach(f, 0, reached, stack);
	for (size_t i = 0; i < m->n_entered; i++) {
		size_t pad = starts(m, m->entered[i]);

		if (pad == SIZE_MAX || reached[m->block[pad]])
			continue;
		if (add_edge(f, flow_entry(f), m->block[pad], FLOW_LOST) < 0)
			return -ENOMEM;
		reach(f, m->block[pad], reached, stack);
	}
	for (uint32_t b = 0; b < f->n_blocks; b++)
		f->blocks[b].reached = reached[b];
	for (uint32_t b = 0; b < f->n_blocks; b++) {
		if (reached[b])
			continue;
		f->blocks[b].dead = !f->open || is_filling(f, &f->blocks[b]);
		if (f->blocks[b].dead)
			continue;
		if (add_edge(f, flow_entry(f), b, FLOW_LOST) < 0)
			return -ENOMEM;
		reach(f, b, reached, stack);
	}
	return 0;
}

static int make_edges(struct making *m)
{
	struct flow *f = m->f;
	size_t next_table = 0;
	int r = f->n_blocks ? add_edge(f, flow_entry(f), 0, FLOW_FALL) : 0;

	for (uint32_t b = 0; r == 0 && b < f->n_blocks; b++) {
		struct flow_block *block = &f->blocks[b];

		block->out = (uint32_t)f->n_edges;
		r = add_edges(m, b, block->first + block->n - 1, &next_table);
		block->n_out = (uint32_t)f->n_edges - block->out;
	}
	return r < 0 ? r : find_dead(m);
}

static int make(struct making *m, flow_table table, void *arg)
{
	struct flow *f = m->f;
	int r;

	m->index = calloc(f->size + 1, sizeof(*m->index));
	m->leads = calloc(f->n + 1, sizeof(*m->leads));
	m->block = calloc(f->n + 1, sizeof(*m->block));
	if (!m->index || !m->leads || !m->block)
		return -ENOMEM;
	for (size_t i = 0; i < f->n; i++)
		m->index[f->all[i].at - f->start] = (uint32_t)i + 1;
	r = find_tables(m, table, arg);
	if (r < 0)
		return r;
	find_leaders(m);
	r = make_blocks(m);
	return r < 0 ? r : make_edges(m);
}

static int follow(struct code *c, flow_table table, void *arg, const uint64_t *entered,
		  size_t n_entered, struct flow *ret)
{
	_cleanup_(flow_free) struct flow f = {.start = c->start, .size = c->size};
	struct making m = {.f = &f, .code = c, .entered = entered, .n_entered = n_entered};
	int r = decode(c, &f);

	if (r == 0)
		r = make(&m, table, arg);
	free(m.index);
	free(m.leads);
	free(m.block);
	for (size_t i = 0; i < m.n_tables; i++)
		free(m.tables[i].targets);
	free(m.tables);
	if (r < 0)
		return r;
	*ret = f;
	f = (struct flow){0};
	return 0;
}

int flow_of(struct code *c, flow_table table, void *arg, struct flow *ret)
{
	return follow(c, table, arg, NULL, 0, ret);
}

static bool read_word(uint64_t vaddr, int32_t *ret, void *arg)
{
	return elf_object_read(arg, vaddr, ret, sizeof(*ret)) == sizeof(*ret);
}

int flow_read_entered(const struct elf_object *o, uint64_t vaddr, uint64_t size,
		      const uint64_t *entries, size_t n_entries, struct flow *ret)
{
	_cleanup_(code_close) struct code c = {0};
	_cleanup_free_ uint64_t *entered = NULL;
	uint64_t most = size < FLOW_MOST_BYTES ? size : FLOW_MOST_BYTES;
	size_t n = 0;
	int r = code_open(o, vaddr, most, &c);

	if (r == 0)
		r = code_pads(o, vaddr, &entered, &n);
	for (size_t i = 0; r == 0 && i < n_entries; i++)
		r = array_add(entered, n, entries[i]);
	if (r == 0)
		r = follow(&c, read_word, (void *)o, entered, n, ret);
	if (r == 0)
		ret->cut = size > ret->size ? size - ret->size : 0;
	return r;
}

int flow_read(const struct elf_object *o, uint64_t vaddr, uint64_t size, struct flow *ret)
{
	return flow_read_entered(o, vaddr, size, NULL, 0, ret);
}

size_t flow_find(const struct flow *f, uint64_t vaddr)
{
	size_t low = search_front(f->n, i, f->all[i].at + f->all[i].length <= vaddr);

	return low < f->n && vaddr >= f->all[low].at ? low : SIZE_MAX;
}
