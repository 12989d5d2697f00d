// SPDX-License-Identifier: BSD-2-Clause
/* What a report makes of the names in a profile: long ones, and ones that would steer the terminal.
 */
#include "report/report.h"
#include "analysis_sample.h"
#include "report_print.h"

#include <json-c/json.h>
#include <locale.h>
#include <stdlib.h>

#define MS 1000000ull

/* Into a file or a pipe as well a row is one line that fits in: names are cut out of their middle.
 */
static void rows_fit_without_a_terminal(void **state)
{
	static const char name[] =
		"/src/some/directory/encoder_implementation_with_a_long_name.cc:1000";
	static const char function[] =
		"void example::encoder<std::vector<int>>::encode(unsigned long)";
	struct profile p = {0};
	char *text;

	(void)state;
	for (int i = 0; i < 40; i++) {
		struct profile_run_experiment *x =
			sample_visits(&p, i < 20 ? name : "/src/other.c:2", (i & 1) / 2.0,
				      (uint64_t)(1000 + i * 37 % 400) * MS, 99);

		x->x.function = strdup(function);
		x->x.foreign = 0.5;
	}
	text = print(&p, NULL, NULL);
	says(text, "\nsome");
	says(text, ".cc:1000  void");
	says(text, "...");
	for (const char *at = text; *at; at += strcspn(at, "\n") + 1)
		assert_in_range(strcspn(at, "\n"), 0, 100);
	free(text);
	text = print(&p, &(struct report_options){.width = 300}, NULL);
	says(text, "\nsome/directory/encoder_implementation_with_a_long_name.cc:1000  void "
		   "example::encoder<std::vector<int>>::encode(unsigned long)  ");
	free(text);
	profile_free(&p);
}

/* Escaped, the names are the same to whoever parses them. */
static void json_cannot_steer_the_terminal(void **state)
{
	static const char name[] = "a\x7f\xc2\x9b"
				   "31m\u202e\u00e9.c:1";
	struct profile p = {0};
	struct analysis a;
	struct json_object *root, *v;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	assert_non_null(f);
	for (int i = 0; i < 8; i++)
		(void)sample_visits(&p, name, (i & 1) / 2.0, (uint64_t)(1000 + i) * MS, 99);
	analyse(&p, 1, &a);
	report_json(f, &p, &a);
	(void)fclose(f);
	says(text, "\"a\\u007f\\u009b31m\\u202e\u00e9.c:1\"");
	for (const char *c = text; *c; c++)
		assert_true(*c != 0x7f && *c != '\x9b');
	root = json_tokener_parse(text);
	assert_non_null(root);
	assert_int_equal(json_pointer_get(root, "/points/0/lines/0/selected", &v), 0);
	assert_string_equal(json_object_get_string(v), name);
	json_object_put(root);
	free(text);
	analysis_free(&a);
	profile_free(&p);
}

/* Names come from whoever wrote the program or the file. */
static void names_cannot_steer_the_terminal(void **state)
{
	struct profile p = {0};
	const char *silent[] = {"s\033]0;t\007"};
	struct report_hints h = {.silent_points = silent,
				 .n_silent_points = 1,
				 .kernel_counters = "lost: 3\n\033[2Jx\n"};
	char *text;

	(void)state;
	for (int i = 0; i < 8; i++) {
		struct profile_run_experiment *x = sample_visits(
			&p, "/a/\033[31m\r\x9b.c:1", (i & 1) / 2.0, (uint64_t)(1000 + i) * MS, 99);

		x->x.function = strdup("f\n\033[0m\377");
		sample_point(x, PROFILE_LATENCY, "l\b\b\177")->departures = 9;
	}
	p.runs[0].command = strdup("./a\n\033c");
	p.runs[0].pay = strdup("\033x");
	p.runs[0].fallback = strdup("\a");
	text = print(&p, &(struct report_options){.verbose = true}, &h);
	for (const char *c = text; *c; c++)
		assert_true(*c == '\n' || ((unsigned char)*c >= 0x20 && *c != 0x7f));
	says(text, "s?]0;t?' never fired");
	says(text, "  lost: 3\n");
	free(text);
	profile_free(&p);
}

static void long_names_keep_their_line(void **state)
{
	struct profile p = {0};
	char name[600], *text;

	(void)state;
	memset(name, 'd', sizeof(name));
	(void)strcpy(name + 580, "/x.c:777");
	(void)sample_visits(&p, name, 0, 1000 * MS, 100);
	(void)sample_visits(&p, "/y.c:1", 0.5, 1000 * MS, 100);
	text = print(&p, &(struct report_options){.width = 90}, NULL);
	says(text, "\ndddd");
	says(text, "dddd...dddd");
	says(text, "dddd/x.c:777  ");
	free(text);
	profile_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_fit_without_a_terminal),
		cmocka_unit_test(json_cannot_steer_the_terminal),
		cmocka_unit_test(names_cannot_steer_the_terminal),
		cmocka_unit_test(long_names_keep_their_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
