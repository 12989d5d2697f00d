// SPDX-License-Identifier: BSD-2-Clause
/* cozbpf collect: samples always, into a database. Runs until it is told to end. */
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "cmd/cmd_database.h"
#include "cmd/commands.h"
#include "collect/collect.h"
#include "options/quantities.h"
#include "options/run_option_rows.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define DEFAULT_CONFIG "/etc/cozbpf/collect.conf"
#define FLUSH_NS (30 * NSEC_PER_SEC)
/* Rows that wait for room on the disk: some MB. */
#define MOST_KEPT (1 << 18)
/* A clock that moves by more against the time since the machine started has been set. */
#define CLOCK_STEP_S 300
#define LOST_SHARE 0.001

struct collect_command {
	bool help;
	const char *config, *database;
	double rate_hz;
	uint64_t keep_s, most_bytes, duration_s;
	gid_t group;
	struct collect_settings settings;
};

/* What runs. */
struct collecting {
	struct collect_command c;
	struct option_file file;
	int argc;
	char **argv;
	struct collector *collector;
	struct database *database;
	uint64_t redraw_ns, flush_ns, end_ns; /* when they are due */
	uint64_t epoch_s;
	int64_t clock_offset_s;
	bool failing; /* the database cannot be written to, which was told */
};

static int set_rate(void *target, const struct option_row *row, const char *value, struct error *e)
{
	struct collect_command *c = target;

	return option_real(row, value, 1, 10000, &c->settings.rate_hz, e);
}

static int add_event(void *target, const struct option_row *row, const char *value, struct error *e)
{
	struct collect_settings *s = &((struct collect_command *)target)->settings;
	struct collect_event v;

	(void)row;
	if (s->n_events == COLLECT_MAX_EVENTS - 1)
		return fail(e, E2BIG, "--event '%s': at most %d", value, COLLECT_MAX_EVENTS - 1);
	s->events[s->n_events++] = value;
	return collect_event_parse(value, &v, e);
}

static const struct option_row rows[] = {
	{"db", 0, "DIR", "the database (" CMD_DEFAULT_DATABASE ")", option_set_word, offsetof(struct collect_command, database)},
	{"rate", 0, "HZ", "samples a second and CPU (100)", set_rate},
	{"event", 0, "NAME[=N]", "count another event as well, each N of them (repeatable)", add_event},
	{"cgroup", 0, "DIR", "only what runs in this control group", option_set_word,
	 offsetof(struct collect_command, settings) + offsetof(struct collect_settings, cgroup)},
	{"keep", 0, "TIME", "remove what is older (30d)", option_set_span, offsetof(struct collect_command, keep_s)},
	{"max-size", 0, "SIZE", "remove the oldest beyond that (1G)", option_set_size, offsetof(struct collect_command, most_bytes)},
	{"group", 0, "GROUP", "who may read the database, beside root", option_set_group, offsetof(struct collect_command, group)},
	{"duration", 'd', "TIME", "end after that (never)", option_set_span, offsetof(struct collect_command, duration_s)},
	{"config", 0, "FILE",
	 "options from a file, one to a line, as \"rate = 50\";\nthose that are given here are stronger\n(" DEFAULT_CONFIG ", if it is there)",
	 option_set_word, offsetof(struct collect_command, config)},
	{"help", 'h', NULL, "this text", option_flag, offsetof(struct collect_command, help)},
	OPTION_ROW_VERBOSE(offsetof(struct collect_command, settings) + offsetof(struct collect_settings, verbose)),
};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

static void help(void)
{
	(void)puts("Usage: cozbpf collect [OPTION]...\n"
		   "Sample the whole machine, all the time, at a cost that nobody notices, and count in a database which\n"
		   "code was found. Runs until SIGTERM or SIGINT; SIGHUP reads the options of the file anew.\n"
		   "'cozbpf top' shows what was collected.\n");
	options_help(stdout, rows, N_ROWS);
	(void)puts("\nExample:\n  sudo cozbpf collect --rate 100 --keep 7d");
}

