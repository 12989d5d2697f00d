// SPDX-License-Identifier: BSD-2-Clause
/* Which lines have a row, in which order, what stands beside and below them, and what is left for
 * --verbose. */
#include "report/report.h"
#include "analysis_sample.h"
#include "profile/merge.h"
#include "report_print.h"

#include <locale.h>
#include <stdlib.h>

#define MS 1000000ull
#define RARE 31

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

/* Adds experiments on a line: at speedup s the time per visit is 1 - s * @gain. */
static void try_line(struct profile *p, const char *line, double gain)
{
	for (int i = 0; i < 4; i++)
		for (int s = 0; s <= 100; s += 25) {
			struct profile_experiment *x =
				&sample_visits(p, line, s / 100.0,
					       (uint64_t)(1000 - s * gain * 10) * MS, 100)
					 ->x;

			x->elapsed = 1000 * MS;
			x->hit_ns = x->growth = x->paid = (uint64_t)s * MS;
			x->waits = 50;
		}
}

/* One that may be worth a lot, and one that is surely worth nothing. */
static void add_wide(struct profile *p)
{
	for (unsigned int i = 0; i < 12; i++)
		sample_visits(p, "/a/wide.c:3", i % 2 ? 0.5 : 0,
			      i % 2 ? (400 + 300 * (i / 2 % 4)) * MS : 1000 * MS, 100);
}

static const char *row(const char *text, const char *name)
{
	const char *at = strstr(text, name);

	if (!at)
		fail_msg("no row \"%s\" in:\n%s", name + 1, text);
	return at;
}

static void what_is_sure_comes_first(void **state)
{
	struct profile p = {0};
	char *text;

	(void)state;
	try_line(&p, "/a/flat.c:2", 0);
	try_line(&p, "/a/loss.c:4", -0.2);
	try_line(&p, "/a/sure.c:1", 0.5);
	add_wide(&p);
	text = print(&p, NULL, NULL);
	assert_true(row(text, "\nsure.c:1 ") < row(text, "\nloss.c:4 "));
	assert_true(row(text, "\nloss.c:4 ") < row(text, "\nwide.c:3 "));
	/* No row of nothing before one of something, however sure the nothing is. */
	assert_true(row(text, "\nwide.c:3 ") < row(text, "\nflat.c:2 "));
	free(text);
	profile_free(&p);
}

/* A slope that is sure goes before one that may be larger. */
static void slopes_are_sorted_by_what_is_sure(void **state)
{
	struct profile p = {0};
	char *text;

	(void)state;
	for (unsigned int i = 0; i < 6; i++)
		add_window(&p, i % 2 ? "900000000\t/a/wide.c:3\n250000000\t/a/sure.c:1\n"
				     : "100000\t/a/wide.c:3\n250000000\t/a/sure.c:1\n");
	text = print(&p, NULL, NULL);
	assert_non_null(strstr(text, "\nsure.c:1 "));
	says_not(text, "\nwide.c:3 ");
	says(text, "1 further place: none above ");
	free(text);
	text = print(&p, &(struct report_options){.all = true}, NULL);
	assert_true(row(text, "\nsure.c:1 ") < row(text, "\nwide.c:3 "));
	free(text);
	profile_free(&p);
}

static void lines_without_evidence_are_folded(void **state)
{
	struct profile p = {0};
	char places[4096] = "500000000\t/a/sure.c:1\n", *text;

	(void)state;
	try_line(&p, "/a/sure.c:1", 0.5);
	for (int i = 0; i < RARE; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "/a/rare%d.c:1", i);
		sample_visits(&p, name, 0.5, (600 + 30ull * (unsigned int)i) * MS, 100);
		(void)snprintf(places + strlen(places), sizeof(places) - strlen(places),
			       "5000000\t%s\n", name);
	}
	for (int i = 0; i < 5; i++)
		add_window(&p, places);
	text = print(&p, NULL, NULL);
	says(text, "\nsure.c:1 ");
	says_not(text, "rare");
	says(text, "\n31 further places: none above 1.3 % (--all shows them).\n");
	free(text);
	text = print(&p, &(struct report_options){.all = true}, NULL);
	says(text, "\nrare0.c:1 ");
	says(text, "\nrare30.c:1 ");
	says_not(text, "further place");
	free(text);
	profile_free(&p);
}

