// SPDX-License-Identifier: BSD-2-Clause
/* cozbpf annotate: which instructions of a function were sampled, by `cozbpf collect` or by runs,
 * what they may have waited for, and what their lines are worth. */
#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "cli/cmd/cmd_database.h"
#include "cli/cmd/command.h"
#include "cli/cmd/commands.h"
#include "cli/run/report_choice.h"
#include "kernel/counting/counting.h"
#include "program/decoder/decoder.h"
#include "cli/options/quantities.h"
#include "cli/options/run_option_rows.h"
#include "cli/options/run_options.h"
#include "profile/addresses.h"
#include "report/annotate.h"
#include "report/report.h"
#include "target/process.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct annotate_command {
	bool help, json, all, is_private; /* the last: so is the database or a profile */
	const char *database, *html;	  /* NULL: not said */
	uint64_t width, count_s, pid;	  /* count_s: 0: nothing is counted */
	struct shares_choice choice;
};

static const struct option_row rows[] = {
	{.include = cmd_option_db, .offset = offsetof(struct annotate_command, database)},
	{.include = cmd_option_times, .offset = offsetof(struct annotate_command, choice)},
	{.include = cmd_option_choice, .offset = offsetof(struct annotate_command, choice)},
	{"count", 0, "TIME",
	 "count for so long how often each block is executed now;\nthat slows the process down, by "
	 "far",
	 option_set_span, offsetof(struct annotate_command, count_s)},
	{"pid", 'p', "PID", "the process to count in", option_set_whole,
	 offsetof(struct annotate_command, pid), .min = 1, .max = INT_MAX},
	{"all", 0, NULL, "blocks without samples as well", option_flag,
	 offsetof(struct annotate_command, all)},
	{"width", 0, "N", "columns to use (the terminal's, else 100)", option_set_whole,
	 offsetof(struct annotate_command, width), .min = 1, .max = INT_MAX},
	{"html", 0, "FILE", "write it as one HTML file, too", option_set_word,
	 offsetof(struct annotate_command, html)},
	{"json", 0, NULL, "for other programs: all blocks", option_flag,
	 offsetof(struct annotate_command, json)},
	{"help", 'h', NULL, "this text", option_flag, offsetof(struct annotate_command, help)},
	{NULL},
};

static const struct cmd_help help = {
	"Usage: cozbpf annotate [OPTION]... FUNCTION|FILE:LINE [PROFILE]...\n"
	"Show the instructions of a function: the samples that found them, what they may have "
	"waited for,\n"
	"and what lines are worth that experiments were made with. Of profiles, or of what "
	"'cozbpf collect'\nhas in its database.\n",
	rows,
	"\nExample:\n  cozbpf annotate queue.c:88 profile.jsonl\n"
	"  cozbpf annotate --since 1h --image mysqld row_search_mvcc",
};

static int write_html(FILE *out, void *arg)
{
	return annotate_html(out, arg);
}

/* @p: what the function was found in, or the experiments of its program; empty if there are none.
 * @kernel: samples of the kernel count for what led there, as in runs. */
static int show(const struct annotate_command *c, const struct shares_code *of,
		const struct profile *p, bool kernel, struct error *e)
{
	_cleanup_(analysis_free) struct analysis experiments = {0};
	_cleanup_(annotation_free) struct annotation a = {0};
	_cleanup_free_ struct annotation_sample *samples = xcalloc(of->n, sizeof(*samples));
	struct annotate_page page = {.a = &a, .of = of, .all = c->all, .width = (int)c->width};
	struct replace_file f = report_choice_html(c->html, c->is_private);
	struct statx st;
	int r;

	analyse(p, p->n_runs ? p->runs[0].seed : 0, &experiments);
	page.point = analysis_visited(&experiments);
	for (size_t i = 0; i < of->n; i++)
		samples[i] = (struct annotation_sample){of->all[i].vaddr, of->all[i].samples};
	r = annotation_make(of->object, &of->symbol, samples, of->n, kernel, &a, e);
	if (r == 0 && c->count_s)
		r = counting_run((pid_t)c->pid, of->object, &a, of->total, (double)c->count_s, e);
	if (r < 0)
		return r;
	if (c->json)
		annotate_json(stdout, &page);
	else
		r = annotate_print(stdout, &page);
	if (r < 0)
		return fail(e, -r, "%s", strerror(-r));
	/* Its code is shown. */
	f.is_private |= elf_object_look_at(of->object, &st) == 0 && !(st.stx_mode & S_IROTH);
	return c->html ? replace_file(&f, write_html, &page, e) : 0;
}

static int of_database(const struct annotate_command *c, const char *name, struct error *e)
{
	_cleanup_(shares_code_free) struct shares_code of = {0};
	_cleanup_(profile_free) struct profile experiments = {0};
	const char *path = c->database ? c->database : CMD_DEFAULT_DATABASE, *build;
	struct shares_source from;
	struct database *d = NULL;
	char called[] = "annotate";
	int r = database_open(path, cmd_left_out, called, &d, e);

	from = shares_database(d);
	if (r == 0)
		r = shares_find_code(&from, &c->choice, name, &of, e);
	database_close(d);
	if (r < 0)
		return r;
	build = elf_object_build_id(of.object);
	r = build ? cmd_experiments(called, path, c->choice.from_s, c->choice.to_s, build,
				    &experiments, e)
		  : 0;
	return r < 0 && r != -ENOENT ? r : show(c, &of, &experiments, false, e);
}

