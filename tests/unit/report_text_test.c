// SPDX-License-Identifier: BSD-2-Clause
/* What the report says, on profiles made here. */
#include "report/report.h"
#include "analysis_sample.h"
#include "report_print.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>

#define MS 1000000ull

/* hot.c helps by half its speedup, lock.c hurts by a fifth, cold.c does nothing. */
static void fill(struct profile *p)
{
	for (int i = 0; i < 4; i++)
		for (int s = 0; s <= 100; s += 25) {
			struct profile_run_experiment *x;

			x = sample_visits(p, "/src/app/hot.c:10", s / 100.0,
					  (uint64_t)(1000 - 5 * s) * MS, 100);
			x->x.elapsed = 1000 * MS;
			x->x.foreign = i == 0 && s == 0 ? 0.2 : 0;
			x->x.hit_ns = x->x.growth = x->x.paid = (uint64_t)s * MS;
			if (i == 0)
				x->x.function = strdup("encode");
			(void)sample_visits(p, "/src/app/lib/lock.c:20", s / 100.0,
					    (uint64_t)(1000 + 2 * s) * MS, 100);
			(void)sample_visits(p, "/src/app/cold.c:30", s / 100.0, 1000 * MS, 100);
		}
	p->runs[0].command = strdup("./app x");
	p->runs[0].pay = strdup("hold");
	p->runs[0].sync = strdup("sched");
	p->runs[0].fallback = strdup("no task work");
	p->runs[0].seed = 4242;
	p->runs[0].period_ns = MS;
}

static void table_and_verdicts(void **state)
{
	struct profile p = {0};
	char *text;

	(void)state;
	fill(&p);
	text = print(&p, &(struct report_options){.verbose = true, .width = 200}, NULL);
	says(text, "Files are under /src/app/\n");
	says(text, "of: ./app x\n");
	says(text, "Progress point 'p': 6000 visits\n");
	row_is(text, "line ", "line function share 25 % 50 % 75 % 100 % verdict exp.");
	row_is(text, "hot.c:10 ",
	       "hot.c:10 encode - 12.5 +-0.0 25.0 +-0.0 37.5 +-0.0 50.0 +-0.0 helps 20");
	row_is(text, "lib/lock.c:20 ",
	       "lib/lock.c:20 - - -5.0 +-0.0 -10.0 +-0.0 -15.0 +-0.0 -20.0 +-0.0 hurts 20");
	row_is(text, "cold.c:30 ",
	       "cold.c:30 - - 0.0 +-0.0 0.0 +-0.0 0.0 +-0.0 0.0 +-0.0 no effect 20");
	assert_true(strstr(text, "\nhot.c:10 ") < strstr(text, "\nlib/lock.c:20 "));
	assert_true(strstr(text, "\nlib/lock.c:20 ") < strstr(text, "\ncold.c:30 "));
	says(text, "\nhot.c:10 (helps)\n");
	says(text, "\nlib/lock.c:20 (hurts: contention)\n");
	says_not(text, "cold.c:30 (");
	says(text, "A negative effect means contention");
	says(text, "Other programs took CPU for 0.3 % of the wait time; in 1 of 60 experiments so "
		   "much that they count for less.");
	says_not(text, "Warning");
	says(text, "1000.0 ms  time that threads were really stopped\n");
	says(text, "Run 1: delays paid by hold, waits followed by sched, sampled every 1.0 ms, "
		   "seed 4242.");
	says(text, "Fallback in use: no task work");
	says(text, "Noise floor of 'p': +-0.0 points");
	says_not(text, "Undecided");
	free(text);
	text = print(&p, &(struct report_options){.width = 1000}, NULL);
	says(text,
	     "\nA 25 % faster hot.c:10 takes 12.5 % [12.5, 12.5] off the time per visit (14.3 % "
	     "more visits per second). "
	     "A 25 % faster lib/lock.c:20 adds 5.0 % [5.0, 5.0] to the time per visit: contention. "
	     "3 lines were tried: 1 helps, 1 hurts, 1 has no effect.\n");
	free(text);
	profile_free(&p);
}

