// SPDX-License-Identifier: BSD-2-Clause
/* cozbpf db: looks after databases of `cozbpf collect`. */
#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "cli/cmd/cmd_database.h"
#include "cli/cmd/command.h"
#include "cli/cmd/commands.h"
#include "program/decoder/decoder.h"
#include "report/export/export.h"
#include "cli/options/quantities.h"
#include "cli/options/run_option_rows.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum form { PPROF, JSON, CSV, N_FORMS };
enum what { SAMPLES, EXPERIMENTS };
static const char *const what_names[] = {
	[SAMPLES] = "samples", [EXPERIMENTS] = "experiments", NULL};
static const char *const form_names[] = {[PPROF] = "pprof", [JSON] = "json", [CSV] = "csv", NULL};

struct db_command {
	bool help;
	const char *database, *output;
	uint64_t older_s;
	enum form form;
	enum what what;
	struct shares_choice choice;
	char **words; /* those of merge */
	int n_words;
	struct error *e;
};

static const struct option_row help_row[] = {
	{"help", 'h', NULL, "this text", option_flag, offsetof(struct db_command, help)},
	{NULL},
};
static const struct option_row info_rows[] = {
	{.include = cmd_option_db, .offset = offsetof(struct db_command, database)},
	{.include = help_row},
	{NULL},
};
static const struct option_row merge_rows[] = {
	{"output", 'o', "DIR", "the new database (must be said)", option_set_word,
	 offsetof(struct db_command, output)},
	{.include = help_row},
	{NULL},
};
static const struct option_row compact_rows[] = {
	{.include = cmd_option_db, .offset = offsetof(struct db_command, database)},
	{"older-than", 0, "TIME", "days that ended so long ago (2d)", option_set_span,
	 offsetof(struct db_command, older_s)},
	{.include = help_row},
	{NULL},
};
static const struct option_row export_rows[] = {
	{"to", 0, "FORMAT",
	 "json: each row as an object, one to a line\ncsv: the same for spreadsheets\npprof: "
	 "samples by function, for pprof and profile stores",
	 option_choice, offsetof(struct db_command, form), .choices = form_names},
	{"what", 0, "WHAT", "samples or experiments (samples)", option_choice,
	 offsetof(struct db_command, what), .choices = what_names},
	{"output", 'o', "FILE", "write a new FILE (standard output)", option_set_word,
	 offsetof(struct db_command, output)},
	{.include = cmd_option_db, .offset = offsetof(struct db_command, database)},
	{"since", 0, "TIME", "from then on: a span before now, or a time of UTC (all)",
	 option_set_since, offsetof(struct db_command, choice.from_s)},
	{"until", 0, "TIME", "up to then", option_set_since,
	 offsetof(struct db_command, choice.to_s)},
	{.include = help_row},
	{NULL},
};

static char left_out_of[] = "db";

static int open_to_read(const struct db_command *c, struct database **ret)
{
	return database_open(c->database, cmd_left_out, left_out_of, ret, c->e);
}

/* How sampling went, by what the sampler says of itself. */
struct sampling {
	uint64_t samples, numbers[3];
};
static const char *const sampling_names[] = {"ticks", "hits", "lost"};

static int add_sampling(struct counts *c, void *arg)
{
	struct sampling *s = arg;

	for (size_t i = 0; i < c->n_rows; i++) {
		const char *event = c->events[c->rows[i].event].name;

		if (c->image.kind != COUNTS_SAMPLER)
			s->samples += c->rows[i].count;
		for (size_t k = 0; c->image.kind == COUNTS_SAMPLER && k < 3; k++)
			if (strcmp(event, sampling_names[k]) == 0)
				s->numbers[k] += c->rows[i].count;
	}
	return 0;
}

