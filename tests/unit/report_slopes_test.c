// SPDX-License-Identifier: BSD-2-Clause
/* A report on experiments and on the slopes that were measured between them. */
#include "analysis_sample.h"
#include "report_print.h"

#include <stdlib.h>

#define MS 1000000ULL

static void add_window(struct profile *p, const char *places)
{
	p->slopes = reallocarray(p->slopes, p->n_slopes + 1, sizeof(*p->slopes));
	if (!p->slopes)
		abort();
	p->slopes[p->n_slopes] = (struct profile_slopes){.point = strdup("p"),
							 .began = p->n_slopes + 1,
							 .length = 250 * MS,
							 .seen = 100,
							 .visits = 100,
							 .time_ns = 1000 * MS,
							 .places = strdup(places)};
	p->n_slopes++;
}

/* Experiments say of hot.c that it helps by half its speedup, of spin.c the same, of odd.c
 * nothing. */
static void fill(struct profile *p)
{
	for (int i = 0; i < 4; i++)
		for (int s = 0; s <= 100; s += 25) {
			sample_visits(p, "/a/hot.c:10", s / 100.0, (uint64_t)(1000 - 5 * s) * MS,
				      100);
			sample_visits(p, "/a/spin.c:60", s / 100.0, (uint64_t)(1000 - 5 * s) * MS,
				      100);
		}
	for (unsigned int i = 0; i < 4; i++)
		sample_visits(p, "/a/odd.c:50", 0.25 * (1 + i % 2), (700 + 200 * i) * MS, 100);
	for (int i = 0; i < 5; i++)
		add_window(p, "500000000\t/a/hot.c:10\n300000000\t/a/odd.c:50\n"
			      "200000000\t/a/next.c:40\n5000000\t/a/cold.c:70\n"
			      "4000000\t/a/colder.c:80\n"
			      "100000000\t/a/spin.c:60\n");
}

static void slopes_are_rows(void **state)
{
	struct profile p = {0};
	char *text;

	(void)state;
	fill(&p);
	text = print(&p, &(struct report_options){.width = 1000, .all = true}, NULL);
	row_is(text, "line ", "line share slope 25 % 50 % 75 % 100 % verdict exp.");
	row_is(text, "hot.c:10 ",
	       "hot.c:10 - 50.0 +-2.2 12.5 +-0.0 25.0 +-0.0 37.5 +-0.0 50.0 +-0.0 helps 20");
	row_is(text, "next.c:40 ", "next.c:40 - 20.0 +-1.1 - - - - helps (small) 0");
	row_is(text, "cold.c:70 ", "cold.c:70 - 0.5 +-0.8 - - - - no effect (small) 0");
	/* What experiments have decided by them, else by slope. */
	assert_true(strstr(text, "\nhot.c:10 ") < strstr(text, "\nodd.c:50 "));
	assert_true(strstr(text, "\nspin.c:60 ") < strstr(text, "\nodd.c:50 "));
	assert_true(strstr(text, "\nodd.c:50 ") < strstr(text, "\nnext.c:40 "));
	assert_true(strstr(text, "\nnext.c:40 ") < strstr(text, "\ncold.c:70 "));
	says(text, "A 25 % faster hot.c:10 takes 12.5 %");
	says(text, "A 10 % faster odd.c:50 takes 3.0 % [2.9, 3.1] off the time per visit.");
	says(text, " 3 lines were tried: 2 help, 1 is undecided.");
	says(text, "(small): at small speedups");
	free(text);
	text = print(&p, &(struct report_options){.width = 1000}, NULL);
	says_not(text, "cold.c");
	says_not(text, "colder.c");
	says(text, "2 further places: none above 1.3 % (--all shows them).");
	free(text);
	profile_free(&p);
}

/* Of threads that spin a slope says too little. */
static void contradictions_are_told(void **state)
{
	struct profile p = {0};
	char *text;

	(void)state;
	fill(&p);
	text = print(&p, &(struct report_options){.width = 1000}, NULL);
	says(text, "Warning: spin.c:60: its slope is 10.0 %, but experiments say 50.0 %.");
	says_not(text, "hot.c:10: its slope is");
	free(text);
	profile_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slopes_are_rows),
		cmocka_unit_test(contradictions_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