/* @pay: how @threads threads, which keep two of two CPUs busy, were paused. A line that helps. The
 * text is the caller's. */
static char *print_crowd(const char *pay, uint64_t threads)
{
	struct profile p = {0};
	char *text;

	for (unsigned int i = 0; i < 60; i++) {
		double s = i % 3 ? 0.25 * (1 + i % 4) : 0;
		struct profile_experiment *x =
			&sample_visits(&p, "/src/app/hot.c:10", s, (uint64_t)(500 * MS),
				       (uint64_t)(200 / (1 - s / 2)) + i % 2)
				 ->x;

		x->threads = threads;
		x->elapsed = 500 * MS;
		x->executed_ns = 980 * MS;
		p.runtime_ns += x->elapsed;
	}
	p.machine.own_of_ns = 2 * p.runtime_ns;
	p.runs[0].pay = strdup(pay);
	text = print(&p, NULL, NULL);
	profile_free(&p);
	return text;
}

/* Threads that sleep their pauses, and others that wait for a CPU: that cannot be right, and is not
 * told as if it were. */
static void lent_cpus_are_told(void **state)
{
	static const struct {
		const char *pay;
		uint64_t threads;
		bool told;
	} cases[] = {{"sleep", 8, true}, {"spin", 8, false}, {"sleep", 2, false}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *text = print_crowd(cases[i].pay, cases[i].threads);

		(cases[i].told ? says : says_not)(text, "undecided (slept)");
		(cases[i].told ? says : says_not)(text, "use --pay spin");
		(cases[i].told ? says_not : says)(text, "helps");
		free(text);
	}
}

/* One experiment in seven holds most of the visits: the reader is told to look for another point,
 * for more time would not help. */
static void bursts_are_told(void **state)
{
	struct profile p = {0};
	struct json_object *root, *v;
	struct analysis a;
	char *text;
	size_t size;
	FILE *f;

	(void)state;
	for (unsigned int i = 0; i < 84; i++)
		(void)sample_visits(&p, i & 1 ? "/src/app/hot.c:10" : "/src/app/cold.c:30",
				    i % 3 ? 0.25 * (1 + i % 4) : 0, 500 * MS,
				    i % 7 ? 20 + i % 5 : 2000);
	text = print(&p, &(struct report_options){.verbose = true}, NULL);
	says(text, "undecided (bursts)");
	says_not(text, "helps");
	says_not(text, "hurts");
	says(text, "(undecided: visits come in bursts, choose a point that is passed evenly)");
	says(text,
	     "Undecided (bursts): visits come in bursts, choose a point that is passed evenly.");
	says_not(text, "how much longer to run");
	free(text);
	analyse(&p, 1, &a);
	f = open_memstream(&text, &size);
	assert_non_null(f);
	report_json(f, &p, &a);
	assert_int_equal(fclose(f), 0);
	root = json_tokener_parse(text);
	assert_int_equal(json_pointer_get(root, "/points/0/lines/0/verdict", &v), 0);
	assert_string_equal(json_object_get_string(v), "undecided");
	assert_int_equal(json_pointer_get(root, "/points/0/lines/0/undecided_why", &v), 0);
	assert_string_equal(json_object_get_string(v),
			    "visits come in bursts, choose a point that is passed evenly");
	json_object_put(root);
	free(text);
	analysis_free(&a);
	profile_free(&p);
}

/* Sleepers that are held where CPUs are short spoil what others do: no number is told of a line in
 * whose experiments they were. With CPUs to spare they do no harm. */
