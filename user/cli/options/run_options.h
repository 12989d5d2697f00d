/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of `cozbpf run`. */
#pragma once

#include "points/point_spec.h"
#include "cli/options/scope_options.h"
#include "cli/options/stop_spec.h"
#include "program/elf/debug_options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

struct error;
struct option_row;

#define RUN_MAX_SPEEDUPS 63 /* with 0 %, what the analysis of a line has room for */

#define REPEAT_AUTO UINT64_MAX

enum run_pay { RUN_PAY_AUTO, RUN_PAY_SLEEP, RUN_PAY_HOLD, RUN_PAY_SPIN };
enum run_attribution { RUN_FIRST, RUN_INCLUSIVE };
enum run_sync { RUN_SYNC_SCHED, RUN_SYNC_PTHREAD };
enum run_granularity { RUN_BY_EITHER, RUN_BY_LINE, RUN_BY_FUNCTION };
enum color_when { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

enum run_status { RUN_STATUS_AUTO, RUN_STATUS_VIEW, RUN_STATUS_PLAIN, RUN_STATUS_NONE };

enum report_form { REPORT_TEXT, REPORT_JSON, REPORT_CSV, REPORT_MARKDOWN };

/* How a report looks, after `report` and at the end of a run. */
struct report_choice {
	enum report_form form;
	const char *file; /* that it is printed into, "-" for standard output; NULL: not said;
			     borrowed from argv */
	bool on_stderr;	  /* where that is not said: the program has standard output */
	const char *html; /* a file for the report as HTML, or NULL; borrowed from argv */
	uid_t uid;	  /* whose that is; -1: ours */
	gid_t gid;
	bool is_private; /* as of struct replace_file */
	bool no_curves, inlined, verbose, all;
	bool with_source;    /* the source around lines, read with the rights of who asks for it */
	uint64_t top, width; /* lines for each point, columns; 0: the default */
	enum color_when color;
};

/* Strings without another note are borrowed from argv. */
struct run_options {
	bool help; /* asked for: print it and leave; nothing else is filled in for certain */
	enum run_kind kind;
	struct scope_options scope;
	char *const
		*words; /* the whole command line, from the command's name on; borrowed from argv */
	char *const *command;	   /* what to run: NULL-terminated, at least one word; borrowed from
				      argv. Of attach and system: all words */
	struct point_spec *points; /* owned; names are unique, at most ABI_MAX_POINTS */
	size_t n_points;
	bool slopes_only;   /* nobody is paused: slopes and no experiments */
	uint64_t window_ns; /* how long windows of slopes get; 0: as long as it takes */
	bool shared_code;   /* points may count visits of several functions that have one code */
	struct run_latency {
		size_t begin; /* index of its begin in `points`; its end follows, and both are
				 points like any other */
		unsigned int arguments[2]; /* as in struct latency_spec */
	} * latencies;			   /* owned */
	size_t n_latencies;
	struct option_words sources, binaries; /* --source and --binary globs in order */
	struct debug_options
		lines;	      /* --debug-dir, --source-prefix in order; the arrays are owned */
	const char *output;   /* never empty */
	uint64_t duration_ns; /* after it the program is ended; 0: until it ends by itself */
	uint64_t runs;	      /* measure from end to end, so often; 0: not */
	uint64_t repeat; /* start a program that ends again, so many runs in all; REPEAT_AUTO: until
			    enough is known; 0: not */
	uint64_t warmup; /* runs before them that are not measured */
	const char *prepare;	 /* a command for the shell before each run; NULL: none */
	uint64_t delay_ns;	 /* before the first experiment */
	struct stop_spec *stops; /* --stop-if; owned */
	size_t n_stops;
	double until_ci; /* half-width at which the run may end, 0.02 is two points; 0: not asked
			    for */
	enum run_pay pay;
	enum run_sync sync;
	enum run_granularity granularity;
	enum run_attribution attribution;
	const char *fixed_line; /* FILE:LINE, or a function with RUN_BY_FUNCTION; with RUN_BY_EITHER
				 * one that an earlier run has sampled; or a wait (base/waits.h),
				 * there or of all places; NULL: drawn from the samples */
	unsigned int what; /* a bit for each kind of wait that may be drawn, bit 0 for execution; 0:
			      execution, and waits that matter */
	double fixed_speedup;	       /* 0..1; negative: drawn from the grid */
	double grid[RUN_MAX_SPEEDUPS]; /* ascending, distinct, each in (0,1]; empty only with
					  fixed_speedup set */
	size_t n_grid;
	size_t n_slow; /* by the last so many of them the line is slowed for real; `validate` alone
			*/
	double zero_share;	/* probability of 0 %, in (0,1) */
	uint64_t experiment_ns; /* 0: as visits and samples have it, up to half a second */
	uint64_t cool_off_ns;
	double most_slowdown; /* the global delay grows by no more of the time; 0: without bounds */
	double duty;	  /* the share of the time that experiments take; 0: not said, all of it */
	uint64_t rate_hz; /* samples per second of CPU time */
	uint64_t seed;
	bool seed_given; /* else the caller draws one */
	int signo;	 /* the payment signal, SIGRTMIN..SIGRTMAX */
	bool keep_root, quiet, no_report, verbose;
	enum run_status status;
	const char *output_to; /* what the program prints is appended to this file; NULL: it has our
				  standard output and error */
	struct report_choice report;
	const char *disabled; /* --disable: comma list of feature names, or NULL */
	const char *trace;    /* --trace-payments: a new file, for developers, or NULL */
	bool calibrate;	      /* --calibrate: measure what payments cost anew */
};

/* Reads argv[1..] of run, attach (PID[,PID...] among the options) or system; argv[0] is the
 * command's name. @validates: without the options that validate does not have. "--" and "---"
 * end the options, and so does the first word that is none. Negative errno with @e set for an
 * unknown option, a malformed value, or no command. The contents of *ret are the caller's
 * (run_options_free). */
int run_options_parse(enum run_kind kind, bool validates, int argc, char **argv,
		      struct run_options *ret, struct error *e);
void run_options_free(struct run_options *o); /* frees the contents, not @o */
/* A word behind the program's name that reads like an option of ours, which it is not there: of a
 * run that has no point. NULL: there is none. */
const char *run_options_misplaced(const struct run_options *o);
/* What --help prints of the options. @validates as for run_options_parse. */
void run_options_help(enum run_kind kind, bool validates, FILE *out);

/* "first", "inclusive". */
const char *run_attribution_name(enum run_attribution attribution);
/* Should text on @fd be coloured? NO_COLOR and TERM=dumb count for COLOR_AUTO. */
bool color_wanted(enum color_when when, int fd);
/* Columns of the terminal on @fd; 0 if it is none. */
int terminal_width(int fd);
