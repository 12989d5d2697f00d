// SPDX-License-Identifier: BSD-2-Clause
#include "cli/cmd/collect.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/memory.h"
#include "cli/cmd/cmd_database.h"
#include "points/point_spec.h"
#include "cli/options/run_option_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_CONFIG "/etc/cozbpf/collect.conf"

static int add_event(void *target, const struct option_row *row, const char *value, struct error *e)
{
	struct collect_settings *s = &((struct collect_command *)target)->settings;

	(void)row;
	if (s->n_events == COLLECT_MAX_EVENTS - 1)
		return fail(e, E2BIG, "--event '%s': at most %d", value, COLLECT_MAX_EVENTS - 1);
	return collect_event_parse(value, &s->events[s->n_events++], e);
}

/* With or without a sign of per cent. */
static int set_share(void *target, const struct option_row *row, const char *value, struct error *e)
{
	size_t n = strlen(value);
	_cleanup_free_ char *number = xstrndup(value, n && value[n - 1] == '%' ? n - 1 : n);

	return option_set_percent(target, row, number, e);
}

static const struct option_row rows[] = {
	{.include = cmd_option_db, .offset = offsetof(struct collect_command, database)},
	{"rate", 0, "HZ", "samples a second and CPU (100)", option_set_real,
	 offsetof(struct collect_command, settings.rate_hz), .min = 1, .max = 10000},
	{"event", 0, "NAME[=N]", "count another event as well, each N of them (repeatable)",
	 add_event},
	{"cgroup", 0, "DIR", "only what runs in this control group", option_set_word,
	 offsetof(struct collect_command, settings.cgroup)},
	{"progress", 'p', "POINT",
	 "measure slopes at this point, all the time, as 'cozbpf system\n--slopes-only': in the "
	 "processes of --cgroup, else those that run\nthe point's file (repeatable)",
	 option_add_word, offsetof(struct collect_command, points)},
	{"latency", 0, "SPEC", "likewise, what slow intervals are made of", option_add_word,
	 offsetof(struct collect_command, latencies)},
	{"experiments", 0, "PERCENT", "of the time, make experiments instead; with -p and --cgroup",
	 set_share, offsetof(struct collect_command, duty), .min = 0.1, .max = 100},
	{"max-slowdown", 0, "PERCENT", "pauses of experiments take no more of the time (5)",
	 set_share, offsetof(struct collect_command, most_slowdown), .min = 0.1, .max = 100},
	{"what", 0, "LIST", "what experiments try, as of 'cozbpf system'", option_set_word,
	 offsetof(struct collect_command, what)},
	{"stop-if", 0, "COND",
	 "no experiments for ten minutes when that holds: 'p99(NAME)>50ms',\n'load>8', "
	 "'psi(cpu)>20', 'restarts>3' (repeatable)",
	 option_add_word, offsetof(struct collect_command, stops)},
	{"keep", 0, "TIME", "remove what is older (30d)", option_set_span,
	 offsetof(struct collect_command, keep_s)},
	{"max-size", 0, "SIZE", "remove the oldest beyond that (1G)", option_set_size,
	 offsetof(struct collect_command, most_bytes)},
	{"group", 0, "GROUP", "who may read the database, beside root", option_set_group,
	 offsetof(struct collect_command, group)},
	{"duration", 'd', "TIME", "end after that (never)", option_set_span,
	 offsetof(struct collect_command, duration_s)},
	{"config", 0, "FILE",
	 "options from a file, one to a line, as \"rate = 50\";\nthose that are given here are "
	 "stronger\n(" DEFAULT_CONFIG ", if it is there)",
	 option_set_word, offsetof(struct collect_command, config)},
	{"help", 'h', NULL, "this text", option_flag, offsetof(struct collect_command, help)},
	{.include = option_verbose, .offset = offsetof(struct collect_command, settings.verbose)},
	{NULL},
};

void collect_help(void)
{
	(void)puts("Usage: cozbpf collect [OPTION]...\n"
		   "Sample the whole machine, all the time, at a cost that nobody notices, and "
		   "count in a database which\n"
		   "code was found. Runs until SIGTERM or SIGINT; SIGHUP reads the options of the "
		   "file anew.\n"
		   "'cozbpf top' shows what was collected.\n");
	options_help(stdout, rows);
	(void)puts("\nExample:\n  sudo cozbpf collect --rate 100 --keep 7d");
}

void collect_options_free(struct collect_command *c)
{
	free((void *)c->points.all);
	free((void *)c->latencies.all);
	free((void *)c->stops.all);
	free(c->exe);
	c->exe = NULL;
	c->points = c->latencies = c->stops = (struct option_words){0};
}

/* The file of the first point: its processes are in scope where no control group says which. */
static int take_exe(struct collect_command *c, struct error *e)
{
	struct point_spec p = {0};
	int r = c->points.n ? point_spec_parse(c->points.all[0], &p, e) : 0;

	if (r == 0 && p.binary && *p.binary == '/')
		c->exe = TAKE_PTR(p.binary);
	point_spec_free(&p);
	if (r == 0 && !c->exe)
		r = fail(e, EINVAL,
			 "whose slopes? Say --cgroup, or a point with its file, as -p "
			 "/usr/bin/server:answer");
	return r;
}

static int check(struct collect_command *c, struct error *e)
{
	bool measures = c->points.n || c->latencies.n;

	if (c->duty > 0 && !c->settings.cgroup)
		return fail(e, EINVAL,
			    "--experiments: on which processes? Say --cgroup; what is sampled is "
			    "then these alone");
	if (c->duty > 0 && !measures)
		return fail(e, EINVAL,
			    "--experiments: what is to get faster? Say -p POINT or --latency");
	if (!c->duty && c->stops.n)
		return fail(e, EINVAL,
			    "--stop-if ends experiments: say --experiments 2%%, or leave it out");
	if (!measures && c->what)
		return fail(e, EINVAL, "--what is of slopes and experiments: say -p POINT as well");
	return measures && !c->settings.cgroup ? take_exe(c, e) : 0;
}

int collect_options_read(int argc, char **argv, struct collect_command *ret, struct option_file *f,
			 struct error *e)
{
	const struct collect_command defaults = {.database = CMD_DEFAULT_DATABASE,
						 .keep_s = (uint64_t)30 * DATABASE_DAY_S,
						 .most_bytes = 1ULL << 30,
						 .group = (gid_t)-1,
						 .most_slowdown = 0.05,
						 .settings = {.rate_hz = 100}};
	struct collect_command c = defaults;
	const char *config;
	int first, r = options_parse(rows, &c, argc, argv, &first, e);

	if (r == 0 && first < argc)
		r = fail(e, EINVAL, "unexpected word '%s'", argv[first]);
	*ret = c;
	if (r < 0 || c.help)
		return r;
	config = c.config ? c.config : DEFAULT_CONFIG;
	r = option_file_read(config, f, e);
	if (r == -ENOENT && !c.config)
		r = 0;
	if (r < 0)
		return r;
	collect_options_free(&c);
	c = defaults;
	*ret = c;
	r = f->n ? options_parse(rows, &c, f->n, f->words, &first, e) : 0;
	if (r < 0) {
		struct error why = *e;

		(void)fail(e, EINVAL, "%s: %s", config, why.text);
	} else {
		r = options_parse(rows, &c, argc, argv, &first, e);
	}
	*ret = c;
	return r < 0 ? r : check(ret, e);
}
