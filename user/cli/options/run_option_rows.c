// SPDX-License-Identifier: BSD-2-Clause
#include "cli/options/run_option_rows.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/waits.h"
#include "cli/options/quantities.h"
#include "cli/options/run_options.h"
#include "kernel/backend.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const char *const pay_names[] = {"auto", "sleep", "hold", "spin", NULL};
static const char *const sync_names[] = {"sched", "pthread", NULL};
static const char *const color_names[] = {"auto", "always", "never", NULL};
static const char *const status_names[] = {"auto", "view", "plain", "none", NULL};
static const char *const granularity_names[] = {"auto", "line", "function", NULL};
static const char *const attribution_names[] = {"first", "inclusive", NULL};
static const char *const feature_names[] = {
	"task_work",	"send_signal_task", "uprobe_multi", "unwind",
	"sched_switch", "sched_waking",	    "switch_raw",   NULL};

const char *run_attribution_name(enum run_attribution attribution)
{
	return attribution_names[attribution];
}

static void *field(void *target, const struct option_row *row)
{
	return (char *)target + row->offset;
}

void run_options_add_point(struct run_options *o, struct point_spec *spec)
{
	xarray_add(o->points, o->n_points, *spec);
	*spec = (struct point_spec){};
}

static int set_point(void *target, const struct option_row *row, const char *value, struct error *e)
{
	_cleanup_(point_spec_free) struct point_spec spec = {};
	struct run_options *o = target;
	int r;

	if (o->n_points == ABI_MAX_POINTS)
		return fail(e, E2BIG, "--%s '%s': allowed are at most %d points", row->name, value,
			    ABI_MAX_POINTS);
	r = point_spec_parse(value, &spec, e);
	if (r < 0)
		return r;
	for (size_t i = 0; i < o->n_points; i++)
		if (strcmp(o->points[i].name, spec.name) == 0)
			return fail(e, EEXIST,
				    "--%s '%s': there is a point of this name; name one of them, "
				    "NAME=WHERE",
				    row->name, value);
	run_options_add_point(o, &spec);
	return 0;
}

int option_add_word(void *target, const struct option_row *row, const char *value, struct error *e)
{
	struct option_words *words = field(target, row);

	(void)e;
	xarray_add(words->all, words->n, value);
	return 0;
}

int option_set_word(void *target, const struct option_row *row, const char *value, struct error *e)
{
	if (!*value)
		return fail(e, EINVAL, "--%s '': allowed is %s", row->name, row->arg);
	*(const char **)field(target, row) = value;
	return 0;
}

static int set_form(void *target, const struct option_row *row, const char *value, struct error *e)
{
	static const char *const names[] = {
		[REPORT_JSON] = "json", [REPORT_CSV] = "csv", [REPORT_MARKDOWN] = "markdown"};
	enum report_form *form = field(target, row), wanted = REPORT_JSON;

	(void)value;
	while (strcmp(names[wanted], row->name) != 0)
		wanted++;
	if (*form != REPORT_TEXT && *form != wanted)
		return fail(
			e, EINVAL,
			"--%s and --%s: choose one; reports can be printed again from the profile",
			names[*form], row->name);
	*form = wanted;
	return 0;
}

int option_add_glob(void *target, const struct option_row *row, const char *value, struct error *e)
{
	if (!*value || strcmp(value, "!") == 0)
		return fail(e, EINVAL, "--%s '%s': allowed are patterns, '!' in front excludes",
			    row->name, value);
	return option_add_word(target, row, value, e);
}

static int set_output(void *target, const struct option_row *row, const char *value,
		      struct error *e)
{
	struct run_options *o = target;

	if (!*value || strcmp(value, "-") == 0)
		return fail(e, EINVAL, "--%s '%s': allowed is the name of a file", row->name,
			    value);
	o->output = value;
	return 0;
}

int option_set_real(void *target, const struct option_row *row, const char *value, struct error *e)
{
	return option_real(row, value, row->min, row->max, field(target, row), e);
}

int option_set_percent(void *target, const struct option_row *row, const char *value,
		       struct error *e)
{
	int r = option_set_real(target, row, value, e);

