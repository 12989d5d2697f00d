// SPDX-License-Identifier: BSD-2-Clause
/* cozbpf collect: samples always, into a database. Runs until it is told to end. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "cli/cmd/cmd_database.h"
#include "cli/cmd/collect.h"
#include "cli/cmd/commands.h"
#include "program/decoder/decoder.h"
#include "target/process.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define FLUSH_NS (30 * NSEC_PER_SEC)
/* Rows that wait for room on the disk: some MB. */
#define MOST_KEPT (1 << 18)
/* A clock that moves by more against the time since the machine started has been set. */
#define CLOCK_STEP_S 300
#define LOST_SHARE 0.001

/* What runs. */
struct collecting {
	struct collect_command c;
	struct option_file file;
	int argc;
	char **argv;
	struct collector *collector;
	struct database *database;
	uint64_t redraw_ns, flush_ns, end_ns, experiments_ns; /* when they are due */
	uint64_t epoch_s;
	int64_t clock_offset_s;
	struct experiments experiments;
	bool failing; /* the database cannot be written to, which was told */
};

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
	database_bound(d, x->c.most_bytes);
	x->database = d;
	x->collector = c;
	/* Loading reads the kernel's types, some megabytes that are not needed again. */
	(void)malloc_trim(0);
	return 0;
}

/* What is too old or too much goes. The clock decides what is old, unless somebody has just set it:
 * then the oldest might be all that there is. */
static void prune(struct collecting *x)
{
	int64_t offset = clock_offset(), step = offset - x->clock_offset_s;
	bool was_set = step > CLOCK_STEP_S || step < -CLOCK_STEP_S;
	uint64_t now = now_s(), before = now > x->c.keep_s ? now - x->c.keep_s : 0;
	struct error e = {0};
	size_t n;

	if (was_set)
		(void)log_error("collect: the clock was set by %lld s: nothing is removed for its "
				"age in this hour",
				(long long)step);
	x->clock_offset_s = offset;
	if (database_prune(x->database, was_set ? 0 : before, x->c.most_bytes, &n, &e) < 0)
		(void)log_error("collect: %s", e.text);
}

/* While it cannot be written to, counts stay in memory; then the oldest epoch makes room, or the
 * counts go. */
static void make_room(struct collecting *x, size_t kept)
{
	struct error e = {0};
	uint64_t lost;

	if (kept <= MOST_KEPT)
		return;
	if (database_drop_oldest(x->database, &e) == 0) {
		(void)log_error("collect: the oldest epoch of '%s' was removed to make room",
				database_path(x->database));
		if (collector_flush(x->collector, x->database, now_s(), &kept, &e) == 0 ||
		    kept <= MOST_KEPT)
			return;
	}
	lost = collector_forget(x->collector);
	(void)log_error("collect: %llu samples are lost: %s", (unsigned long long)lost, e.text);
}

static void flush_all(struct collecting *x)
{
	uint64_t now = now_s(), epoch = now - now % DATABASE_EPOCH_S;
	struct error e = {0};
	size_t kept, removed;
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
	} else if (database_prune(x->database, 0, x->c.most_bytes, &removed, &e) < 0) {
		(void)log_error("collect: %s", e.text);
	}
}

static void greet(const struct collecting *x)
{
	(void)log_error(
		"collect: %g samples a second and CPU of %s, into %s", x->c.settings.rate_hz,
		x->c.settings.cgroup ? x->c.settings.cgroup : "the whole machine", x->c.database);
}

static void part(const struct collecting *x)
{
	struct collect_totals t = collector_totals(x->collector);
	double ticks = t.ticks ? (double)t.ticks : 1;

	(void)log_error("collect: %llu samples, %.1f %% of them in entries that were there, %llu "
			"lost, %llu while the address space was locked",
			(unsigned long long)t.ticks, 100 * (double)t.hits / ticks,
			(unsigned long long)t.lost, (unsigned long long)t.unknown);
	if ((double)t.lost > LOST_SHARE * ticks)
		(void)log_error("collect: more than %g %% were lost: a lower --rate helps",
				100 * LOST_SHARE);
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
	int r = collect_options_read(x->argc, x->argv, &new, &file, e);

	if (r < 0) {
		option_file_free(&file);
		collect_options_free(&new);
		(void)log_error("collect: %s; nothing is changed", e->text);
		return 0;
	}
	experiments_stop(&x->experiments);
	flush_all(x);
	close_all(x);
	x->c = new;
	x->file = file;
	r = open_all(x, e);
	if (r < 0) {
		(void)log_error("collect: %s; it goes on with the options from before", e->text);
		option_file_free(&x->file);
		collect_options_free(&x->c);
		x->c = old;
		x->file = old_file;
		return open_all(x, e);
	}
	option_file_free(&old_file);
	collect_options_free(&old);
	greet(x);
	return 0;
}

/* The earliest of what is due, as a timeout for poll(). */
static int until_due(const struct collecting *x, uint64_t now)
{
	uint64_t due = x->experiments_ns;

	clock_sooner(&due, x->redraw_ns);
	clock_sooner(&due, x->flush_ns);
	if (x->end_ns)
		clock_sooner(&due, x->end_ns);
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
		struct pollfd fds[] = {{signals, POLLIN, 0},
				       {collector_fd(x->collector), POLLIN, 0},
				       {x->experiments.pidfd, POLLIN, 0}};
		struct signalfd_siginfo info;

		if (poll(fds, 3, until_due(x, now)) < 0 && errno != EINTR)
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
		if (fds[2].revents)
			experiments_ended(&x->experiments, now);
		if (x->end_ns && now >= x->end_ns)
			return 0;
		x->experiments_ns = UINT64_MAX;
		experiments_step(&x->experiments, &x->c, x->database, now, &x->experiments_ns);
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
	const struct decoder_limits readers = {64 << 20, 1, 1, 1, 64 << 20};
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
		return log_error(
			"collect: sampling the whole machine takes root; with sudo it has that");
	/* Otherwise the kernel's numbers of processes are not those in our /proc. */
	if (process_check_numbers(&e) < 0 || decoder_start(&readers, &e) < 0 || open_all(x, &e) < 0)
		return log_error("collect: %s", e.text);
	greet(x);
	x->clock_offset_s = clock_offset();
	prune(x);
	x->epoch_s = now_s() - now_s() % DATABASE_EPOCH_S;
	r = run(x, signals, &e);
	experiments_stop(&x->experiments);
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
	struct collecting x = {.argc = argc, .argv = argv, .experiments = {.pidfd = -1}};
	struct error e = {0};
	int status;

	if (collect_options_read(argc, argv, &x.c, &x.file, &e) < 0) {
		status = log_error("collect: %s", e.text);
	} else if (x.c.help) {
		collect_help();
		status = 0;
	} else {
		status = collect(&x);
	}
	close_all(&x);
	decoder_stop();
	option_file_free(&x.file);
	collect_options_free(&x.c);
	return status;
}
