// SPDX-License-Identifier: BSD-2-Clause
/* --latency: the grammar, and that what is wrong is said in words of --latency. */
#include "base/error.h"
#include "cli/options/latency_spec.h"
#include "cli/options/run_options.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void accepted(void **state)
{
	static const struct {
		const char *text, *name, *begin, *end;
		unsigned int begin_argument, end_argument;
	} cases[] = {
		{"req=start,finish", "req", "start", "finish", 0, 0},
		{"a.b-c_9=start,finish,key=arg1", "a.b-c_9", "start", "finish", 1, 1},
		{"q=push,pop,key=arg6:arg2", "q", "push", "pop", 6, 2},
		{"q=f(int, char),g(std::map<int, char>, long)", "q", "f(int, char)",
		 "g(std::map<int, char>, long)", 0, 0},
		{"q=f<int, char>,g,key=arg2", "q", "f<int, char>", "g", 2, 2},
		{"q=<T as F<A, B>>::call,a::{closure#0}", "q", "<T as F<A, B>>::call",
		 "a::{closure#0}", 0, 0},
		{"q=operator<(A, B),operator>>(A, B)", "q", "operator<(A, B)", "operator>>(A, B)",
		 0, 0},
		{"q=A::operator(),g", "q", "A::operator()", "g", 0, 0},
		{"q=operator,(A, B),g", "q", "operator,(A, B)", "g", 0, 0},
		{"q=g,operator,", "q", "g", "operator,", 0, 0},
		{"q=operator,,g", "q", "operator,", "g", 0, 0},
		{"q=A::operator->,g", "q", "A::operator->", "g", 0, 0},
		{"q=fn() -> (i32, i32),g", "q", "fn() -> (i32, i32)", "g", 0, 0},
		{"q=operator==(A, B),g", "q", "operator==(A, B)", "g", 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct latency_spec l;
		struct error e = {""};

		if (latency_spec_parse(cases[i].text, &l, &e) < 0)
			fail_msg("%s: %s", cases[i].text, e.text);
		assert_string_equal(l.name, cases[i].name);
		assert_string_equal(l.ends[0].name, cases[i].name);
		assert_ptr_equal(strstr(l.ends[1].name, cases[i].name), l.ends[1].name);
		assert_string_not_equal(l.ends[1].name, l.ends[0].name);
		assert_string_equal(l.ends[0].function, cases[i].begin);
		assert_string_equal(l.ends[1].function, cases[i].end);
		assert_int_equal(l.arguments[0], cases[i].begin_argument);
		assert_int_equal(l.arguments[1], cases[i].end_argument);
		latency_spec_free(&l);
	}
}

static void lines_and_offsets(void **state)
{
	struct latency_spec l;
	struct error e = {""};

	(void)state;
	assert_int_equal(latency_spec_parse("q=a.c:12,lib:f+4", &l, &e), 0);
	assert_int_equal(l.ends[0].kind, POINT_FILE_LINE);
	assert_int_equal(l.ends[0].line, 12);
	assert_int_equal(l.ends[1].kind, POINT_BINARY_FUNCTION);
	assert_int_equal(l.ends[1].offset, 4);
	latency_spec_free(&l);
}

/* Only where registers are read must a probe stay where it was put. */
static void keys_are_read_at_the_entry(void **state)
{
	struct latency_spec l;
	struct error e = {""};

	(void)state;
	assert_int_equal(latency_spec_parse("q=f,g,key=arg1", &l, &e), 0);
	assert_true(l.ends[0].exact && l.ends[1].exact);
	latency_spec_free(&l);
	assert_int_equal(latency_spec_parse("q=usdt:p:n,f%return", &l, &e), 0);
	assert_true(!l.ends[0].exact && !l.ends[1].exact);
	assert_int_equal(l.ends[0].kind, POINT_USDT);
	assert_true(l.ends[1].at_return);
	latency_spec_free(&l);
}

static void refused(void **state)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"req", "no name"},
		{"", "no name"},
		{"=f,g", "no name"},
		{"a b=f,g", "no name"},
		{"req=start", "END is missing; allowed is NAME=BEGIN,END[,key=argN]"},
		{"req=start,", "END is missing"},
		{"req=,finish", "BEGIN is missing"},
		{"req=", "BEGIN is missing"},
		{"req=start,key=arg1", "END is missing"},
		{"req=start,finish,", "'' is no key"},
		{"req=start,finish,kye=arg1", "'kye=arg1' is no key; allowed are key=argN"},
		{"req=start,finish,key=arg9",
		 "'key=arg9' is no key; allowed are key=argN and key=argN:argM, arg1 (a function's "
		 "first argument) to arg6"},
		{"req=start,finish,key=arg0", "is no key"},
		{"req=start,finish,key=arg", "is no key"},
		{"req=start,finish,key=arg1x", "is no key"},
		{"req=start,finish,key=arg1:", "is no key"},
		{"req=start,finish,key=arg1:arg7", "is no key"},
		{"req=start,finish,key=arg1:arg2:arg3", "is no key"},
		{"req=start,finish,key=arg1,more", "too many commas"},
		{"req=start,start", "the same place"},
		{"req=x=start,finish", "BEGIN has a name of its own, 'x'"},
		{"req=sampled:a.c:1,finish",
		 "BEGIN cannot be sampled:, whose visits are not seen one by one"},
		{"req=start,sampled:libc.so.6:write",
		 "END cannot be sampled:, whose visits are not seen one by one"},
		{"req=a.c:1,finish,key=arg1", "'a.c:1' is not the entry of one"},
		{"req=f,g%return,key=arg1", "'g%return' is not the entry of one"},
		{"req=syscall:read,g,key=arg1", "is not the entry of one"},
		{"req=usdt:p:n,g,key=arg1", "is not the entry of one"},
		{"req=a.c:0,finish", "--latency req, BEGIN 'a.c:0': lines are numbered"},
		{"req=start,lib:", "--latency req, END 'lib:'"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct latency_spec l;
		struct error e = {""};

		if (latency_spec_parse(cases[i].text, &l, &e) >= 0)
			fail_msg("%s was accepted", cases[i].text);
		if (!strstr(e.text, cases[i].why) || strncmp(e.text, "--latency ", 10) != 0)
			fail_msg("%s: %s", cases[i].text, e.text);
	}
}

