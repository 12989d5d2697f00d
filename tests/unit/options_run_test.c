// SPDX-License-Identifier: BSD-2-Clause
#include "base/error.h"
#include "cli/options/run_options.h"
#include "kernel/backend.h"
#include "shared/abi.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WORDS 16

/* Splits @line at '|' (so that words may be empty) and parses "run" and the words. The words live
 * until the next call. */
static int parse(const char *line, struct run_options *ret, struct error *e)
{
	static char copy[1024];
	static char *argv[MAX_WORDS + 2];
	int argc = 0;
	char *rest = copy;

	assert_true(strlen(line) < sizeof(copy));
	memcpy(copy, line, strlen(line) + 1);
	argv[argc++] = (char *)"run";
	while (rest && *line) {
		assert_true(argc <= MAX_WORDS);
		argv[argc++] = strsep(&rest, "|");
	}
	argv[argc] = NULL;
	return run_options_parse(RUN_LAUNCH, false, argc, argv, ret, e);
}

static void parse_good(const char *line, struct run_options *ret)
{
	struct error e = {};

	if (parse(line, ret, &e) < 0)
		fail_msg("%s: %s", line, e.text);
}

static void defaults(void **state)
{
	struct run_options o;

	(void)state;
	parse_good("ls", &o);
	assert_string_equal(o.command[0], "ls");
	assert_null(o.command[1]);
	assert_int_equal(o.n_points, 0);
	assert_string_equal(o.output, "cozbpf.jsonl");
	assert_int_equal(o.duration_ns, 0);
	assert_int_equal(o.delay_ns, 0);
	assert_int_equal(o.pay, RUN_PAY_AUTO);
	assert_int_equal(o.sync, RUN_SYNC_SCHED);
	assert_int_equal(o.granularity, RUN_BY_EITHER);
	assert_int_equal(o.attribution, RUN_FIRST);
	assert_null(o.fixed_line);
	assert_true(o.fixed_speedup < 0);
	assert_int_equal(o.n_grid, 20);
	assert_true(o.grid[0] == 0.05 && o.grid[10] == 0.55 && o.grid[19] == 1.0);
	assert_true(o.zero_share > 0.33 && o.zero_share < 0.34);
	assert_int_equal(o.experiment_ns, 0);
	assert_int_equal(o.cool_off_ns, 10000000);
	assert_int_equal(o.rate_hz, 0);
	assert_false(o.seed_given || o.keep_root || o.quiet || o.no_report || o.help);
	assert_true(o.signo > SIGRTMIN && o.signo < SIGRTMAX);
	assert_null(o.disabled);
	assert_false(o.calibrate);
	assert_true(o.report.on_stderr);
	assert_null(o.report.file);
	run_options_free(&o);
}