/* Ten at most, and a line on the others though each of them is known well. */
static void rows_are_ten_at_most(void **state)
{
	struct profile p = {0};
	char *text;

	(void)state;
	for (int i = 0; i < 13; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), "/a/line%d.c:1", i);
		try_line(&p, name, 0.5 - 0.03 * i);
	}
	text = print(&p, NULL, NULL);
	says(text, "\nline0.c:1 ");
	says(text, "\nline9.c:1 ");
	says_not(text, "\nline10.c:1 ");
	says(text, "\n3 further places: none above 20.0 % (--all shows them).\n");
	free(text);
	text = print(&p, &(struct report_options){.top = 12}, NULL);
	says(text, "\nline11.c:1 ");
	says(text, "\n1 further place: none above 14.0 % (--all shows it).\n");
	free(text);
	profile_free(&p);
}

/* Where nothing says anything of any line, what there is of them is better than no table. */
static void few_experiments_are_shown(void **state)
{
	struct profile p = {0};
	char *text;

	(void)state;
	for (unsigned int i = 0; i < 6; i++)
		sample_visits(&p, i % 2 ? "/a/one.c:1" : "/a/two.c:2", i / 2 * 0.25, 1000 * MS, 99);
	text = print(&p, NULL, NULL);
	says(text, "\none.c:1 ");
	says(text, "\ntwo.c:2 ");
	says_not(text, "further place");
	free(text);
	profile_free(&p);
}

static void books_are_for_who_asks(void **state)
{
	static const char *const books[] = {"time that threads were really stopped", "seed 4242",
					    "Noise floor of", "A negative effect means"};
	struct profile p = {0};
	char *text;

	(void)state;
	try_line(&p, "/a/sure.c:1", 0.5);
	try_line(&p, "/a/loss.c:4", -0.2);
	p.runs[0].pay = strdup("hold");
	p.runs[0].seed = 4242;
	p.runs[0].period_ns = MS;
	text = print(&p, &(struct report_options){.verbose = true}, NULL);
	for (size_t i = 0; i < sizeof(books) / sizeof(books[0]); i++)
		says(text, books[i]);
	says_not(text, "--verbose says more");
	free(text);
	text = print(&p, &(struct report_options){.curves = (size_t)-1}, NULL);
	for (size_t i = 0; i < sizeof(books) / sizeof(books[0]); i++)
		says_not(text, books[i]);
	says(text, "\n\nFidelity: good: 0 of 40 experiments were disturbed; noise floor +-0.0 "
		   "points. --verbose says more.\nNext: ");
	free(text);
	profile_free(&p);
}

/* What some experiments were disturbed by is for who asks; if more were, part of it may be our own
 * doing. */
static void warnings_are_for_what_matters(void **state)
{
	struct profile p = {0};
	char *text;

	(void)state;
	try_line(&p, "/a/sure.c:1", 0.5);
	try_line(&p, "/a/loss.c:4", -0.2);
	try_line(&p, "/a/flat.c:2", 0);
	for (size_t i = 0; i < p.n_experiments; i++)
		p.experiments[i].x.foreign = i % 12 ? 0.001 : 0.03;
	text = print(&p, NULL, NULL);
	says_not(text, "Warning");
	free(text);
	for (size_t i = 0; i < p.n_experiments; i++)
		p.experiments[i].x.foreign = i % 5 ? 0.016 : 0.03;
	p.machine = (struct profile_machine){.own_ns = 1 * MS,
					     .own_of_ns = 100 * MS,
					     .foreign_ns = 4 * MS,
					     .scope_ns = 90 * MS,
					     .scope_of_ns = 100 * MS};
	text = print(&p, &(struct report_options){.width = 500}, NULL);
	says(text, "Warning: 12 of 60 experiments ran with other programs taking CPU (1.9 % of the "
		   "wait time, 25 % of that cozbpf itself).");
	free(text);
	p.machine.own_ns = 2 * MS;
	text = print(&p, NULL, NULL);
	says_not(text, "Warning");
	free(text);
	profile_free(&p);
}

static void next_is(const struct profile *p, const struct report_hints *h, const char *words)
{
	char *text = print(p, &(struct report_options){.width = 500}, h), *last = text;

	for (char *at = text; (at = strchr(at, '\n')) && at[1]; at++)
		last = at + 1;
	assert_string_equal(last, words);
	free(text);
}

