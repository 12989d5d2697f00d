// SPDX-License-Identifier: BSD-2-Clause
/* What a run knows while it goes on: how sure its effects are, for the status line and --until-ci,
 * who has the machine's CPU time, whether the program is stopped, and what is in scope. */
#include "cli/run/run.h"
#include "cli/run/status.h"

#include "analysis/analysis.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "program/code/map.h"
#include "experiment/runner.h"
#include "kernel/text.h"
#include "points/points.h"
#include "target/launch.h"
#include "target/process.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The next look takes this many new experiments, or windows' slopes, and a tenth of all. */
#define LOOK_EVERY 4
#define LEAST_WINDOWS 12 /* of slopes, of which an interval is no guess */
/* What looking costs, of the time: it may not disturb the program. */
#define LOOK_SHARE 50
/* Warnings come when there is something to judge by. */
#define WARN_FROM_NS (5 * NSEC_PER_SEC)
/* Points are judged when this much time has gone by: fewer visits a second are too few, and what
 * takes more of the program's CPU time to count disturbs what is measured. */
#define JUDGE_AFTER_NS (2 * NSEC_PER_SEC)
#define RARE_PER_S 1
#define COSTLY 0.05
#define DISCOVERY_LEAST_NS (5 * NSEC_PER_MSEC)
#define DISCOVERY_MOST_NS (1 * NSEC_PER_SEC) /* where an experiment is as long as the program */
/* Whatever is found next is found after at most this much more of the time since the last discovery
 * ... */
#define DISCOVERY_PART 4
/* ... and all this takes at most one part of so many of a CPU's time. */
#define DISCOVERY_SHARE 8

/* What is to be known while the run goes on. */
struct warnings {
	size_t n;
	struct warning {
		enum warning_kind {
			WARN_SILENT,
			WARN_FOREIGN,
			WARN_HELD,
			WARN_QUOTA,
			N_WARNINGS
		} kind;
		char text[256];
	} all[N_WARNINGS];
};

bool run_certainty_due(const struct run *r, uint64_t now)
{
	size_t n = r->profile.n_experiments + r->profile.n_slopes;

	/* Of several runs only the first one knows all that is known. */
	if ((r->options.until_ci <= 0 && r->options.quiet) || (r->repeat && r->repeat->done))
		return false;
	return n >= r->looked_at + LOOK_EVERY + r->looked_at / 10 && now >= r->look_ns;
}

struct certainty run_certainty_of(const struct profile *p, uint64_t seed, double half)
{
	struct certainty c;
	struct analysis a;

	analyse(p, seed, &a);
	c = certainty_of(&a, half,
			 (p->n_experiments ? a.elapsed_ns : (double)p->runtime_ns) /
				 (double)NSEC_PER_SEC);
	c.reached &= p->n_experiments || p->n_slopes >= LEAST_WINDOWS;
	analysis_free(&a);
	return c;
}

void run_certainty_look(struct run *r, uint64_t now)
{
	r->looked_at = r->profile.n_experiments + r->profile.n_slopes;
	run_take_samples(r);
	r->certainty = run_certainty_of(&r->profile, r->options.seed, r->options.until_ci);
	r->look_ns = now + LOOK_SHARE * (clock_monotonic_ns() - now);
}

void run_say_certain(const struct run *r)
{
	double points = 100 * r->options.until_ci;

	if (r->certainty.at_floor)
		(void)log_error("stopped: more time makes the intervals no narrower, though +-%g "
				"points were asked for: what is left is the "
				"method's own error",
				points);
	else if (!r->options.quiet)
		(void)log_error("stopped: the top lines are known to +-%g points", points);
}

/* The first point that was not visited; NULL: all were. */
static const char *silent_point(const struct run *r, const struct backend_totals *t)
{
	for (size_t i = 0; i < t->n_points; i++)
		if (!t->points[i].visits && !t->points[i].departures)
			return points_shown(session_points(r->session), i)->name;
	return NULL;
}

