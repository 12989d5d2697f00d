// SPDX-License-Identifier: BSD-2-Clause
/* `cozbpf run`: everything is opened and checked before the program starts, so that a mistake costs
 * nothing. */
#include "cli/run/report_choice.h"
#include "cli/run/run.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/rng.h"
#include "base/log.h"
#include "cli/cmd/commands.h"
#include "program/decoder/decoder.h"
#include "experiment/runner.h"
#include "program/code/map.h"
#include "kernel/counting/candidates.h"
#include "kernel/refusal.h"
#include "points/points.h"
#include "profile/writer.h"
#include "target/shim/image.h"
#include "target/preload.h"
#include "target/launch.h"
#include "target/process.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Signals that come to us and are meant for the program. They are blocked from the start and read
 * in the loop. */
static void catch_signals(struct run *r)
{
	static const int signals[] = {SIGINT,  SIGTERM,	 SIGHUP,  SIGQUIT, SIGUSR1,
				      SIGUSR2, SIGWINCH, SIGCONT, SIGTSTP};

	sigemptyset(&r->caught);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		sigaddset(&r->caught, signals[i]);
	(void)sigprocmask(SIG_BLOCK, &r->caught, NULL);
	/* A report into a closed pipe ends in an error of write, not in our death. */
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN); /* the same for a file that may not grow */
}

/* Until the program starts, or anything is done to one that runs, there is nothing to clean up: a
 * signal that ends just ends us, also when a file system that does not answer (FUSE, network) has
 * us wait in the kernel. What earlier runs have found is not risked for that. */
static void let_signals_end(const struct run *r)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		sigaddset(&set, ends[i]);
	if (!r->repeat || !r->repeat->done)
		(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
}

static int find_program(struct run *r, struct error *e)
{
	const char *linked;
	char *interpreter;
	int err = target_find_executable(r->options.command[0], &r->path, e);

	if (err < 0)
		return err;
	linked = target_of_linker(r->path, r->options.command);
	if (linked && access(linked, R_OK) == 0) {
		free(r->path);
		r->path = xstrdup(linked);
		return 0;
	}
	interpreter = target_script_interpreter(r->path);
	if (interpreter) {
		free(r->path);
		r->path = interpreter;
		r->by_script = true;
	}
	return 0;
}

static void library_is_ready(void *session, pid_t pid, int has)
{
	const struct abi_proc own = {0};

	session_set_handler(session, pid, has ? &own : NULL);
}

static bool may_have_library(void *session, pid_t pid)
{
	unsigned int flags;

	return session_flags(session, pid, &flags) == 0;
}

static int spawn(struct run *r, const char *server, struct error *e)
{
	bool calls = r->options.sync == RUN_SYNC_PTHREAD;
	struct target_spec spec = {
		.argv = r->options.command,
		.identity = &r->identity,
		.output_to = r->options.output_to,
		.shim = !r->preload ? NULL
			: calls	    ? shim_pthread_image
				    : shim_image,
		.shim_size = !r->preload ? 0
			     : calls	 ? shim_pthread_image_size
					 : shim_image_size,
		.page_fd = r->page_fd,
		.slots_fd = session_slots_fd(r->session),
		/* Under hold, threads that were woken from outside sleep off what accrued while
		   they slept (R6). */
		.pay = r->payer == ABI_PAY_SPIN ? SHIM_PAY_SPIN : SHIM_PAY_SLEEP,
		.signo = (unsigned int)r->options.signo,
		.server = server,
	};

	return target_spawn(&spec, &r->target, e);
}

/* With the library for programs that the program starts. */
static int spawn_and_serve(struct run *r, struct error *e)
{
	char name[SHIM_SERVER_NAME] = "";
	bool serves = r->preload && r->scope;
	int err = serves ? preload_name(name, e) : 0;
	struct preload_options o = {
		.name = name,
		.page = r->page,
		.page_fd = r->page_fd,
		.slots_fd = session_slots_fd(r->session),
		.may_ask = may_have_library,
		.ready = library_is_ready,
		.arg = r->session,
		.arg_fd = session_processes_fd(r->session),
	};

	if (err == 0)
		err = spawn(r, name, e);
	if (err < 0 || !serves)
		return err;
	o.image_fd = target_image_fd(r->target);
	return preload_serve(&o, &r->preload_server, e);
}