static int info(struct db_command *c)
{
	_cleanup_free_ struct database_epoch *all = NULL;
	struct database *d = NULL;
	uint64_t bytes = 0;
	size_t epochs = 0;
	int r = open_to_read(c, &d);

	if (r == 0)
		r = database_epochs(d, &all, &epochs, c->e);
	if (r == 0)
		(void)puts("epoch                     images    KiB      samples    found    lost");
	for (size_t i = 0; r == 0 && i < epochs; i++) {
		struct sampling s = {0};

		database_measure(d, &all[i]);
		bytes += all[i].bytes;
		r = database_each(d, all[i].begin_s, all[i].begin_s + all[i].seconds, add_sampling,
				  &s, c->e);
		if (r == 0)
			(void)printf("%-24s %7zu %6llu %12llu %6.1f %% %7llu\n", all[i].name,
				     all[i].files, (unsigned long long)all[i].bytes >> 10,
				     (unsigned long long)s.samples,
				     s.numbers[0]
					     ? 100 * (double)s.numbers[1] / (double)s.numbers[0]
					     : 0,
				     (unsigned long long)s.numbers[2]);
	}
	if (r == 0)
		cmd_say(xasprintf(
			"%zu epoch%s, %llu KiB. found: samples whose entry in the kernel's "
			"table was there already",
			epochs, epochs == 1 ? "" : "s", (unsigned long long)bytes >> 10));
	database_close(d);
	return r;
}

struct merging {
	struct database *to;
	struct error *e;
};

static int merge_profile(int fd, const char *path, void *arg)
{
	struct merging *m = arg;

	return database_add_profile(m->to, fd, path, m->e);
}

static int merge_one(struct counts *c, void *arg)
{
	struct merging *m = arg;

	return database_add(m->to, c, m->e);
}

/* The epochs of one length. */
static int merge_database(struct merging *m, struct database *from, uint64_t seconds)
{
	_cleanup_free_ struct database_epoch *all = NULL;
	size_t n = 0;
	int r = database_epochs(from, &all, &n, m->e);

	for (size_t i = 0; i < n && r == 0; i++) {
		uint64_t end = all[i].begin_s + all[i].seconds;

		if (all[i].seconds != seconds)
			continue;
		r = database_each(from, all[i].begin_s, end, merge_one, m, m->e);
		if (r == 0)
			r = database_each_profile(from, all[i].begin_s, end, merge_profile, m,
						  m->e);
	}
	return r;
}

/* Only into a new one: what would be merged twice would count twice. */
static int check_merge(const struct db_command *c)
{
	if (!c->output)
		return fail(c->e, EINVAL, "merge: into which directory? Name it with -o");
	if (c->n_words < 1)
		return fail(c->e, EINVAL,
			    "merge: which databases? Usage: cozbpf db merge -o DIR DATABASE...");
	if (access(c->output, F_OK) == 0)
		return fail(c->e, EEXIST, "merge: '%s' is there already: name a new directory",
			    c->output);
	for (int i = 0; i < c->n_words; i++)
		for (int k = 0; k < i; k++)
			if (strcmp(c->words[i], c->words[k]) == 0)
				return fail(c->e, EINVAL, "merge: '%s' is named twice",
					    c->words[i]);
	return 0;
}

static int merge(struct db_command *c)
{
	struct merging m = {.e = c->e};
	int n = c->n_words, r = check_merge(c);
	struct database **from = (struct database **)xcalloc((size_t)n, sizeof(*from));

	/* Before the new one is made. */
	for (int i = 0; i < n && r == 0; i++)
		r = database_open(c->words[i], cmd_left_out, left_out_of, &from[i], c->e);
	if (r == 0)
		r = database_open_writer(c->output, (gid_t)-1, cmd_left_out, left_out_of, &m.to,
					 c->e);
	/* Days first, which hours of others then go to: a day that came later would hide them. */
	for (int i = 0; i < 2 * n && r == 0; i++)
		r = merge_database(&m, from[i % n], i < n ? DATABASE_DAY_S : DATABASE_EPOCH_S);
	database_close(m.to);
	for (int i = 0; i < n; i++)
		database_close(from[i]);
	free((void *)from);
	return r;
}

static int compact(struct db_command *c)
{
	struct database *d = NULL;
	uint64_t now = (uint64_t)time(NULL);
	size_t days = 0;
	int r = database_open_writer(c->database, (gid_t)-1, cmd_left_out, left_out_of, &d, c->e);

	if (r == 0)
		r = database_compact(d, now > c->older_s ? now - c->older_s : 0, &days, c->e);
	database_close(d);
	if (r == 0)
		cmd_say(xasprintf("%zu day%s made one epoch each", days,
				  days == 1 ? " was" : "s were"));
	return r;
}

