// SPDX-License-Identifier: BSD-2-Clause
/* No line of a report is wider than was asked for, whatever the names are, and what is cut, left
 * out or broken for that can still be read. */
#include "profile/addresses.h"
#include "profile/merge.h"
#include "profile/reader.h"
#include "report/diff.h"
#include "report/report.h"
#include "report/shares.h"
#include "report/text.h"
#include "analysis_sample.h"
#include "report_print.h"

#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define MS 1000000ull

static const int widths[] = {40, 60, 80, 0, 132, 200};
#define N_WIDTHS (sizeof(widths) / sizeof(widths[0]))

static const char *const samples[] = {"barrier.jsonl", "exact.jsonl", "noisy.jsonl",
				      "hostile.jsonl", "empty.jsonl", "exact.coz",
				      "old.coz"};
#define N_SAMPLES (sizeof(samples) / sizeof(samples[0]))

static void read_sample(struct profile *p, const char *name)
{
	const char *src = getenv("SRC");
	const char *const places[] = {src ? src : ".", ".", "..", "../.."};
	char path[4096];

	for (size_t i = 0; i < 4; i++) {
		(void)snprintf(path, sizeof(path), "%s/tests/data/%s", places[i], name);
		if (access(path, R_OK) == 0) {
			assert_int_equal(profile_read(p, path, NULL), 0);
			return;
		}
	}
	fail_msg("no %s", name);
}

/* @text: is freed. */
static void fits(char *text, int width, const char *what)
{
	size_t most = width ? (size_t)width : 100;

	for (const char *at = text; *at;) {
		size_t n = 0;
		const char *end = at;

		for (; *end && *end != '\n'; end++)
			n += ((unsigned char)*end & 0xc0) != 0x80;
		if (n > most)
			fail_msg("%s: %zu columns for %zu: %.*s", what, n, most, (int)(end - at),
				 at);
		at = end + (*end == '\n');
	}
	free(text);
}

/* Its report in short and in full, and what it says compared with itself. */
static void all_fits(const struct profile *p, const struct report_hints *h, const char *what)
{
	struct analysis a;
	struct comparison c;
	struct diff d = {.c = &c, .before = p, .a = &a, .after = p, .b = &a};

	analyse(p, 1, &a);
	compare(p, &a, p, &a, &c);
	for (size_t i = 0; i < 3 * N_WIDTHS; i++) {
		int width = widths[i / 3];
		bool all = i % 3 == 1;
		struct report_options o = {.width = width,
					   .all = all,
					   .verbose = all,
					   .inlined = all,
					   .curves = all ? 9 : 0};
		char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);

		assert_non_null(f);
		if (i % 3 == 2)
			diff_print(f, &d, width);
		else
			report_print(f, p, &a, &o, h);
		assert_int_equal(fclose(f), 0);
		fits(text, width, what);
	}
	compare_free(&c);
	analysis_free(&a);
}

static void recorded_profiles(void **state)
{
	static const char *const locales[] = {"C", "C.UTF-8"};

	(void)state;
	for (size_t l = 0; l < 2; l++) {
		if (!setlocale(LC_CTYPE, locales[l]))
			continue;
		for (size_t i = 0; i < N_SAMPLES; i++) {
			struct profile p = {0};

			read_sample(&p, samples[i]);
			all_fits(&p, NULL, samples[i]);
			profile_free(&p);
		}
	}
	assert_non_null(setlocale(LC_CTYPE, "C"));
}

#define LONG_PLACE "/home/user/src/a_project/with/several/directories/encoder_implementation.cc"
#define LONG_FUNCTION                                                                       \
	"std::vector<std::pair<int, std::string>, std::allocator<std::pair<int, "           \
	"std::string>>>::_M_realloc_insert<std::pair<int, std::string>>(unsigned long, ..." \
	")::{lambda(auto:1)#2}::operator()"