int run_open_session(struct run *r, struct error *e)
{
	struct session_options so;
	uid_t uid = r->identity.switches ? r->identity.uid : (uid_t)-1;
	gid_t gid = r->identity.switches ? r->identity.gid : (gid_t)-1;
	int err;

	err = process_check_numbers(e);
	if (err < 0)
		return err;
	if (r->options.verbose)
		load_log_verbose();
	err = session_check_rights(e);
	if (err == 0)
		err = decoder_start(NULL, e);
	if (err < 0)
		return err;
	err = run_look_at_program(r, e);
	if (err == 0 && r->options.scope.kernel)
		err = code_kernel_open(&r->kernel, e);
	if (err == 0)
		err = run_choose_payer(r, e);
	if (err == 0)
		err = run_inject_open(r, e);
	if (err == 0)
		err = run_choose_sync(r, e);
	if (err == 0)
		err = run_choose_waits(r, e);
	if (err == 0)
		err = target_make_page(&r->page_fd, &r->page, e);
	if (err < 0)
		return err;
	so = (struct session_options){
		.config.payer = r->payer,
		.config.sync =
			r->options.sync == RUN_SYNC_PTHREAD ? ABI_SYNC_PTHREAD : ABI_SYNC_SCHED,
		.config.signo = (unsigned int)r->options.signo,
		.rate_hz = run_rate(r),
		.light = r->options.slopes_only && r->options.kind != RUN_LAUNCH,
		.seed = r->options.seed,
		.config.many = r->scope != NULL,
		.one_only = r->options.scope.follow != FOLLOW_ALL,
		.config.all_execs = r->options.kind == RUN_SYSTEM,
		.config.kernel_base = r->kernel ? code_kernel_base(r->kernel) : 0,
		.points.disabled = r->options.disabled,
		.points.latencies = r->options.n_latencies,
		.config.inclusive = r->options.attribution == RUN_INCLUSIVE,
		.points.needs = run_points_needs(r),
		.points.later = run_may_choose(r),
		.config.waits = r->waits,
		.config.slopes = run_wants_slopes(r),
		.config.slows = r->purpose->slows,
		.calibrate = r->options.calibrate,
		.trace = r->options.trace,
	};
	err = run_open(r, &so, e);
	if (err < 0)
		return err;
	code_map_set_kernel(r->code, r->kernel);
	session_points(r->session)->page = r->page;
	if (r->options.no_report && (r->options.report.html || r->options.report.file))
		return fail(e, EINVAL, "--no-report and --%s: choose one",
			    r->options.report.html ? "html" : "report");
	r->options.report.uid = uid;
	r->options.report.gid = gid;
	err = report_choice_check(&r->options.report, e);
	if (err < 0 || r->purpose->no_file)
		return err;
	return profile_writer_open(r->options.output, uid, gid, &r->writer, e);
}

/* From here on there is a child. It waits before exec until everything is attached. */
static int prepare_start(struct run *r, struct error *e)
{
	bool changed;
	int err = spawn_and_serve(r, e);

	if (err == 0)
		err = session_attach(r->session, target_pid(r->target), e);
	if (err == 0)
		err = run_add_calls(r, e);
	if (err == 0)
		err = run_add_points(r, e);
	if (err < 0)
		return err;
	/* Without it new libraries are found a little later. */
	(void)session_watch_loader(r->session, code_map_main(r->code), NULL);
	err = run_open_runner(r, e);
	if (err == 0 && run_is_for_whole(r))
		target_hold(r->target);
	if (err == 0)
		err = target_exec(r->target, e);
	if (err < 0)
		return err;
	r->start_ns = clock_monotonic_ns();
	run_machine_begin(r);
	err = run_inject_begin(r, e);
	if (err < 0)
		return err;
	if (r->scope) {
		err = session_set_code(r->session, r->code, e);
		return err < 0 ? err : run_scope_started(r, e);
	}
	/* A program that is over already has no mappings left to read: its run is empty, not
	 * failed. */
	if (code_map_refresh(r->code, 0, target_pid(r->target), &changed, NULL) < 0)
		return 0;
	run_refresh_points(r, true);
	return session_set_code(r->session, r->code, e);
}

