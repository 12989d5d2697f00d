// SPDX-License-Identifier: BSD-2-Clause
/* cozbpf top: where the time goes, by what `cozbpf collect` counted. */
#include "analysis/slopes.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "cli/cmd/cmd_database.h"
#include "cli/cmd/command.h"
#include "cli/cmd/commands.h"
#include "cli/run/report_choice.h"
#include "program/decoder/decoder.h"
#include "cli/options/quantities.h"
#include "cli/options/run_option_rows.h"
#include "cli/options/run_options.h"
#include "report/shares.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct top_command {
	bool help, json, csv;
	const char *database, *html;
	uint64_t top, width;
	struct shares_choice choice;
};

const struct option_row cmd_option_db[] = {
	{"db", 0, "DIR", "the database (" CMD_DEFAULT_DATABASE ")", option_set_word},
	{NULL},
};

const struct option_row cmd_option_times[] = {
	{"since", 0, "TIME",
	 "from then on: a span before now, as 30m, 1h, 7d, or a\ntime of UTC, as 2026-11-27T07:30 "
	 "(all there is)",
	 option_set_since, offsetof(struct shares_choice, from_s)},
	{"until", 0, "TIME", "up to then", option_set_since, offsetof(struct shares_choice, to_s)},
	{NULL},
};

const struct option_row cmd_option_choice[] = {
	{"event", 0, "NAME", "of that event, if several were counted", option_set_word,
	 offsetof(struct shares_choice, event)},
	{"image", 0, "GLOB", "only images whose path or last component fits", option_set_word,
	 offsetof(struct shares_choice, image)},
	{"build-id", 0, "HEX", "only the image whose build id begins so", option_set_word,
	 offsetof(struct shares_choice, build_id)},
	{"process", 0, "GLOB", "only processes of that name", option_set_word,
	 offsetof(struct shares_choice, process)},
	{"cgroup", 0, "GLOB", "only control groups, as /system.slice/*", option_set_word,
	 offsetof(struct shares_choice, cgroup)},
	{NULL},
};

static const struct option_row rows[] = {
	{.include = cmd_option_db, .offset = offsetof(struct top_command, database)},
	{.include = cmd_option_times, .offset = offsetof(struct top_command, choice)},
	{"by", 0, "WHAT", "image, function, line, process, cgroup or host (function)",
	 option_choice, offsetof(struct top_command, choice.by), .choices = shares_by_names},
	{.include = cmd_option_choice, .offset = offsetof(struct top_command, choice)},
	{"host", 0, "GLOB", "only hosts, of a merged database", option_set_word,
	 offsetof(struct top_command, choice.host)},
	{"top", 0, "N", "at most so many rows; 0: all (30)", option_set_whole,
	 offsetof(struct top_command, top), .max = INT_MAX},
	{"width", 0, "N", "columns to use (the terminal's, else 100)", option_set_whole,
	 offsetof(struct top_command, width), .min = 1, .max = INT_MAX},
	{"html", 0, "FILE", "write an HTML file, too", option_set_word,
	 offsetof(struct top_command, html)},
	{"json", 0, NULL, "for other programs", option_flag, offsetof(struct top_command, json)},
	{"csv", 0, NULL, "for spreadsheets", option_flag, offsetof(struct top_command, csv)},
	{"help", 'h', NULL, "this text", option_flag, offsetof(struct top_command, help)},
	{NULL},
};

static const struct cmd_help help = {
	"Usage: cozbpf top [OPTION]...\n"
	"Show where the time of a machine goes, by the samples that 'cozbpf collect' counted.\n",
	rows,
	"\nExample:\n  cozbpf top --since 1h --by function --image libc.so.6",
};

void cmd_left_out(const char *text, void *arg)
{
	(void)log_error("%s: %s", (const char *)arg, text);
}

/* Rows that places of slopes can be of, by name. */
struct named_rows {
	const struct profile *p;
	enum shares_by by;
	struct named_row {
		const char *name;
		size_t row;
	} * all;
	size_t n;
};

