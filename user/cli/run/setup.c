// SPDX-License-Identifier: BSD-2-Clause
/* The steps before the program runs: what pauses threads, where it is seen who waits for whom
 * (--sync), what is opened. */
#include "cli/run/run.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/jit.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/waits.h"
#include "points/point_find.h"
#include "program/code/map.h"
#include "points/points.h"
#include "program/dwarf/lines.h"
#include "program/elf/names.h"
#include "program/elf/object.h"
#include "experiment/runner.h"
#include "kernel/probe.h"
#include "experiment/session/rate.h"
#include "target/shim/image.h"
#include "target/launch.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

/* Of runs with experiments, windows of slopes take this part of the time. What runs already will
 * run on, and one looks at once: there they take this long before the first experiment. */
#define SLOPES_SHARE 0.15
#define SLOPES_FIRST_NS (250 * NSEC_PER_MSEC)
#define EXPERIMENT_NS (500 * NSEC_PER_MSEC)
#define SHORTEST_EXPERIMENT_NS (50 * NSEC_PER_MSEC)
/* Where experiments take a part of the time only, many short ones say more. */
#define SHORTEST_IN_BURST_NS (20 * NSEC_PER_MSEC)

/* Does the kernel give the program of @path other rights than its starter has? The dynamic linker
 * then preloads no library, and descriptors would be open in it that it knows nothing of
 * (user/target/shim/handover.c has the same rule). */
static bool has_own_rights(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 || st.st_mode & (S_ISUID | S_ISGID) ||
	       getxattr(path, "security.capability", NULL, 0) > 0;
}

int run_look_at_program(struct run *r, struct error *e)
{
	_cleanup_elf_object_ struct elf_object *o = NULL;
	int err = r->by_script ? elf_object_open_named(NULL, r->path, &o, e)
			       : elf_object_open(r->path, &o, e);

	if (err < 0)
		return err;
	r->dynamic = elf_object_is_dynamic(o);
	r->own_rights = has_own_rights(r->path);
	if ((r->own_rights || !r->dynamic) && r->options.sync == RUN_SYNC_PTHREAD)
		return fail(e, EOPNOTSUPP,
			    "%s %s, so the library that --sync pthread takes cannot be loaded into "
			    "it; use --sync sched",
			    r->path,
			    r->dynamic ? "has rights of its own (set-uid, set-gid or capabilities)"
				       : "is a static executable");
	return 0;
}

/* @work: the kernel can hold threads. */
static enum run_inject_mode inject_mode(const struct run *r, bool work)
{
	enum run_inject asked = r->options.scope.inject;

	/* The library cannot be loaded into static executables, and those with rights of their own.
	 * The one that is launched gets a handler at once. Those that a dynamic program starts are
	 * held, and get one when a thread of theirs should have slept. With --sync pthread a
	 * handler would be of little use. */
	if (r->options.kind == RUN_LAUNCH && r->options.sync == RUN_SYNC_SCHED)
		return !r->dynamic || r->own_rights ? RUN_INJECT_ALL
		       : work && r->scope	    ? RUN_INJECT_HELD
						    : RUN_INJECT_NONE;
	if (r->options.kind == RUN_LAUNCH)
		return RUN_INJECT_NONE;
	if (asked == INJECT_NEVER)
		return RUN_INJECT_NONE;
	return asked == INJECT_AUTO && work ? RUN_INJECT_TRIAL : RUN_INJECT_ALL;
}

#define UNPAUSABLE                                                                                \
	"this kernel cannot pause a process that runs already%s; that takes BPF task work "       \
	"(Linux 6.18), or a signal handler in the process, which --inject=auto puts there until " \
	"the end of the run"

