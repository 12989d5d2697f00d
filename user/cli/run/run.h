/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of `cozbpf run` share: one run, from the options to the report. */
#pragma once

#include "analysis/certainty.h"
#include "cli/options/run_options.h"
#include "experiment/plan.h"
#include "profile/reader.h"
#include "cli/run/status.h"
#include "experiment/session/session.h"
#include "target/identity.h"

#include <signal.h>

struct candidate;
struct candidates;
struct code_map;
struct error;
struct injector;
struct profile_writer;
struct run_scope;
struct runner;
struct session_process;
struct shim_page;
struct target;

/* A point of the options, in the session. */
struct run_point {
	size_t index;
	size_t version; /* of the code map when its objects were last looked at */
	bool *tried;	/* in each of its first n_tried objects */
	size_t n_tried;
	bool found;
	bool seen;    /* what it names was there, but without it: said */
	bool shared;  /* its code is that of other functions as well: said */
	bool inlined; /* it is counted in inlined copies: said */
};

struct run;

/* What a run is for. */
struct run_purpose {
	enum run_kind kind;
	const char *usage, *example; /* what --help says before and after the options */
	const char *prefix;	     /* of messages; NULL: none */
	int (*prepare)(struct run_options *o,
		       struct error *e); /* checks and completes the options; or NULL */
	int (*sink)(void *run, const struct profile_experiment *x,
		    const struct profile_point *points, size_t n_points);
	/* All of it, to the exit status: what fails is told by @e. NULL: starts a program and ends
	 * with it */
	int (*run)(struct run *r, struct error *e);
	int (*report)(struct run *r); /* prints what came of it; the exit status, or negative: the
					 program's own */
	bool slows;		      /* experiments may slow the line for real */
	bool no_file;		      /* no profile is written */
};

/* Naming samples while an experiment is under way, for as long as that finds out something about
 * what is in scope. */
struct run_discovery {
	size_t learned;	     /* code_map_learned, when that changed last ... */
	uint64_t learned_ns; /* ... which was then */
	uint64_t next_ns;
};

/* A program that ends is started again. `cozbpf run -n N`: it is measured from end to end, one run
 * one experiment, for those that have no place to count. `cozbpf run --repeat N`: each run has its
 * experiments, and all runs are one profile. */
struct repeat {
	struct profile all; /* of the runs so far */
	struct plan plan;
	struct plan_line speedups;
	char *line; /* of the next run of -n; NULL: whichever it samples first */
	size_t done;
	bool over;		      /* there is no further run */
	uint64_t first_seed, last_ns; /* of the first run, and when --duration is over; 0: never */
	double visits_per_s;	      /* for the next run's experiments; 0: not known */
	/* Without a point, --repeat measures slopes of whole runs. The first run only finds the
	 * lines, and counters of coz.h, with which there are experiments as ever. */
	enum repeat_whole { REPEAT_POINTS, REPEAT_LOOKS, REPEAT_WHOLE } whole;
	uint64_t longest_ns; /* of the runs so far */
	const char **lines;  /* to follow in the next one, of `all`; owned */
	size_t n_lines;
	struct certainty certainty; /* of all runs so far */
};

/* Payment handlers in processes that cannot have the preloaded library: those that ran already, and
 * static executables. */
struct run_injection {
	/* Into none; into none yet, as it is still to be seen whether it takes that; into processes
	 * that were held for what they should have slept; into all */
	enum run_inject_mode {
		RUN_INJECT_NONE,
		RUN_INJECT_TRIAL,
		RUN_INJECT_HELD,
		RUN_INJECT_ALL
	} mode;
	bool held_else;		   /* the kernel can hold who has none */
	struct injector *injector; /* NULL: nothing is injected */
	pid_t *refused;		   /* processes that it cannot be put into, as they are */
	size_t n_refused;
	size_t rest_at;		/* whose turn is next */
	bool said;		/* one of them was named */
	size_t put, put_before; /* handlers that were injected so far, and up to the end of the last
				   experiment */
};