	if (r == 0)
		*(double *)field(target, row) /= 100;
	return r;
}

static int add_stop(void *target, const struct option_row *row, const char *value, struct error *e)
{
	struct run_options *o = target;
	struct stop_spec s;
	int r = stop_spec_parse(value, &s, e);

	(void)row;
	if (r < 0)
		return r;
	xarray_add(o->stops, o->n_stops, s);
	return 0;
}

static int set_repeat(void *target, const struct option_row *row, const char *value,
		      struct error *e)
{
	if (strcmp(value, "auto") == 0) {
		*(uint64_t *)field(target, row) = REPEAT_AUTO;
		return 0;
	}
	return option_set_whole(target, row, value, e);
}

int option_set_whole(void *target, const struct option_row *row, const char *value, struct error *e)
{
	return option_unsigned(row, value, (uint64_t)row->min, (uint64_t)row->max,
			       field(target, row), e);
}

static int set_milliseconds(void *target, const struct option_row *row, const char *value,
			    struct error *e)
{
	int r = option_set_whole(target, row, value, e);

	if (r == 0)
		*(uint64_t *)field(target, row) *= NSEC_PER_MSEC;
	return r;
}

static int set_fixed_line(void *target, const struct option_row *row, const char *value,
			  struct error *e)
{
	struct run_options *o = target;
	size_t place;

	if (!*value)
		return fail(e, EINVAL, "--%s '': allowed is FILE:LINE or a function", row->name);
	if (wait_of(value, &place) == WAIT_CPU && place)
		return fail(
			e, EINVAL,
			"--%s '%s': a thread waits for a CPU wherever it is; use --fixed-class cpu",
			row->name, value);
	o->fixed_line = value;
	return 0;
}

/* ", disk, network" and so on. */
static const char wait_list[] = ""
#define WAIT(name, text) ", " text
#include "shared/waits.def"
#undef WAIT
	;

static int set_fixed_class(void *target, const struct option_row *row, const char *value,
			   struct error *e)
{
	static const char *const classes[] = {
		NULL,
#define WAIT(name, text) "[" text "]",
#include "shared/waits.def"
#undef WAIT
	};
	struct run_options *o = target;
	unsigned int kind = wait_named(value, strlen(value));

	if (!kind)
		return fail(e, EINVAL, "--%s '%s': allowed is one of %s", row->name, value,
			    wait_list + 2);
	o->fixed_line = classes[kind];
	return 0;
}

