/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of `cozbpf run` share: one run, from the options to the report. */
#pragma once

#include "analysis/certainty.h"
#include "options/run_options.h"
#include "run/scope.h"
#include "run/slowing.h"
#include "run/status.h"
#include "profile/reader.h"
#include "session/session.h"
#include "target/identity.h"

#include <signal.h>

struct code_map;
struct error;
struct injector;
struct profile_writer;
struct repeat;
struct runner;
struct shim_page;
struct target;

/* A point of the options, in the session. */
struct run_point {
	size_t index;
	size_t next; /* objects of the code map from here on have not been looked at */
	bool found;
	bool seen; /* what it names was there, but without it: said */
};

struct run;

/* What a run is for. */
struct run_purpose {
	void (*help)(FILE *out);
	int (*prepare)(struct run_options *o, struct error *e); /* checks and completes the options; or NULL */
	int (*sink)(void *run, const struct profile_experiment *x, const struct profile_point *points, size_t n_points);
	int (*report)(struct run *r);  /* prints what came of it; the exit status, or negative: the program's own */
	bool slows;		       /* experiments may slow the line for real */
	bool no_file;		       /* no profile is written */
	const struct option_row *rows; /* options of its own, beside those of run; NULL: none */
	size_t n_rows;
};

struct run {
	const struct run_purpose *purpose;
	struct run_options options;
	struct identity identity;
	char *path;		 /* of the program; for a script its interpreter; of attach and system a link to the first one */
	bool by_script;		 /* path stands in a script: opened with the rights of the program's user */
	struct run_scope *scope; /* NULL: one process */
	bool wrapper;		 /* the program is of the system's, and only starts what is to be profiled */
	bool dynamic;		 /* libraries can be preloaded into it */
	enum abi_payer payer;
	enum run_calls { RUN_CALLS_NONE, RUN_CALLS_SHIM, RUN_CALLS_EXECUTABLE, RUN_CALLS_LIBRARIES } calls; /* where --sync pthread sees them */
	bool preload;
	bool injects;		   /* the processes run already, and the kernel cannot pause them, or not by letting them sleep */
	struct injector *injector; /* NULL: nothing is injected */
	pid_t *uninjected;	   /* processes that it cannot be put into, as they are */
	size_t n_uninjected;
	bool said_uninjected;
	char fallback[256];	    /* what this kernel made us replace, or "" */
	struct code_kernel *kernel; /* --kernel */
	struct code_map *code;
	struct session *session;
	struct run_point *points; /* as many as the options have; NULL: not made yet */
	struct shim_page *page;
	int page_fd;
	struct preload_server *preload_server; /* NULL: children go without the library */
	struct target *target;		       /* NULL: of attach and system */
	struct profile_writer *writer;
	struct runner *runner;
	size_t n_runner_points;	    /* points that the runner knows */
	struct profile profile;	    /* this run, for the report at the end */
	struct certainty certainty; /* as of the last look */
	size_t looked_at;	    /* how many experiments there were then */
	uint64_t look_ns;	    /* the next look not before */
	struct run_slowing slowing; /* only where the purpose slows */
	sigset_t caught;
	struct repeat *repeat;				   /* with --runs, over all of them; NULL: none */
	bool interrupted;				   /* by Ctrl-C */
	uint64_t start_ns, end_ns;			   /* of the program */
	uint64_t scope_cpu_ns, outside_cpu_ns, own_cpu_ns; /* at the start */
	bool stopped;					   /* the run is over, though the program may go on */
	int write_error;				   /* negative: the profile could not be written to; nothing more is */
	bool said_write_error;
	struct {
		bool job;	/* we were stopped, with the program if it was the terminal, since run_is_stopped was called last */
		bool was;	/* of attach: a process was, then */
		size_t dropped; /* experiments, for that */
	} stops;
	bool terminated; /* by us, at the end of --duration */
	int wait_status;
};

/* cmd_run.c: the whole command, from its arguments (the first is its name) to the exit status. */
int run_main(int argc, char **argv, const struct run_purpose *purpose);

/* open.c */
/* Is it an executable, and of which kind? */
int run_look_at_program(struct run *r, struct error *e);
/* Opens the session and the code map, and looks for the points. */
int run_open(struct run *r, const struct session_options *options, struct error *e);

/* setup.c: each takes the run a step further; 0, or a negative errno with @e set. */
int run_choose_payer(struct run *r, struct error *e);
int run_choose_sync(struct run *r, struct error *e);
int run_open_code(struct run *r, struct error *e);
/* One line on stderr if functions are tried since there are no lines, and one if some of their names cannot be read. */
void run_say_granularity(const struct run *r);
/* Is the line of --fixed-line there? Before the program is started. */
int run_check_fixed_line(struct run *r, struct error *e);
/* Probes of --sync pthread; the process must exist and be attached to. Not those that wait for a library: run_add_calls_of_libraries, until it
 * returns 1. */
int run_add_calls(struct run *r, struct error *e);
int run_add_calls_of_libraries(struct run *r, struct error *e);
int run_open_runner(struct run *r, struct error *e);

/* points.c: has an error about a latency point's end speak of it; makes one of both ends, once their probes are there. */
void run_reword(const struct run *r, struct error *e);
int run_pair_points(struct run *r, struct error *e);
/* cmd_run.c: what run, attach and system have in common, before the session and after it. */
void run_catch_signals(struct run *r);
int run_open_session(struct run *r, struct error *e);
/* At once, and with it all that could ask it something: the runner and what hands out the library. */
void run_close_session(struct run *r);
void run_free(struct run *r);

/* loop.c: until the program has ended. */
int run_loop(struct run *r, struct error *e);
/* After a failure of run_loop: until the program has ended, which gets the signals that come to us. */
void run_wait(struct run *r);
/* Ends the experiments at @end_ns and writes what is left to write. Once. */
int run_stop(struct run *r, uint64_t end_ns, struct error *e);

/* stops.c: is the program stopped by a signal? If it is, or was since the last call, the experiment under way is dropped. */
bool run_is_stopped(struct run *r, uint64_t now);
/* One line on stderr if experiments were dropped. */
void run_say_stops(const struct run *r);

/* watch.c: is there reason to look at what is known so far? Not while an experiment is under way. */
bool run_certainty_due(const struct run *r, uint64_t now);
/* Sets @r->certainty. */
void run_certainty_look(struct run *r, uint64_t now);

/* record.c: the run's records go to the file and are kept for the report. */
int run_write_startup(struct run *r, struct error *e);
int run_sink(void *arg, const struct profile_experiment *x, const struct profile_point *points, size_t n_points);
/* Copies an experiment. -ENOMEM. */
int run_keep(struct profile *p, const struct profile_experiment *x, const struct profile_point *points, size_t n_points);
int run_write_log(struct run *r, struct error *e);
/* Closes the profile: after the log. Before run_free, so that an error that only close tells of is told. */
void run_close_profile(struct run *r);
/* One line if the profile could not be written to, the first time. Whether that is so. */
bool run_say_write_error(struct run *r);

/* watch.c: CPU time, from the run's start, and what is known at its end; t->time is set. */
void run_machine_begin(struct run *r);
void run_machine_end(struct run *r, struct profile_runtime *t);

/* report.c: 0, or EXIT_OURS after one line. */
int run_print_report(struct run *r);