struct run {
	const struct run_purpose *purpose;
	struct run_options options;
	struct identity identity;
	char *path; /* of the program; for a script its interpreter; of attach and system a link to
		       the first one */
	bool by_script; /* path stands in a script: opened with the rights of the program's user */
	struct run_scope *scope; /* NULL: one process */
	bool wrapper; /* the program is of the system's, and only starts what is to be profiled */
	bool dynamic; /* it has a dynamic linker */
	bool own_rights;    /* ... which preloads nothing: set-uid, set-gid, capabilities */
	unsigned int waits; /* a bit for each kind of wait (base/waits.h) that is sampled, and can
			       be selected */
	enum abi_payer payer;
	bool preload;
	struct run_injection injection;
	char fallback[320];	    /* what this kernel made us replace, or "" */
	struct code_kernel *kernel; /* --kernel */
	struct code_map *code;
	struct session *session;
	char *shared; /* points that count visits of several functions, in words; NULL: none */
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
	size_t looked_at;	    /* how many experiments and slopes there were then */
	uint64_t look_ns;	    /* the next look not before */
	bool said_unmatched; /* that an option of the scope matches nothing so far, or that all
				match */
	unsigned int warned; /* a bit for each kind of warning that was said */
	struct run_discovery discovery;
	struct candidates *candidates; /* of a run without a point; NULL: not begun */
	bool decided; /* which points there are, but for those of coz.h: experiments may begin */
	struct point_spec chosen;	/* without -p */
	struct backend_sample *sampled; /* where execution was found when functions were looked at
					   for that; NULL: not yet */
	size_t n_sampled;
	sigset_t caught;
	struct repeat *repeat; /* with --runs and --repeat, over all of them; NULL: none */
	struct {
		bool holds; /* one of them does: experiments are over */
		size_t restarts;
		uint64_t next_ns; /* when to look again */
	} stop_if;
	bool interrupted;	   /* by Ctrl-C */
	uint64_t start_ns, end_ns; /* of the program */
	bool said_not_loaded, judged_points;
	bool said_copy;		   /* of a program that runs on a copy of its code */
	uint64_t machine_begin_ns; /* since when CPU time is counted; 0: it is not */
	uint64_t scope_cpu_ns, outside_cpu_ns, own_cpu_ns; /* then */
	bool stopped;	 /* the run is over, though the program may go on */
	int write_error; /* negative: the profile could not be written to; nothing more is */
	bool said_write_error;
	struct {
		bool job;	/* we were stopped, with the program if it was the terminal, since
				   run_is_stopped was called last */
		bool was;	/* of attach: a process was, then */
		size_t dropped; /* experiments, for that */
		uint64_t since_ns; /* when it was stopped; 0: it is not */
		uint64_t ns;	   /* for how long it was, before that */
	} stops;
	bool terminated; /* by us, at the end of --duration */
	int wait_status;
};

/* cmd_run.c: the whole command, from its arguments (the first is its name) to the exit status. */
int run_main(int argc, char **argv, const struct run_purpose *purpose);

/* setup.c: each takes the run a step further; 0, or a negative errno with @e set. */
/* Is it an executable, and of which kind? */
int run_look_at_program(struct run *r, struct error *e);
int run_choose_payer(struct run *r, struct error *e);
int run_choose_sync(struct run *r, struct error *e);
/* Are there to be windows of slopes? */
bool run_wants_slopes(const struct run *r);
int run_choose_waits(struct run *r, struct error *e);
/* Samples a second and CPU; 0: as the program needs. Few if only waits are tried. A wait is booked
 * by its own length, and samples make the rest of the time longer, so that the waits are a smaller
 * part of it. Not fewer: a long pause goes on at the next tick (bpf/README.md, section 6). */
unsigned int run_rate(const struct run *r);
/* Opens the session and the code map, and looks for the points. */
int run_open(struct run *r, const struct session_options *options, struct error *e);
/* Probes of --sync pthread; the process must exist and be attached to. */
int run_add_calls(struct run *r, struct error *e);
/* Plans the experiments and begins the profile. */
int run_open_runner(struct run *r, struct error *e);

/* points.c: the progress points of a run: checked before the program starts, attached before it
 * executes, and again whenever it loads a library. */
/* Is each point there, or can still come with a library? Before the program is started. */
int run_check_points(struct run *r, struct error *e);
/* What the session must have for them: enum points_needs. */
unsigned int run_points_needs(const struct run *r);
/* Makes the points, and attaches all that can be found; the process must exist and be attached to.
 */
int run_add_points(struct run *r, struct error *e);
void run_free_points(struct run *r);
/* Of a run that has none: adds one, as --progress takes it, while processes run. */
int run_add_point(struct run *r, const char *text, struct error *e);
/* Of processes that run: fails if a point has no place in any of their executables. */
int run_require_points(struct run *r, struct error *e);
/* Attaches what has been mapped since. What is wrong with it is said on stderr, once. @all: for a
 * minute at most, else for a second; what is left is for the next call. */