static void held_sleepers_are_told(void **state)
{
	struct profile p = {0};
	char *text;

	(void)state;
	fill(&p);
	p.runs[0].inject = strdup("never");
	for (size_t i = 0; i < p.n_experiments; i++)
		p.experiments[i].x.held_asleep = strstr(p.experiments[i].x.selected, "hot.c")
							 ? 207 * MS
							 : 9 * MS; /* of 1033 on average */
	text = print(&p, &(struct report_options){.verbose = true, .width = 200}, NULL);
	row_is(text, "hot.c:10 ", "hot.c:10 encode - - - - - not measurable without --inject 20");
	row_is(text, "lib/lock.c:20 ",
	       "lib/lock.c:20 - - -5.0 +-0.0 -10.0 +-0.0 -15.0 +-0.0 -20.0 +-0.0 hurts 20");
	says(text,
	     "Not measurable without --inject: paused threads that should have slept were held");
	says(text, "held for up to 2");
	says(text, "With a handler: cozbpf ./app x --inject=auto\n");
	says_not(text, "hot.c:10 (helps");
	free(text);
	/* One that was put there, or could not be. */
	free(p.runs[0].inject);
	p.runs[0].inject = strdup("always");
	text = print(&p, &(struct report_options){.width = 200}, NULL);
	row_is(text, "hot.c:10 ", "hot.c:10 encode - - - - - undecided (held) 20");
	says_not(text, "--inject");
	free(text);
	p.runtime_ns = 60000 * MS;
	p.machine.scope_of_ns = 4 * p.runtime_ns;
	p.machine.scope_ns = p.machine.foreign_ns = p.runtime_ns;
	text = print(&p, NULL, NULL);
	row_is(text, "hot.c:10 ",
	       "hot.c:10 encode - 12.5 +-0.0 25.0 +-0.0 37.5 +-0.0 50.0 +-0.0 helps 20");
	says_not(text, "should have slept");
	free(text);
	p.machine.foreign_ns += p.runtime_ns / 2;
	text = print(&p, NULL, NULL);
	says(text, "undecided (held)");
	free(text);
	profile_free(&p);
}

static void disturbed_lines_are_marked(void **state)
{
	struct profile p = {0};
	char *text;

	(void)state;
	fill(&p);
	for (size_t i = 0; i < p.n_experiments; i++)
		if (strstr(p.experiments[i].x.selected, "hot.c"))
			p.experiments[i].x.foreign = 0.2;
	text = print(&p, NULL, NULL);
	row_is(text, "hot.c:10 ",
	       "hot.c:10 encode - 12.5 +-0.0 25.0 +-0.0 37.5 +-0.0 50.0 +-0.0 helps * 20");
	row_is(text, "lib/lock.c:20 ",
	       "lib/lock.c:20 - - -5.0 +-0.0 -10.0 +-0.0 -15.0 +-0.0 -20.0 +-0.0 hurts 20");
	says(text,
	     "\nhot.c:10 (helps; disturbed, 20 % of the wait time was behind other programs)\n");
	says(text, "Warning: 20 of 60 experiments");
	says(text, "those with a * behind the verdict");
	free(text);
	/* It is not left for below. */
	text = print(&p, &(struct report_options){.width = 1000}, NULL);
	says(text, " 1 has no effect.\nWarning: 20 of 60");
	free(text);
	profile_free(&p);
}

static void most_experiments_disturbed(void **state)
{
	struct profile p = {0};
	char *text;

	(void)state;
	fill(&p);
	for (size_t i = 0; i < 30; i++)
		p.experiments[i].x.foreign = 0.05;
	text = print(&p, NULL, NULL);
	says(text, "1 helps, 1 hurts, 1 has no effect");
	free(text);
	p.experiments[30].x.stolen = 0.05;
	text = print(&p, NULL, NULL);
	says(text,
	     "visits\nIn 31 of 60 experiments other programs or a hypervisor took CPU time: no "
	     "verdict is given.");
	says(text, "3 lines were tried: 3 are undecided.");
	says_not(text, "Warning");
	says_not(text, "sure to gain");
	says_not(text, "helps");
	says(text, "undecided (disturbed)");
	free(text);
	profile_free(&p);
}