static int by_name(const void *a, const void *b)
{
	const struct named_row *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static size_t row_of(const char *location, void *arg)
{
	const struct named_rows *named = arg;
	const struct profile_samples *s = profile_find_samples(named->p, location);
	const struct named_row key = {
		named->by == SHARES_FUNCTION && s && s->function ? s->function : location, 0};
	const struct named_row *found =
		named->n ? bsearch(&key, named->all, named->n, sizeof(key), by_name) : NULL;

	while (found && found > named->all && by_name(found - 1, &key) == 0)
		found--;
	return found ? found->row : SIZE_MAX;
}

/* Were slopes measured there? */
static bool has_image(const struct profile *p, const char *path)
{
	for (size_t i = 0; i < p->n_addresses; i++)
		if (strcmp(p->addresses[i].path, path) == 0)
			return true;
	return false;
}

/* Of each row, by the slopes of @p. The caller's; NULL: there are none. */
static struct analysis_change *slopes_of_shares(const struct profile *p, struct shares_table *t)
{
	size_t shown = t->top && t->top < t->s->n ? t->top : t->s->n;
	_cleanup_free_ struct named_row *all = xcalloc(shown, sizeof(*all));
	struct named_rows named = {p, t->by, all, 0};
	struct analysis_change *ret;

	t->point = slopes_point(p);
	if (!t->point)
		return NULL;
	ret = xcalloc(shown, sizeof(*ret));
	for (size_t i = 0; i < shown; i++)
		if (has_image(p, t->s->all[i].image))
			all[named.n++] = (struct named_row){t->s->all[i].name, i};
	qsort(all, named.n, sizeof(*all), by_name);
	slopes_of_rows(p, t->point, shown, row_of, &named, ret);
	/* Those of one name, in several files, share it. */
	for (size_t i = 1; i < named.n; i++)
		if (by_name(&all[i - 1], &all[i]) == 0)
			ret[all[i].row] = ret[all[i - 1].row];
	t->slopes = ret;
	return ret;
}

/* A database without slopes has shares alone; one with too many as well. */
static int read_slopes(const struct top_command *c, struct profile *ret, struct error *e)
{
	int r = cmd_experiments(NULL, c->database, c->choice.from_s, c->choice.to_s,
				c->choice.build_id, ret, e);

	if (r == -E2BIG) {
		(void)log_error("top: slopes are left out: %s", e->text);
		profile_free(ret);
		*ret = (struct profile){0};
	}
	return r == -ENOENT || r == -E2BIG ? 0 : r;
}

static int write_html(FILE *out, void *arg)
{
	return shares_html(out, arg);
}

static int show(const struct top_command *c, const struct shares_table *t)
{
	struct replace_file f =
		report_choice_html(c->html, replace_file_source_is_private(c->database));
	struct shares_table copy = *t;
	struct error e = {0};

	if (c->json)
		shares_json(stdout, t);
	else if (c->csv)
		shares_csv(stdout, t);
	else
		shares_print(stdout, t);
	if (c->html && replace_file(&f, write_html, &copy, &e) < 0)
		return log_error("top: %s", e.text);
	return 0;
}

static int top(const struct top_command *c)
{
	_cleanup_(shares_free) struct shares s = {0};
	_cleanup_(profile_free) struct profile p = {0};
	_cleanup_free_ struct analysis_change *slopes = NULL;
	bool has_code = c->choice.by == SHARES_FUNCTION || c->choice.by == SHARES_LINE;
	struct shares_table t = {.s = &s,
				 .by = c->choice.by,
				 .database = c->database,
				 .top = c->top,
				 .width = (int)c->width};
	struct database *d = NULL;
	struct error e = {0};
	char name[] = "top";
	int r = database_open(c->database, cmd_left_out, name, &d, &e);

	if (r == 0 && has_code)
		r = decoder_start(NULL, &e);
	if (r == 0)
		r = shares_of(d, &c->choice, &s, &e);
	decoder_stop();
	database_close(d);
	if (r == 0 && has_code)
		r = read_slopes(c, &p, &e);
	if (r == 0 && has_code)
		slopes = slopes_of_shares(&p, &t);
	return r < 0 ? log_error("top: %s", e.text) : show(c, &t);
}

int cmd_top(int argc, char **argv)
{
	struct top_command c = {.database = CMD_DEFAULT_DATABASE,
				.top = 30,
				.choice = {.by = SHARES_FUNCTION, .to_s = UINT64_MAX}};
	int first, status = cmd_parse(&help, &c, &c.help, argc, argv, &first);

	if (status >= 0)
		return status;
	if (first < argc)
		return log_error("top: unexpected word '%s'", argv[first]);
	if (c.json && c.csv)
		return log_error("top: --json and --csv: choose one");
	if (!c.width)
		c.width = (uint64_t)terminal_width(STDOUT_FILENO);
	return top(&c);
}