/* The file's options, then those of the command line. @f is the caller's to free, even if this fails. */
static int read_options(int argc, char **argv, struct collect_command *ret, struct option_file *f, struct error *e)
{
	const struct collect_command defaults = {.database = CMD_DEFAULT_DATABASE,
						 .keep_s = (uint64_t)30 * DATABASE_DAY_S,
						 .most_bytes = 1ULL << 30,
						 .group = (gid_t)-1,
						 .settings = {.rate_hz = 100}};
	struct collect_command c = defaults;
	const char *config;
	int first, r = options_parse(rows, N_ROWS, &c, argc, argv, &first, e);

	if (r == 0 && first < argc)
		r = fail(e, EINVAL, "unexpected word '%s'", argv[first]);
	if (r < 0 || c.help) {
		*ret = c;
		return r;
	}
	config = c.config ? c.config : DEFAULT_CONFIG;
	r = option_file_read(config, f, e);
	if (r == -ENOENT && !c.config)
		r = 0;
	if (r < 0)
		return r;
	c = defaults;
	if (f->n && options_parse(rows, N_ROWS, &c, f->n, f->words, &first, e) < 0) {
		struct error why = *e;

		return fail(e, EINVAL, "%s: %s", config, why.text);
	}
	r = options_parse(rows, N_ROWS, &c, argc, argv, &first, e);
	*ret = c;
	return r;
}

static void say(const char *text, void *arg)
{
	(void)arg;
	(void)log_error("collect: %s", text);
}

static uint64_t now_s(void)
{
	return clock_realtime_ns() / NSEC_PER_SEC;
}

static int64_t clock_offset(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_BOOTTIME, &t);
	return (int64_t)now_s() - t.tv_sec;
}

static int open_all(struct collecting *x, struct error *e)
{
	struct database *d = NULL;
	struct collector *c = NULL;
	int r;

	r = database_open_writer(x->c.database, x->c.group, say, NULL, &d, e);
	if (r == 0)
		r = collector_open(&x->c.settings, say, NULL, &c, e);
	if (r < 0) {
		database_close(d);
		return r;
	}
	x->database = d;
	x->collector = c;
	/* Loading reads the kernel's types, some megabytes that are not needed again. */
	(void)malloc_trim(0);
	return 0;
}

/* What is too old or too much goes. The clock decides what is old, unless somebody has just set it: then the oldest might be all that there is. */
static void prune(struct collecting *x)
{
	int64_t offset = clock_offset(), step = offset - x->clock_offset_s;
	bool was_set = step > CLOCK_STEP_S || step < -CLOCK_STEP_S;
	uint64_t now = now_s(), before = now > x->c.keep_s ? now - x->c.keep_s : 0;
	struct error e = {0};
	size_t n;

	if (was_set)
		(void)log_error("collect: the clock was set by %lld s: nothing is removed for its age in this hour", (long long)step);
	x->clock_offset_s = offset;
	if (database_prune(x->database, was_set ? 0 : before, x->c.most_bytes, &n, &e) < 0)
		(void)log_error("collect: %s", e.text);
}

/* While it cannot be written to, counts stay in memory; then the oldest epoch makes room, or the counts go. */
static void make_room(struct collecting *x, size_t kept)
{
	struct error e = {0};
	uint64_t lost;

	if (kept <= MOST_KEPT)
		return;
	if (database_drop_oldest(x->database, &e) == 0) {
		(void)log_error("collect: the oldest epoch of '%s' was removed to make room", database_path(x->database));
		if (collector_flush(x->collector, x->database, now_s(), &kept, &e) == 0 || kept <= MOST_KEPT)
			return;
	}
	lost = collector_forget(x->collector);
	(void)log_error("collect: %llu samples are lost: %s", (unsigned long long)lost, e.text);
}

static void flush_all(struct collecting *x)
{
	uint64_t now = now_s(), epoch = now - now % DATABASE_EPOCH_S;
	struct error e = {0};
	size_t kept;
	int r = collector_flush(x->collector, x->database, now, &kept, &e);

	if (r < 0 && !x->failing)
		(void)log_error("collect: %s; counts are kept in memory", e.text);
	if (r == 0 && x->failing)
		(void)log_error("collect: the database can be written to again");
	x->failing = r < 0;
	if (r < 0)
		make_room(x, kept);
	if (epoch != x->epoch_s) {
		x->epoch_s = epoch;
		prune(x);
	}
}

static void greet(const struct collecting *x)
{
	(void)log_error("collect: %g samples a second and CPU of %s, into %s", x->c.settings.rate_hz,
			x->c.settings.cgroup ? x->c.settings.cgroup : "the whole machine", x->c.database);
}

static void part(const struct collecting *x)
{
	struct collect_totals t = collector_totals(x->collector);
	double ticks = t.ticks ? (double)t.ticks : 1;

	(void)log_error("collect: %llu samples, %.1f %% of them in entries that were there, %llu lost, %llu while the address space was locked",
			(unsigned long long)t.ticks, 100 * (double)t.hits / ticks, (unsigned long long)t.lost, (unsigned long long)t.unknown);
	if ((double)t.lost > LOST_SHARE * ticks)
		(void)log_error("collect: more than %g %% were lost: a lower --rate helps", 100 * LOST_SHARE);
}

