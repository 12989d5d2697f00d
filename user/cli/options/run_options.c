// SPDX-License-Identifier: BSD-2-Clause
#include "cli/options/run_options.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/waits.h"
#include "cli/options/run_option_rows.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DEFAULT_COOL_OFF_MS 10
#define DEFAULT_STEP_PERCENT 5
/* The top ones are what emulators and tracing tools take, the bottom ones what programs number
 * theirs from. */
#define DEFAULT_SIGNAL (SIGRTMAX - 4)

bool color_wanted(enum color_when when, int fd)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

	if (when != COLOR_AUTO)
		return when == COLOR_ALWAYS;
	/* no-color.org: present and not empty, whatever its value. */
	if ((no_color && *no_color) || (term && strcmp(term, "dumb") == 0))
		return false;
	return isatty(fd) == 1;
}

/* The options of the scope, and those of run that the command has as well. */
static struct option_row *rows_of(enum run_kind kind, bool validates, size_t *ret_n)
{
	const struct option_row tables[] = {
		{.include = scope_option_rows(kind)},
		{.include = run_option_rows,
		 .without = 1U << kind | (validates ? NOT_VALIDATE : 0)},
		{NULL},
	};

	return options_all(tables, ret_n);
}

void run_options_help(enum run_kind kind, bool validates, FILE *out)
{
	size_t n;
	_cleanup_free_ struct option_row *rows = rows_of(kind, validates, &n);

	options_help(out, rows);
}

/* "FILE:LINE"? */
static bool is_file_line(const char *text)
{
	const char *colon = strrchr(text, ':');
	size_t n = strlen(text);

	(void)wait_of(text, &n);
	return colon && colon > text && colon[1] &&
	       strspn(colon + 1, "0123456789") == n - (size_t)(colon + 1 - text);
}

static bool has_latency(const struct run_options *o, const char *name)
{
	for (size_t i = 0; i < o->n_latencies; i++)
		if (strcmp(o->points[o->latencies[i].begin].name, name) == 0)
			return true;
	return false;
}

static int check(const struct run_options *o, struct error *e)
{
	if (o->fixed_line && *o->fixed_line != '[' && o->granularity == RUN_BY_LINE &&
	    !is_file_line(o->fixed_line))
		return fail(e, EINVAL,
			    "--fixed-line '%s': allowed is FILE:LINE, or a function, but not with "
			    "--granularity line",
			    o->fixed_line);
	if (o->sync == RUN_SYNC_PTHREAD &&
	    (o->scope.only || (o->scope.follow_given && o->scope.follow != FOLLOW_EXEC)))
		return fail(e, EINVAL,
			    "--sync pthread sees the calls of one process: leave out --only and "
			    "--follow, or say --follow exec");
	if (o->kind == RUN_ATTACH && !o->scope.n_pids)
		return fail(e, EINVAL,
			    "no process to attach to; cozbpf attach PID[,PID...] [OPTION]...");
	if (o->kind == RUN_SYSTEM && !scope_options_has_rule(&o->scope))
		return fail(e, EINVAL,
			    "say which processes: --cgroup, --uid, --comm, --exe or --pid-tree, or "
			    "several of them");
	if (o->status == RUN_STATUS_VIEW && !isatty(STDERR_FILENO))
		return fail(e, EINVAL,
			    "--status view: standard error is no terminal; --status plain prints "
			    "lines");
	for (size_t i = 0; i < o->n_stops; i++)
		if (o->stops[i].kind == STOP_LATENCY && !has_latency(o, o->stops[i].name))
			return fail(e, EINVAL, "--stop-if '%s': no --latency is called '%s'",
				    o->stops[i].text, o->stops[i].name);
	if (o->kind != RUN_LAUNCH)
		return 0;
	if (!o->command[0])
		return fail(e, EINVAL,
			    "no command to run; cozbpf run [OPTION]... [--] COMMAND [ARGUMENT]...");
	if (!*o->command[0])
		return fail(e, EINVAL, "the command to run is an empty word");
	if (o->repeat && o->runs)
		return fail(e, EINVAL,
			    "--repeat and --runs: choose one; --runs is for programs without a "
			    "progress point");
	if ((o->warmup || o->prepare) && !o->repeat && !o->runs)
		return fail(e, EINVAL, "--%s is for programs that are started again: say --repeat",
			    o->prepare ? "prepare" : "warmup");
	if (o->runs && (o->duty || o->most_slowdown))
		return fail(e, EINVAL,
			    "--runs makes one experiment of each run: leave out --duty and "
			    "--max-slowdown");
	if (o->slopes_only && o->runs)
		return fail(e, EINVAL,
			    "--runs makes experiments, and --slopes-only none: choose one");
	if (o->slopes_only && o->sync == RUN_SYNC_PTHREAD)
		return fail(e, EINVAL,
			    "--slopes-only takes the scheduler's events: leave out --sync pthread");
	if (o->repeat == REPEAT_AUTO && !o->until_ci && !o->duration_ns)
		return fail(e, EINVAL,
			    "--repeat auto has no end: say --until-ci, --duration or both");
	return 0;
}

