// SPDX-License-Identifier: BSD-2-Clause
/* Control flow of functions that stand here as assembly, and which blocks and edges of random
 * graphs execute equally often. */
#include "annotate/classes.h"
#include "annotate/counted.h"
#include "program/elf/flow.h"
#include "base/cleanup.h"
#include "base/rng.h"
#include "program/elf/object.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FUNCTION(name, body) \
	".type " name ", @function\n" name ": " body ".size " name ", . - " name "\n"

/* Never called. */
__asm__(".text\n"
	/* test, je; add, jmp; sub; ret */
	FUNCTION("diamond",
		 "test %edi, %edi; je 1f; add $1, %eax; jmp 2f; 1: sub $1, %eax; 2: ret\n")
		FUNCTION("loop", "xor %eax, %eax; 1: add $1, %eax; cmp $9, %eax; jne 1b; ret\n")
	/* Filled up between, as for an entry that nobody jumps to. */
	FUNCTION("filled", "jmp 1f; nop; .byte 0x66, 0x90; 1: ret\n") FUNCTION(
		"for_ever",
		"1: pause; jmp 1b\n") FUNCTION("into_middle",
					       "test %edi, %edi; je 1f + 1; 1: mov $5, %eax; ret\n")
		FUNCTION("by_pointer",
			 "test %edi, %edi; je 1f; jmp *%rax; 1: ret; 2: add $1, "
			 "%eax; jmp 1b\n") FUNCTION("by_table",
						    "cmp $2, %edi; ja 9f; lea table(%rip), %rdx; "
						    "movslq (%rdx, %rdi, 4), %rax; "
						    "add %rdx, %rax; jmp *%rax;"
						    "1: add $1, %eax; 2: add $2, %eax; ret; 3: add "
						    "$3, %eax; 9: ret;"
						    ".pushsection .rodata\n.balign 4\ntable: .long "
						    "1b - table, 2b - table, 3b "
						    "- table\n.popsection\n")
			FUNCTION("calls", "call diamond; test %eax, %eax; je 1f; syscall; 1: ret\n")
				FUNCTION("leaves", "test %edi, %edi; je diamond; jmp *slot(%rip)\n")
					FUNCTION("not_code",
						 "test %edi, %edi; je 1f; ret; .byte 0x06, 0x06; "
						 "1: ret\n") ".pushsection .data\nslot: "
							     ".8byte 0\n.popsection\n");

static struct elf_object *self;

static void read_flow(const char *function, struct flow *ret)
{
	struct elf_symbol s;

	assert_int_equal(elf_object_find_function(self, function, &s), 0);
	assert_int_equal(flow_read(self, s.addr, s.size, ret), 0);
}

static void check_edges(const char *function, const struct flow *f, const char *wanted)
{
	static const char kinds[] = {[FLOW_FALL] = 'f',
				     [FLOW_TAKEN] = 't',
				     [FLOW_TABLE] = 's',
				     [FLOW_LEAVE] = 'l',
				     [FLOW_LOST] = '?'};
	char got[400] = "";

	for (size_t i = 0; i < f->n_edges; i++) {
		const struct flow_edge *e = &f->edges[i];
		size_t at = strlen(got);

		(void)snprintf(got + at, sizeof(got) - at, e->from == flow_entry(f) ? "E" : "%u",
			       e->from);
		at = strlen(got);
		(void)snprintf(got + at, sizeof(got) - at, e->to == flow_exit(f) ? "%cX " : "%c%u ",
			       kinds[e->kind], e->to);
	}
	if (strcmp(got, wanted) != 0)
		fail_msg("%s: '%s', not '%s'", function, got, wanted);
}

static void edges_are_those_of_the_code(void **state)
{
	static const struct {
		const char *function, *edges;
	} cases[] = {
		{"diamond", "Ef0 0t2 0f1 1t3 2f3 3lX "},
		{"loop", "Ef0 0f1 1t1 1f2 2lX "},
		{"filled", "Ef0 0t2 1f2 2lX "},
		{"for_ever", "Ef0 0t0 "},
		{"into_middle", "Ef0 0?X 0f1 1lX "},
		{"by_pointer", "Ef0 0t2 0f1 1?X 2lX 3t2 E?3 "},
		{"by_table", "Ef0 0t5 0f1 1s2 1s3 1s4 2f3 3lX 4f5 5lX "},
		{"calls", "Ef0 0t2 0f1 1f2 2lX "},
		{"leaves", "Ef0 0lX 0f1 1lX "},
		{"not_code", "Ef0 0t2 0f1 1lX 2lX "},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(flow_free) struct flow f = {0};

		read_flow(cases[i].function, &f);
		check_edges(cases[i].function, &f, cases[i].edges);
	}
}