/* The table has no column for them. */
static void effects_of_small_speedups_are_told(void **state)
{
	struct profile p = {0};
	char *text;

	(void)state;
	for (int i = 0; i < 10; i++)
		for (int s = 0; s <= 10; s += 5) {
			(void)sample_visits(&p, "hot.c:10", s / 100.0,
					    (uint64_t)(1000 - 8 * s + i % 2) * MS, 100);
			(void)sample_visits(&p, "lock.c:20", s / 100.0,
					    (uint64_t)(1000 + 8 * s + i % 2) * MS, 100);
		}
	text = print(&p, NULL, NULL);
	row_is(text, "hot.c:10 ", "hot.c:10 - - - - - helps 30");
	says(text, "A 5 % faster hot.c:10 takes 4.0 % [");
	says(text, "A 5 % faster lock.c:20 adds 4.0 % [");
	says_not(text, "sure to gain");
	free(text);
	profile_free(&p);
}

/* Every fact in its place; what is unknown is null, and the result is well-formed whatever the
 * names are. */
static void json_says_the_same(void **state)
{
	struct profile p = {0};
	struct analysis a;
	struct json_object *root, *line, *v;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	fill(&p);
	(void)sample_visits(&p, "/src/app/\xff\".c:1", 0.5, 1000 * MS, 100);
	analyse(&p, 1, &a);
	report_json(f, &p, &a);
	assert_int_equal(fclose(f), 0);
	root = json_tokener_parse(text);
	assert_non_null(root);
	assert_int_equal(json_pointer_get(root, "/points/0/lines/0", &line), 0);
	assert_int_equal(json_pointer_get(line, "/selected", &v), 0);
	assert_string_equal(json_object_get_string(v), "/src/app/hot.c:10");
	assert_int_equal(json_pointer_get(line, "/verdict", &v), 0);
	assert_string_equal(json_object_get_string(v), "helps");
	assert_int_equal(json_pointer_get(line, "/undecided_why", &v), 0);
	assert_null(v);
	assert_int_equal(json_pointer_get(line, "/curve/at/1/effect", &v), 0);
	assert_true(json_object_get_double(v) > 0.249 && json_object_get_double(v) < 0.251);
	assert_int_equal(json_pointer_get(line, "/curve/knee", &v), 0);
	assert_null(v);
	says(text, "/src/app/?\\\".c:1");
	json_object_put(root);
	free(text);
	analysis_free(&a);
	profile_free(&p);
}

static void add_samples(struct profile *p)
{
	static const struct profile_samples all[] = {
		{"/src/app/cold.c:30", 100, NULL},
		{"/src/app/hot.c:10", 300,
		 "200\t/usr/include/x\x1b.h:4\t/src/app/hot.c:10\n50\t/src/app/hot.c:10\t/src/app/"
		 "main.c:9\njunk\n7\n\t\n"
		 "1\t/src/app/hot.c:10\t/src/app/b.c:2\n1\ta:1\tb:1\n1\ta:2\tb:2\n1\ta:3\tb:3"},
	};

	p->samples = calloc(2, sizeof(*p->samples));
	assert_non_null(p->samples);
	for (size_t i = 0; i < 2; i++)
		p->samples[i] =
			(struct profile_samples){strdup(all[i].location), all[i].count,
						 all[i].inlined ? strdup(all[i].inlined) : NULL};
	p->n_samples = 2;
	p->sampled = 320;
}

/* A sample that counts for several lines counts once in what shares are of; and the report says so.
 */
