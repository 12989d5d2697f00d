// SPDX-License-Identifier: BSD-2-Clause
/* cozbpf annotate: which instructions of a function the samples of `cozbpf collect` found, and what they may have waited for. */
#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "cmd/cmd_database.h"
#include "cmd/commands.h"
#include "decoder/decoder.h"
#include "options/quantities.h"
#include "options/run_option_rows.h"
#include "options/run_options.h"
#include "report/annotate.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct annotate_command {
	bool help, json, all;
	const char *database;
	uint64_t width;
	struct shares_choice choice;
};

#define CHOICE(field) (offsetof(struct annotate_command, choice) + offsetof(struct shares_choice, field))

static const struct option_row rows[] = {
	{"db", 0, "DIR", "the database (" CMD_DEFAULT_DATABASE ")", option_set_word, offsetof(struct annotate_command, database)},
	{"since", 0, "TIME", "from then on: a span before now, as 30m, 1h, 7d, or a\ntime of UTC, as 2026-11-27T07:30 (all there is)",
	 option_set_since, CHOICE(from_s)},
	{"until", 0, "TIME", "up to then", option_set_since, CHOICE(to_s)},
	{"event", 0, "NAME", "of that event, if several were counted", option_set_word, CHOICE(event)},
	{"image", 0, "GLOB", "only images whose path or last component fits", option_set_word, CHOICE(image)},
	{"build-id", 0, "HEX", "only the image whose build id begins so", option_set_word, CHOICE(build_id)},
	{"process", 0, "GLOB", "only processes of that name", option_set_word, CHOICE(process)},
	{"cgroup", 0, "GLOB", "only control groups, as /system.slice/*", option_set_word, CHOICE(cgroup)},
	{"all", 0, NULL, "blocks without samples as well", option_flag, offsetof(struct annotate_command, all)},
	{"width", 0, "N", "columns to use (the terminal's, else 100)", option_set_whole, offsetof(struct annotate_command, width), .min = 1,
	 .max = INT_MAX},
	{"json", 0, NULL, "for other programs: all blocks", option_flag, offsetof(struct annotate_command, json)},
	{"help", 'h', NULL, "this text", option_flag, offsetof(struct annotate_command, help)},
};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static void help(void)
{
	(void)puts("Usage: cozbpf annotate [OPTION]... FUNCTION|FILE:LINE\n"
		   "Show the instructions of a function, with the samples of 'cozbpf collect' and what they may have waited for.\n");
	options_help(stdout, rows, N_ROWS);
	(void)puts("\nExample:\n  cozbpf annotate --since 1h --image mysqld row_search_mvcc");
}

static int show(const struct annotate_command *c, const struct shares_code *of, struct error *e)
{
	_cleanup_(annotation_free) struct annotation a = {0};
	_cleanup_free_ struct annotation_sample *samples = calloc(of->n + 1, sizeof(*samples));
	struct annotate_page page = {.a = &a, .of = of, .all = c->all, .width = (int)c->width};
	int r;

	if (!samples)
		return fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < of->n; i++)
		samples[i] = (struct annotation_sample){of->all[i].vaddr, of->all[i].samples};
	r = annotation_make(of->object, &of->symbol, samples, of->n, &a, e);
	if (r < 0)
		return r;
	r = c->json ? annotate_json(stdout, &page) : annotate_print(stdout, &page);
	return r < 0 ? fail(e, -r, "%s", strerror(-r)) : 0;
}

static int annotate(const struct annotate_command *c, const char *name)
{
	_cleanup_(shares_code_free) struct shares_code of = {0};
	struct database *d = NULL;
	struct error e = {0};
	char called[] = "annotate";
	int r = database_open(c->database, cmd_left_out, called, &d, &e);

	if (r == 0)
		r = decoder_start(NULL, &e);
	if (r == 0)
		r = shares_find_code(d, &c->choice, name, &of, &e);
	if (r == 0)
		r = show(c, &of, &e);
	decoder_stop();
	database_close(d);
	return r < 0 ? log_error("annotate: %s", e.text) : 0;
}

int cmd_annotate(int argc, char **argv)
{
	struct annotate_command c = {.database = CMD_DEFAULT_DATABASE, .choice = {.by = SHARES_FUNCTION, .to_s = UINT64_MAX}};
	struct error e = {0};
	int first;

	if (options_parse(rows, N_ROWS, &c, argc, argv, &first, &e) < 0)
		return log_error("annotate: %s", e.text);
	if (c.help) {
		help();
		return 0;
	}
	if (first + 1 != argc)
		return log_error(first < argc ? "annotate: one function or line, not several words" : "annotate: name a function or FILE:LINE");
	if (!c.width)
		c.width = (uint64_t)terminal_width(STDOUT_FILENO);
	return annotate(&c, argv[first]);
}
