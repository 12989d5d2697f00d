// SPDX-License-Identifier: BSD-2-Clause
/* More threads than CPUs under hold: what the model of the ledger predicts, and what its rules for
 * sleepers are for. Built plain: it simulates for long, and with sanitizers takes five times as
 * long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bpf_crowd_model.h"

#include <stdio.h>

/* As the truth suite has them (tests/truth/cases.py): 8 threads that share 3 permits, say, and
 * sleep for 1 ms with one. */
static const struct program programs[] = {
	{"independent", 8, 0, 25, 50, 1.5,
	 .steps = {{OTHER, 850}, {LINE, 850}, {VISIT, 0}, {AGAIN, 0}}},
	{"lock taken, inside", 16, 1, 31.2, 62.5, 1.5,
	 .steps = {{TAKE, 0},
		   {OTHER, 3000},
		   {LINE, 5000},
		   {GIVE, 0},
		   {OTHER, 500},
		   {VISIT, 0},
		   {AGAIN, 0}}},
	{"lock taken, outside", 4, 1, 0, 0, 1,
	 .steps = {{TAKE, 0}, {OTHER, 8000}, {GIVE, 0}, {LINE, 500}, {VISIT, 0}, {AGAIN, 0}}},
	{"lock free, outside", 8, 1, 45, 80, 2.5,
	 .steps = {{TAKE, 0}, {OTHER, 500}, {GIVE, 0}, {LINE, 4500}, {VISIT, 0}, {AGAIN, 0}}},
	{"permits, inside", 4, 2, 12.5, 25, 2,
	 .steps = {{TAKE, 0},
		   {LINE, 3000},
		   {ASLEEP, 9000},
		   {GIVE, 0},
		   {OTHER, 300},
		   {VISIT, 0},
		   {AGAIN, 0}}},
	{"cpus, inside", 8, 4, 35, 70, 2.5,
	 .steps = {{TAKE, 0}, {LINE, 3500}, {GIVE, 0}, {OTHER, 1500}, {VISIT, 0}, {AGAIN, 0}}},
	{"asleep, outside", 8, 3, 45, 80, 4.5,
	 .steps = {{TAKE, 0},
		   {OTHER, 500},
		   {ASLEEP, 1000},
		   {GIVE, 0},
		   {LINE, 4500},
		   {VISIT, 0},
		   {AGAIN, 0}}},
	{"asleep, inside", 8, 3, 5, 10, 1.5,
	 .steps = {{TAKE, 0},
		   {LINE, 500},
		   {ASLEEP, 1000},
		   {GIVE, 0},
		   {OTHER, 4500},
		   {VISIT, 0},
		   {AGAIN, 0}}},
	{"asleep for long, outside", 16, 16, 45, 78.8, 9,
	 .steps = {{TAKE, 0},
		   {OTHER, 500},
		   {ASLEEP, 8000},
		   {GIVE, 0},
		   {LINE, 4500},
		   {VISIT, 0},
		   {AGAIN, 0}}},
};

static void predictions_come_true(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		const struct program *p = &programs[i];
		double half = effect(p, 0.5, NOTHING), full = effect(p, 1, NOTHING);

		printf("%-26s 50 %%: %5.1f (%4.1f)  100 %%: %5.1f (%4.1f)\n", p->name, half,
		       p->truth_50, full, p->truth_100);
		if (fabs(half - p->truth_50) > p->bound || fabs(full - p->truth_100) > p->bound)
			fail_msg("%s: %.1f at 50 %%, %.1f at 100 %%, not %.1f and %.1f", p->name,
				 half, full, p->truth_50, p->truth_100);
	}
}

/* What each of the rules for sleepers is good for: without it, a prediction is off by so much. */
static void what_the_rules_are_for(void **state)
{
	static const struct {
		enum without without;
		size_t program;
		double speedup, off;
	} cases[] = {
		{PASSING_BY, 6, 1, 20},
		{AWAKE, 7, 1, 3},
		{TO_THE_END, 8, 1, 15},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct program *p = &programs[cases[i].program];
		double seen = effect(p, cases[i].speedup, cases[i].without);
		double truth = cases[i].speedup < 1 ? p->truth_50 : p->truth_100;

		printf("%-26s without rule %d: %5.1f (%4.1f)\n", p->name, (int)cases[i].without,
		       seen, truth);
		assert_true(fabs(seen - truth) > cases[i].off);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(predictions_come_true),
		cmocka_unit_test(what_the_rules_are_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
