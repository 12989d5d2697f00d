// SPDX-License-Identifier: BSD-2-Clause
/* `cozbpf attach` and `cozbpf system`: the processes are there, and are left as they were. */
#include "cli/run/run.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "cli/cmd/commands.h"
#include "program/code/map.h"
#include "points/points.h"
#include "target/process.h"

#include <errno.h>
#include <unistd.h>

static int start(struct run *r, struct error *e)
{
	const struct scope_options *scope = &r->options.scope;
	int err = session_set_code(r->session, r->code, e);

	if (err == 0)
		err = session_attach(r->session, 0, e);
	if (err == 0 && r->options.kind == RUN_ATTACH && scope->n_pids == 1 &&
	    scope->follow != FOLLOW_ALL)
		points_only_in(session_points(r->session), scope->pids[0]);
	if (err == 0)
		err = run_scope_enter(r, e);
	if (err == 0)
		err = run_add_points(r, e);
	if (err == 0)
		run_refresh_points(r, true);
	if (err == 0)
		err = run_require_points(r, e);
	if (err == 0)
		err = code_map_check(r->code, e);
	if (err == 0)
		err = run_inject_begin(r, e);
	if (err == 0)
		err = run_open_runner(r, e);
	if (err < 0)
		return err;
	r->start_ns = clock_monotonic_ns();
	run_machine_begin(r);
	return 0;
}

static int attach(struct run *r, struct error *e)
{
	int status;

	if (r->options.kind == RUN_SYSTEM && geteuid() != 0) {
		(void)fail(e, EPERM,
			   "system looks at other users' processes and so needs root: sudo cozbpf "
			   "system ...");
		return EXIT_OURS;
	}
	if (process_check_numbers(e) < 0 || identity_find(false, &r->identity, e) < 0 ||
	    run_scope_open(r, e) < 0 || run_open_session(r, e) < 0 || start(r, e) < 0)
		return EXIT_OURS;
	if (run_loop(r, e) < 0) {
		/* What was found so far is not lost. */
		if (r->runner && run_stop(r, clock_monotonic_ns(), NULL) == 0)
			(void)run_print_report(r);
		return EXIT_OURS;
	}
	run_missing_points(r);
	(void)run_say_write_error(r);
	status = run_print_report(r);
	return r->write_error ? EXIT_OURS : status ? status : r->stop_if.holds ? EXIT_STOPPED : 0;
}

int cmd_attach(int argc, char **argv)
{
	static const struct run_purpose attaching = {
		.kind = RUN_ATTACH,
		.usage = "Usage: cozbpf attach PID[,PID...] [OPTION]...\n"
			 "Try what faster lines would do in processes that run already. They go "
			 "on afterwards as before.\n",
		.example =
			"\nExample: a minute of a server that runs, its workers included\n"
			"  sudo cozbpf attach $(pidof -s server) -p requests=finish_request -d 60",
		.prefix = "attach: ",
		.sink = run_sink,
		.run = attach,
	};

	return run_main(argc, argv, &attaching);
}

int cmd_system(int argc, char **argv)
{
	static const struct run_purpose watching = {
		.kind = RUN_SYSTEM,
		.usage = "Usage: cozbpf system --cgroup PATH | --uid USER | --comm GLOB | --exe "
			 "PATH | --pid-tree PID ... [OPTION]...\n"
			 "Try what faster lines would do in all processes that match each of "
			 "these options that is given.\n"
			 "Processes that start later join; no other process is touched. Needs "
			 "root.\n",
		.example = "\nExample: a minute of all workers of a systemd unit\n"
			   "  sudo cozbpf system --cgroup system.slice/server.service -p "
			   "/usr/bin/server:finish_request -d 60",
		.prefix = "system: ",
		.sink = run_sink,
		.run = attach,
	};

	return run_main(argc, argv, &watching);
}
