// SPDX-License-Identifier: BSD-2-Clause
/* cozbpf report: what profiles say, in text. Needs no privilege and no kernel feature. */
#include "analysis/analysis.h"
#include "base/error.h"
#include "base/cleanup.h"
#include "cmd/commands.h"
#include "cmd/run_option_rows.h"
#include "cmd/run_options.h"
#include "elf/lines.h"
#include "report/report.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

struct report_command {
	bool help, no_curves, json, inlined, seed_given;
	enum color_when color;
	uint64_t top, width, seed;
	struct line_options lines;
};

static int set_number(void *target, const struct option_row *row, const char *value, struct error *e)
{
	return option_unsigned(row, value, 1, INT_MAX, (uint64_t *)((char *)target + row->offset), e);
}

static int set_seed(void *target, const struct option_row *row, const char *value, struct error *e)
{
	struct report_command *c = target;

	c->seed_given = true;
	return option_unsigned(row, value, 0, UINT64_MAX, &c->seed, e);
}

static const struct option_row rows[] = {
	{"top", 0, "N", "at most so many lines per progress point (15)", set_number, offsetof(struct report_command, top)},
	{"color", 0, "WHEN", "auto, always, never (auto)", option_set_color, offsetof(struct report_command, color)},
	{"width", 0, "N", "columns to use (the terminal's, else 100)", set_number, offsetof(struct report_command, width)},
	{"no-curves", 0, NULL, "tables only", option_flag, offsetof(struct report_command, no_curves)},
	{"inline", 0, NULL, "show under each table where its lines were inlined", option_flag, offsetof(struct report_command, inlined)},
	{"json", 0, NULL, "all that is known as one JSON object, for other programs", option_flag,
	 offsetof(struct report_command, json)},
	{"seed", 0, "N", "of the resampling that gives the intervals (the run's)", set_seed, 0},
	OPTION_ROW_SOURCE_PREFIX(offsetof(struct report_command, lines)),
	{"help", 'h', NULL, "this text", option_flag, offsetof(struct report_command, help)},
};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static void help(void)
{
	(void)puts("Usage: cozbpf report [OPTION]... FILE...\n"
		   "Print what profiles say: per progress point the lines that were tried, the effect of making\n"
		   "them faster with its 95 % interval, and a verdict. Several files are taken as one profile.\n"
		   "Reads profiles of cozbpf and of Coz.\n");
	options_help(stdout, rows, N_ROWS);
	(void)puts("\nExample:\n  cozbpf report --top 5 profile.coz");
}

static void report_command_free(struct report_command *c)
{
	line_options_free(&c->lines);
}

static char *rename_line(const char *line, void *arg)
{
	return line_options_rename(arg, line);
}

static int print(const struct report_command *c, const struct profile *p)
{
	_cleanup_(analysis_free) struct analysis a = {0};
	struct report_options o = {
		.color = color_wanted(c->color, STDOUT_FILENO),
		.width = c->width ? (int)c->width : terminal_width(STDOUT_FILENO),
		.top = c->top,
		.inlined = c->inlined,
		.curves = c->no_curves ? (size_t)-1 : 0,
	};
	uint64_t seed = c->seed_given ? c->seed : p->n_runs ? p->runs[0].seed : 0;

	if (analyse(p, seed, &a) < 0)
		return complain("report: out of memory");
	if (!c->json)
		report_print(stdout, p, &a, &o, NULL);
	else if (report_json(stdout, p, &a) < 0)
		return complain("report: out of memory");
	if (fflush(stdout) || ferror(stdout))
		return complain("report: standard output: %s", strerror(errno));
	return 0;
}

int cmd_report(int argc, char **argv)
{
	_cleanup_(profile_free) struct profile p = {0};
	_cleanup_(report_command_free) struct report_command c = {0};
	struct error e = {0};
	int first;

	if (options_parse(rows, N_ROWS, &c, argc, argv, &first, &e) < 0)
		return complain("report: %s", e.text);
	if (c.help) {
		help();
		return 0;
	}
	if (first >= argc)
		return complain("report: which profile? Usage: cozbpf report [OPTION]... FILE...");
	for (int i = first; i < argc; i++)
		if (profile_read(&p, argv[i], &e) < 0)
			return complain("report: %s", e.text);
	if (c.lines.n_prefixes && profile_rename_lines(&p, rename_line, &c.lines) < 0)
		return complain("report: out of memory");
	return print(&c, &p);
}
