// SPDX-License-Identifier: BSD-2-Clause
/* What a report says of code without names that a program makes as it runs. */
#include "base/jit.h"
#include "profile/reader.h"
#include "report/report.h"
#include "report_print.h"

#include <stdlib.h>

static void add(struct profile *p, const char *location, const char *function, uint64_t count)
{
	p->samples = reallocarray(p->samples, p->n_samples + 1, sizeof(*p->samples));
	assert_non_null(p->samples);
	p->samples[p->n_samples++] =
		(struct profile_samples){.location = strdup(location),
					 .function = function ? strdup(function) : NULL,
					 .count = count};
}

static void names_are_told_apart(void **state)
{
	(void)state;
	assert_true(jit_is_name("f /a.js:1:2 [jit]"));
	assert_false(jit_is_name("f /a.js:1:2"));
	assert_false(jit_is_name(" [jit]"));
	assert_false(jit_is_name("f [jit] [disk]"));
	assert_int_equal(jit_unnamed("unnamed node code [jit]"), 4);
	assert_int_equal(jit_unnamed("unnamed code [jit]"), 0);
	assert_int_equal(jit_unnamed("named node code [jit]"), 0);
	assert_int_equal(jit_unnamed("unnamed node code [jit] [disk]"), 0);
	assert_int_equal(jit_unnamed("f [jit]"), 0);
}