void run_refresh_points(struct run *r, bool all);
/* Once, when the program has run for a while: says on stderr which files that points name are not
 * loaded yet. */
void run_say_not_loaded(struct run *r, uint64_t now);
/* At the end: ... and which never were. */
void run_missing_points(const struct run *r);
/* Has an error about a latency point's end speak of it. */
void run_reword(const struct run *r, struct error *e);

/* scope.c, scope_changes.c: which processes a run is about, and what becomes of those that come
 * later. */
/* Is the scope more than one process, as the options have it? */
bool run_scope_is_many(const struct run *r);
/* Finds the processes of attach and system, and names the first one's executable (r->path); of run,
 * only makes the scope. Nothing is touched. r->scope is the run's (run_scope_free). */
int run_scope_open(struct run *r, struct error *e);
void run_scope_free(struct run_scope *s); /* NULL is allowed */
/* After session_attach and session_set_code: enters them all, and reads what they have mapped. */
int run_scope_enter(struct run *r, struct error *e);
/* The launched program has just been started. */
int run_scope_started(struct run *r, struct error *e);
/* Readable when run_scope_step has something to do before the time it asked for; -1: never. */
int run_scope_execs_fd(const struct run *r);
int run_scope_ends_fd(const struct run *r);
/* Programs that were started, mappings that changed, processes that join or leave. *ret_next: when
 * to come again at the latest. Fails when there can be no scope any more: a control group was
 * removed. */
int run_scope_step(struct run *r, uint64_t now, uint64_t *ret_next, struct error *e);
/* Mappings of @pid have changed: looks at them at @when. */
void run_scope_look(struct run *r, pid_t pid, uint64_t when);
/* Have all processes of attach ended, and what came of them? */
bool run_scope_is_over(struct run *r);
/* Of attach: is the process still there that the option's number @i named? */
bool run_scope_lives(const struct run *r, size_t i);

/* inject.c: payment handlers in processes, which they lose when we leave. */
/* Forks a process that injects, so call it before there is a second thread. Does nothing unless the
 * run may inject. */
int run_inject_open(struct run *r, struct error *e);
/* The processes are entered, or the program was started. Puts handlers into those where that is
 * decided; refused where a process that was named refuses and cannot be held; of others it is said.
 */
int run_inject_begin(struct run *r, struct error *e);
/* --inject=auto: at the end of the trial, decides. */
void run_inject_step(struct run *r, uint64_t now);
/* @pid has started another program, which took its handler away. */
void run_inject_anew(struct run *r, pid_t pid);
/* Into those in scope that have none yet: whose parent had none when it forked. A few times a
 * second. */
void run_inject_rest(struct run *r, const struct session_process *all, size_t n);
/* At the end of experiment @x: injects what is due. True if a handler was injected since the
 * experiment began, and threads were held in it for so long that it must not be recorded. */
bool run_inject_came(struct run *r, const struct profile_experiment *x);
/* All go on without, as they were before. After the session is closed, but for programs that we
 * started. */
void run_inject_close(struct run *r);

/* cmd_run.c: the exit status of a program that has ended; 0 if it was we who ended it, because its
 * time was up. */
int run_exit_status(const struct run *r);
/* What comes before the session, and the session. */
int run_open_session(struct run *r, struct error *e);

/* loop.c: until the program has ended. */
int run_loop(struct run *r, struct error *e);
/* After a failure of run_loop: until the program has ended, which gets the signals that come to us.
 */
void run_wait(struct run *r);
/* Ends the experiments at @end_ns and writes what is left to write. Once. */
int run_stop(struct run *r, uint64_t end_ns, struct error *e);

/* watch.c: is the program stopped by a signal? If it is, or was since the last call, the experiment
 * under way is dropped. */
bool run_is_stopped(struct run *r, uint64_t now);
/* Says on stderr, once, that a program ended since it ran on a copy of its own code, with probes in
 * it. */
void run_say_copies(struct run *r);
/* One line on stderr if experiments were dropped. */
void run_say_stops(const struct run *r);

/* stop_if.c: what --stop-if says, of an experiment that was just measured, and about once a second
 * of the machine. Says on stderr what holds. */
void run_stop_if_experiment(struct run *r, const struct profile_point *points, size_t n_points);
bool run_stop_if(struct run *r, uint64_t now);