int run_choose_payer(struct run *r, struct error *e)
{
	static const enum abi_payer payers[] = {[RUN_PAY_SLEEP] = ABI_PAY_SLEEP,
						[RUN_PAY_HOLD] = ABI_PAY_HOLD,
						[RUN_PAY_SPIN] = ABI_PAY_SPIN};
	/* Loading the programs says what a user without privileges lacks. */
	bool work = feature_usable("task_work", r->options.disabled) ||
		    (feature_denied("task_work") &&
		     !feature_disabled("task_work", r->options.disabled));
	/* Held, a thread keeps a CPU from those that wait for it, which only the scheduler knows
	 * of. */
	bool keep_cpu = work && r->options.sync == RUN_SYNC_SCHED;

	r->injection.held_else = work;
	r->injection.mode = inject_mode(r, work);
	if (r->options.kind != RUN_LAUNCH && !work && r->injection.mode == RUN_INJECT_NONE &&
	    !r->options.slopes_only) {
		if (!run_wants_slopes(r))
			return fail(e, EOPNOTSUPP, UNPAUSABLE, "");
		(void)log_error(UNPAUSABLE, ": slopes alone, no experiments");
		r->options.slopes_only = true;
	}
	if (r->options.slopes_only) {
		r->injection.mode = RUN_INJECT_NONE;
		r->payer = ABI_PAY_NONE;
		return 0;
	}
	r->preload = r->dynamic && !r->own_rights && r->options.kind == RUN_LAUNCH;
	/* By the truth suite hold is the most exact payer, so it is the default wherever the kernel
	 * has it; elsewhere spin, which keeps the CPU as well. A thread that sleeps a pause leaves
	 * its CPU to others, which is wrong as soon as there are more of them than CPUs. */
	r->payer = r->options.pay != RUN_PAY_AUTO      ? payers[r->options.pay]
		   : keep_cpu			       ? ABI_PAY_HOLD
		   : r->options.sync == RUN_SYNC_SCHED ? ABI_PAY_SPIN
						       : ABI_PAY_SLEEP;
	if (r->payer == ABI_PAY_HOLD && !work)
		return fail(e, EOPNOTSUPP,
			    "--pay hold needs BPF task work (Linux 6.18), which this kernel lacks; "
			    "use --pay spin");
	if (!work)
		(void)snprintf(r->fallback, sizeof(r->fallback),
			       "no BPF task work on this kernel: threads start paying at their "
			       "next tick in user mode, or at the end of a system call%s",
			       r->injection.mode != RUN_INJECT_NONE ? ", in an injected handler"
								    : "");
	else if (r->payer != ABI_PAY_HOLD && r->options.sync == RUN_SYNC_SCHED &&
		 !feature_usable("send_signal_task", r->options.disabled))
		(void)snprintf(r->fallback, sizeof(r->fallback),
			       "no bpf_send_signal_task on this kernel: payment signals by "
			       "bpf_send_signal_thread");
	return 0;
}

/* Not in bursts, whose rests are without samples, nor where one line is asked about: what is
 * wanted there is known. */
bool run_wants_slopes(const struct run *r)
{
	const struct run_options *o = &r->options;
	bool bursts = (o->duty > 0 && o->duty < 1) || o->most_slowdown > 0;

	if (o->slopes_only)
		return true;
	return (o->n_points > 0 || run_may_choose(r)) && o->sync == RUN_SYNC_SCHED &&
	       !o->fixed_line && !o->runs && !bursts && !r->purpose->slows;
}

int run_choose_waits(struct run *r, struct error *e)
{
	const struct run_options *o = &r->options;
	unsigned int named = o->fixed_line ? wait_of(o->fixed_line, NULL) : 0,
		     kinds = WAITS_ALL & ~1U;
	bool asked = o->what > 1U || named;
	static const char lacking[] =
		"where a thread waited takes BPF task work to find out (Linux 6.18), "
		"which this kernel lacks";
	const char *missing = NULL;

	if (o->slopes_only)
		return 0;
	if (o->sync != RUN_SYNC_SCHED)
		missing = "--sync pthread does not see what ends a wait";
	else if (o->attribution != RUN_FIRST)
		missing = "--attribution inclusive is for lines that run";
	else if (!feature_usable("task_work", o->disabled) && !feature_denied("task_work"))
		missing = lacking;
	if (missing && asked)
		return fail(e, EOPNOTSUPP, "waits cannot be tried here: %s", missing);
	if (r->payer != ABI_PAY_HOLD || r->purpose->slows) {
		if (named == WAIT_CPU || (o->what & 1U << WAIT_CPU && o->what != WAITS_ALL))
			return fail(e, EOPNOTSUPP, "waiting for a CPU cannot be tried here: %s",
				    r->purpose->slows ? "validate cannot make such waits longer"
						      : "a thread that sleeps its pause leaves its "
							"CPU to others; use --pay hold");
		kinds &= ~(1U << WAIT_CPU);
	}
	/* A whole run as one experiment (--runs) is mostly too short to show which waits matter. */
	if (!asked && (o->fixed_line || o->what || o->runs))
		kinds = 0;
	r->waits = missing ? 0 : kinds;
	if (missing == lacking && kinds)
		(void)strncat(r->fallback, "; waits ([disk], [network] and the like) are not tried",
			      sizeof(r->fallback) - strlen(r->fallback) - 1);
	return 0;
}