static void every_option(void **state)
{
	static const struct {
		const char *line;
		uint64_t ns;
	} times[] = {{"-d|10s|x", 10000000000},
		     {"-d|1m|x", 60000000000},
		     {"-d|1.5h|x", 5400000000000},
		     {"-d|0|x", 0},
		     {"-d|31d|x", 2678400000000000}};
	struct run_options o;

	(void)state;
	parse_good("-p|f|--progress=x=a.c:3|-s|*.c|--source|!y.c|-bMAIN|-o|out|x|y", &o);
	assert_int_equal(o.n_points, 2);
	assert_string_equal(o.points[0].name, "f");
	assert_string_equal(o.points[1].name, "x");
	assert_int_equal(o.points[1].line, 3);
	assert_int_equal(o.sources.n, 2);
	assert_string_equal(o.sources.all[0], "*.c");
	assert_string_equal(o.sources.all[1], "!y.c");
	assert_int_equal(o.binaries.n, 1);
	assert_string_equal(o.binaries.all[0], "MAIN");
	assert_string_equal(o.output, "out");
	assert_string_equal(o.command[1], "y");
	run_options_free(&o);

	parse_good("-d|0.25|--delay=3|--pay|hold|--sync|pthread|--granularity|function|--fixed-"
		   "line|ns::f|--fixed-speedup|12.5|--zero-share=50|x",
		   &o);
	assert_int_equal(o.duration_ns, 250000000);
	assert_int_equal(o.delay_ns, 3000000000);
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		struct run_options timed;

		parse_good(times[i].line, &timed);
		assert_int_equal(timed.duration_ns, times[i].ns);
		run_options_free(&timed);
	}
	assert_int_equal(o.pay, RUN_PAY_HOLD);
	assert_int_equal(o.sync, RUN_SYNC_PTHREAD);
	assert_int_equal(o.granularity, RUN_BY_FUNCTION);
	assert_string_equal(o.fixed_line, "ns::f");
	assert_true(o.fixed_speedup == 0.125 && o.zero_share == 0.5);
	run_options_free(&o);

	parse_good("--fixed-line|a.c:3|x", &o);
	assert_int_equal(o.granularity, RUN_BY_LINE);
	run_options_free(&o);

	parse_good("--fixed-line|a.c:3 [disk]|x", &o);
	assert_int_equal(o.granularity, RUN_BY_LINE);
	run_options_free(&o);

	parse_good("--fixed-class|network|x", &o);
	assert_string_equal(o.fixed_line, "[network]");
	assert_int_equal(o.granularity, RUN_BY_EITHER);
	run_options_free(&o);

	parse_good("--what|on-cpu|x", &o);
	assert_int_equal(o.what, 1);
	run_options_free(&o);

	parse_good("--what|disk,timer|x", &o);
	assert_int_equal(o.what, 1U << ABI_WAIT_DISK | 1U << ABI_WAIT_TIMER);
	run_options_free(&o);

	parse_good("--what=all|x", &o);
	assert_int_equal(o.what, (1U << ABI_WAITS) - 1);
	run_options_free(&o);

	parse_good("--fixed-line|libz.so.1+0x2f40|--status|none|--repeat|auto|-d|9|--output-to|f|x",
		   &o);
	assert_int_equal(o.granularity, RUN_BY_FUNCTION);
	assert_int_equal(o.status, RUN_STATUS_NONE);
	assert_true(o.repeat == REPEAT_AUTO);
	assert_string_equal(o.output_to, "f");
	run_options_free(&o);

	parse_good("-n|3|--warmup|2|--prepare|sync; true|x", &o);
	assert_int_equal(o.warmup, 2);
	assert_string_equal(o.prepare, "sync; true");
	run_options_free(&o);

	parse_good("--granularity=line|--attribution|inclusive|x", &o);
	assert_int_equal(o.attribution, RUN_INCLUSIVE);
	assert_string_equal(run_attribution_name(o.attribution), "inclusive");
	assert_int_equal(o.granularity, RUN_BY_LINE);
	run_options_free(&o);

	parse_good("--experiment|20|--cool-off=0|--rate|50|--seed|0|--signal|64|--top|3|--color|"
		   "always|x",
		   &o);
	assert_int_equal(o.experiment_ns, 20000000);
	assert_int_equal(o.cool_off_ns, 0);
	assert_int_equal(o.rate_hz, 50);
	assert_true(o.seed_given && o.seed == 0);
	assert_int_equal(o.signo, 64);
	assert_int_equal(o.report.top, 3);
	assert_int_equal(o.report.color, COLOR_ALWAYS);
	run_options_free(&o);

	parse_good("--debug-dir|/a|--source-prefix=/b=/c|--debug-dir=d|--source-prefix|/e=|x", &o);
	assert_int_equal(o.lines.n_debug_dirs, 2);
	assert_string_equal(o.lines.debug_dirs[0], "/a");
	assert_string_equal(o.lines.debug_dirs[1], "d");
	assert_int_equal(o.lines.n_prefixes, 2);
	assert_string_equal(o.lines.prefixes[0], "/b=/c");
	assert_string_equal(o.lines.prefixes[1], "/e=");
	run_options_free(&o);

	parse_good("--keep-root|-q|--no-report|--disable|task_work,send_signal_task,unwind|--"
		   "calibrate|--fixed-line|a.c:1|x",
		   &o);
	assert_true(o.keep_root && o.quiet && o.no_report && o.calibrate);
	assert_string_equal(o.disabled, "task_work,send_signal_task,unwind");
	assert_string_equal(o.fixed_line, "a.c:1");
	run_options_free(&o);
}

static void words_before_command(void **state)
{
	static const char *const lines[] = {
		"-q|ls|-q|--help",	"-q|--|ls|-q|--help", "-q|---|ls|-q|--help",
		"--quiet|ls|-q|--help", "--qui|ls|-q|--help",
	};
	struct run_options o;

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		parse_good(lines[i], &o);
		assert_true(o.quiet);
		assert_false(o.help);
		assert_string_equal(o.command[0], "ls");
		assert_string_equal(o.command[1], "-q");
		assert_string_equal(o.command[2], "--help");
		assert_null(o.command[3]);
		run_options_free(&o);
	}
	/* Only the first one is ours. */
	parse_good("---|ls|---|--", &o);
	assert_string_equal(o.command[1], "---");
	assert_string_equal(o.command[2], "--");
	run_options_free(&o);
	parse_good("-o|---|ls", &o);
	assert_string_equal(o.output, "---");
	assert_string_equal(o.command[0], "ls");
	run_options_free(&o);
	parse_good("--help", &o);
	assert_true(o.help);
	run_options_free(&o);
}