static void what_to_do_next(void **state)
{
	const struct report_hints h = {.profile = "my profile"};
	struct profile p = {0};

	(void)state;
	try_line(&p, "/a/flat.c:2", 0);
	next_is(&p, NULL,
		"Next: try another progress point, or waits as well (--what all): none of these "
		"lines is worth it for this one.\n");
	add_wide(&p);
	{
		char *text = print(&p, &(struct report_options){.width = 500}, NULL);

		says(text, "\nNext: run about ");
		says(text, " longer, which decides wide.c:3; runs into the same file add up.\n");
		free(text);
	}
	profile_free(&p);
	try_line(&p, "/a/loss.c:4", -0.2);
	next_is(&p, NULL,
		"Next: look for what threads share at loss.c:4: a lock, a cache line, a queue.\n");
	try_line(&p, "/a/sure.c:1", 0.5);
	next_is(&p, &h, "Next: make sure.c:1 faster; cozbpf diff says what came of it.\n");
	p.addresses = calloc(1, sizeof(*p.addresses));
	assert_non_null(p.addresses);
	p.n_addresses = 1;
	next_is(&p, &h, "Next: see its instructions: cozbpf annotate sure.c:1 'my profile'\n");
	next_is(&p, NULL, "Next: see its instructions: cozbpf annotate sure.c:1 PROFILE\n");
	/* Code of a JIT compiler is in no file. */
	try_line(&p, "best [jit]", 0.6);
	next_is(&p, &h, "Next: make best [jit] faster; cozbpf diff says what came of it.\n");
	profile_free(&p);
	try_line(&p, "/a/queue.c:9 [disk]", 0.5);
	next_is(&p, &h, "Next: fewer or shorter waits at queue.c:9 [disk].\n");
	profile_free(&p);
}

/* Shares are there in any case. */
static void shares_without_a_point(void **state)
{
	const struct profile_samples samples[] = {
		{.location = (char *)"/src/a.c:1", .count = 3000, .function = (char *)"f"},
		{.location = (char *)"/src/b.c:2", .count = 6000},
		{.location = (char *)"/src/c.c:3", .count = 1},
		{.location = (char *)"/src/a.c:1 [disk]", .count = 5000, .ns = 100 * MS},
	};
	struct profile p = {.unattributed = 999};
	char *text;

	(void)state;
	profile_set_samples(&p, samples, 4);
	text = print(&p, NULL, NULL);
	says(text, "The profile is empty.");
	row_is(text, "line ", "line function share");
	row_is(text, "/src/b.c:2 ", "/src/b.c:2 - 60.0 %");
	row_is(text, "/src/a.c:1 ", "/src/a.c:1 f 30.0 %");
	assert_true(strstr(text, "\n/src/b.c:2 ") < strstr(text, "\n/src/a.c:1 "));
	says_not(text, "c.c:3");
	says_not(text, "[disk]");
	free(text);
	text = print(&p, &(struct report_options){.top = 1}, NULL);
	says(text, "/src/b.c:2");
	says_not(text, "/src/a.c:1");
	free(text);
	profile_free(&p);
}

/* What a line had called takes the time. */
static void time_elsewhere_is_told(void **state)
{
	static const char told[] = "80 % of the time of sure.c:1 is in ";
	struct profile_elsewhere *e;
	struct profile p = {.sampled = 100};
	char *text;

	(void)state;
	try_line(&p, "/a/sure.c:1", 0.5);
	p.samples = calloc(1, sizeof(*p.samples));
	p.elsewhere = e = calloc(1, sizeof(*p.elsewhere));
	assert_true(p.samples && e);
	p.samples[0] = (struct profile_samples){.location = strdup("/a/sure.c:1"), .count = 50};
	*e = (struct profile_elsewhere){strdup("/a/sure.c:1"), strdup("/lib/libz.so.1.3"), 40};
	p.n_samples = p.n_elsewhere = 1;
	text = print(&p, &(struct report_options){.width = 1000}, NULL);
	says(text, told);
	says(text, "libz.so.1.3: -b MAIN -b 'libz.so*' tries what is there.\n");
	free(text);
	free(e->object);
	e->object = strdup("[kernel]");
	text = print(&p, &(struct report_options){.width = 1000}, NULL);
	says(text, told);
	says(text, " is in the kernel.\n");
	free(text);
	e->count = 24;
	text = print(&p, &(struct report_options){.width = 1000}, NULL);
	says_not(text, " of the time of ");
	free(text);
	profile_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_sure_comes_first),
		cmocka_unit_test(time_elsewhere_is_told),
		cmocka_unit_test(slopes_are_sorted_by_what_is_sure),
		cmocka_unit_test(lines_without_evidence_are_folded),
		cmocka_unit_test(rows_are_ten_at_most),
		cmocka_unit_test(few_experiments_are_shown),
		cmocka_unit_test(books_are_for_who_asks),
		cmocka_unit_test(warnings_are_for_what_matters),
		cmocka_unit_test(what_to_do_next),
		cmocka_unit_test(shares_without_a_point),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