static void the_option_is_named(void **state)
{
	static const struct {
		const char *runtime, *option;
	} all[] = {
		{"node", "40 % of the samples are in code without a name that node makes as it "
			 "runs: start it with `node --perf-basic-prof`"},
		{"java", "`jcmd PID Compiler.perfmap`"},
		{"dotnet", "DOTNET_PerfMapEnabled=1"},
		{"php", "opcache.jit_debug=16"},
		{"luajit", "-DLUAJIT_USE_PERFTOOLS"},
		{"program", "that the program makes as it runs: its perf map (/tmp/perf-PID.map) "
			    "does not say what it is"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct profile p = {.unattributed = 10};
		char name[64], *text;

		(void)snprintf(name, sizeof(name), JIT_UNNAMED "%s" JIT_UNNAMED_END,
			       all[i].runtime);
		add(&p, "main.c:1", NULL, 50);
		add(&p, name, NULL, 40);
		add(&p, "main.c:2 [disk]", NULL, 1000); /* a wait */
		text = print(&p, &(struct report_options){.width = 1000}, NULL);
		says(text, all[i].option);
		says(text, "/tmp/perf-PID.map");
		free(text);
		profile_free(&p);
	}
}

/* Where most has a name, what is left is what no option would name. */
static void little_is_not_worth_a_sentence(void **state)
{
	struct profile p = {0};
	char *text;

	(void)state;
	add(&p, "unnamed node code [jit]", NULL, 40);
	add(&p, "f /a.js:1:2 [jit]", "f", 41);
	text = print(&p, NULL, NULL);
	says_not(text, "without a name");
	free(text);
	profile_free(&p);
	add(&p, "unnamed java code [jit]", NULL, 1);
	add(&p, "main.c:1", NULL, 101);
	text = print(&p, NULL, NULL);
	says_not(text, "without a name");
	free(text);
	profile_free(&p);
}

static void pythons_evaluator_is_known(void **state)
{
	static const char evaluator[] = "_PyEval_EvalFrameDefault";
	static const char option[] = "`python3 -X perf`";
	struct profile p = {0};
	char *text;

	(void)state;
	add(&p, evaluator, NULL, 50);
	add(&p, "Python/ceval.c:100", evaluator, 25);
	add(&p, "main", NULL, 25);
	text = print(&p, &(struct report_options){.width = 1000}, NULL);
	says(text, "75 % of the samples are in the evaluator of Python");
	says(text, option);
	free(text);
	add(&p, "py::f:/a.py [jit]", "py::f:/a.py", 76);
	text = print(&p, &(struct report_options){.width = 1000}, NULL);
	says_not(text, option);
	free(text);
	profile_free(&p);
}

static void add_elsewhere(struct profile *p, const char *location, const char *object,
			  uint64_t count)
{
	p->elsewhere = reallocarray(p->elsewhere, p->n_elsewhere + 1, sizeof(*p->elsewhere));
	assert_non_null(p->elsewhere);
	p->elsewhere[p->n_elsewhere++] =
		(struct profile_elsewhere){.location = location ? strdup(location) : NULL,
					   .object = strdup(object),
					   .count = count};
}

/* Where the evaluator is in a library, which is not in scope. */
static void pythons_library_is_known(void **state)
{
	struct profile p = {.unattributed = 90};
	char *text;

	(void)state;
	add(&p, "main", NULL, 10);
	add_elsewhere(&p, NULL, "/usr/lib/libpython3.13.so.1.0", 50);
	add_elsewhere(&p, NULL, "/usr/lib/libpython3.13.so.1.0", 4);
	add_elsewhere(&p, "main", "/usr/lib/libpython3.13.so.1.0", 6);
	add_elsewhere(&p, NULL, "/usr/lib/libz.so.1", 30);
	text = print(&p, &(struct report_options){.width = 1000}, NULL);
	says(text, "60 % of the samples are in the evaluator of Python");
	free(text);
	/* With a perf map it runs the functions of that. */
	p.elsewhere[0].location = strdup("py::f:/a.py [jit]");
	text = print(&p, &(struct report_options){.width = 1000}, NULL);
	says(text, "10 % of the samples are in the evaluator of Python");
	free(text);
	profile_free(&p);
}

/* A profile of nothing in scope says what there was instead. */
static void objects_out_of_scope_are_named(void **state)
{
	const struct report_hints h = {.samples_out_of_scope = 200};
	struct profile p = {.unattributed = 200};
	char *text;

	(void)state;
	text = print(&p, &(struct report_options){.width = 1000}, &h);
	says(text, "all 200 fell outside it. The scope");
	free(text);
	add_elsewhere(&p, NULL, "[kernel]", 40);
	add_elsewhere(&p, NULL, "/usr/lib/libz.so.1", 155);
	add_elsewhere(&p, NULL, "[anonymous]", 5);
	text = print(&p, &(struct report_options){.width = 1000}, &h);
	says(text, "all 200 fell outside it: 78 % in libz.so.1, 20 % in the kernel. The scope");
	free(text);
	profile_free(&p);
}

/* What has no line is somewhere. */
static void objects_without_a_line_are_named(void **state)
{
	struct profile p = {.sampled = 40, .unattributed = 60};
	char *text;

	(void)state;
	add(&p, "main", NULL, 40);
	add_elsewhere(&p, NULL, "/usr/lib/libz.so.1", 50);
	add_elsewhere(&p, NULL, "/usr/bin/main", 10);
	p.slopes = calloc(1, sizeof(*p.slopes));
	assert_non_null(p.slopes);
	p.n_slopes = 1;
	p.slopes[0] = (struct profile_slopes){.point = strdup("p"),
					      .began = 1,
					      .length = 250000000,
					      .seen = 10,
					      .visits = 10,
					      .time_ns = 1000,
					      .places = strdup("900\tmain\n")};
	text = print(&p, &(struct report_options){.width = 1000}, NULL);
	says(text, "60 % of the samples belong to no line");
	says(text, "(of all samples, 50 % in libz.so.1, 10 % in main). Shares");
	free(text);
	profile_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_told_apart),
		cmocka_unit_test(the_option_is_named),
		cmocka_unit_test(little_is_not_worth_a_sentence),
		cmocka_unit_test(pythons_evaluator_is_known),
		cmocka_unit_test(pythons_library_is_known),
		cmocka_unit_test(objects_out_of_scope_are_named),
		cmocka_unit_test(objects_without_a_line_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