/* Options may stand behind PID as well: it reads like a command of its own. */
static int parse_words(const struct option_row *rows, struct run_options *o, int argc, char **argv,
		       struct error *e)
{
	int first = argc, r = options_parse_before(rows, o, argc, argv, &first, e);

	if (r == 0 && o->kind == RUN_ATTACH && first < argc) {
		r = scope_options_pids(&o->scope, argv[first], e);
		argv += first;
		argc -= first;
		first = argc;
		if (r == 0)
			r = options_parse_before(rows, o, argc, argv, &first, e);
	}
	if (r == 0 && o->kind != RUN_LAUNCH && first < argc)
		return fail(e, EINVAL, "'%s': one word too many; several processes are PID,PID",
			    argv[first]);
	if (r == 0 && o->kind == RUN_LAUNCH)
		o->command = argv + first;
	return r;
}

/* Letters mean something else in every program, but for the one that a run without a point lacks.
 */
static bool is_ours(const char *word, const struct option_row *rows, size_t n)
{
	size_t len = strcspn(word, "=");

	if (strcmp(word, "-p") == 0)
		return true;
	for (size_t i = 0; i < n && strncmp(word, "--", 2) == 0; i++)
		if (strlen(rows[i].name) == len - 2 &&
		    strncmp(rows[i].name, word + 2, len - 2) == 0 &&
		    strcmp(rows[i].name, "help") != 0)
			return true;
	return false;
}

const char *run_options_misplaced(const struct run_options *o)
{
	size_t n;
	_cleanup_free_ struct option_row *rows =
		o->kind == RUN_LAUNCH ? rows_of(o->kind, NULL, &n) : NULL;

	for (char *const *word = o->command; rows && !o->n_points && *word; word++)
		if (word > o->command && is_ours(*word, rows, n))
			return *word;
	return NULL;
}

int run_options_parse(enum run_kind kind, bool validates, int argc, char **argv,
		      struct run_options *ret, struct error *e)
{
	_cleanup_free_ struct option_row *rows = NULL;
	size_t n_rows;
	struct run_options o = {
		.kind = kind,
		.words = argv,
		.command = argv,
		.output = RUN_DEFAULT_OUTPUT,
		.fixed_speedup = -1,
		.cool_off_ns = DEFAULT_COOL_OFF_MS * NSEC_PER_MSEC,
		.signo = DEFAULT_SIGNAL,
		.report.on_stderr = kind == RUN_LAUNCH,
	};
	int r;

	for (int percent = DEFAULT_STEP_PERCENT; percent <= 100; percent += DEFAULT_STEP_PERCENT)
		o.grid[o.n_grid++] = percent / 100.0;
	rows = rows_of(kind, validates, &n_rows);
	r = parse_words(rows, &o, argc, argv, e);
	if (r == 0 && !o.help)
		r = check(&o, e);
	if (r < 0) {
		run_options_free(&o);
		return r;
	}
	/* Samples of all waits of a kind have names of their own. */
	if (o.fixed_line && *o.fixed_line != '[' && o.granularity == RUN_BY_EITHER)
		o.granularity = is_file_line(o.fixed_line) ? RUN_BY_LINE : RUN_BY_FUNCTION;
	o.report.verbose = o.verbose;
	if (o.n_grid == 0 && o.fixed_speedup < 0)
		o.fixed_speedup = 0; /* --speedups 0 */
	/* In a burst, experiments are compared with those at 0 % of the same burst alone, which are
	 * few. */
	if (o.zero_share == 0)
		o.zero_share =
			(o.duty > 0 && o.duty < 1) || o.most_slowdown > 0 ? 1.0 / 2 : 1.0 / 3;
	*ret = o;
	return 0;
}

void run_options_free(struct run_options *o)
{
	for (size_t i = 0; i < o->n_points; i++)
		point_spec_free(&o->points[i]);
	for (size_t i = 0; i < o->n_stops; i++)
		stop_spec_free(&o->stops[i]);
	free(o->stops);
	free(o->points);
	free(o->latencies);
	free(o->sources.all);
	free(o->binaries.all);
	debug_options_free(&o->lines);
	scope_options_free(&o->scope);
	*o = (struct run_options){};
}

int terminal_width(int fd)
{
	struct winsize w;

	return ioctl(fd, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}
