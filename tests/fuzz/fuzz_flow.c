// SPDX-License-Identifier: BSD-2-Clause
/* Makes code of instructions that jump about, of other instructions and of bytes that are none,
 * with tables that may lead anywhere, and checks what flow_of and classes_of promise. */
#include "fuzz.h"

#include "annotate/classes.h"
#include "annotate/counted.h"
#include "program/elf/flow.h"

#include <stdlib.h>
#include <string.h>

#define START 0x401000
#define TABLE 0x500000
#define ROOM 2048

const unsigned long fuzz_iterations = 60000;

bool fuzz_begin(void)
{
	return true;
}

void fuzz_end(void)
{
}

/* lea table(%rip), %rdx; cmp $N, %edi; movslq (%rdx, %rdi, 4), %rax; add %rdx, %rax; jmp *%rax */
static size_t put_table_jump(struct rng *r, unsigned char *out, size_t at)
{
	unsigned char code[] = {0x48, 0x8d, 0x15, 0,	0,    0,    0,	  0x83, 0xff, 0,
				0x48, 0x63, 0x04, 0xba, 0x48, 0x01, 0xd0, 0xff, 0xe0};
	uint32_t distance = TABLE - (uint32_t)(START + at + 7);

	memcpy(code + 3, &distance, sizeof(distance));
	code[9] = (unsigned char)rng_below(r, 128);
	memcpy(out, code, sizeof(code));
	return sizeof(code);
}

static size_t put(struct rng *r, unsigned char *out, size_t at)
{
	static const unsigned char others[][4] = {
		{0x90},	      {0xc3},	    {0x01, 0xc0},	{0x0f, 0x05},
		{0x85, 0xc0}, {0x0f, 0x0b}, {0x48, 0x89, 0xc3}, {0x06}};
	static const unsigned char lengths[] = {1, 1, 2, 2, 2, 2, 3, 1};
	size_t i = rng_below(r, sizeof(lengths));
	uint32_t to = (uint32_t)rng_below(r, ROOM) - (uint32_t)at;

	switch (rng_below(r, 8)) {
	case 0: /* short branches and jumps, forth and back */
		out[0] = rng_below(r, 3) ? (unsigned char)(0x70 + rng_below(r, 16)) : 0xeb;
		out[1] = (unsigned char)rng_next(r);
		return 2;
	case 1: /* long ones */
		out[0] = rng_below(r, 2) ? 0xe9 : 0xe8;
		memcpy(out + 1, &to, sizeof(to));
		return 5;
	case 2:
		return rng_below(r, 8) ? put(r, out, at) : put_table_jump(r, out, at);
	case 3:
		out[0] = (unsigned char)rng_next(r);
		return 1;
	default:
		memcpy(out, others[i], lengths[i]);
		return lengths[i];
	}
}

size_t fuzz_make(struct rng *r, unsigned char *out, size_t room)
{
	size_t n = 0, wanted = 1 + rng_below(r, 1 + rng_below(r, ROOM - 64));

	if (room < ROOM)
		return 0;
	while (n < wanted)
		n += put(r, out + n, n);
	return n;
}

/* Words of the table are made of the code. */
static bool read_word(uint64_t vaddr, int32_t *ret, void *arg)
{
	const struct code *c = arg;
	uint64_t i = (vaddr - TABLE) / 4;

	if (vaddr < TABLE || i >= c->size)
		return false;
	*ret = (int32_t)(START - TABLE) + (int32_t)(c->bytes[i] * c->size / 256);
	return true;
}

static void check_flow(const struct flow *f)
{
	size_t next = 0;

	for (size_t b = 0; b < f->n_blocks; b++) {
		fuzz_must(f->blocks[b].first == next && f->blocks[b].n > 0);
		fuzz_must(f->blocks[b].out + f->blocks[b].n_out <= f->n_edges);
		next += f->blocks[b].n;
	}
	fuzz_must(next == f->n);
	for (size_t i = 0; i < f->n_edges; i++)
		fuzz_must(f->edges[i].from <= flow_entry(f) &&
			  (f->edges[i].to < f->n_blocks || f->edges[i].to == flow_exit(f)));
	for (size_t i = 0; i < f->n; i++)
		fuzz_must(flow_find(f, f->all[i].at) == i);
	fuzz_must(f->open || (f->lost == 0 && f->inside == 0));
}

static void check_classes(const struct flow *f, const struct classes *c)
{
	for (size_t b = 0; b < f->n_blocks; b++)
		fuzz_must(f->blocks[b].dead ? c->blocks[b] == CLASS_NONE : c->blocks[b] < c->n);
	for (size_t i = 0; i < f->n_edges; i++) {
		bool dead = f->edges[i].from < f->n_blocks && f->blocks[f->edges[i].from].dead;

		fuzz_must(dead ? c->edges[i] == CLASS_NONE : c->edges[i] < c->n);
	}
}

/* Any instruction may have been sampled. */
static void check_places(const struct flow *f, const struct classes *c)
{
	double *found = calloc(f->n + 1, sizeof(*found));
	struct counted_place *all = NULL;
	size_t n;

	fuzz_must(found != NULL);
	for (size_t i = 0; found && i < f->n; i++)
		found[i] = f->all[i].at % 7 == 0;
	counted_places(f, c, found, true, &all, &n);
	for (size_t i = 0; i < n; i++) {
		size_t at = flow_find(f, all[i].vaddr);

		fuzz_must(at < f->n && f->all[at].at == all[i].vaddr &&
			  f->all[at].cost < CODE_NOP5 && all[i].class < c->n);
	}
	free(all);
	free(found);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned char *bytes = malloc(size + 1);
	struct code code = {.bytes = bytes, .start = START, .size = size};
	struct classes c;
	struct flow f;
	bool followed;

	if (!bytes || !size) {
		free(bytes);
		return 0;
	}
	memcpy(bytes, data, size);
	fuzz_must(flow_of(&code, read_word, &code, &f) == 0);
	check_flow(&f);
	classes_of(&f, &c);
	check_classes(&f, &c);
	check_places(&f, &c);
	followed = f.lost == 0;
	classes_free(&c);
	flow_free(&f);
	free(bytes);
	/* All jumps but those into the middle of an instruction could be followed. */
	if (followed)
		fuzz_read();
	return 0;
}