unsigned int run_rate(const struct run *r)
{
	const struct run_options *o = &r->options;
	bool executes =
		o->fixed_line ? !wait_of(o->fixed_line, NULL) : o->what == 0 || o->what & 1U;

	/* Percentiles of latencies are blurred by the distance of samples. */
	return o->rate_hz || executes || o->n_latencies || o->slopes_only ? (unsigned int)o->rate_hz
									  : SESSION_RATE_LEAST;
}

int run_choose_sync(struct run *r, struct error *e)
{
	if (r->options.sync == RUN_SYNC_PTHREAD)
		return 0;
	/* Loading the programs says what a user without privileges lacks. */
	if (feature_denied("sched_switch"))
		return 0;
	if (!feature_usable("sched_switch", r->options.disabled) ||
	    !feature_usable("sched_waking", r->options.disabled))
		return fail(e, EOPNOTSUPP,
			    "--sync sched needs BTF tracepoints on the scheduler, which cannot be "
			    "used here (`cozbpf check` says why); use --sync pthread");
	return 0;
}

/* Does the program come with the system, as shells and interpreters do? Such a one may only start
 * what is to be profiled. */
static bool of_the_system(const char *path)
{
	static const char *const places[] = {"/bin/",	     "/sbin/",		"/usr/bin/",
					     "/usr/sbin/",   "/usr/local/bin/", "/usr/lib/",
					     "/usr/libexec/"};
	_cleanup_free_ char *real = realpath(path, NULL);

	for (size_t i = 0; real && i < sizeof(places) / sizeof(*places); i++)
		if (strncmp(real, places[i], strlen(places[i])) == 0)
			return true;
	return false;
}

static bool may_be_wrapper(const struct run *r)
{
	const struct scope_options *o = &r->options.scope;

	if (r->options.kind != RUN_LAUNCH)
		return true;
	return r->scope && o->follow == FOLLOW_ALL &&
	       (o->follow_given || o->only || of_the_system(r->path));
}

static int open_code(struct run *r, struct error *e)
{
	int err;
	struct code_scope scope = {
		.sources = r->options.sources.all,
		.n_sources = r->options.sources.n,
		.binaries = r->options.binaries.all,
		.n_binaries = r->options.binaries.n,
		.inclusive = r->options.attribution == RUN_INCLUSIVE,
		.functions = r->options.granularity == RUN_BY_FUNCTION,
		.automatic = r->options.granularity == RUN_BY_EITHER,
		.lines = &r->options.lines,
		.named = r->by_script,
	};

	scope.lenient = may_be_wrapper(r);
	err = code_map_open(r->path, &scope, &r->code, e);
	if (err < 0 || !scope.lenient || r->options.kind != RUN_LAUNCH)
		return err;
	r->wrapper = !code_map_lines(r->code, 0, NULL);
	if (r->wrapper)
		return 0;
	code_map_close(r->code);
	r->code = NULL;
	scope.lenient = false;
	return code_map_open(r->path, &scope, &r->code, e);
}

/* One line on stderr if functions are tried since there are no lines, and one if some of their
 * names cannot be read. */
static void say_granularity(const struct run *r)
{
	const struct elf_object *o = code_map_main(r->code);

	if (r->wrapper || (r->repeat && r->repeat->done))
		return;
	if (r->options.granularity == RUN_BY_EITHER && code_map_in_scope(r->code, 0) &&
	    code_map_by_function(r->code))
		(void)log_error("%s: no line information: trying functions instead of lines; build "
				"it with -g for lines",
				r->path);
	if (code_map_by_function(r->code) && elf_object_symbol_problem(o))
		(void)log_error("%s", elf_object_symbol_problem(o));
}

