// SPDX-License-Identifier: BSD-2-Clause
/* The command lines of attach and system, and which processes run's is about. */
#include "base/error.h"
#include "cli/options/run_options.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int parse(enum run_kind kind, const char *const *words, struct run_options *ret,
		 struct error *e)
{
	static char *argv[17]; /* the options borrow from it */
	int argc = 1;

	argv[0] = (char *)(uintptr_t) "command";

	for (; words[argc - 1] && argc < 16; argc++)
		argv[argc] = (char *)(uintptr_t)words[argc - 1];
	argv[argc] = NULL;
	return run_options_parse(kind, false, argc, argv, ret, e);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void good(enum run_kind kind, const char *const *words, struct run_options *ret)
{
	struct error e = {.text = ""};

	if (parse(kind, words, ret, &e) < 0)
		fail_msg("%s", e.text);
}

static void bad(enum run_kind kind, const char *const *words, const char *says)
{
	struct run_options o;
	struct error e = {.text = ""};

	if (parse(kind, words, &o, &e) == 0)
		fail_msg("taken: %s ...", words[0] ? words[0] : "nothing");
	if (!strstr(e.text, says))
		fail_msg("\"%s\" does not say \"%s\"", e.text, says);
}

static void pids_stand_among_options(void **state)
{
	struct run_options o;

	(void)state;
	good(RUN_ATTACH, WORDS("-d", "2.5", "12,7", "-p", "f", "--seed", "3"), &o);
	assert_int_equal(o.scope.n_pids, 2);
	assert_int_equal(o.scope.pids[0], 12);
	assert_int_equal(o.scope.pids[1], 7);
	assert_int_equal(o.duration_ns, 2500000000U);
	assert_int_equal(o.n_points, 1);
	assert_int_equal(o.seed, 3);
	assert_int_equal(o.scope.follow, FOLLOW_ALL);
	run_options_free(&o);
	good(RUN_ATTACH, WORDS("1", "--follow", "none", "--only", "x*"), &o);
	assert_int_equal(o.scope.follow, FOLLOW_NONE);
	assert_string_equal(o.scope.only, "x*");
	assert_int_equal(o.scope.inject, INJECT_NEVER);
	run_options_free(&o);
	good(RUN_ATTACH, WORDS("1", "--inject", "auto", "--signal", "50"), &o);
	assert_int_equal(o.scope.inject, INJECT_AUTO);
	assert_int_equal(o.signo, 50);
	run_options_free(&o);
	good(RUN_SYSTEM, WORDS("--comm", "x", "--inject=always", "--signal", "51"), &o);
	assert_int_equal(o.scope.inject, INJECT_ALWAYS);
	assert_int_equal(o.signo, 51);
	run_options_free(&o);
	bad(RUN_ATTACH, WORDS("1", "--inject", "-d", "1"), "never, auto, always");
}

static void wrong_pids_are_refused(void **state)
{
	(void)state;
	bad(RUN_ATTACH, WORDS("-d", "1"), "PID");
	bad(RUN_ATTACH, WORDS("x"), "'x'");
	bad(RUN_ATTACH, WORDS("1,"), "'1,'");
	bad(RUN_ATTACH, WORDS("1,,2"), "'1,,2'");
	bad(RUN_ATTACH, WORDS("-1"), "-1");
	bad(RUN_ATTACH, WORDS("0"), "'0'");
	bad(RUN_ATTACH, WORDS("99999999999999999999"), "99999999999999999999");
	bad(RUN_ATTACH, WORDS("5,5"), "twice");
	bad(RUN_ATTACH, WORDS("5", "6"), "one word too many");
	bad(RUN_ATTACH, WORDS("5", "--pay", "sleep"), "--pay");
	bad(RUN_ATTACH, WORDS("5", "--keep-root"), "--keep-root");
	bad(RUN_ATTACH, WORDS("5", "--signal", "9"), "--signal");
	bad(RUN_ATTACH, WORDS("5", "--cgroup", "x"), "--cgroup");
}

static void rules_of_system(void **state)
{
	struct run_options o;

	(void)state;
	good(RUN_SYSTEM,
	     WORDS("--cgroup", "a/b", "--uid", "me", "--comm", "x*", "--exe", "/e", "--pid-tree",
		   "9", "-d", "1"),
	     &o);
	assert_string_equal(o.scope.rule.cgroup, "a/b");
	assert_string_equal(o.scope.rule.user, "me");
	assert_string_equal(o.scope.rule.comm, "x*");
	assert_string_equal(o.scope.rule.exe, "/e");
	assert_int_equal(o.scope.rule.tree, 9);
	assert_int_equal(o.duration_ns, 1000000000U);
	run_options_free(&o);
	bad(RUN_SYSTEM, WORDS("-d", "1"), "--cgroup");
	bad(RUN_SYSTEM, WORDS("--comm", ""), "--comm");
	bad(RUN_SYSTEM, WORDS("--pid-tree", "0"), "--pid-tree");
	bad(RUN_SYSTEM, WORDS("--comm", "x", "ls"), "one word too many");
	bad(RUN_SYSTEM, WORDS("--comm", "x", "--follow", "all"), "--follow");
}

static void run_follows(void **state)
{
	struct run_options o;

	(void)state;
	good(RUN_LAUNCH, WORDS("--follow", "exec", "--only", "/x/*", "ls", "--follow"), &o);
	assert_int_equal(o.scope.follow, FOLLOW_EXEC);
	assert_true(o.scope.follow_given);
	assert_string_equal(o.command[0], "ls");
	assert_string_equal(o.command[1], "--follow");
	run_options_free(&o);
	good(RUN_LAUNCH, WORDS("ls"), &o);
	assert_int_equal(o.scope.follow, FOLLOW_ALL);
	assert_false(o.scope.follow_given);
	run_options_free(&o);
	bad(RUN_LAUNCH, WORDS("--follow", "some", "ls"), "all, exec, none");
	bad(RUN_LAUNCH, WORDS("--cgroup", "x", "ls"), "--cgroup");
	bad(RUN_LAUNCH, WORDS("--inject", "auto", "ls"), "--inject");
	bad(RUN_LAUNCH, WORDS("--sync", "pthread", "--only", "x", "ls"), "one process");
	bad(RUN_LAUNCH, WORDS("--sync", "pthread", "--follow", "all", "ls"), "one process");
	bad(RUN_ATTACH, WORDS("5", "--sync", "pthread"), "--sync");
	bad(RUN_ATTACH, WORDS("5", "--runs", "3"), "--runs");
}

/* What validate decides itself it has no option for. */
static void validate_has_fewer(void **state)
{
	static const char *const refused[] = {"--runs=3", "--until-ci=2", "--output=x",
					      "--fixed-speedup=5", "--speedups=5"};
	struct run_options o;

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++) {
		char *words[] = {"validate", (char *)refused[i], "ls", NULL};
		struct error e = {0};

		assert_int_equal(run_options_parse(RUN_LAUNCH, true, 3, words, &o, &e), -EINVAL);
		assert_non_null(strstr(e.text, "unknown option"));
		assert_int_equal(run_options_parse(RUN_LAUNCH, false, 3, words, &o, NULL), 0);
		run_options_free(&o);
	}
}

static void help_lists_its_options(void **state)
{
	static const char *const own[] = {[RUN_LAUNCH] = "--keep-root",
					  [RUN_ATTACH] = "--follow",
					  [RUN_SYSTEM] = "--pid-tree"};
	static const char *const not [] = {
		[RUN_LAUNCH] = "--cgroup", [RUN_ATTACH] = "--keep-root", [RUN_SYSTEM] = "--follow"};

	(void)state;
	for (int kind = RUN_LAUNCH; kind <= RUN_SYSTEM; kind++) {
		char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);

		assert_non_null(f);
		run_options_help((enum run_kind)kind, false, f);
		assert_int_equal(fclose(f), 0);
		assert_non_null(strstr(text, own[kind]));
		assert_null(strstr(text, not [kind]));
		assert_non_null(strstr(text, "--duration TIME"));
		assert_non_null(strstr(text, "--progress POINT"));
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pids_stand_among_options),
		cmocka_unit_test(wrong_pids_are_refused),
		cmocka_unit_test(rules_of_system),
		cmocka_unit_test(run_follows),
		cmocka_unit_test(help_lists_its_options),
		cmocka_unit_test(validate_has_fewer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