/* Is there reason to look at what is known so far? Not while an experiment is under way. */
bool run_certainty_due(const struct run *r, uint64_t now);
/* Of what @p knows so far, as certainty_of. */
struct certainty run_certainty_of(const struct profile *p, uint64_t seed, double half);
/* Sets @r->certainty. */
void run_certainty_look(struct run *r, uint64_t now);
/* One line: --until-ci has what it wants. */
void run_say_certain(const struct run *r);
/* CPU time, from the run's start to the call of run_machine_end, which may be later than the
 * program's end. */
void run_machine_begin(struct run *r);
void run_machine_end(struct run *r, struct profile_runtime *t);
/* A second after the start: a line on stderr for each option of the scope that matches nothing yet.
 */
void run_say_unmatched(struct run *r, uint64_t now);
/* Once samples are taken. Names those so far if it is time to, and takes code that is out of scope
 * out of the tables. Returns when to come again. */
uint64_t run_discovery_step(struct run *r, uint64_t now);

/* After two seconds, once: a line on stderr for each point that is visited too rarely, or not at
 * all, or that costs too much. *ret_next is lowered to when that is due. */
void run_judge_points(struct run *r, uint64_t now, uint64_t *ret_next);
/* Prints how the run goes, where that is due; what it warns of, a plain line has once. */
void run_show_status(struct run *r, struct status *status, uint64_t now);
enum status_kind run_status_kind(const struct run *r);

/* choose.c: is the run to find a point by itself? */
bool run_may_choose(const struct run *r);
/* Looks for one. Is it decided? Else *ret_next is lowered to when to ask again. */
bool run_choose_step(struct run *r, uint64_t now, uint64_t *ret_next);
/* There is none, if it is not decided: the run is over, or has counters of coz.h. */
void run_choose_end(struct run *r);
/* What was seen in a run without a point. *ret is the run's. */
size_t run_proposals(const struct run *r, const struct candidate **ret);

/* record.c: the run's records go to the file and are kept for the report. The first one says which
 * point was chosen: it is written when that is decided (run_begin_profile). */
int run_write_startup(struct run *r, struct error *e);
void run_begin_profile(struct run *r);
int run_sink(void *arg, const struct profile_experiment *x, const struct profile_point *points,
	     size_t n_points);
int run_slopes_sink(void *arg, const struct profile_slopes *s);
/* --inject=auto: the experiments so far go to the file, or are forgotten, since they were made
 * without handlers that it takes. */
void run_keep_trial(struct run *r, bool keep);
/* Copies an experiment. */
void run_keep(struct profile *p, const struct profile_experiment *x,
	      const struct profile_point *points, size_t n_points);
/* The length of the run so far and what the machine did meanwhile, into the profile that is kept,
 * and into *ret. */
void run_take_machine(struct run *r, struct profile_runtime *ret);
/* The samples so far and the length of the run, into the profile that is kept. */
void run_take_samples(struct run *r);
void run_write_log(struct run *r);
/* elsewhere.c: takes into the profile what samples executed outside of their places. */
void run_take_elsewhere(struct run *r);
/* Closes the profile: after the log. Before run_free, so that an error that only close tells of is
 * told. */
void run_close_profile(struct run *r);
/* One line if the profile could not be written to, the first time. Whether that is so. */
bool run_say_write_error(struct run *r);
/* print.c. 0, or EXIT_OURS after one line. */
int run_print_report(struct run *r);

/* unmeasured.c: what runs before the measured runs, as the program's user, and is not profiled. 0,
 * or an exit status after one line. A run of the program: its own status, if it fails. */
int run_warm_up(struct run *r);
/* --prepare: says what it printed if it fails. */
int run_prepare(struct run *r);

/* repeat.c: -EINVAL with @e: the options make no sense together. repeat_free ends it. */
int repeat_init(struct repeat *x, const struct run_options *o, struct error *e);
void repeat_free(struct repeat *x);
/* Sets what differs in the next run's options. With -n that is a draw of what to try, but the first
 * run tries nothing: it says how long the program takes, and where. */
void repeat_next(struct repeat *x, struct run_options *o);
/* Is the end of the program the point? Or will it be that of later runs? */
bool run_is_whole(const struct run *r);
bool run_is_for_whole(const struct run *r);
/* May there be experiments or windows? Not in a run that only looks. */
bool run_may_try(const struct run *r);
/* Takes in the profile of a run that is over. */
void repeat_keep(struct repeat *x, struct run *r);
/* Is there no further run after @r, which is over? A program that fails is not started again. */
bool repeat_is_over(const struct repeat *x, const struct run *r);
