// SPDX-License-Identifier: BSD-2-Clause
/* The process that measures slopes, or makes experiments, for `cozbpf collect`. It is a run of
 * `cozbpf system` like any other, so what it does wrong does not touch the samples, and its profile
 * is a file of the database. */
#include "cli/cmd/collect.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "collect/database/database.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define AGAIN_NS (30 * NSEC_PER_SEC)	    /* nobody is in scope, or a point is not there */
#define LEAVE_ALONE_NS (600 * NSEC_PER_SEC) /* --stop-if held */
#define LEAST_S 60			    /* shorter runs than that are not worth their start */
#define LEAST_RATE 50			    /* that `cozbpf system` takes */
#define WINDOW_MS 60000			    /* an hour of slopes is some hundred kilobytes */
#define END_MS 20000

struct words {
	char **all; /* owned, NULL-terminated */
	size_t n;
};

static void words_free(struct words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->all[i]);
	free((void *)w->all);
}

/* Of @option, which may be NULL, and @value. */
static void add(struct words *w, const char *option, const char *value)
{
	const char *two[] = {option, value};

	for (size_t i = 0; i < 2; i++)
		if (two[i])
			xarray_add(w->all, w->n, xstrdup(two[i]));
}

static void add_number(struct words *w, const char *option, double value)
{
	char number[32];

	(void)snprintf(number, sizeof(number), "%.10g", value);
	add(w, option, number);
}

static void make_words(struct words *w, const struct collect_command *c, const char *path,
		       uint64_t seconds)
{
	add(w, "cozbpf", "system");
	add(w, c->settings.cgroup ? "--cgroup" : "--exe",
	    c->settings.cgroup ? c->settings.cgroup : c->exe);
	for (size_t i = 0; i < c->points.n; i++)
		add(w, "-p", c->points.all[i]);
	for (size_t i = 0; i < c->latencies.n; i++)
		add(w, "--latency", c->latencies.all[i]);
	if (c->what)
		add(w, "--what", c->what);
	if (c->duty > 0) {
		add_number(w, "--duty", 100 * c->duty);
		add_number(w, "--max-slowdown", 100 * c->most_slowdown);
	} else {
		add(w, NULL, "--slopes-only");
		add_number(w, "--window", WINDOW_MS);
		add_number(w, "--rate",
			   c->settings.rate_hz > LEAST_RATE ? c->settings.rate_hz : LEAST_RATE);
	}
	add_number(w, "-d", (double)seconds);
	for (size_t i = 0; i < c->stops.n; i++)
		add(w, "--stop-if", c->stops.all[i]);
	add(w, "-o", path);
	add(w, "-q", "--no-report");
	if (c->settings.verbose)
		add(w, NULL, "--verbose");
	xarray_room(w->all, w->n);
	w->all[w->n] = NULL;
}

/* Up to the end of the hour, so that each has its own experiments at 0 %. */
static uint64_t seconds_left(uint64_t now_s)
{
	uint64_t left = DATABASE_EPOCH_S - now_s % DATABASE_EPOCH_S;

	return left < LEAST_S ? left + DATABASE_EPOCH_S : left;
}

_Noreturn static void child(char *const *words, pid_t parent)
{
	sigset_t none;

	/* It must not outlive us. */
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(0);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)execv("/proc/self/exe", words);
	_exit(EXIT_OURS);
}

static int start(struct experiments *x, const struct collect_command *c, struct database *d,
		 struct error *e)
{
	_cleanup_(words_free) struct words w = {0};
	_cleanup_free_ char *path = NULL;
	uint64_t now_s = clock_realtime_ns() / NSEC_PER_SEC;
	char host[256] = "";
	pid_t parent = getpid(), pid;
	int r;

	(void)gethostname(host, sizeof(host) - 1);
	r = database_profile_path(d, now_s, host, &path, e);
	if (r < 0)
		return r;
	make_words(&w, c, path, seconds_left(now_s));
	pid = fork();
	if (pid == 0)
		child(w.all, parent);
	if (pid < 0)
		return fail(e, errno, "cannot start 'cozbpf system': %m");
	x->pid = pid;
	x->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return 0;
}

void experiments_step(struct experiments *x, const struct collect_command *c, struct database *d,
		      uint64_t now, uint64_t *ret_next)
{
	struct error e = {0};

	if (x->pid || (!c->points.n && !c->latencies.n))
		return;
	if (now >= x->start_ns && start(x, c, d, &e) < 0) {
		x->start_ns = now + AGAIN_NS;
		if (!x->said)
			(void)log_error("collect: %s; it is tried again", e.text);
		x->said = true;
	}
	if (!x->pid)
		clock_sooner(ret_next, x->start_ns);
}

void experiments_ended(struct experiments *x, uint64_t now)
{
	int status = 0;

	if (!x->pid || waitpid(x->pid, &status, WNOHANG) != x->pid)
		return;
	if (x->pidfd >= 0)
		(void)close(x->pidfd);
	x->pidfd = -1;
	x->pid = 0;
	/* What was wrong it has said itself, each time. */
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		x->start_ns = now;
	else
		x->start_ns = now + (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_STOPPED
					     ? LEAVE_ALONE_NS
					     : AGAIN_NS);
}

void experiments_stop(struct experiments *x)
{
	struct pollfd end = {.fd = x->pidfd, .events = POLLIN};

	if (!x->pid)
		return;
	(void)kill(x->pid, SIGTERM);
	if (x->pidfd >= 0 && poll(&end, 1, END_MS) <= 0)
		(void)kill(x->pid, SIGKILL);
	(void)waitpid(x->pid, NULL, 0);
	if (x->pidfd >= 0)
		(void)close(x->pidfd);
	*x = (struct experiments){.pidfd = -1};
}
