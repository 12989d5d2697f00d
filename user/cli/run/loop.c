// SPDX-License-Identifier: BSD-2-Clause
/* The controller: waits for the next thing to do, for a signal, or for the program's end. One
 * thread, no polling. */
#include "cli/run/run.h"
#include "cli/run/status.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "program/code/map.h"
#include "points/points.h"
#include "experiment/runner.h"
#include "target/launch.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define KILL_AFTER_NS \
	(2 * NSEC_PER_SEC) /* a program that ignores SIGTERM at the end of --duration */
#define SHIM_POLL_NS                                                                \
	(2 * NSEC_PER_MSEC) /* the shim loads within a few milliseconds of exec ... \
			     */
#define STOPPED_POLL_NS (50 * NSEC_PER_MSEC) /* nothing tells when a stopped program goes on */
#define SHIM_WAIT_NS (200 * NSEC_PER_MSEC)   /* ... or never: a libc that knows no LD_PRELOAD */
#define MAPS_FIRST_NS                                                                           \
	(5 * NSEC_PER_MSEC) /* libraries are mapped right after exec, and some later: look less \
			       and less often ... */
#define MAPS_EVERY_NS (200 * NSEC_PER_MSEC) /* ... but not less than this */
#define MAPS_SHARE \
	10 /* a program that loads without end may have one part of so many of a CPU's time ... */
#define MAPS_BURST_NS ((int64_t)(20 * NSEC_PER_MSEC)) /* ... and so much at one time */

struct loop {
	struct run *run;
	int signals, timer;
	unsigned int interrupts; /* Ctrl-C so far */
	uint64_t kill_ns;	 /* when to use SIGKILL; 0: not */
	uint64_t maps_ns;	 /* when to look for new libraries */
	uint64_t maps_wait_ns;	 /* and how long after that for the next ones */
	bool maps_wanted;	 /* libraries have come or gone */
	int64_t maps_budget_ns;	 /* what looking for them may take, at ... */
	uint64_t maps_budget_at;
	bool loaded; /* the shim is in place, and so are all libraries that the program begins with
		      */
	struct status status;
};

static int set_timer(int timer, uint64_t when)
{
	struct itimerspec t = {.it_value = clock_timespec(when)};

	return timerfd_settime(timer, TFD_TIMER_ABSTIME, &t, NULL) < 0 ? -errno : 0;
}

static void send_signal(const struct run *r, int signo)
{
	if (r->target)
		(void)kill(target_pid(r->target), signo);
}

/* As long as the ledger has it in scope its number is not another's: so the descriptor is that
 * process's. */
static void send_to_one(const struct run *r, pid_t pid, int signo)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	unsigned int flags;

	if (pidfd >= 0 && session_flags(r->session, pid, &flags) == 0)
		(void)syscall(SYS_pidfd_send_signal, pidfd, signo, NULL, 0);
}

/* The program and what it has started: a wrapper's end is not that of what it runs. */
static void end_program(const struct run *r, int signo)
{
	_cleanup_free_ struct session_process *all = NULL;
	size_t n = 0;

	if (r->target && r->scope && session_processes(r->session, &all, &n) == 0)
		for (size_t i = 0; i < n; i++)
			if (all[i].pid != target_pid(r->target))
				send_to_one(r, all[i].pid, signo);
	send_signal(r, signo);
}

int run_stop(struct run *r, uint64_t end_ns, struct error *e)
{
	int err;

	if (r->stopped)
		return 0;
	r->stopped = true;
	run_choose_end(r);
	/* Of a program that was measured from end to end, half a run is none. */
	if (r->options.runs && !r->end_ns)
		runner_abandon(r->runner);
	err = runner_finish(r->runner, end_ns);
	if (err < 0)
		return fail(e, -err, "cannot end the last experiment: %s", strerror(-err));
	run_write_log(r);
	run_close_profile(r);
	return 0;
}