/* C++, waits of all kinds, latencies, slopes, and names without a place to break them. */
static void fill(struct profile *p)
{
	const struct profile_samples nameless = {.location = (char *)"libz.so.1+0x2f40",
						 .count = 9};
	const struct profile_addresses stripped = {
		.path = (char *)LONG_PLACE "/libz.so.1",
		.build = (char *)"0123456789abcdef0123456789abcdef01234567"};
	static const char *const lines[] = {
		LONG_PLACE ":1000", LONG_PLACE ":1001", LONG_PLACE ":1001 [disk]", "[cpu]",
		LONG_FUNCTION,	    "short [timer]",	"libz.so.1+0x2f40"};

	for (unsigned int i = 0; i < 280; i++) {
		const char *line = lines[i % 7];
		double s = 0.25 * (i / 7 % 5);
		struct profile_run_experiment *x =
			sample_visits(p, line, s, (uint64_t)(1000 - 300 * s + i % 11) * MS, 100);
		struct profile_point *point =
			sample_point(x, PROFILE_LATENCY, "request of " LONG_FUNCTION);

		if (i % 7 < 3)
			x->x.function = strdup(LONG_FUNCTION);
		if (i % 7 >= 4)
			x->x.function = strdup(line);
		x->x.elapsed = 1000 * MS;
		x->x.foreign = 0.01 * (i % 5);
		x->x.hit_ns = x->x.growth = x->x.paid = (uint64_t)(100 * s) * MS;
		x->x.held_asleep = i % 7 == 1 ? 300 * MS : 0;
		point->departures = point->arrivals = 100;
		point->difference = 3;
	}
	profile_set_samples(p, &nameless, 1);
	profile_addresses_add(p, &stripped, &(struct profile_place){0x2f40, 9}, 1);
	p->runs[0].command = strdup("attach 4711 -p 'a=" LONG_FUNCTION "' -o '/tmp/my file'");
	p->runs[0].pay = strdup("hold");
	p->runs[0].inject = strdup("never");
	p->runs[0].fallback = strdup("a_word_" LONG_PLACE "_without_an_end");
	p->runs[0].shared = strdup("p counts visits of " LONG_FUNCTION " as well");
}

static const struct report_hints hints = {
	.profile = "/home/user/measurements/of the program/profile.jsonl",
	.silent_points = (const char *const[]){LONG_FUNCTION},
	.n_silent_points = 1,
	.kernel_counters = "12 x call chains cut short: no call frame information, and no frame "
			   "pointer, in " LONG_PLACE "\n3 x another\n",
	.again = "cozbpf run --repeat auto --until-ci 5 -p 'a=" LONG_FUNCTION "' -- ./program",
};

static void long_names(void **state)
{
	struct profile p = {0}, none = {0};
	char *text;

	(void)state;
	fill(&p);
	all_fits(&p, &hints, "long names");
	all_fits(&none, &hints, "nothing");
	text = print(&p, &(struct report_options){.width = 80, .all = true}, NULL);
	/* What is in no file does not keep the files from being named shortly. */
	says(text, "\nFiles are under /home/user/src/a_project/with/several/directories/\n");
	says(text, "\nFunctions called FILE+0xPLACE have no name");
	says(text, "\nenc");
	says(text, ".cc:1000  ");
	/* The name once, where it is line and function. */
	says(text, "\nshort [timer]  ");
	says_not(text, "short [timer]  short");
	free(text);
	profile_free(&p);
}

/* Without functions of their own rows have no column for them. */
static void functions_are_not_told_twice(void **state)
{
	struct profile p = {0};
	char *text;

	(void)state;
	for (int i = 0; i < 20; i++)
		sample_visits(&p, "encode", 0.25 * (i % 5), 1000 * MS, 100)->x.function =
			strdup("encode");
	text = print(&p, NULL, NULL);
	row_is(text, "line  ", "line share 25 % 50 % 75 % 100 % verdict exp.");
	free(text);
	for (int i = 0; i < 20; i++)
		sample_visits(&p, "a.c:1", 0.25 * (i % 5), 1000 * MS, 100)->x.function =
			strdup("main");
	text = print(&p, NULL, NULL);
	row_is(text, "line  ", "line function share 25 % 50 % 75 % 100 % verdict exp.");
	row_is(text, "a.c:1 ", "a.c:1 main - 0.0 +-0.0 0.0 +-0.0 0.0 +-0.0 0.0 +-0.0 no effect 20");
	row_is(text, "encode ", "encode - 0.0 +-0.0 0.0 +-0.0 0.0 +-0.0 0.0 +-0.0 no effect 20");
	free(text);
	profile_free(&p);
}

/* Narrow tables lack columns, and each row is one line all the same. */
static void columns_are_left_out(void **state)
{
	struct profile p = {0};
	char *text;

	(void)state;
	for (int i = 0; i < 20; i++)
		sample_visits(&p, "/a/directory/hot_file.c:10", 0.25 * (i % 5),
			      (uint64_t)(1000 - 500 * 0.25 * (i % 5)) * MS, 100)
			->x.function = strdup("a_function_of_some_length");
	text = print(&p, &(struct report_options){.width = 80}, NULL);
	row_is(text, "line  ", "line function share 50 % 100 % verdict");
	row_is(text, "hot_file.c:10 ",
	       "hot_file.c:10 a_function_of_some_length - 25.0 +-0.0 50.0 +-0.0 helps");
	free(text);
	text = print(&p, &(struct report_options){.width = 60}, NULL);
	row_is(text, "line  ", "line share 50 % 100 % verdict");
	row_is(text, "hot_file.c:10 ", "hot_file.c:10 - 25.0 +-0.0 50.0 +-0.0 helps");
	free(text);
	text = print(&p, &(struct report_options){.width = 132}, NULL);
	row_is(text, "line  ", "line function share 25 % 50 % 75 % 100 % verdict exp.");
	free(text);
	profile_free(&p);
}