/* Every beginning of a valid text is either accepted or refused with a reason; the sanitizers see
 * the rest. */
static void cut_anywhere(void **state)
{
	static const char whole[] =
		"q=A<operator,(B, C)>::f[abi:cxx11](int (*)(char)),lib:g->h+0x10,key=arg2:arg3";

	(void)state;
	for (size_t n = 0; n < sizeof(whole); n++) {
		char *text = strndup(whole, n);
		struct latency_spec l;
		struct error e = {""};

		if (latency_spec_parse(text, &l, &e) >= 0)
			latency_spec_free(&l);
		else
			assert_int_not_equal(e.text[0], '\0');
		free(text);
	}
}

static void errors_are_reworded(void **state)
{
	struct latency_spec l;
	struct error e = {""};

	(void)state;
	assert_int_equal(latency_spec_parse("req=start,finish", &l, &e), 0);
	(void)(fail)(&e, ENOENT, "-p %s: no function start in x", l.ends[0].name);
	latency_reword(l.name, &e);
	assert_string_equal(e.text, "--latency req, BEGIN: no function start in x");
	(void)(fail)(&e, ENOENT, "-p %s: no function finish in x", l.ends[1].name);
	latency_reword(l.name, &e);
	assert_string_equal(e.text, "--latency req, END: no function finish in x");
	(void)(fail)(&e, ENOENT, "something else");
	latency_reword(l.name, &e);
	assert_string_equal(e.text, "something else");
	latency_spec_free(&l);
}

static int parse_options(const char *const *words, struct run_options *o, struct error *e)
{
	char *argv[16] = {(char *)"run"};
	int n = 1;

	for (; words[n - 1]; n++)
		argv[n] = (char *)words[n - 1];
	return run_options_parse(RUN_LAUNCH, false, n, argv, o, e);
}

static void as_options(void **state)
{
	static const char *const good[] = {"--latency",	     "a=f,g", "-p", "c=h", "--latency",
					   "b=f,g,key=arg1", "--",    "x",  NULL};
	static const char *const twice[] = {"--latency", "a=f,g", "--latency", "a=h,i",
					    "--",	 "x",	  NULL};
	static const char *const also_point[] = {"-p", "a=f", "--latency", "a=h,i",
						 "--", "x",   NULL};
	static const char *const also_latency[] = {"--latency", "a=h,i", "-p", "a=f",
						   "--",	"x",	 NULL};
	struct run_options o;
	struct error e = {""};

	(void)state;
	assert_int_equal(parse_options(good, &o, &e), 0);
	assert_int_equal(o.n_latencies, 2);
	/* Both ends are points: "a", its end, "c", "b", its end. */
	assert_int_equal(o.n_points, 5);
	assert_int_equal(o.latencies[1].begin, 3);
	assert_string_equal(o.points[3].name, "b");
	assert_string_equal(o.points[4].function, "g");
	assert_int_equal(o.latencies[1].arguments[1], 1);
	run_options_free(&o);
	assert_int_equal(parse_options(twice, &o, &e), -EEXIST);
	assert_non_null(strstr(e.text, "there is a point of this name"));
	assert_int_equal(parse_options(also_point, &o, &e), -EEXIST);
	assert_int_equal(parse_options(also_latency, &o, &e), -EEXIST);
	assert_non_null(strstr(e.text, "there is a point of this name"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys_are_read_at_the_entry),
		cmocka_unit_test(accepted),
		cmocka_unit_test(lines_and_offsets),
		cmocka_unit_test(refused),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(errors_are_reworded),
		cmocka_unit_test(as_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