static int on_signal(struct loop *l, const struct signalfd_siginfo *info, struct error *e)
{
	unsigned int signo = info->ssi_signo;

	if (signo == SIGINT && ++l->interrupts > 1) {
		send_signal(l->run, SIGKILL);
		return 0;
	}
	if (signo == SIGCONT)
		l->run->stops.job = true;
	if (signo == SIGWINCH)
		status_resized(&l->status);
	if (!l->run->target && signo != SIGINT && signo != SIGTERM && signo != SIGHUP &&
	    signo != SIGQUIT && signo != SIGTSTP)
		return 0;
	if (!l->run->target && signo != SIGTSTP)
		return run_stop(l->run, clock_monotonic_ns(), e);
	/* What the terminal sends, it sends to the program as well. */
	if (info->ssi_code <= 0)
		send_signal(l->run, (int)signo);
	if (signo == SIGTSTP) {
		uint64_t since_ns = clock_monotonic_ns();

		l->run->stops.job = true;
		status_clear(&l->status);
		(void)raise(SIGSTOP);
		l->run->stops.ns += clock_monotonic_ns() - since_ns;
	}
	if (signo == SIGINT) {
		l->run->interrupted = true;
		return run_stop(l->run, clock_monotonic_ns(), e);
	}
	return 0;
}

/* All of them before anything else is done: that the job goes on after it was stopped must be known
 * before an experiment ends. */