/* A table of nothing but numbers, none of which may be cut, lacks the last ones. */
static void numbers_alone_fit(void **state)
{
	struct profile p = {0};
	struct analysis a;

	(void)state;
	analyse(&p, 1, &a);
	for (int width = 40; width < 130; width += 3) {
		char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);
		struct report r = report_text(f, &p, &a, NULL, width);
		struct text_table t = text_table(&r);
		struct libscols_line *row;

		for (size_t i = 0; i < 8; i++)
			text_column(&t, "number", TEXT_NUMBER, 0);
		row = text_row(&t);
		for (size_t i = 0; i < 8; i++)
			text_cell(row, i, "1234567890.1");
		text_table_end(&t);
		assert_int_equal(fclose(f), 0);
		says(text, "1234567890.1  1234567890.1");
		fits(text, width, "numbers");
	}
	analysis_free(&a);
}

/* The shell's own reading of what is printed after "As often as it takes: cozbpf", a word a line.
 */
static void __attribute__((noinline)) read_by_shell(char *report, char *words, size_t size)
{
	static const char before[] = "As often as it takes: cozbpf";
	char *at = strstr(report, before), *text, *end;
	FILE *f;

	assert_non_null(at);
	/* It ends where no line goes on. */
	for (end = at; (end = strchr(end, '\n')) && end[-1] == '\\'; end++)
		;
	assert_non_null(end);
	*end = '\0';
	assert_true(asprintf(&text, "printf '%%s\\n' %s", at + strlen(before)) > 0);
	f = popen(text, "r");
	assert_non_null(f);
	words[fread(words, 1, size - 1, f)] = '\0';
	assert_int_equal(pclose(f), 0);
	free(text);
	free(report);
}

static void broken_commands_are_whole_to_a_shell(void **state)
{
	static const char whole[] =
		"run\n--repeat\nauto\n-p\nns::a_function<std::pair<int, long>, it's a b>(unsigned "
		"long)\n--output-to\n/a/very/long/path/without/any/place/where/a/line/could/end/"
		"and/then/some/more/of/it/until/it/is/longer/than/lines\n--\n./program\n";
	const struct report_hints h = {
		.again = "cozbpf run --repeat auto -p 'ns::a_function<std::pair<int, long>, "
			 "it'\\''s a b>(unsigned long)' --output-to "
			 "/a/very/long/path/without/any/place/where/a/line/could/end/and/then/"
			 "some/more/of/it/until/it/is/longer/than/lines -- ./program"};
	struct profile none = {0};
	char words[1024];

	(void)state;
	for (int width = 40; width < 240; width++) {
		read_by_shell(print(&none, &(struct report_options){.width = width}, &h), words,
			      sizeof(words));
		assert_string_equal(words, whole);
	}
}

static void tables_of_shares(void **state)
{
	static struct share all[] = {
		{(char *)LONG_FUNCTION, (char *)LONG_PLACE, 700, 7e9},
		{(char *)"main", (char *)"/usr/bin/true", 300, 3e9},
	};
	static char *unread[] = {(char *)LONG_PLACE ": permission denied"};
	const struct shares s = {.all = all,
				 .n = 2,
				 .samples = 1000,
				 .idle = 1000,
				 .amount = 10e9,
				 .event = (char *)"cpu-clock",
				 .unread = unread,
				 .n_unread = 1};
	const struct analysis_change slopes[] = {{0.5, 0.4, 0.6}, {0.1, 0, 0.2}};

	(void)state;
	for (size_t i = 0; i < N_WIDTHS; i++) {
		struct shares_table t = {.s = &s,
					 .by = SHARES_FUNCTION,
					 .database = "/var/lib/cozbpf",
					 .width = widths[i],
					 .slopes = slopes,
					 .point = LONG_FUNCTION};
		char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);

		assert_non_null(f);
		shares_print(f, &t);
		shares_print_diff(f, &t, &t);
		assert_int_equal(fclose(f), 0);
		fits(text, widths[i], "shares");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recorded_profiles),
		cmocka_unit_test(long_names),
		cmocka_unit_test(functions_are_not_told_twice),
		cmocka_unit_test(columns_are_left_out),
		cmocka_unit_test(numbers_alone_fit),
		cmocka_unit_test(broken_commands_are_whole_to_a_shell),
		cmocka_unit_test(tables_of_shares),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