/* Samples of a function whose code others share are those of all of them. */
static int check_target(const struct run *r, uint64_t function, bool by_line, struct error *e)
{
	_cleanup_elf_names_ struct elf_names names = {0};
	_cleanup_free_ char *text = NULL;
	int err = elf_object_sharers(code_map_main(r->code), function, by_line, &names);

	if (err < 0)
		return fail(e, -err, "out of memory");
	if (!names.n || r->options.shared_code)
		return 0;
	text = elf_names_join(&names, NULL);
	return fail(e, ENOTUNIQ,
		    "--fixed-line %s: it is in code that %s share (functions that were folded, or "
		    "aliases), and which of them runs cannot be told apart; "
		    "add --shared-code to try them together",
		    r->options.fixed_line, text ? text : "several functions");
}

/* Of a line that was folded into another one nothing is ever sampled. */
static int check_sampled_as(const struct run *r, const struct point_spec *p, uint64_t addr,
			    struct error *e)
{
	struct line_table *lines = code_map_lines(r->code, 0, NULL);
	_cleanup_free_ struct addr_range *ranges = NULL;
	struct line_location as;
	size_t n;

	(void)line_table_read_file(lines, p->file);
	if (line_table_ranges(lines, p->file, p->line, &ranges, &n) != -ENOENT ||
	    line_table_at(lines, addr, &as) < 0)
		return 0;
	return fail(e, ENOTUNIQ,
		    "--fixed-line %s: its code was made one with that of %s:%u, by whose name it "
		    "is sampled; try that line, with --shared-code",
		    r->options.fixed_line, as.file, as.line);
}

/* Refuses a --fixed-line that can never be found, before the program starts. One in another object
 * than the main executable, or in a program that a wrapper starts, cannot be looked up before it is
 * loaded. */
static int check_fixed_line(struct run *r, struct error *e)
{
	struct line_table *lines = code_map_lines(r->code, 0, NULL);

	const char *written = r->options.fixed_line, *colon;
	struct point_spec p = {.kind = POINT_FILE_LINE};
	const struct elf_object *o = code_map_main(r->code);
	_cleanup_free_ uint64_t *addrs = NULL;
	_cleanup_free_ char *file = NULL, *place = NULL;
	struct error why = {0};
	struct elf_symbol sym;
	size_t n;
	int err;

	if (written && wait_of(written, &n)) {
		place = xstrndup(written, n);
		written = place;
	}
	/* A line drawn from the samples of an earlier run was there. */
	if (!written || !*written || r->options.binaries.n || r->wrapper || jit_is_name(written) ||
	    (r->repeat && r->repeat->line == r->options.fixed_line))
		return 0;
	if (r->options.granularity == RUN_BY_FUNCTION) {
		p.function = (char *)written;
		err = elf_object_find_function(o, written, &sym);
		if (err == 0)
			return check_target(r, sym.addr, false, e);
		err = point_no_function(o, &p, err, &why);
		return fail(e, -err, "--fixed-line %s: %s", written, why.text);
	}
	colon = strrchr(written, ':');
	file = xstrndup(written, colon ? (size_t)(colon - written) : strlen(written));
	p.file = file;
	p.line = colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0;
	err = point_find_line(o, lines, &p, &addrs, &n, &why);
	if (err < 0)
		return fail(e, -err, "--fixed-line %s: %s", written, why.text);
	err = check_sampled_as(r, &p, addrs[0], e);
	for (size_t i = 0; err == 0 && i < n; i++)
		if (elf_object_function_at(o, addrs[i], &sym) == 0)
			err = check_target(r, sym.addr, true, e);
	return err;
}

/* What takes long before the program can start are two things that need not wait for each other:
 * the kernel verifies our programs, and we open the debug information. */
struct opening {
	const struct session_options *options;
	struct session *session;
	struct error e;
	int result;
};

static void *open_session(void *arg)
{
	struct opening *o = arg;

	o->result = session_open(o->options, &o->session, &o->e);
	return NULL;
}