static int add_place(const struct profile_place *at, void *arg)
{
	counts_add(arg, at->offset, 0, 0, at->count);
	return 0;
}

/* A shares_source of a profile. */
static int each_of_profile(void *from, uint64_t from_s, uint64_t to_s,
			   int (*cb)(struct counts *c, void *arg), void *arg, struct error *e)
{
	const struct profile *p = from;
	int r = 0;

	(void)from_s;
	(void)to_s;
	(void)e;
	for (size_t i = 0; r == 0 && i < p->n_addresses; i++) {
		const struct profile_addresses *a = &p->addresses[i];
		const struct counts_image image = {.kind = COUNTS_FILE,
						   .path = a->path,
						   .build_id = a->build ? a->build : (char[]){""},
						   .inode = a->inode,
						   .changed_ns = a->changed_ns,
						   .owner = COUNTS_NO_OWNER};
		struct counts c = {0};

		counts_copy_image(&c.image, &image);
		(void)counts_who(&c, "", "", "");
		(void)counts_event(&c, "cpu-clock", 1);
		(void)profile_addresses_each(a, add_place, &c);
		r = cb(&c, arg);
		counts_free(&c);
	}
	return r;
}

static int of_profiles(const struct annotate_command *c, const char *name, char *const *paths,
		       struct error *e)
{
	_cleanup_(shares_code_free) struct shares_code of = {0};
	_cleanup_(profile_free) struct profile p = {0};
	struct shares_source from = {each_of_profile, &p};
	int r = 0;

	for (char *const *path = paths; r == 0 && *path; path++)
		r = profile_read(&p, *path, e);
	if (r == 0 && !p.n_addresses)
		r = fail(e, ENODATA,
			 "'%s' has no samples by instruction: it was written by an older cozbpf or "
			 "by Coz; make a new one",
			 *paths);
	if (r == 0)
		r = shares_find_code(&from, &c->choice, name, &of, e);
	return r < 0 ? r : show(c, &of, &p, true, e);
}

/* What is left to choose from a profile. */
static bool chooses_in_database(const struct annotate_command *c)
{
	return c->database || c->choice.from_s || c->choice.to_s != UINT64_MAX || c->choice.event ||
	       c->choice.process || c->choice.cgroup;
}

/* Is it there to be counted in? Then samples are those of its name, unless said otherwise: *ret is
 * a glob for that, the caller's. */
static int choose_process(struct annotate_command *c, bool of_database, char **ret, struct error *e)
{
	_cleanup_close_ int fd = -1;
	struct process_facts facts;
	size_t n = 0;
	int r = process_open((pid_t)c->pid, &fd, e);

	if (r < 0 || !of_database || c->choice.process)
		return r;
	if (process_read((pid_t)c->pid, &facts) < 0)
		return fail(e, ESRCH, "there is no process %d", (int)c->pid);
	*ret = xcalloc(2, sizeof(facts.comm));
	for (const char *s = facts.comm; *s; s++) {
		if (strchr("*?[]\\", *s))
			(*ret)[n++] = '\\';
		(*ret)[n++] = *s;
	}
	c->choice.process = *ret;
	return 0;
}

static int annotate(struct annotate_command *c, char *const *words)
{
	_cleanup_free_ char *process = NULL;
	struct replace_file f = report_choice_html(c->html, false);
	struct error e = {0};
	int r = c->html ? replace_file_check(&f, &e) : 0;

	c->is_private = !words[1] && replace_file_source_is_private(
					     c->database ? c->database : CMD_DEFAULT_DATABASE);
	for (char *const *path = words + 1; *path; path++)
		c->is_private |= replace_file_source_is_private(*path);
	if (r == 0 && c->pid)
		r = choose_process(c, !words[1], &process, &e);
	if (r == 0)
		r = decoder_start(NULL, &e);
	if (r == 0)
		r = words[1] ? of_profiles(c, words[0], words + 1, &e)
			     : of_database(c, words[0], &e);
	decoder_stop();
	return r < 0 ? log_error("annotate: %s", e.text) : 0;
}

int cmd_annotate(int argc, char **argv)
{
	struct annotate_command c = {.choice = {.by = SHARES_FUNCTION, .to_s = UINT64_MAX}};
	int first, status = cmd_parse(&help, &c, &c.help, argc, argv, &first);

	if (status >= 0)
		return status;
	if (first >= argc)
		return log_error("annotate: name a function or FILE:LINE");
	if (first + 1 < argc && chooses_in_database(&c))
		return log_error("annotate: '%s' is to be a profile: --db, --since, --until, "
				 "--event, --process and --cgroup choose in a database",
				 argv[first + 1]);
	if (!c.count_s != !c.pid)
		return log_error("annotate: --count and --pid go together: for how long to count, "
				 "and in which process");
	if (!c.width)
		c.width = (uint64_t)terminal_width(STDOUT_FILENO);
	return annotate(&c, argv + first);
}