/* Of a run that is measured from its start on, all of it is: the program is held until its code is
 * known. */
static int start(struct run *r, struct error *e)
{
	int err = prepare_start(r, e);
	uint64_t next;

	if (!r->start_ns || !run_is_for_whole(r))
		return err;
	r->start_ns = clock_monotonic_ns();
	if (err == 0 && run_is_whole(r))
		err = runner_step(r->runner, r->start_ns, &next);
	target_release(r->target);
	return err;
}

/* Removing probes makes the kernel wait for all CPUs, 100 ms and more. Whoever waits for the
 * program must not wait for that: a child that shares our descriptors closes them last, while we
 * are gone already. */
static void close_session_behind(struct run *r)
{
	struct pollfd us = {.fd = (int)syscall(SYS_pidfd_open, getpid(), 0), .events = POLLIN};
	pid_t pid;

	(void)fflush(NULL);
	if (r->session)
		session_settle(r->session);
	pid = r->session ? fork() : -1;
	if (pid == 0) {
		for (int fd = 0; fd <= STDERR_FILENO; fd++)
			(void)close(fd); /* a reader of our output must see its end now */
		/* What the kernel holds while it waits would stop our end, too. */
		(void)poll(&us, 1, 2000);
		session_close(r->session);
		_exit(0);
	}
	if (pid < 0)
		session_close(r->session);
	r->session = NULL;
}

/* At once, and with it all that could ask it something: the runner and what hands out the library.
 */
static void close_session(struct run *r)
{
	if (r->runner)
		runner_abandon(r->runner);
	preload_stop(r->preload_server);
	r->preload_server = NULL;
	session_close(r->session);
	r->session = NULL;
}

static void free_run(struct run *r)
{
	runner_free(r->runner);
	run_close_profile(r);
	preload_stop(r->preload_server);
	close_session_behind(r);
	target_free(r->target);
	run_scope_free(r->scope);
	candidates_end(r->candidates);
	free(r->sampled);
	code_map_close(r->code);
	code_kernel_close(r->kernel);
	decoder_stop();
	if (r->page)
		(void)munmap(r->page, sizeof(*r->page));
	if (r->page_fd >= 0)
		(void)close(r->page_fd);
	profile_free(&r->profile);
	identity_free(&r->identity);
	free(r->path);
	run_free_points(r);
	point_spec_free(&r->chosen);
	free(r->shared);
}

static int launch(struct run *r, struct error *e)
{
	int err = find_program(r, e);

	if (err < 0)
		return err == -ENOENT	? EXIT_NOT_FOUND
		       : err == -EACCES ? EXIT_NOT_RUNNABLE
					: EXIT_OURS;
	err = identity_find(r->options.keep_root, &r->identity, e);
	if (err < 0)
		return EXIT_OURS;
	identity_open_files(&r->identity);
	if (run_scope_is_many(r) && run_scope_open(r, e) < 0)
		return EXIT_OURS;
	if (run_open_session(r, e) < 0)
		return EXIT_OURS;
	err = start(r, e);
	if (err < 0 && !r->start_ns)
		return err == -ENOEXEC || err == -EACCES ? EXIT_NOT_RUNNABLE : EXIT_OURS;
	if (err < 0 || run_loop(r, e) < 0) {
		/* The program is not to blame: it goes on, undelayed, and we wait for it. */
		close_session(r);
		run_wait(r);
		return EXIT_OURS;
	}
	run_missing_points(r);
	(void)run_say_write_error(r);
	err = r->purpose->report(r);
	return r->write_error ? EXIT_OURS : err < 0 ? run_exit_status(r) : err;
}

/* The one line that says what went wrong. */
static int say(const struct run_purpose *purpose, const struct error *e)
{
	return log_error("%s%s", purpose->prefix ? purpose->prefix : "", e->text);
}