static void what_is_left_out_is_counted(void **state)
{
	struct flow f;

	(void)state;
	read_flow("into_middle", &f);
	assert_true(f.inside == 1 && f.open && f.lost == 0);
	flow_free(&f);
	read_flow("by_pointer", &f);
	assert_true(f.lost == 1 && f.open && f.inside == 0);
	flow_free(&f);
	read_flow("by_table", &f);
	assert_true(f.lost == 0 && !f.open);
	flow_free(&f);
	read_flow("not_code", &f);
	assert_int_equal(f.holes, 2);
	flow_free(&f);
	read_flow("filled", &f);
	assert_true(f.blocks[1].dead && !f.blocks[0].dead && !f.blocks[2].dead);
	flow_free(&f);
}

static void places_are_found(void **state)
{
	struct flow f;

	(void)state;
	read_flow("loop", &f);
	for (size_t i = 0; i < f.n; i++)
		for (uint64_t at = f.all[i].at; at < f.all[i].at + f.all[i].length; at++)
			assert_int_equal(flow_find(&f, at), i);
	assert_true(flow_find(&f, f.start - 1) == SIZE_MAX &&
		    flow_find(&f, f.start + f.size) == SIZE_MAX);
	flow_free(&f);
}

/* Classes of blocks, by letters in the order in which they come. */
static void check_classes(const char *function, const char *wanted)
{
	_cleanup_(flow_free) struct flow f = {0};
	_cleanup_(classes_free) struct classes c = {0};
	char got[40] = "";

	read_flow(function, &f);
	classes_of(&f, &c);
	for (size_t b = 0; b < f.n_blocks; b++)
		got[b] = c.blocks[b] == CLASS_NONE ? '-' : (char)('a' + c.blocks[b]);
	if (strcmp(got, wanted) != 0)
		fail_msg("%s: '%s', not '%s'", function, got, wanted);
}

static void blocks_of_a_class_are_together(void **state)
{
	(void)state;
	check_classes("diamond", "abca");
	check_classes("loop", "aba");
	check_classes("filled", "a-a");
	check_classes("calls", "aba");
}

#define MOST_BLOCKS 12

/* A graph in which each block is reached, and reaches the exit. */
static void make_random(struct rng *r, struct flow *f)
{
	*f = (struct flow){.n_blocks = 1 + rng_below(r, MOST_BLOCKS)};
	f->blocks = calloc(f->n_blocks, sizeof(*f->blocks));
	f->edges = calloc(3 * f->n_blocks + 3, sizeof(*f->edges));
	assert_true(f->blocks && f->edges);
	f->edges[f->n_edges++] = (struct flow_edge){flow_entry(f), 0, FLOW_FALL};
	for (uint32_t b = 0; b < f->n_blocks; b++) {
		uint32_t next = b + 1 < f->n_blocks ? b + 1 : flow_exit(f);

		f->edges[f->n_edges++] = (struct flow_edge){b, next, FLOW_FALL};
		for (uint64_t k = rng_below(r, 3); k-- > 0;) {
			uint64_t to = rng_below(r, f->n_blocks + 1);

			f->edges[f->n_edges++] = (struct flow_edge){
				b, to == f->n_blocks ? flow_exit(f) : (uint32_t)to, FLOW_TAKEN};
		}
	}
}

/* Blocks and edges as edges of a directed graph whose exit is its entry. */
struct arc {
	uint32_t from, to;
};

static size_t make_arcs(const struct flow *f, struct arc *ret)
{
	uint32_t root = 2 * (uint32_t)f->n_blocks;
	size_t n = 0;

	for (uint32_t b = 0; b < f->n_blocks; b++)
		ret[n++] = (struct arc){2 * b, 2 * b + 1};
	for (size_t i = 0; i < f->n_edges; i++) {
		const struct flow_edge *e = &f->edges[i];

		ret[n++] = (struct arc){e->from == flow_entry(f) ? root : 2 * e->from + 1,
					e->to == flow_exit(f) ? root : 2 * e->to};
	}
	return n;
}

