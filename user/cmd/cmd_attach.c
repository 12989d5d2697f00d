// SPDX-License-Identifier: BSD-2-Clause
/* `cozbpf attach` and `cozbpf system`: the processes are there, and are left as they were. */
#include "run/run.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"
#include "base/log.h"
#include "cmd/commands.h"
#include "code/map.h"
#include "target/process.h"

#include <errno.h>
#include <unistd.h>

static int start(struct run *r, struct error *e)
{
	int err = session_set_code(r->session, r->code, e);

	if (err == 0)
		err = session_attach(r->session, 0, e);
	if (err == 0)
		err = run_scope_enter(r, e);
	if (err == 0)
		err = run_add_points(r, e);
	if (err == 0)
		err = run_scope_points(r, e);
	if (err == 0)
		err = code_map_check(r->code, e);
	if (err == 0)
		err = run_inject_all(r, e);
	if (err == 0)
		err = run_open_runner(r, e);
	if (err == 0)
		err = run_write_startup(r, e);
	if (err < 0)
		return err;
	run_say_granularity(r);
	r->start_ns = clock_monotonic_ns();
	run_machine_begin(r);
	return 0;
}

static int attach(struct run *r, struct error *e)
{
	int status;

	if (r->options.kind == RUN_SYSTEM && geteuid() != 0) {
		(void)fail(e, EPERM, "system looks at other users' processes and so needs root: sudo cozbpf system ...");
		return EXIT_OURS;
	}
	if (process_check_numbers(e) < 0 || identity_find(false, &r->identity, e) < 0 || run_scope_open(r, e) < 0 || run_open_session(r, e) < 0 ||
	    start(r, e) < 0)
		return EXIT_OURS;
	if (run_loop(r, e) < 0) {
		/* What was found so far is not lost. */
		if (r->runner && run_stop(r, clock_monotonic_ns(), NULL) == 0)
			(void)run_print_report(r);
		return EXIT_OURS;
	}
	(void)run_say_write_error(r);
	status = run_print_report(r);
	return r->write_error ? EXIT_OURS : status;
}

static int main_of(enum run_kind kind, int argc, char **argv)
{
	static const struct run_purpose profiling = {.sink = run_sink};
	struct run r = {.purpose = &profiling, .page_fd = -1};
	struct error e = {.text = ""};
	int status;

	if (run_options_parse(kind, NULL, 0, argc, argv, &r.options, &e) < 0)
		return log_error("%s: %s", argv[0], e.text);
	if (r.options.help) {
		run_options_help_kind(kind, stdout);
		run_options_free(&r.options);
		return 0;
	}
	if (!r.options.seed_given)
		r.options.seed = rng_fresh_seed();
	run_catch_signals(&r);
	status = attach(&r, &e);
	if (e.text[0])
		(void)log_error("%s: %s", argv[0], e.text);
	/* Probes are gone when we are. */
	run_close_session(&r);
	run_inject_close(&r);
	run_free(&r);
	return status;
}

int cmd_attach(int argc, char **argv)
{
	return main_of(RUN_ATTACH, argc, argv);
}

int cmd_system(int argc, char **argv)
{
	return main_of(RUN_SYSTEM, argc, argv);
}