static int run_and_free(struct run *r)
{
	struct error e = {.text = ""}, unsaid = {.text = ""};
	int status;

	catch_signals(r);
	/* Before the first file of a program is opened. What fails is said when the decoder is
	 * needed. */
	(void)decoder_start(NULL, &unsaid);
	let_signals_end(r);
	status = r->purpose->run ? r->purpose->run(r, &e) : launch(r, &e);
	run_reword(r, &e);
	if (e.text[0])
		(void)say(r->purpose, &e);
	/* The next run must not meet the probes of this one, nor what removing them costs; and
	 * those of processes that go on are gone when we are. */
	if (r->options.kind != RUN_LAUNCH || (r->repeat && !repeat_is_over(r->repeat, r)))
		close_session(r);
	run_inject_close(r);
	free_run(r);
	return status;
}

/* Neither is of the runs that are measured. */
static int run_unmeasured(const struct run_options *o, int (*what)(struct run *r))
{
	struct run r = {.options = *o, .page_fd = -1};

	catch_signals(&r);
	return what(&r);
}

static int warm_up(const struct run_options *o)
{
	int status = 0;

	for (uint64_t i = 0; status == 0 && i < o->warmup; i++) {
		if (o->prepare)
			status = run_unmeasured(o, run_prepare);
		if (status == 0)
			status = run_unmeasured(o, run_warm_up);
	}
	return status;
}

static int run_repeatedly(const struct run_options *options, const struct run_purpose *purpose)
{
	struct run_options o = *options;
	struct error e = {.text = ""};
	struct repeat x;
	int status;

	if (repeat_init(&x, &o, &e) < 0)
		return log_error("%s", e.text);
	status = warm_up(&o);
	for (bool last = status != 0; !last;) {
		struct run r = {.purpose = purpose, .page_fd = -1, .repeat = &x};

		status = o.prepare ? run_unmeasured(&o, run_prepare) : 0;
		if (status)
			break;
		repeat_next(&x, &o);
		r.options = o;
		status = run_and_free(&r);
		last = status != 0 || repeat_is_over(&x, &r);
		if (last && !x.over && run_exit_status(&r) && !r.interrupted)
			(void)log_error("%s ended with status %d and is not started again; where "
					"that is no failure: sh -c '... || true'",
					o.command[0], run_exit_status(&r));
	}
	repeat_free(&x);
	return status;
}

int run_main(int argc, char **argv, const struct run_purpose *purpose)
{
	struct run_options options;
	struct error e = {.text = ""};
	const char *misplaced;
	int status;

	target_save_signals();
	if (run_options_parse(purpose->kind, purpose->slows, argc, argv, &options, &e) < 0)
		return say(purpose, &e);
	if (options.help) {
		(void)puts(purpose->usage);
		run_options_help(purpose->kind, purpose->slows, stdout);
		(void)puts(purpose->example);
		run_options_free(&options);
		return 0;
	}
	if (purpose->prepare && purpose->prepare(&options, &e) < 0) {
		run_options_free(&options);
		return say(purpose, &e);
	}
	misplaced = options.quiet ? NULL : run_options_misplaced(&options);
	if (misplaced)
		(void)log_error("'%s' is behind %s, so it is that program's; options of cozbpf "
				"stand before the program",
				misplaced, options.command[0]);
	if (!options.seed_given)
		options.seed = rng_fresh_seed();
	if (options.runs || options.repeat) {
		status = run_repeatedly(&options, purpose);
	} else {
		struct run r = {.purpose = purpose, .page_fd = -1, .options = options};

		status = run_and_free(&r);
	}
	run_options_free(&options);
	return status;
}

/* Of several runs behind the last one. */
static int print_report(struct run *r)
{
	int status;

	if (r->repeat)
		repeat_keep(r->repeat, r);
	if (r->repeat && !repeat_is_over(r->repeat, r))
		return -1;
	if (r->repeat) {
		r->profile = r->repeat->all;
		r->repeat->all = (struct profile){0};
	}
	status = run_print_report(r);
	return status ? status : -1;
}

int cmd_run(int argc, char **argv)
{
	static const struct run_purpose profiling = {
		.usage = "Usage: cozbpf run [OPTION]... [--] COMMAND [ARGUMENT]...\n"
			 "Run COMMAND, try what faster lines would do, and report it.\n",
		.example = "\nExample: how does each line of ./server bear on finished requests?\n"
			   "  cozbpf run -p requests=finish_request -d 60 -- ./server --port 8080",
		.sink = run_sink,
		.report = print_report,
	};

	return run_main(argc, argv, &profiling);
}