static int export_pprof_of(FILE *out, struct database *d, const struct db_command *c)
{
	_cleanup_(shares_free) struct shares s = {0};
	int r = decoder_start(NULL, c->e);

	if (r == 0)
		r = shares_of(d, &c->choice, &s, c->e);
	decoder_stop();
	if (r < 0)
		return r;
	r = export_shares_pprof(out, &s);
	return r == -ENODATA ? fail(c->e, ENODATA, "the database has no samples of that time")
	       : r < 0	     ? fail(c->e, -r, "cannot write: %s", strerror(-r))
			     : 0;
}

static int write_form(FILE *out, void *arg)
{
	struct db_command *c = arg;
	struct database *d = NULL;
	int r = open_to_read(c, &d);

	if (r == 0 && c->form == PPROF)
		r = export_pprof_of(out, d, c);
	else if (r == 0)
		r = (c->what == SAMPLES ? export_counts : export_experiments)(
			out, c->form == CSV, d, c->choice.from_s, c->choice.to_s, c->e);
	database_close(d);
	return r;
}

static int export(struct db_command *c)
{
	struct replace_file f = cmd_file(c->output, replace_file_source_is_private(c->database));
	struct error e = {0};
	int r;

	if (c->form == N_FORMS)
		return fail(c->e, EINVAL,
			    "export: which format? Say --to json, --to csv or --to pprof");
	if (c->form == PPROF && c->what == EXPERIMENTS)
		return fail(c->e, EINVAL,
			    "export: pprof's format is for samples; experiments go to json or csv");
	if (c->form == PPROF && !c->output && isatty(STDOUT_FILENO))
		return fail(c->e, EINVAL,
			    "export: pprof's format is binary and standard output a terminal: name "
			    "a file with -o");
	if (!c->output)
		return write_form(stdout, c);
	r = replace_file(&f, write_form, c, &e);
	/* Why nothing could be written says more than that nothing was. */
	if (r < 0 && !*c->e->text)
		*c->e = e;
	return r;
}

static const struct {
	const char *name;
	int (*run)(struct db_command *c);
	const struct option_row *rows;
	bool words;
	const char *usage;
} subcommands[] = {
	{"info", info, info_rows, false,
	 "Usage: cozbpf db info [OPTION]...\nList the epochs of a database, and how sampling "
	 "went.\n"},
	{"merge", merge, merge_rows, true,
	 "Usage: cozbpf db merge -o DIR DATABASE...\nPut several databases, of one host or of "
	 "many, into a new one. Samples keep their hosts.\n"},
	{"compact", compact, compact_rows, false,
	 "Usage: cozbpf db compact [OPTION]...\nMake one epoch of the hours of each day that is "
	 "past: smaller, and quicker to read.\n"},
	{"export", export, export_rows, false,
	 "Usage: cozbpf db export --to json|csv|pprof [OPTION]...\nWrite what was counted in a "
	 "format of other tools.\n"},
};
#define N_SUBCOMMANDS (sizeof(subcommands) / sizeof(subcommands[0]))

static void help(void)
{
	for (size_t i = 0; i < N_SUBCOMMANDS; i++)
		(void)puts(subcommands[i].usage);
	(void)puts("'cozbpf db info --help' and so on list the options.");
}

int cmd_db(int argc, char **argv)
{
	struct error e = {0};
	struct db_command c = {.database = CMD_DEFAULT_DATABASE,
			       .older_s = (uint64_t)2 * DATABASE_DAY_S,
			       .form = N_FORMS,
			       .choice = {.by = SHARES_FUNCTION, .to_s = UINT64_MAX},
			       .e = &e};
	int first;

	if (argc < 2)
		return log_error("db: what? Say cozbpf db info, merge, compact or export");
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		help();
		return 0;
	}
	for (size_t i = 0; i < N_SUBCOMMANDS; i++) {
		if (strcmp(argv[1], subcommands[i].name) != 0)
			continue;
		if (options_parse(subcommands[i].rows, &c, argc - 1, argv + 1, &first, &e) < 0)
			return log_error("db: %s", e.text);
		first++;
		if (c.help) {
			(void)puts(subcommands[i].usage);
			options_help(stdout, subcommands[i].rows);
			return 0;
		}
		if (first < argc && !subcommands[i].words)
			return log_error("db: unexpected word '%s'", argv[first]);
		c.words = argv + first;
		c.n_words = argc - first;
		if (subcommands[i].run(&c) < 0)
			return log_error("db: %s", e.text);
		return 0;
	}
	return log_error("db: unknown word '%s'; there are info, merge, compact and export",
			 argv[1]);
}