static void close_all(struct collecting *x)
{
	collector_close(x->collector);
	database_close(x->database);
	x->collector = NULL;
	x->database = NULL;
}

/* What cannot be done with the new options is done with the old ones. */
static int reread(struct collecting *x, struct error *e)
{
	struct collect_command new = x->c, old = x->c;
	struct option_file file = {0}, old_file = x->file;
	int r = read_options(x->argc, x->argv, &new, &file, e);

	if (r < 0) {
		option_file_free(&file);
		(void)log_error("collect: %s; nothing is changed", e->text);
		return 0;
	}
	flush_all(x);
	close_all(x);
	x->c = new;
	x->file = file;
	r = open_all(x, e);
	if (r < 0) {
		(void)log_error("collect: %s; it goes on with the options from before", e->text);
		option_file_free(&x->file);
		x->c = old;
		x->file = old_file;
		return open_all(x, e);
	}
	option_file_free(&old_file);
	greet(x);
	return 0;
}

/* The earliest of what is due, as a timeout for poll(). */
static int until_due(const struct collecting *x, uint64_t now)
{
	uint64_t due = x->redraw_ns < x->flush_ns ? x->redraw_ns : x->flush_ns;

	if (x->end_ns && x->end_ns < due)
		due = x->end_ns;
	return due > now ? (int)((due - now) / NSEC_PER_MSEC) + 1 : 0;
}

/* Counts of one hour go into that hour's epoch, so the end of an hour is a time to write. */
static uint64_t next_flush(uint64_t now)
{
	uint64_t left = NSEC_PER_SEC * (DATABASE_EPOCH_S - now_s() % DATABASE_EPOCH_S);

	return now + (left < FLUSH_NS ? left : FLUSH_NS);
}

static int run(struct collecting *x, int signals, struct error *e)
{
	uint64_t now = clock_monotonic_ns();

	x->end_ns = x->c.duration_s ? now + x->c.duration_s * NSEC_PER_SEC : 0;
	x->flush_ns = next_flush(now);
	x->redraw_ns = now + collector_redraw_ns(x->collector);
	for (;;) {
		struct pollfd fds[] = {{signals, POLLIN, 0}, {collector_fd(x->collector), POLLIN, 0}};
		struct signalfd_siginfo info;

		if (poll(fds, 2, until_due(x, now)) < 0 && errno != EINTR)
			return fail(e, errno, "cannot wait: %m");
		now = clock_monotonic_ns();
		if (fds[1].revents)
			collector_serve(x->collector);
		if (fds[0].revents && read(signals, &info, sizeof(info)) == sizeof(info)) {
			if (info.ssi_signo != SIGHUP)
				return 0;
			if (reread(x, e) < 0)
				return -EINVAL;
		}
		if (x->end_ns && now >= x->end_ns)
			return 0;
		if (now >= x->redraw_ns) {
			collector_redraw(x->collector);
			x->redraw_ns = now + collector_redraw_ns(x->collector);
		}
		if (now >= x->flush_ns) {
			flush_all(x);
			x->flush_ns = next_flush(now);
		}
	}
}

static int collect(struct collecting *x)
{
	_cleanup_close_ int signals = -1;
	struct error e = {0};
	sigset_t set;
	int r;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (signals < 0)
		return log_error("collect: cannot take signals: %s", strerror(errno));
	if (geteuid() != 0)
		return log_error("collect: sampling the whole machine takes root; with sudo it has that");
	if (open_all(x, &e) < 0)
		return log_error("collect: %s", e.text);
	greet(x);
	x->clock_offset_s = clock_offset();
	prune(x);
	x->epoch_s = now_s() - now_s() % DATABASE_EPOCH_S;
	r = run(x, signals, &e);
	if (r < 0)
		(void)log_error("collect: %s", e.text);
	if (x->collector) {
		collector_stop(x->collector);
		flush_all(x);
		part(x);
	}
	return r < 0 || x->failing ? EXIT_OURS : 0;
}

int cmd_collect(int argc, char **argv)
{
	struct collecting x = {.argc = argc, .argv = argv};
	struct error e = {0};
	int status;

	if (read_options(argc, argv, &x.c, &x.file, &e) < 0) {
		status = log_error("collect: %s", e.text);
	} else if (x.c.help) {
		help();
		status = 0;
	} else {
		status = collect(&x);
	}
	close_all(&x);
	option_file_free(&x.file);
	return status;
}