/* Is there a cycle through @a that has not @without? */
static bool has_cycle(const struct arc *arcs, size_t n, size_t a, size_t without)
{
	bool reached[2 * MOST_BLOCKS + 1] = {false};

	reached[arcs[a].to] = true;
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < n; i++)
			if (i != without && reached[arcs[i].from] && !reached[arcs[i].to])
				more = reached[arcs[i].to] = true;
	}
	return reached[arcs[a].from];
}

static void classes_are_those_of_cycles(void **state)
{
	struct arc arcs[5 * MOST_BLOCKS];
	struct rng r;

	(void)state;
	rng_seed(&r, 11);
	for (int turn = 0; turn < 2000; turn++) {
		_cleanup_(flow_free) struct flow f = {0};
		_cleanup_(classes_free) struct classes c = {0};
		size_t n;

		make_random(&r, &f);
		n = make_arcs(&f, arcs);
		classes_of(&f, &c);
		for (size_t i = 0; i < n; i++)
			for (size_t j = 0; j < i; j++) {
				uint32_t x = i < f.n_blocks ? c.blocks[i] : c.edges[i - f.n_blocks];
				uint32_t y = j < f.n_blocks ? c.blocks[j] : c.edges[j - f.n_blocks];
				bool wanted =
					!has_cycle(arcs, n, i, j) && !has_cycle(arcs, n, j, i);

				if ((x == y) != wanted)
					fail_msg("turn %d: %zu and %zu of %zu blocks are %s", turn,
						 i, j, f.n_blocks,
						 wanted ? "one class" : "no class");
			}
	}
}

static int open_self(void **state)
{
	(void)state;
	return elf_object_open("/proc/self/exe", &self, NULL);
}

static int close_self(void **state)
{
	(void)state;
	elf_object_close(self);
	return 0;
}

/* Blocks that have a probe, or share a class with one that has. @sampled: the block whose last
 * instruction a sample was found at, or -1. */
static void check_places(const char *function, int sampled, const char *wanted)
{
	_cleanup_(classes_free) struct classes c = {0};
	_cleanup_(flow_free) struct flow f = {0};
	_cleanup_free_ struct counted_place *all = NULL;
	_cleanup_free_ double *found = NULL;
	char got[40] = "";
	size_t n;

	read_flow(function, &f);
	classes_of(&f, &c);
	found = calloc(f.n + 1, sizeof(*found));
	assert_non_null(found);
	if (sampled >= 0)
		found[f.blocks[sampled].first + f.blocks[sampled].n - 1] = 1;
	counted_places(&f, &c, found, true, &all, &n);
	for (uint32_t b = 0; b < f.n_blocks; b++)
		for (size_t i = 0; i < n; i++)
			if (all[i].class == c.blocks[b])
				(void)snprintf(got + strlen(got), sizeof(got) - strlen(got), "%u ",
					       b);
	if (strcmp(got, wanted) != 0)
		fail_msg("%s: '%s', not '%s'", function, got, wanted);
}

static void probes_stand_where_instructions_surely_begin(void **state)
{
	(void)state;
	check_places("diamond", -1, "0 1 2 3 ");
	check_places("loop", -1, "0 1 2 ");
	/* A table's targets are not sure until one was seen; then what comes after it is as well.
	 */
	check_places("by_table", -1, "0 1 5 ");
	check_places("by_table", 2, "0 1 2 3 5 ");
	/* A call may never come back. */
	check_places("calls", -1, "0 2 ");
	check_places("calls", 0, "0 1 2 ");
	check_places("by_pointer", -1, "0 1 2 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(edges_are_those_of_the_code),
		cmocka_unit_test(what_is_left_out_is_counted),
		cmocka_unit_test(places_are_found),
		cmocka_unit_test(probes_stand_where_instructions_surely_begin),
		cmocka_unit_test(blocks_of_a_class_are_together),
		cmocka_unit_test(classes_are_those_of_cycles),
	};

	return cmocka_run_group_tests(tests, open_self, close_self);
}
