// SPDX-License-Identifier: BSD-2-Clause
/* cozbpf diff: what became of a program. Needs no privilege. */
#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "cli/cmd/cmd_database.h"
#include "cli/cmd/command.h"
#include "cli/cmd/commands.h"
#include "cli/run/report_choice.h"
#include "cli/options/run_option_rows.h"
#include "cli/options/run_options.h"
#include "report/diff.h"
#include "report/report.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

struct diff_command {
	bool help, json, is_private; /* the last: so are profiles */
	const char *html;
	const char *database; /* NULL: profiles are compared */
	enum shares_by by;
	char *changed; /* owned; NULL: not said */
	double speedup;
	double fail_if; /* percent */
	uint64_t width;
};

static int set_changed(void *target, const struct option_row *row, const char *value,
		       struct error *e)
{
	struct diff_command *c = target;
	const char *equals = strrchr(value, '=');
	double percent;

	if (c->changed)
		return fail(e, EINVAL, "--%s: only one line; a prediction is of one line alone",
			    row->name);
	if (!equals || equals == value)
		return fail(e, EINVAL, "--%s '%s': allowed is FILE:LINE=PERCENT", row->name, value);
	if (option_real(row, equals + 1, 0.1, 100, &percent, e) < 0)
		return -EINVAL;
	c->speedup = percent / 100;
	c->changed = xstrndup(value, (size_t)(equals - value));
	return 0;
}

static const struct option_row rows[] = {
	{"changed", 0, "FILE:LINE=PERCENT",
	 "the line was made so much faster in between: did what was\npredicted come true?",
	 set_changed},
	{"fail-if", 0, "PERCENT", "exit with status 1 if a point surely became slower by more",
	 option_set_real, offsetof(struct diff_command, fail_if), .max = 1000},
	{"html", 0, "FILE", "write an HTML file, too", option_set_word,
	 offsetof(struct diff_command, html)},
	{"db", 0, "DIR",
	 "compare samples of 'cozbpf collect': BEFORE and AFTER are\ntimes (2026-11-27, "
	 "2026-11-27T07) or builds (build:HEX)",
	 option_set_word, offsetof(struct diff_command, database)},
	{"by", 0, "WHAT", "with --db: image, function, line, process, cgroup, host\n(function)",
	 option_choice, offsetof(struct diff_command, by), .choices = shares_by_names},
	{"width", 0, "N", "columns to use (the terminal's, else 100)", option_set_whole,
	 offsetof(struct diff_command, width), .min = 1, .max = INT_MAX},
	{"json", 0, NULL, "for other programs", option_flag, offsetof(struct diff_command, json)},
	{"help", 'h', NULL, "this text", option_flag, offsetof(struct diff_command, help)},
	{NULL},
};

static const struct cmd_help help = {
	"Usage: cozbpf diff [OPTION]... BEFORE AFTER\n"
	"Say how much faster a program became between two profiles, and of each line how its "
	"effect\nchanged.\n",
	rows,
	"\nExample:\n  cozbpf diff --changed queue.c:142=40 before.jsonl after.jsonl",
};

static int write_html(FILE *out, void *arg)
{
	return diff_html(out, arg);
}

/* 0, 1, or EXIT_OURS. */
static int tell(const struct diff_command *c, struct diff *d)
{
	struct replace_file f = report_choice_html(c->html, c->is_private);
	struct error e = {0};

	if (!d->c->n_points)
		return log_error("diff: the profiles have no point with visits in common: nothing "
				 "can be compared");
	for (size_t i = 0; c->changed && i < d->c->n_points; i++)
		if (!compare_called(d->c->points[i].before, c->changed))
			return log_error("diff: --changed '%s': no line that was tried before the "
					 "change is called so, or several are",
					 c->changed);
	if (c->json)
		diff_json(stdout, d);
	else
		diff_print(stdout, d, (int)c->width);
	if (c->html && replace_file(&f, write_html, d, &e) < 0)
		return log_error("diff: %s", e.text);
	if (fflush(stdout) || ferror(stdout))
		return log_error("diff: standard output: %s", strerror(errno));
	for (size_t i = 0; i < d->c->n_points; i++)
		if (-100 * d->c->points[i].gain.high > c->fail_if) /* NaN: no */
			return 1;
	return 0;
}

static int compare_files(struct diff_command *c, char **files)
{
	_cleanup_(profile_free) struct profile before = {0}, after = {0};
	_cleanup_(analysis_free) struct analysis a = {0}, b = {0};
	_cleanup_(compare_free) struct comparison all = {0};
	struct diff d = {.before = &before,
			 .after = &after,
			 .a = &a,
			 .b = &b,
			 .c = &all,
			 .changed = c->changed,
			 .speedup = c->speedup};
	struct replace_file f = report_choice_html(c->html, false);
	struct error e = {0};

	for (size_t i = 0; i < 2; i++)
		c->is_private |= replace_file_source_is_private(files[i]);
	if (c->html && replace_file_check(&f, &e) < 0)
		return log_error("diff: %s", e.text);
	if (profile_read(&before, files[0], &e) < 0 || profile_read(&after, files[1], &e) < 0)
		return log_error("diff: %s", e.text);
	analyse(&before, 1, &a);
	analyse(&after, 1, &b);
	compare(&before, &a, &after, &b, &all);
	return tell(c, &d);
}

static void diff_command_free(struct diff_command *c)
{
	free(c->changed);
}

int cmd_diff(int argc, char **argv)
{
	_cleanup_(diff_command_free) struct diff_command c = {.fail_if = 1e9,
							      .by = SHARES_FUNCTION};
	int first, status = cmd_parse(&help, &c, &c.help, argc, argv, &first);

	if (status >= 0)
		return status;
	if (argc - first != 2)
		return log_error("diff: which two? Usage: cozbpf diff [OPTION]... BEFORE AFTER");
	if (c.database && (c.html || c.changed || c.fail_if < 1e9))
		return log_error("diff: --html, --changed and --fail-if are of profiles; with --db "
				 "there is --json");
	if (!c.width)
		c.width = (uint64_t)terminal_width(STDOUT_FILENO);
	return c.database ? cmd_diff_samples(c.database, c.by, c.json, (int)c.width, argv + first)
			  : compare_files(&c, argv + first);
}