int run_open(struct run *r, const struct session_options *options, struct error *e)
{
	struct opening o = {.options = options};
	pthread_t thread;
	int err = pthread_create(&thread, NULL, open_session, &o);

	if (err)
		return fail(e, err, "cannot start a thread: %s", strerror(err));
	err = open_code(r, e);
	if (err == 0)
		err = run_check_points(r, e);
	if (err == 0)
		err = check_fixed_line(r, e);
	(void)pthread_join(thread, NULL);
	/* From here on files are written, and the program is started: signals are read in the loop.
	 */
	(void)pthread_sigmask(SIG_BLOCK, &r->caught, NULL);
	r->session = o.session;
	if (err == 0 && o.result < 0) {
		err = o.result;
		*e = o.e;
	}
	/* With both CPUs to itself. */
	if (err == 0)
		session_calibrate(r->session);
	return err;
}

int run_add_calls(struct run *r, struct error *e)
{
	char path[64];

	if (r->options.sync != RUN_SYNC_PTHREAD)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", target_image_fd(r->target));
	return session_sync_shim(r->session, shim_pthread_image, shim_pthread_image_size, path, e);
}

int run_open_runner(struct run *r, struct error *e)
{
	const struct run_options *o = &r->options;
	const struct points *points = session_points(r->session);
	const char *names[ABI_MAX_POINTS];
	enum profile_point_kind kinds[ABI_MAX_POINTS];
	double duty = o->duty < 1 ? o->duty : 0;
	uint64_t shortest_ns =
		duty > 0 || o->most_slowdown > 0 ? SHORTEST_IN_BURST_NS : SHORTEST_EXPERIMENT_NS;
	struct runner_options ro = {
		.seed = o->seed,
		.experiment_ns = o->experiment_ns ? o->experiment_ns : EXPERIMENT_NS,
		/* What is asked for is what is made, and what slows a line is compared with
		   experiments like it. */
		.visits_per_s = r->repeat ? r->repeat->visits_per_s : 0,
		.shortest_ns = o->experiment_ns || r->purpose->slows ? 0 : shortest_ns,
		.cool_off_ns = o->cool_off_ns,
		.most_slowdown = o->most_slowdown,
		.duty = duty,
		.settling_part = 10,
		.min_visits = 5, /* what Coz's viewer asks of a cell */
		.fixed_line = o->fixed_line,
		/* Slopes tell of places where threads wait also where none can be tried. */
		.what = r->waits ? o->what : 1,
		.fixed_speedup = o->fixed_speedup,
		.grid = o->grid,
		.n_grid = o->n_grid,
		.n_slow = o->n_slow,
		.zero_share = o->zero_share,
		.point_names = names,
		.point_kinds = kinds,
		.n_points = points_count(points),
		.slopes = run_wants_slopes(r) ? run_slopes_sink : NULL,
		.slopes_time = {.share = o->slopes_only ? 1 : SLOPES_SHARE,
				.first_ns = o->kind == RUN_LAUNCH ? 0 : SLOPES_FIRST_NS,
				.long_ns = o->window_ns,
				.waits = o->what ? o->what : WAITS_ALL,
				.whole_since_ns = run_is_whole(r) ? &r->start_ns : NULL,
				.lines = run_is_whole(r) ? r->repeat->lines : NULL,
				.n_lines = run_is_whole(r) ? r->repeat->n_lines : 0},
		.whole_run = o->runs > 0,
	};
	int err;

	ro.max_experiment_ns = 16 * ro.experiment_ns;
	for (size_t i = 0; i < ro.n_points; i++) {
		const struct point *p = points_shown(points, i);

		names[i] = p->name;
		kinds[i] = p->latency ? PROFILE_LATENCY : PROFILE_THROUGHPUT;
	}
	r->n_runner_points = ro.n_points;
	err = runner_new(&ro, &session_backend, r->session, r->purpose->sink, r, &r->runner);
	if (err < 0)
		return fail(e, -err, "cannot plan experiments: %s", strerror(-err));
	err = run_write_startup(r, e);
	if (err == 0)
		say_granularity(r);
	return err;
}