static void warn(struct warnings *w, enum warning_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void warn(struct warnings *w, enum warning_kind kind, const char *fmt, ...)
{
	struct warning *new = &w->all[w->n++];
	va_list ap;

	new->kind = kind;
	va_start(ap, fmt);
	(void)vsnprintf(new->text, sizeof(new->text), fmt, ap);
	va_end(ap);
}

/* What the point that is shown as @name was given as; NULL: it is none of the options'. */
static const struct point_spec *spec_of(const struct run *r, const char *name)
{
	for (size_t i = 0; i < r->options.n_points; i++)
		if (strcmp(r->options.points[i].name, name) == 0)
			return &r->options.points[i];
	return NULL;
}

static void say_rare(const struct run *r, const char *name, uint64_t visits, double seconds)
{
	const struct point_spec *p = spec_of(r, name);
	const char *loop = p && p->kind == POINT_FILE_LINE
				   ? " A line that begins a loop is visited once for each time "
				     "that the loop is entered; one of its body, for each round."
				   : "";

	if (visits)
		(void)log_error("warning: progress point '%s' was visited %llu time%s in %.1f s; "
				"some hundred visits are needed: take a point that is passed more "
				"often (without -p one is found; `cozbpf list points --rates PID` "
				"shows them), or run for longer.%s",
				name, (unsigned long long)visits, visits > 1 ? "s" : "", seconds,
				loop);
	else
		(void)log_error("warning: progress point '%s' was not visited in %.1f s: is it on "
				"the path that the program takes? Without -p one that is passed is "
				"found; `cozbpf list points --rates PID` shows them.%s",
				name, seconds, loop);
}

/* How the point can be counted without a probe; NULL: it cannot. The caller frees. */
static char *by_samples(const struct point_spec *p)
{
	const char *binary = p && p->binary ? p->binary : "", *colon = *binary ? ":" : "";

	if (p && p->kind == POINT_FILE_LINE)
		return xasprintf("sampled:%s:%u", p->file, p->line);
	if (p && (p->kind == POINT_FUNCTION || p->kind == POINT_BINARY_FUNCTION) && !p->offset)
		return xasprintf("sampled:%s%s%s", binary, colon, p->function);
	return NULL;
}

/* Counting takes @part of the CPU time of the processes in scope. */
static void say_costly(const struct run *r, const char *name, uint64_t cost_ns, double part)
{
	_cleanup_free_ char *sampled = by_samples(spec_of(r, name));

	(void)log_error("warning: to count '%s' takes about %.0f %% of the program's CPU time, "
			"%.1f us a visit: count its samples instead (-p %s), or take a point that "
			"is passed less often (`cozbpf list points --rates PID` shows some)",
			name, 100 * part, (double)cost_ns / NSEC_PER_USEC,
			sampled ? sampled : "sampled:FILE:LINE, sampled:FUNCTION");
}

void run_judge_points(struct run *r, uint64_t now, uint64_t *ret_next)
{
	uint64_t from = r->start_ns + r->options.delay_ns, cpu_ns, outside_ns;
	double seconds = (double)(now - from) / (double)NSEC_PER_SEC, cost;
	struct backend_totals t;

	if (r->judged_points || r->options.quiet || (r->repeat && r->repeat->done))
		return;
	if (now < from + JUDGE_AFTER_NS) {
		clock_sooner(ret_next, from + JUDGE_AFTER_NS);
		return;
	}
	r->judged_points = true;
	/* One that was found is passed, and seldom enough. */
	if (r->chosen.name || session_backend.snapshot(r->session, &t) < 0)
		return;
	session_cpu_times(r->session, &cpu_ns, &outside_ns);
	for (size_t i = 0; i < t.n_points; i++) {
		const struct backend_point *p = &t.points[i];
		const char *name = points_shown(session_points(r->session), i)->name;
		uint64_t visits = p->visits > p->departures ? p->visits : p->departures;

		cost = cpu_ns ? (double)p->visits * (double)p->cost_ns / (double)cpu_ns : 0;
		if (cost > COSTLY)
			say_costly(r, name, p->cost_ns, cost);
		if ((double)visits >= RARE_PER_S * seconds)
			continue;
		say_rare(r, name, visits, seconds);
		if (!visits)
			r->warned |= 1U << WARN_SILENT;
	}
}

/* Those that hold at @now, by all that was counted so far. */
static void find_warnings(const struct run *r, const struct backend_totals *t, uint64_t now,
			  struct warnings *ret)
{
	const char *silent = silent_point(r, t);
	double foreign = t->busy_ns ? (double)t->outside_wait_ns / (double)t->busy_ns : 0;
	double held = (double)t->held_asleep / (double)(now - r->start_ns + 1);

	double used_up = t->quota_periods ? (double)t->quota_used_up / (double)t->quota_periods : 0;

	ret->n = 0;
	if (now < r->start_ns + WARN_FROM_NS)
		return;
	if (silent)
		warn(ret, WARN_SILENT,
		     "progress point '%s' has not been visited yet: is it on the path that the "
		     "program takes?",
		     silent);
	if (foreign > ANALYSIS_FOREIGN_FLAG)
		warn(ret, WARN_FOREIGN,
		     "other programs have the CPUs for %.0f %% of the time in which this one could "
		     "run: effects may be off",
		     100 * foreign);
	if (used_up > ANALYSIS_THROTTLED_LEAST)
		warn(ret, WARN_QUOTA,
		     "a control group's CPU quota is used up in %.0f %% of its periods: no effects "
		     "are told until it is larger",
		     100 * used_up);
	if (held > ANALYSIS_HELD_LEAST && r->options.kind != RUN_LAUNCH &&
	    r->options.scope.inject == INJECT_NEVER)
		warn(ret, WARN_HELD,
		     "threads that should sleep are held for %.0f %% of the time: effects are told "
		     "with --inject=auto only",
		     100 * held);
}

void run_show_status(struct run *r, struct status *status, uint64_t now)
{
	const struct points *points = session_points(r->session);
	bool earlier = r->options.repeat && r->repeat->done; /* what earlier runs say is more */
	struct status_point shown[ABI_MAX_POINTS];
	struct warnings warnings = {0};
	struct runner_status s;
	struct backend_totals t;
	struct status_facts f = {
		.elapsed_ns = now - r->start_ns,
		.duration_ns = r->options.duration_ns,
		.run = r->options.repeat ? r->repeat->done + 1 : 0,
		.points = shown,
		.certainty = earlier ? &r->repeat->certainty : &r->certainty,
		.missing_s = earlier	    ? r->repeat->certainty.missing_s
			     : r->looked_at ? r->certainty.missing_s
					    : __builtin_nan(""),
		.until_ci = r->options.until_ci,
		.slopes_only = r->options.slopes_only,
	};

	if (!status_due(status, now))
		return;
	if (session_backend.snapshot(r->session, &t) == 0) {
		for (; f.n_points < t.n_points; f.n_points++)
			shown[f.n_points] =
				(struct status_point){points_shown(points, f.n_points)->name,
						      t.points[f.n_points].visits};
		find_warnings(r, &t, now, &warnings);
	}
	runner_get_status(r->runner, &s);
	f.experiments = s.experiments;
	f.lines = s.sums.tried;
	f.selected = s.selected;
	f.speedup = s.speedup;
	f.slows = s.slows;
	for (; f.n_warnings < warnings.n; f.n_warnings++)
		f.warnings[f.n_warnings] = warnings.all[f.n_warnings].text;
	status_update(status, now, &f);
	/* The view shows them as long as they hold. */
	for (size_t i = 0; status->kind == STATUS_PLAIN && i < warnings.n; i++) {
		if (!(r->warned & 1U << warnings.all[i].kind))
			(void)log_error("warning: %s", warnings.all[i].text);
		r->warned |= 1U << warnings.all[i].kind;
	}
}

/* Where the program writes to our terminal, a view would be in its way. */
enum status_kind run_status_kind(const struct run *r)
{
	const char *term = getenv("TERM");
	bool own = r->options.kind != RUN_LAUNCH || r->options.output_to;

	if (r->options.quiet || r->options.status == RUN_STATUS_NONE)
		return STATUS_NONE;
	if (r->options.status != RUN_STATUS_AUTO)
		return r->options.status == RUN_STATUS_VIEW ? STATUS_VIEW : STATUS_PLAIN;
	return own && isatty(STDERR_FILENO) && !(term && strcmp(term, "dumb") == 0) ? STATUS_VIEW
										    : STATUS_PLAIN;
}

void run_machine_begin(struct run *r)
{
	r->machine_begin_ns = clock_monotonic_ns();
	r->own_cpu_ns = clock_process_ns(getpid());
	session_cpu_times(r->session, &r->scope_cpu_ns, &r->outside_cpu_ns);
	if (r->options.kind != RUN_LAUNCH)
		session_measure_own(r->session);
}

void run_machine_end(struct run *r, struct profile_runtime *t)
{
	double kernel = session_own_share(r->session);
	/* CPU time is counted up to now, which is later than the end of a program that has ended.
	 */
	uint64_t scope, outside, elapsed = clock_monotonic_ns() - r->machine_begin_ns;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (cpus <= 0 || !r->machine_begin_ns)
		return;
	t->machine_ns = (uint64_t)cpus * elapsed;
	t->own_cpu_ns = clock_process_ns(getpid()) - r->own_cpu_ns;
	if (!isnan(kernel))
		t->kernel_cpu_ns = (uint64_t)(kernel * (double)elapsed);
	session_cpu_times(r->session, &scope, &outside);
	t->scope_cpu_ns = scope - r->scope_cpu_ns;
	t->foreign_cpu_ns = outside - r->outside_cpu_ns;
}

/* *ret_was: ... or was, since the last call. */
static bool is_stopped(struct run *r, bool *ret_was)
{
	const struct scope_options *o = &r->options.scope;
	struct process_facts p;
	bool was = r->stops.was;

	*ret_was = false;
	if (r->target)
		return target_is_stopped(r->target, ret_was);
	r->stops.was = false;
	/* Another process may have the number of one that has ended. */
	for (size_t i = 0; i < o->n_pids && !r->stops.was; i++)
		r->stops.was = run_scope_lives(r, i) && process_read(o->pids[i], &p) == 0 &&
			       p.state == 'T';
	*ret_was = was || r->stops.was;
	return r->stops.was;
}

/* A job that Ctrl-Z, SIGSTOP or a background read stops does no work for as long, and no line is to
 * blame for it: an experiment in which that happened is dropped. Of a program that we started, its
 * process is looked at, for any stop; of attach, the processes that were named, for stops that last
 * until we look (at each step, so at an experiment's end). Programs may stop their children as a
 * matter of course: those are not asked. */
bool run_is_stopped(struct run *r, uint64_t now)
{
	bool was, is = is_stopped(r, &was);

	/* SIGSTOP for the whole job stops this process as well; the loop notes when it goes on. */
	if ((was || r->stops.job) && runner_drop(r->runner, now))
		r->stops.dropped++;
	r->stops.job = false;
	if (is && !r->stops.since_ns)
		r->stops.since_ns = now;
	if (!is && r->stops.since_ns) {
		r->stops.ns += now - r->stops.since_ns;
		r->stops.since_ns = 0;
	}
	return is;
}

void run_say_stops(const struct run *r)
{
	if (r->stops.dropped)
		(void)log_error("%zu experiment%s dropped: the program was stopped meanwhile, by "
				"Ctrl-Z or SIGSTOP",
				r->stops.dropped, r->stops.dropped > 1 ? "s were" : " was");
}

void run_say_copies(struct run *r)
{
	pid_t died = text_died(session_points(r->session)->skel);

	if (died && !r->said_copy)
		(void)log_error("process %d was ended by SIGTRAP: it runs on a copy of its own "
				"code, as for huge pages, and the copy has the probes "
				"of points in it; use points that need no probe: samples (-p "
				"sampled:FUNCTION, sampled:FILE:LINE), system calls "
				"(-p syscall:NAME), coz.h, or have it leave its code where it is",
				(int)died);
	r->said_copy = died;
}

static uint64_t wait_after(const struct run_discovery *d, uint64_t now, uint64_t took)
{
	uint64_t wait = (now - d->learned_ns) / DISCOVERY_PART;

	if (wait > DISCOVERY_MOST_NS)
		wait = DISCOVERY_MOST_NS;
	if (wait < DISCOVERY_LEAST_NS)
		wait = DISCOVERY_LEAST_NS;
	return wait < DISCOVERY_SHARE * took ? DISCOVERY_SHARE * took : wait;
}

/* Is any process in scope whose executable --only names? */
static bool matches_only(const struct run *r)
{
	_cleanup_free_ struct session_process *all = NULL;
	size_t n;

	if (!r->options.scope.only || !r->scope || session_processes(r->session, &all, &n) < 0)
		return true;
	for (size_t i = 0; i < n; i++)
		if (all[i].flags & ABI_PROC_IN)
			return true;
	return false;
}

void run_say_unmatched(struct run *r, uint64_t now)
{
	const char *glob;

	/* What a program is linked with is mapped by then; what it loads later may still match. */
	if (r->said_unmatched || now < r->start_ns + r->options.delay_ns + NSEC_PER_SEC)
		return;
	r->said_unmatched = true;
	if (!matches_only(r)) {
		(void)log_error("warning: no process runs an executable that --only '%s' matches; "
				"one that starts is waited for",
				r->options.scope.only);
		return;
	}
	glob = code_map_unmatched(r->code);
	if (glob)
		(void)log_error("warning: --binary '%s' matches nothing that is loaded; what is "
				"loaded later is compared as well",
				glob);
}

/* A sample in code that is out of scope, but not known to be so yet, is nobody's: what calls it is
 * not in the sample any more. Such code is found unit by unit as samples are named (code/owner.c),
 * which experiments do at their ends; but a program that has just begun with something else would
 * lose a good part of a second's samples each time. So samples are named in between, soon after
 * each discovery. */
uint64_t run_discovery_step(struct run *r, uint64_t now)
{
	struct run_discovery *d = &r->discovery;
	uint64_t begin = clock_monotonic_ns();
	bool due = now >= d->next_ns;
	size_t learned;

	/* Errors of theirs are met again by those who can report them: the next experiment, the
	 * next look at the mappings. */
	if (due)
		(void)runner_look(r->runner);
	learned = code_map_learned(r->code);
	if (!due && learned == d->learned)
		return d->next_ns;
	if (code_map_is_stale(r->code))
		(void)session_refresh_code(r->session);
	if (learned != d->learned || !d->next_ns) /* or this is the first time */
		d->learned_ns = now;
	d->learned = learned;
	d->next_ns = now + wait_after(d, now, clock_monotonic_ns() - begin);
	return d->next_ns;
}