static void speedup_lists(void **state)
{
	struct run_options o;

	(void)state;
	parse_good("--speedups|50,0,25,25|x", &o);
	assert_int_equal(o.n_grid, 2);
	assert_true(o.grid[0] == 0.25 && o.grid[1] == 0.5 && o.fixed_speedup < 0);
	run_options_free(&o);
	parse_good("--speedups|12.5|x", &o);
	assert_int_equal(o.n_grid, 1);
	assert_true(o.grid[0] == 0.125);
	run_options_free(&o);
	parse_good("--speedups|0|x", &o);
	assert_int_equal(o.n_grid, 0);
	assert_true(o.fixed_speedup == 0);
	run_options_free(&o);
	parse_good("--fixed-speedup|100|x", &o);
	assert_true(o.fixed_speedup == 1);
	run_options_free(&o);
}

static void bad_lines(void **state)
{
	static const struct {
		const char *line, *says;
	} cases[] = {
		{"", "no command"},
		{"--", "no command"},
		{"---", "no command"},
		{"-q", "no command"},
		{"--||x", "empty word"},
		{"--progess|f|x", "did you mean --progress?"},
		{"--frobnicate|x", "unknown option '--frobnicate'; --help"},
		{"--frob=1|x", "unknown option '--frob'"},
		{"--fixed|1|x", "ambiguous: --fixed-line or --fixed-speedup"},
		{"-Z|x", "unknown option '-Z'"},
		{"-qZ|x", "unknown option '-Z'"},
		{"-p", "option '-p' needs a value: POINT"},
		{"--output", "option '--output' needs a value: FILE"},
		{"--quiet=3|x", "'--quiet' takes no value"},
		{"-o||x", "--output '': allowed"},
		{"-o|-|x", "--output '-': allowed"},
		{"--debug-dir||x", "--debug-dir '': allowed is a directory"},
		{"--source-prefix|/a|x", "--source-prefix '/a': allowed is OLD=NEW"},
		{"--source-prefix|=/a|x", "--source-prefix '=/a': allowed is OLD=NEW"},
		{"-f|coz|x", "unknown option '-f'"},
		{"-d|-1|x", "--duration '-1': allowed are times such as 10, 10s, 1.5m, 2h, up to "
			    "31d"},
		{"-d|10 s|x", "--duration '10 s'"},
		{"-d|10ms|x", "--duration '10ms'"},
		{"-d|s|x", "--duration 's'"},
		{"-d|32d|x", "--duration '32d'"},
		{"-d|1e3|x", "--duration '1e3'"},
		{"-d|nan|x", "--duration 'nan'"},
		{"-d|.|x", "--duration '.'"},
		{"-d||x", "--duration ''"},
		{"-d|0x10|x", "--duration '0x10'"},
		{"-d| 5|x", "--duration ' 5'"},
		{"-d|2678401|x", "--duration '2678401'"},
		{"-d|99999999999999999999999|x", "--duration"},
		{"--delay|soon|x", "--delay 'soon'"},
		{"--sync|fiber|x", "--sync 'fiber': allowed are sched, pthread"},
		{"--pay|cash|x", "--pay 'cash': allowed are auto, sleep, hold, spin"},
		{"--granularity|file|x", "allowed are auto, line, function"},
		{"--attribution|last|x", "allowed are first, inclusive"},
		{"--granularity|line|--fixed-line|work|x",
		 "--fixed-line 'work': allowed is FILE:LINE"},
		{"--fixed-line||x", "--fixed-line ''"},
		{"--fixed-line|a.c:3 [cpu]|x", "--fixed-line 'a.c:3 [cpu]': a thread waits for a "
					       "CPU wherever it is; use --fixed-class cpu"},
		{"--fixed-class|tape|x", "--fixed-class 'tape': allowed is one of disk, network, "
					 "timer, process, other, cpu"},
		{"--what|disk,|x", "--what 'disk,': allowed is a list of all, on-cpu, disk, "
				   "network, timer, process, other, cpu"},
		{"--what|disks|x", "--what 'disks'"},
		{"--repeat|auto|x", "--repeat auto has no end"},
		{"--repeat|0|x", "--repeat '0'"},
		{"--warmup|2|x", "--warmup is for programs that are started again"},
		{"--prepare|true|x", "--prepare is for programs that are started again"},
		{"--prepare||--repeat|2|x", "--prepare ''"},
		{"--repeat|2|-n|3|x", "--repeat and --runs: choose one"},
		{"--fixed-speedup|101|x",
		 "--fixed-speedup '101': allowed are numbers from 0 to 100"},
		{"--speedups|5,,10|x", "--speedups '5,,10'"},
		{"--speedups|5,|x", "--speedups '5,'"},
		{"--speedups||x", "--speedups ''"},
		{"--speedups|5,200|x", "--speedups '5,200'"},
		{"--speedups|1.00000000000000000000000000000000000|x", "--speedups"},
		{"--zero-share|0|x", "--zero-share '0': allowed are numbers from 1 to 99"},
		{"--experiment|9|x",
		 "--experiment '9': allowed are whole numbers from 10 to 600000"},
		{"--cool-off|x|x", "--cool-off 'x'"},
		{"--rate|49|x", "--rate '49': allowed are whole numbers from 50 to 10000"},
		{"--rate|10001|x", "--rate '10001'"},
		{"--seed|18446744073709551616|x", "--seed"},
		{"--seed|+1|x", "--seed '+1'"},
		{"--signal|9|x", "--signal '9': allowed are whole numbers from 34 to 64"},
		{"--top|0|x", "--top '0'"},
		{"--color|red|x", "--color 'red': allowed are auto, always, never"},
		{"--disable|task_work,|x", "--disable 'task_work,'"},
		{"--disable|task|x", "--disable 'task'"},
		{"-s||x", "--source ''"},
		{"-b|!|x", "--binary '!'"},
		{"-p|syscall:|x", "written syscall:NAME"},
		{"-p|f|-p|f|x", "there is a point of this name"},
		{"-p|a=f|-p|a=g|x", "there is a point of this name"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error e = {};
		struct run_options o;

		if (parse(cases[i].line, &o, &e) >= 0)
			fail_msg("taken: %s", cases[i].line);
		if (!strstr(e.text, cases[i].says))
			fail_msg("%s: %s", cases[i].line, e.text);
	}
}

static void too_many(void **state)
{
	char *argv[2 * ABI_MAX_POINTS + 5] = {(char *)"run"}, names[ABI_MAX_POINTS + 1][16],
					list[512] = "1";
	struct run_options o;
	struct error e = {};
	int argc = 1;

	(void)state;
	for (int i = 0; i <= ABI_MAX_POINTS; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "f%d", i);
		argv[argc++] = (char *)"-p";
		argv[argc++] = names[i];
	}
	argv[argc++] = (char *)"x";
	assert_int_equal(run_options_parse(RUN_LAUNCH, false, argc, argv, &o, &e), -E2BIG);
	argv[argc - 3] = (char *)"x";
	assert_int_equal(run_options_parse(RUN_LAUNCH, false, argc, argv, &o, &e), 0);
	assert_int_equal(o.n_points, ABI_MAX_POINTS);
	run_options_free(&o);

	for (int i = 2; i <= RUN_MAX_SPEEDUPS; i++)
		(void)snprintf(list + strlen(list), sizeof(list) - strlen(list), ",%d", i);
	argv[1] = (char *)"--speedups";
	argv[2] = list;
	argv[3] = (char *)"x";
	argv[4] = NULL;
	assert_int_equal(run_options_parse(RUN_LAUNCH, false, 4, argv, &o, &e), 0);
	assert_int_equal(o.n_grid, RUN_MAX_SPEEDUPS);
	run_options_free(&o);
	(void)snprintf(list + strlen(list), sizeof(list) - strlen(list), ",99");
	assert_int_equal(run_options_parse(RUN_LAUNCH, false, 4, argv, &o, &e), -E2BIG);
	(void)snprintf(list + strlen(list), sizeof(list) - strlen(list), ",98,97,96");
	assert_int_equal(run_options_parse(RUN_LAUNCH, false, 4, argv, &o, &e), -E2BIG);
}

static void colors(void **state)
{
	(void)state;
	assert_true(color_wanted(COLOR_ALWAYS, -1));
	assert_false(color_wanted(COLOR_NEVER, 1));
	assert_false(color_wanted(COLOR_AUTO, -1));
}

/* The table feeds --help: every listed option is there, the hidden one is not. */
static void help_text(void **state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	assert_non_null(out);
	run_options_help(RUN_LAUNCH, false, out);
	assert_int_equal(fclose(out), 0);
	assert_non_null(strstr(text, "-p, --progress POINT"));
	assert_non_null(strstr(text, "--zero-share PERCENT"));
	assert_null(strstr(text, "--disable"));
	for (const char *line = text; line && *line;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
		assert_true(strcspn(line, "\n") <= 100);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(every_option),
		cmocka_unit_test(words_before_command),
		cmocka_unit_test(speedup_lists),
		cmocka_unit_test(bad_lines),
		cmocka_unit_test(too_many),
		cmocka_unit_test(colors),
		cmocka_unit_test(help_text),
	};

	return cmocka_run_group_tests_name("cmd options", tests, NULL, NULL);
}