static void inclusive_shares(void **state)
{
	struct profile p = {0};
	char *text;

	(void)state;
	fill(&p);
	add_samples(&p);
	text = print(&p, NULL, NULL);
	says_not(text, "inclusive");
	free(text);
	p.runs[0].attribution = strdup("inclusive");
	p.unattributed = 80; /* of 400 */
	text = print(&p, NULL, NULL);
	says(text, "20 % of the samples belong to no line or function");
	row_is(text, "hot.c:10 ",
	       "hot.c:10 encode 75.0 % 12.5 +-0.0 25.0 +-0.0 37.5 +-0.0 50.0 +-0.0 helps 20");
	free(text);
	p.unattributed = 10;
	text = print(&p, NULL, NULL);
	says_not(text, "belong to no line");
	row_is(text, "hot.c:10 ",
	       "hot.c:10 encode 90.9 % 12.5 +-0.0 25.0 +-0.0 37.5 +-0.0 50.0 +-0.0 helps 20");
	free(text);
	p.unattributed = 0;
	text = print(&p, NULL, NULL);
	says(text, "Attribution is inclusive");
	says_not(text, "not comparable");
	row_is(text, "hot.c:10 ",
	       "hot.c:10 encode 93.8 % 12.5 +-0.0 25.0 +-0.0 37.5 +-0.0 50.0 +-0.0 helps 20");
	row_is(text, "cold.c:30 ",
	       "cold.c:30 - 31.2 % 0.0 +-0.0 0.0 +-0.0 0.0 +-0.0 0.0 +-0.0 no effect 20");
	free(text);
	p.runs = reallocarray(p.runs, 2, sizeof(*p.runs));
	assert_non_null(p.runs);
	p.runs[1] = (struct profile_startup){.attribution = strdup("first")};
	p.n_runs = 2;
	text = print(&p, NULL, NULL);
	says(text, "1 of 2 runs attributed samples to the first line only");
	free(text);
	profile_free(&p);
}

static void inlined_copies_are_shown(void **state)
{
	struct report_options o = {.inlined = true, .width = 200};
	struct profile p = {0};
	struct json_object *root, *v;
	struct analysis a;
	char *text = NULL;
	size_t size;
	FILE *f;

	(void)state;
	fill(&p);
	text = print(&p, &o, NULL);
	says_not(text, "Inlined");
	free(text);
	add_samples(&p);
	text = print(&p, NULL, NULL);
	says_not(text, "Inlined");
	free(text);
	text = print(&p, &o, NULL);
	says(text, "Inlined code, with its share of the line's samples:\n  hot.c:10\n"
		   "     66.7 %  /usr/include/x?.h:4 in hot.c:10\n"
		   "     16.7 %  hot.c:10 in main.c:9\n"
		   "      0.3 %  hot.c:10 in b.c:2\n"
		   "      0.3 %  a:1 in b:1\n"
		   "      0.3 %  a:2 in b:2\n"
		   "    (1 more)\n");
	says_not(text, "junk");
	free(text);
	analyse(&p, 1, &a);
	f = open_memstream(&text, &size);
	report_json(f, &p, &a);
	assert_int_equal(fclose(f), 0);
	root = json_tokener_parse(text);
	assert_int_equal(json_pointer_get(root, "/points/0/lines/0/inlined/1/lines/1", &v), 0);
	assert_string_equal(json_object_get_string(v), "/src/app/main.c:9");
	assert_int_equal(json_pointer_get(root, "/points/0/lines/0/inlined/1/samples", &v), 0);
	assert_int_equal(json_object_get_int(v), 50);
	json_object_put(root);
	free(text);
	analysis_free(&a);
	profile_free(&p);
}

static void options_are_honoured(void **state)
{
	struct report_options o = {.top = 1, .curves = (size_t)-1, .width = 1};
	struct profile p = {0};
	char *text;

	(void)state;
	fill(&p);
	text = print(&p, &o, NULL);
	says(text, "hot.c:10");
	says_not(text, "\ncold.c:30");
	says(text, "2 further places: none above 0.0 %");
	says_not(text, "(helps)");
	says_not(text, "\033");
	free(text);
	o = (struct report_options){.color = true, .width = 120};
	text = print(&p, &o, NULL);
	says(text, "\033[32mhelps");
	says(text, "\033[31mhurts");
	free(text);
	profile_free(&p);
}

static void plots_have_their_marks_in_place(void **state)
{
	struct profile p = {0};
	char *text;

	(void)state;
	fill(&p);
	text = print(&p, &(struct report_options){.width = 60}, NULL);
	/* 41 columns for 0..100 %: a mark every 10, the top row at 50 %. */
	says(text, "\n   50 %                                         o\n");
	says(text, "\n    0 % o----------------------------------------\n"
		   "        0         25        50        75        100 % faster\n");
	free(text);
	profile_free(&p);
}