static int on_signals(struct loop *l, struct error *e)
{
	struct signalfd_siginfo info;
	int err = 0;

	while (err == 0 && read(l->signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		err = on_signal(l, &info, e);
	return err;
}

/* Points of coz.h appear as the program first visits them. */
static int add_new_points(struct run *r)
{
	const struct points *points = session_points(r->session);

	session_find_counters(r->session);
	/* Whole runs are counted, nothing else. */
	if (r->options.runs)
		return 0;
	while (r->n_runner_points < points_count(points)) {
		const struct point *p = points_shown(points, r->n_runner_points++);
		int err = runner_add_point(r->runner, p->name,
					   p->latency ? PROFILE_LATENCY : PROFILE_THROUGHPUT);

		if (err < 0)
			return err;
	}
	return 0;
}

/* New libraries. */
static void look_for_code(struct loop *l, uint64_t now)
{
	struct run *r = l->run;
	bool changed;

	if (r->scope)
		return;
	run_refresh_points(r, false);
	if (now < l->maps_ns)
		return;
	l->maps_ns = now + l->maps_wait_ns;
	if (l->maps_wait_ns < MAPS_EVERY_NS && !l->maps_wanted)
		l->maps_wait_ns *= 2;
	if (code_map_refresh(r->code, 0, target_pid(r->target), &changed, NULL) == 0 && changed) {
		run_refresh_points(r, false);
		(void)session_set_code(r->session, r->code, NULL);
	}
	l->maps_wanted = false;
	l->maps_budget_ns -= (int64_t)(clock_monotonic_ns() - now);
}

/* When it can be looked for libraries that have come or gone: at once, unless that is all we do. */
static uint64_t next_look(struct loop *l, uint64_t now)
{
	l->maps_budget_ns += (int64_t)((now - l->maps_budget_at) / MAPS_SHARE);
	if (l->maps_budget_ns > MAPS_BURST_NS)
		l->maps_budget_ns = MAPS_BURST_NS;
	l->maps_budget_at = now;
	return l->maps_budget_ns > 0 ? now : now + MAPS_SHARE * (uint64_t)(1 - l->maps_budget_ns);
}

static void want_code(struct loop *l, uint64_t now)
{
	uint64_t when;

	if (!session_loader_pending(l->run->session))
		return;
	when = next_look(l, now);
	if (l->run->scope) {
		run_scope_look(l->run, target_pid(l->run->target), when);
		return;
	}
	l->maps_wanted = true;
	clock_sooner(&l->maps_ns, when);
}

static bool shim_is_loaded(struct loop *l, uint64_t now)
{
	struct run *r = l->run;

	if (!l->loaded && (!r->preload || __atomic_load_n(&r->page->loaded, __ATOMIC_ACQUIRE))) {
		l->loaded = true;
		l->maps_ns = now;
	}
	return l->loaded;
}

/* --duration is over, or the run knows what was asked of it: the program is ended, too. */
static int terminate(struct loop *l, uint64_t now, uint64_t *ret_next, struct error *e)
{
	struct run *r = l->run;
	int err = run_stop(r, now, e);

	r->terminated = true;
	l->kill_ns = now + KILL_AFTER_NS;
	*ret_next = l->kill_ns;
	end_program(r, SIGTERM);
	return err;
}

/* --until-ci has what it wants. */
static int be_certain(struct loop *l, uint64_t now, uint64_t *ret_next, struct error *e)
{
	struct run *r = l->run;

	run_say_certain(r);
	if (r->options.duration_ns)
		return terminate(l, now, ret_next, e);
	*ret_next = now + NSEC_PER_SEC;
	return run_stop(r, now, e);
}

/* Between two experiments, so that looking disturbs none. Returns whether the run may end. */
static bool look(struct loop *l, uint64_t now)
{
	struct run *r = l->run;
	struct runner_status s;

	if (!run_certainty_due(r, now))
		return false;
	runner_get_status(r->runner, &s);
	if (s.selected)
		return false;
	run_certainty_look(r, now);
	return r->options.until_ci > 0 && r->certainty.reached;
}

static int on_time(struct loop *l, uint64_t now, uint64_t *ret_next, struct error *e)
{
	struct run *r = l->run;
	uint64_t first = r->start_ns + r->options.delay_ns, last = first + r->options.duration_ns;
	uint64_t scope_ns = UINT64_MAX;
	bool loaded;
	int err;

	*ret_next = now + NSEC_PER_SEC;
	if (l->kill_ns && now >= l->kill_ns) {
		end_program(r, SIGKILL);
		l->kill_ns = 0;
	}
	if (l->kill_ns)
		clock_sooner(ret_next, l->kill_ns);
	if (r->stopped) {
		status_clear(&l->status);
		return 0;
	}
	if (r->scope) {
		err = run_scope_step(r, now, &scope_ns, e);
		if (err < 0)
			return err;
	}
	run_say_unmatched(r, now);
	if (now < first) {
		*ret_next = first < scope_ns ? first : scope_ns;
		return 0;
	}
	if (r->options.duration_ns && now >= last)
		return terminate(l, now, ret_next, e);
	loaded = shim_is_loaded(l, now);
	look_for_code(l, now);
	if (!loaded && now < r->start_ns + SHIM_WAIT_NS) {
		*ret_next = now + SHIM_POLL_NS;
		return 0;
	}
	err = add_new_points(r);
	if (err < 0)
		return fail(e, -err, "cannot add a progress point: %s", strerror(-err));
	if (run_is_stopped(r, now)) {
		*ret_next = now + STOPPED_POLL_NS;
		return 0;
	}
	if (run_stop_if(r, now))
		return run_stop(r, now, e);
	err = run_choose_step(r, now, ret_next) && run_may_try(r)
		      ? runner_step(r->runner, now, ret_next)
		      : 0;
	if (err < 0)
		return fail(e, -err, "cannot go on with the experiments: %s", strerror(-err));
	(void)run_say_write_error(r);
	run_inject_step(r, now);
	if (look(l, now))
		return be_certain(l, now, ret_next, e);
	if (r->options.duration_ns)
		clock_sooner(ret_next, last);
	clock_sooner(ret_next, scope_ns);
	clock_sooner(ret_next, session_vary_clocks(r->session, now));
	clock_sooner(ret_next, run_discovery_step(r, now));
	/* An experiment that lasts as long as the program must not keep us from looking around. */
	if (!r->scope && (l->maps_wanted || l->maps_wait_ns < MAPS_EVERY_NS || r->options.runs))
		clock_sooner(ret_next, l->maps_ns);
	run_say_copies(r);
	run_say_not_loaded(r, now);
	run_judge_points(r, now, ret_next);
	run_show_status(r, &l->status, now);
	return 0;
}

static int wait_and_serve(struct loop *l, struct error *e)
{
	struct run *r = l->run;
	struct pollfd fds[] = {
		{.fd = r->target ? target_pidfd(r->target) : run_scope_ends_fd(r),
		 .events = POLLIN},
		{.fd = l->signals, .events = POLLIN},
		{.fd = l->timer, .events = POLLIN},
		{.fd = session_loader_fd(r->session), .events = POLLIN},
		{.fd = run_scope_execs_fd(r), .events = POLLIN},
		{.fd = session_clocks_fd(r->session), .events = POLLIN},
	};
	uint64_t next = clock_monotonic_ns(), ticks;
	int err;

	for (;;) {
		err = set_timer(l->timer, next);
		if (err < 0)
			return fail(e, -err, "cannot set a timer: %s", strerror(-err));
		if (r->stopped)
			fds[4].fd = -1; /* nobody reads it any more */
		if (poll(fds, sizeof(fds) / sizeof(*fds), -1) < 0 && errno != EINTR)
			return fail(e, errno, "cannot wait for the program: %s", strerror(errno));
		if (fds[0].revents && r->target)
			return 0;
		if (fds[1].revents) {
			err = on_signals(l, e);
			if (err < 0)
				return err;
		}
		if (fds[2].revents)
			(void)!read(l->timer, &ticks, sizeof(ticks));
		if (fds[5].revents)
			session_serve_clocks(r->session);
		if (fds[3].revents)
			want_code(l, clock_monotonic_ns());
		if (r->target || !r->stopped)
			err = on_time(l, clock_monotonic_ns(), &next, e);
		if (err < 0)
			return err;
		if (!r->target && (r->stopped || run_scope_is_over(r)))
			return 0;
	}
}

/* A quota that is larger than the machine never binds. Whether this one does, the experiments say.
 */
static void say_quota(const struct run *r)
{
	const char *path;
	double cpus = session_quota(r->session, &path);

	if (cpus > 0 && cpus < (double)sysconf(_SC_NPROCESSORS_ONLN))
		(void)log_error("warning: the control group %s has a quota of %.3g CPUs: no "
				"effects are told where that is used up; raise it for "
				"the time of the run",
				path, cpus);
}

int run_loop(struct run *r, struct error *e)
{
	_cleanup_close_ int signals = signalfd(-1, &r->caught, SFD_CLOEXEC | SFD_NONBLOCK);
	_cleanup_close_ int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	struct loop l = {
		.run = r, .signals = signals, .timer = timer, .maps_wait_ns = MAPS_FIRST_NS};
	uint64_t now = l.maps_budget_at = clock_monotonic_ns();
	int err;

	if (signals < 0 || timer < 0)
		return fail(e, errno, "cannot watch signals and time: %s", strerror(errno));
	/* Other CPUs are disturbed more; the profile is the same. */
	if (session_idle_clocks(r->session, e) < 0)
		(void)log_error(
			"warning: %s; CPUs where the program does not run are sampled as well",
			e->text);
	say_quota(r);
	status_init(&l.status, stderr, run_status_kind(r),
		    color_wanted(r->options.report.color, STDERR_FILENO), now);
	err = wait_and_serve(&l, e);
	status_end(&l.status);
	if (err < 0)
		return err;
	/* The last experiment ends when the last thread did, not when we hear of it. */
	if (!r->stopped || r->target)
		r->end_ns = session_control(r->session)->exit_ns;
	if (!r->end_ns)
		r->end_ns = clock_monotonic_ns();
	(void)add_new_points(r);
	err = run_stop(r, r->end_ns, e);
	run_say_copies(r);
	if (!r->options.quiet)
		run_say_stops(r);
	if (r->target)
		(void)target_reap(r->target, &r->wait_status);
	return err;
}

void run_wait(struct run *r)
{
	_cleanup_close_ int signals = signalfd(-1, &r->caught, SFD_CLOEXEC | SFD_NONBLOCK);
	struct pollfd fds[] = {{.fd = target_pidfd(r->target), .events = POLLIN},
			       {.fd = signals, .events = POLLIN}};
	struct signalfd_siginfo info;

	while (!fds[0].revents && (poll(fds, 2, -1) >= 0 || errno == EINTR))
		while (fds[1].revents &&
		       read(signals, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
			if (info.ssi_code <= 0)
				send_signal(r, (int)info.ssi_signo);
			if (info.ssi_signo == SIGTSTP)
				(void)raise(SIGSTOP);
		}
	(void)target_reap(r->target, &r->wait_status);
}

int run_exit_status(const struct run *r)
{
	int code = target_exit_code(r->wait_status);

	/* We ended it because its time was up: that is success. */
	return r->terminated && WIFSIGNALED(r->wait_status) ? 0 : code;
}
