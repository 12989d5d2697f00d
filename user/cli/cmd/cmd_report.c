// SPDX-License-Identifier: BSD-2-Clause
/* cozbpf report: what profiles say, in text and other forms. Needs no privilege and no kernel
 * feature. */
#include "analysis/analysis.h"
#include "base/error.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/open_file.h"
#include "cli/cmd/cmd_database.h"
#include "cli/cmd/command.h"
#include "cli/cmd/commands.h"
#include "cli/options/quantities.h"
#include "cli/options/run_option_rows.h"
#include "cli/options/run_options.h"
#include "cli/run/report_choice.h"
#include "program/dwarf/lines.h"
#include "profile/source_text.h"
#include "report/report.h"
#include "base/sandbox/opener.h"

#include <errno.h>
#include <string.h>

#define SOURCE_ANSWER_S 10 /* for a file system with sources to answer */

struct report_command {
	bool help, seed_given;
	struct report_choice report;
	uint64_t seed;
	struct debug_options lines;
	const char *database, *build; /* NULL: not said */
	uint64_t from_s, to_s;
};

static int set_seed(void *target, const struct option_row *row, const char *value, struct error *e)
{
	struct report_command *c = target;

	c->seed_given = true;
	return option_unsigned(row, value, 0, UINT64_MAX, &c->seed, e);
}

static const struct option_row rows[] = {
	{.include = option_report, .offset = offsetof(struct report_command, report)},
	{"verbose", 0, NULL, "print how it was measured as well: the books, all notes", option_flag,
	 offsetof(struct report_command, report.verbose)},
	{.include = option_color, .offset = offsetof(struct report_command, report.color)},
	{"seed", 0, "N", "of the resampling that gives the intervals (the run's)", set_seed,
	 .expert = true},
	{.include = option_source_prefix, .offset = offsetof(struct report_command, lines)},
	{"db", 0, "DIR", "the experiments of 'cozbpf collect' in this database", option_set_word,
	 offsetof(struct report_command, database)},
	{"since", 0, "TIME",
	 "with --db: from then on, a span before now (7d) or a time of\nUTC (all there is)",
	 option_set_since, offsetof(struct report_command, from_s)},
	{"until", 0, "TIME", "with --db: up to then", option_set_since,
	 offsetof(struct report_command, to_s)},
	{"build-id", 0, "HEX",
	 "with --db: of the build whose id begins so (the one that ran\nlast)", option_set_word,
	 offsetof(struct report_command, build)},
	{"help", 'h', NULL, "this text", option_flag, offsetof(struct report_command, help)},
	{NULL},
};

static const struct cmd_help help = {
	"Usage: cozbpf report [OPTION]... [FILE]...\n"
	"       cozbpf report --db DIR [OPTION]...\n"
	"Print what profiles say: per progress point the lines that were tried, the effect of "
	"making\n"
	"them faster with its 95 % interval, and a verdict. Several files are taken as one "
	"profile;\nwithout any it is " RUN_DEFAULT_OUTPUT
	". Reads profiles of cozbpf and of Coz.\n",
	rows,
	"\nExample:\n  cozbpf report --top 5 profile.coz",
};

static void report_command_free(struct report_command *c)
{
	debug_options_free(&c->lines);
}

static char *rename_line(const char *line, void *arg)
{
	return or_out_of_memory(debug_options_rename(arg, line));
}

static void take_sources(struct profile *p)
{
	/* Without it, files are opened here. */
	(void)opener_start(SOURCE_ANSWER_S);
	profile_take_sources(p, opener_open, file_rights_reader());
	opener_stop();
}

/* @path: NULL where the profile is not that of one file. */
static int print(const struct report_command *c, const struct profile *p, const char *path)
{
	const struct report_hints h = {.profile = path};
	_cleanup_(analysis_free) struct analysis a = {0};
	uint64_t seed = c->seed_given ? c->seed : p->n_runs ? p->runs[0].seed : 0;
	struct error e = {0};

	analyse(p, seed, &a);
	return report_choice_print(&c->report, p, &a, &h, &e) < 0 ? log_error("report: %s", e.text)
								  : 0;
}

int cmd_report(int argc, char **argv)
{
	_cleanup_(profile_free) struct profile p = {0};
	_cleanup_(report_command_free) struct report_command c = {
		.report = {.uid = (uid_t)-1, .gid = (gid_t)-1}, .to_s = UINT64_MAX};
	char output[] = RUN_DEFAULT_OUTPUT, *own[] = {output}, **files;
	struct error e = {0};
	int first, n, status = cmd_parse(&help, &c, &c.help, argc, argv, &first);

	if (status >= 0)
		return status;
	files = argv + first;
	n = argc - first;
	if (c.database && first < argc)
		return log_error("report: --db and '%s': choose one", argv[first]);
	if (!c.database && first >= argc) {
		if (access(RUN_DEFAULT_OUTPUT, F_OK) < 0)
			return log_error("report: which profile? There is no " RUN_DEFAULT_OUTPUT
					 " here; cozbpf report FILE...");
		files = own;
		n = 1;
	}
	if (report_choice_check(&c.report, &e) < 0)
		return log_error("report: %s", e.text);
	if (c.database &&
	    cmd_experiments("report", c.database, c.from_s, c.to_s, c.build, &p, &e) < 0)
		return log_error("report: %s", e.text);
	c.report.is_private = c.database && replace_file_source_is_private(c.database);
	for (int i = 0; i < n; i++) {
		c.report.is_private |= replace_file_source_is_private(files[i]);
		if (profile_read(&p, files[i], &e) < 0)
			return log_error("report: %s", e.text);
	}
	if (c.lines.n_prefixes)
		profile_rename_lines(&p, rename_line, &c.lines);
	if (c.report.with_source)
		take_sources(&p);
	return print(&c, &p, n == 1 ? files[0] : NULL);
}