static void utf8_locales_get_signs(void **state)
{
	struct profile p = {0};
	char *text;

	(void)state;
	if (!setlocale(LC_CTYPE, "C.UTF-8"))
		skip();
	fill(&p);
	sample_point(&p.experiments[0], PROFILE_THROUGHPUT, "stra\u00dfe\u202e\xc2\x85")->delta = 1;
	text = print(&p, NULL, NULL);
	says(text, "12.5 \u00b10.0");
	says(text, "\u25cf\u2500");
	says(text, "'stra\u00dfe?"
		   "?'"); /* in two pieces: not a trigraph */
	free(text);
	assert_non_null(setlocale(LC_CTYPE, "C"));
	text = print(&p, NULL, NULL);
	says(text, "'stra?e?"
		   "?'");
	for (const char *c = text; *c; c++)
		assert_true((unsigned char)*c < 0x80);
	free(text);
	profile_free(&p);
}

static void empty_profiles_explain_themselves(void **state)
{
	static const char *const silent[] = {"frame_done", "other"},
				 *const seen[] = {"/usr/lib/libx.so: 70 % of samples"};
	struct profile p = {0};
	struct report_hints h = {.silent_points = silent,
				 .n_silent_points = 2,
				 .seen_objects = seen,
				 .n_seen_objects = 1,
				 .no_debug_info = "/opt/app",
				 .samples_in_scope = 40,
				 .samples_without_line = 40,
				 .run_s = 0.3};
	char *text;

	(void)state;
	text = print(&p, NULL, NULL);
	says(text, "The profile is empty.");
	says(text, "No experiment was completed: the run was too short.");
	says(text, "There are no samples");
	free(text);
	text = print(&p, NULL, &h);
	says(text, "'frame_done' never fired");
	says(text, "'other' never fired");
	says(text, "/opt/app has no debug information: 40 of 40 samples");
	says(text, "--granularity");
	says(text, "lasted 0.3 s");
	says(text, "/usr/lib/libx.so: 70 % of samples");
	says_not(text, "There are no samples");
	free(text);
	h.by_function = true;
	text = print(&p, NULL, &h);
	says(text, "/opt/app has no function symbols: 40 of 40 samples");
	says_not(text, "debug information");
	free(text);
	h = (struct report_hints){.samples_out_of_scope = 900, .run_s = 30};
	text = print(&p, NULL, &h);
	says(text, "all 900 fell outside it");
	says_not(text, "too short");
	free(text);
	/* Experiments, but no visit in any. */
	(void)sample_visits(&p, "a.c:1", 0, 500 * MS, 0);
	text = print(&p, NULL, NULL);
	says(text, "'p' never fired");
	says(text, "Only 1 experiment in ");
	says_not(text, "1 experiments");
	free(text);
	profile_free(&p);
	/* Experiments without points at all. */
	(void)sample_experiment(&p, "a.c:1", 0, 500 * MS);
	text = print(&p, NULL, NULL);
	says(text, "There is no progress point");
	free(text);
	profile_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_and_verdicts),
		cmocka_unit_test(bursts_are_told),
		cmocka_unit_test(lent_cpus_are_told),
		cmocka_unit_test(held_sleepers_are_told),
		cmocka_unit_test(disturbed_lines_are_marked),
		cmocka_unit_test(most_experiments_disturbed),
		cmocka_unit_test(effects_of_small_speedups_are_told),
		cmocka_unit_test(json_says_the_same),
		cmocka_unit_test(inclusive_shares),
		cmocka_unit_test(inlined_copies_are_shown),
		cmocka_unit_test(options_are_honoured),
		cmocka_unit_test(plots_have_their_marks_in_place),
		cmocka_unit_test(utf8_locales_get_signs),
		cmocka_unit_test(empty_profiles_explain_themselves),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