static int set_what(void *target, const struct option_row *row, const char *value, struct error *e)
{
	unsigned int what = 0;

	for (const char *from = value;; from++) {
		size_t n = strcspn(from, ",");
		unsigned int kind = wait_named(from, n);

		if (n == strlen("all") && strncmp(from, "all", n) == 0)
			what |= WAITS_ALL;
		else if (kind || (n == strlen(WAITS_ON_CPU) && strncmp(from, WAITS_ON_CPU, n) == 0))
			what |= 1U << kind;
		else
			return fail(e, EINVAL,
				    "--%s '%s': allowed is a list of all, " WAITS_ON_CPU "%s",
				    row->name, value, wait_list);
		from += n;
		if (!*from)
			break;
	}
	*(unsigned int *)field(target, row) = what;
	return 0;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static int set_speedups(void *target, const struct option_row *row, const char *value,
			struct error *e)
{
	struct run_options *o = target;
	double grid[RUN_MAX_SPEEDUPS + 1];
	size_t n = 0, distinct = 0;

	for (const char *from = value;; from++) {
		size_t len = strcspn(from, ",");
		double percent;
		char item[32];

		if (n == RUN_MAX_SPEEDUPS + 1)
			return fail(e, E2BIG, "--%s '%s': allowed are at most %d of them",
				    row->name, value, RUN_MAX_SPEEDUPS);
		(void)snprintf(item, sizeof(item), "%.*s", (int)len, from);
		if (len >= sizeof(item) || option_real(row, item, 0, 100, &percent, NULL) < 0)
			return fail(e, EINVAL,
				    "--%s '%s': allowed is a list of percentages from 0 to 100, "
				    "such as 0,25,50",
				    row->name, value);
		grid[n++] = percent / 100;
		from += len;
		if (!*from)
			break;
	}
	qsort(grid, n, sizeof(*grid), compare_doubles);
	/* 0 has its own share, --zero-share, and is not drawn from the grid. */
	for (size_t i = 0; i < n; i++)
		if (grid[i] > 0 && (distinct == 0 || grid[i] != grid[distinct - 1]))
			grid[distinct++] = grid[i];
	if (distinct > RUN_MAX_SPEEDUPS)
		return fail(e, E2BIG, "--%s '%s': allowed are at most %d of them", row->name, value,
			    RUN_MAX_SPEEDUPS);
	memcpy(o->grid, grid, distinct * sizeof(*grid));
	o->n_grid = distinct;
	return 0;
}

static int set_seed(void *target, const struct option_row *row, const char *value, struct error *e)
{
	struct run_options *o = target;
	/* The file keeps it as a JSON number, which readers may hold in a double. */
	int r = option_unsigned(row, value, 0, (1ULL << 53) - 1, &o->seed, e);

	if (r == 0)
		o->seed_given = true;
	return r;
}

int option_set_signal(void *target, const struct option_row *row, const char *value,
		      struct error *e)
{
	uint64_t n;
	int r = option_unsigned(row, value, (uint64_t)SIGRTMIN, (uint64_t)SIGRTMAX, &n, e);

	if (r == 0)
		*(int *)field(target, row) = (int)n;
	return r;
}

static int add_debug_dir(void *target, const struct option_row *row, const char *value,
			 struct error *e)
{
	struct debug_options *o = field(target, row);

	if (!*value)
		return fail(e, EINVAL, "--%s '': allowed is a directory", row->name);
	xarray_add(o->debug_dirs, o->n_debug_dirs, value);
	return 0;
}

static int add_source_prefix(void *target, const struct option_row *row, const char *value,
			     struct error *e)
{
	struct debug_options *o = field(target, row);

	if (!strchr(value, '=') || *value == '=')
		return fail(e, EINVAL,
			    "--%s '%s': allowed is OLD=NEW, directories as the debug information "
			    "has them and as they are here",
			    row->name, value);
	xarray_add(o->prefixes, o->n_prefixes, value);
	return 0;
}

int option_set_features(void *target, const struct option_row *row, const char *value,
			struct error *e)
{
	for (const char *from = value;; from++) {
		size_t len = strcspn(from, ","), i = 0;

		while (feature_names[i] && (strlen(feature_names[i]) != len ||
					    strncmp(feature_names[i], from, len) != 0))
			i++;
		if (!feature_names[i])
			return fail(e, EINVAL,
				    "--%s '%s': allowed is a list of features as `cozbpf check` "
				    "names them, such as "
				    "task_work,send_signal_task",
				    row->name, value);
		from += len;
		if (!*from)
			break;
	}
	*(const char **)field(target, row) = value;
	return 0;
}

const struct option_row option_verbose[] = {
	{"verbose", 0, NULL, "print what the kernel and libbpf say of programs that they\nrefuse",
	 option_flag, .expert = true},
	{NULL},
};

const struct option_row option_color[] = {
	{"color", 0, "WHEN", "auto, always, never (auto)", option_choice, .choices = color_names},
	{NULL},
};

const struct option_row option_debug_dir[] = {
	{"debug-dir", 0, "DIR", "look for debug files in DIR before /usr/lib/debug\n(repeatable)",
	 add_debug_dir},
	{NULL},
};

const struct option_row option_source_prefix[] = {
	{"source-prefix", 0, "OLD=NEW", "name source files in OLD as if in NEW (repeatable)",
	 add_source_prefix},
	{NULL},
};

const struct option_row option_report[] = {
	{"top", 0, "N", "at most so many lines per progress point (10)", option_set_whole,
	 offsetof(struct report_choice, top), .min = 1, .max = INT_MAX},
	{"all", 0, NULL, "a row for each line, however little is known of it", option_flag,
	 offsetof(struct report_choice, all)},
	{"width", 0, "N", "columns to use (the terminal's, else 100)", option_set_whole,
	 offsetof(struct report_choice, width), .min = 1, .max = INT_MAX},
	{"no-curves", 0, NULL, "tables only", option_flag,
	 offsetof(struct report_choice, no_curves)},
	{"inline", 0, NULL, "show under each table where its lines were inlined", option_flag,
	 offsetof(struct report_choice, inlined)},
	{"html", 0, "FILE", "write the report as one HTML file, too", option_set_word,
	 offsetof(struct report_choice, html)},
	{"with-source", 0, NULL, "keep the source around each line that was tried, for --html",
	 option_flag, offsetof(struct report_choice, with_source)},
	{"json", 0, NULL, "all that is known as one JSON object, for other programs", set_form,
	 offsetof(struct report_choice, form)},
	{"csv", 0, NULL, "the tables as comma-separated values", set_form,
	 offsetof(struct report_choice, form)},
	{"markdown", 0, NULL, "the tables for a pull request", set_form,
	 offsetof(struct report_choice, form)},
	{NULL},
};

const struct option_row run_option_rows[] = {
	{"progress", 'p', "POINT",
	 "count visits of POINT, [NAME=]WHERE (repeatable); WHERE is\n"
	 "FUNCTION, BINARY:FUNCTION[+OFFSET], FUNCTION%return,\n"
	 "FILE:LINE, usdt:[BINARY:]PROVIDER:NAME, syscall:NAME,\n"
	 "tracepoint:CATEGORY:NAME, or sampled:FILE:LINE and\n"
	 "sampled:[BINARY:]FUNCTION, which count samples, for what is\n"
	 "too hot for a probe; `cozbpf list points` shows some.\n"
	 "Without: what is passed evenly, a system call or a USDT probe,\nelse a function",
	 set_point},
	{"latency", 0, "SPEC",
	 "measure times, NAME=BEGIN,END[,key=argN] (repeatable): from\na visit of BEGIN to one of "
	 "END, each a WHERE as above, by the\nsame thread or "
	 "with the same Nth argument of both functions",
	 option_add_latency},
	{"shared-code", 0, NULL,
	 "take points in code that several functions share, since\nidentical ones were made one: "
	 "visits of all of them count",
	 option_flag, offsetof(struct run_options, shared_code)},
	{"source", 's', "GLOB",
	 "try lines of matching source files; !GLOB excludes\n(repeatable). Without: all but those "
	 "of the system and of\nthe language (/usr/include, "
	 "Go's and Rust's libraries,\n~/.cargo, ~/go/pkg)",
	 option_add_glob, offsetof(struct run_options, sources)},
	{"binary", 'b', "GLOB",
	 "try lines of matching executables and libraries; !GLOB\n"
	 "excludes, MAIN is the program itself, JIT what it\nmakes as it runs (repeatable)",
	 option_add_glob, offsetof(struct run_options, binaries)},
	{.include = option_source_prefix, .offset = offsetof(struct run_options, lines)},
	{.include = option_debug_dir, .offset = offsetof(struct run_options, lines)},
	{"granularity", 0, "KIND",
	 "try each line, each function, or auto: lines where there is\nline information, else "
	 "functions (auto)",
	 option_choice, offsetof(struct run_options, granularity), .choices = granularity_names},
	{"attribution", 0, "RULE",
	 "which line a sample belongs to: the first of its call chain\nthat can be tried, or "
	 "inclusive: each of them (first)",
	 option_choice, offsetof(struct run_options, attribution), .choices = attribution_names},
	{"output", 'o', "FILE", "append the profile to FILE (" RUN_DEFAULT_OUTPUT ")", set_output,
	 .not_for = NOT_VALIDATE},
	{"duration", 'd', "TIME",
	 "end the program (SIGTERM) and the profile after TIME: 10 or\n10s, 2m, 1h (0: when the "
	 "program ends by itself)",
	 option_set_seconds, offsetof(struct run_options, duration_ns), .not_for = NOT_RUNNING},
	{"runs", 'n', "N",
	 "run the program N times, each an experiment from end to\nend: for programs that end, "
	 "instead of -p",
	 option_set_whole, offsetof(struct run_options, runs), .min = 1, .max = 1000000,
	 .not_for = NOT_RUNNING | NOT_VALIDATE},
	{"repeat", 0, "N",
	 "start a program that ends again, N runs in all, or auto: until\n--until-ci or --duration "
	 "is reached; without -p: slopes of\nwhole runs",
	 set_repeat, offsetof(struct run_options, repeat), .min = 1, .max = 1000000,
	 .not_for = NOT_RUNNING | NOT_VALIDATE},
	{"warmup", 0, "N", "with --repeat or --runs: N runs first that are not measured",
	 option_set_whole, offsetof(struct run_options, warmup), .min = 1, .max = 1000000,
	 .not_for = NOT_RUNNING | NOT_VALIDATE},
	{"prepare", 0, "CMD",
	 "with --repeat or --runs: have the shell run CMD before each run,\nas the program's user",
	 option_set_word, offsetof(struct run_options, prepare),
	 .not_for = NOT_RUNNING | NOT_VALIDATE},
	{"delay", 0, "TIME", "let the program start up for so long first (0)", option_set_seconds,
	 offsetof(struct run_options, delay_ns)},
	{"until-ci", 0, "POINTS",
	 "stop when the effects of the top lines at 50 % are known to\n"
	 "+-POINTS; the program runs on, but with --duration it is\n"
	 "ended then, and after its TIME at the latest",
	 option_set_percent, offsetof(struct run_options, until_ci), .min = 0.1, .max = 50,
	 .not_for = NOT_VALIDATE},
	{"pay", 0, "HOW", "how threads are paused: auto, sleep, hold, spin (auto)", option_choice,
	 offsetof(struct run_options, pay), .choices = pay_names, .not_for = NOT_RUNNING,
	 .expert = true},
	{"sync", 0, "HOW",
	 "who waits for whom, by the scheduler's events (sched) or by\n"
	 "the program's pthread calls, as Coz has it (pthread) (sched)",
	 option_choice, offsetof(struct run_options, sync), .choices = sync_names,
	 .not_for = NOT_RUNNING, .expert = true},
	{"slopes-only", 0, NULL,
	 "say what a little of each line is worth and make no\nexperiments: nothing is paused, "
	 "preloaded or injected",
	 option_flag, offsetof(struct run_options, slopes_only), .not_for = NOT_VALIDATE},
	{"window", 0, "MSEC",
	 "slopes are measured in windows that get that long: longer ones\nmake a smaller profile "
	 "(250)",
	 set_milliseconds, offsetof(struct run_options, window_ns), .min = 250, .max = 60000,
	 .not_for = NOT_VALIDATE, .expert = true},
	{"what", 0, "LIST",
	 "what to try: " WAITS_ON_CPU " (lines that run), disk, network, timer,\n"
	 "process, other (places that wait for these), or all\n"
	 "(" WAITS_ON_CPU ", and waits of 5 % of the time and more)",
	 set_what, offsetof(struct run_options, what), .not_for = NOT_VALIDATE},
	{"fixed-line", 'l', "LINE",
	 "try only FILE:LINE, or a function; or 'FILE:LINE [disk]', the\nwaiting there",
	 set_fixed_line},
	{"fixed-class", 0, "KIND",
	 "try only the waiting for KIND (disk, network, ...), wherever it\nis", set_fixed_class},
	{"fixed-speedup", 0, "PERCENT", "try only this speedup", option_set_percent,
	 offsetof(struct run_options, fixed_speedup), .min = 0, .max = 100, .not_for = NOT_VALIDATE,
	 .expert = true},
	{"duty", 0, "PERCENT",
	 "experiments take so much of the time, in bursts; nothing is\nsampled between them (100)",
	 option_set_percent, offsetof(struct run_options, duty), .min = 0.1, .max = 100,
	 .not_for = NOT_VALIDATE, .expert = true},
	{"stop-if", 0, "COND",
	 "end experiments when that holds: 'p99(NAME)>50ms' of a\n--latency, 'load>8', "
	 "'psi(cpu)>20', 'restarts>3' (repeatable)",
	 add_stop, .not_for = NOT_VALIDATE, .expert = true},
	{"max-slowdown", 0, "PERCENT",
	 "pauses take no more than so much of the time: the program is left\nalone for longer "
	 "after experiments (without bounds)",
	 option_set_percent, offsetof(struct run_options, most_slowdown), .min = 0.1, .max = 100,
	 .not_for = NOT_VALIDATE, .expert = true},
	{"speedups", 0, "LIST", "speedups to draw from, percent (0,5,10,...,100)", set_speedups,
	 .not_for = NOT_VALIDATE, .expert = true},
	{"zero-share", 0, "PERCENT", "share of experiments at 0 %, the baseline (33; in bursts 50)",
	 option_set_percent, offsetof(struct run_options, zero_share), .min = 1, .max = 99,
	 .expert = true},
	{"experiment", 0, "MSEC",
	 "length of one experiment (500; in the first seconds of a\nprogram with many visits down "
	 "to 50)",
	 set_milliseconds, offsetof(struct run_options, experiment_ns), .min = 10, .max = 600000,
	 .expert = true},
	{"cool-off", 0, "MSEC", "undisturbed time between experiments (10)", set_milliseconds,
	 offsetof(struct run_options, cool_off_ns), .min = 0, .max = 60000, .expert = true},
	{"rate", 0, "HZ",
	 "samples per second of CPU time, 50 to 10000 (2000, more\nfor a program of short rounds, "
	 "up to 4000)",
	 option_set_whole, offsetof(struct run_options, rate_hz), .min = 50, .max = 10000,
	 .expert = true},
	{"seed", 0, "N", "repeat the draws of an earlier run", set_seed, .expert = true},
	{"signal", 0, "N", "real-time signal that sleep and spin use", option_set_signal,
	 offsetof(struct run_options, signo), .not_for = NOT_RUNNING, .expert = true},
	{"calibrate", 0, NULL,
	 "measure what a pause costs anew, not only in the first run\nafter boot", option_flag,
	 offsetof(struct run_options, calibrate), .expert = true},
	{"keep-root", 0, NULL, "under sudo, run the program as root", option_flag,
	 offsetof(struct run_options, keep_root), .not_for = NOT_RUNNING},
	{"output-to", 0, "FILE",
	 "append what the program prints to FILE, so that the terminal is\nfree for the live view",
	 option_set_word, offsetof(struct run_options, output_to),
	 .not_for = NOT_RUNNING | NOT_VALIDATE},
	{"status", 0, "HOW",
	 "how a run is going: view (on a terminal, drawn anew again and\nagain), plain (a line "
	 "every ten seconds), none, or auto: view\n"
	 "where the program does not write to the terminal (auto)",
	 option_choice, offsetof(struct run_options, status), .choices = status_names},
	{"quiet", 'q', NULL, "no status line", option_flag, offsetof(struct run_options, quiet)},
	{"verbose", 0, NULL,
	 "print all of the report, with how it was measured, and what the\nkernel and libbpf say "
	 "of programs that they refuse",
	 option_flag, offsetof(struct run_options, verbose)},
	{"no-report", 0, NULL, "write the profile only", option_flag,
	 offsetof(struct run_options, no_report), .not_for = NOT_VALIDATE},
	{"report", 0, "FILE",
	 "print the report into FILE, or to standard output: - (run:\nstandard error, since the "
	 "program has standard output)",
	 option_set_word, offsetof(struct run_options, report.file)},
	{.include = option_report,
	 .offset = offsetof(struct run_options, report),
	 .not_for = NOT_VALIDATE},
	{.include = option_color, .offset = offsetof(struct run_options, report.color)},
	{"help", 'h', NULL, "this text", option_flag, offsetof(struct run_options, help)},
	{"trace-payments", 0, "FILE", NULL, option_set_word, offsetof(struct run_options, trace)},
	{"disable", 0, "FEATURE[,FEATURE]", NULL, option_set_features,
	 offsetof(struct run_options, disabled)},
	{NULL},
};
