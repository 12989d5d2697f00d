/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of `cozbpf collect` share. */
#pragma once

#include "collect/collect.h"
#include "cli/options/quantities.h"

#include <signal.h>

struct database;

struct collect_command {
	bool help;
	const char *config, *database;
	uint64_t keep_s, most_bytes, duration_s;
	gid_t group;
	struct collect_settings settings;
	/* Experiments: which share of the time they take, 0: there are none, but slopes; what both
	 * are about, and in which processes: of the control group, else those that run @exe. */
	double duty, most_slowdown;
	struct option_words points, latencies, stops;
	const char *what; /* NULL: lines, and waits that take a good part of the time */
	char *exe;	  /* owned */
};

/* The file's options, then those of the command line. @f and the words in *ret are the caller's to
 * free, even if this fails. */
int collect_options_read(int argc, char **argv, struct collect_command *ret, struct option_file *f,
			 struct error *e);
void collect_options_free(struct collect_command *c);
void collect_help(void);

/* The process that measures slopes (`cozbpf system --slopes-only`), or makes experiments
 * (`--duty`), for an hour at a time: so each hour has its own file, with a baseline of its own. */
struct experiments {
	int pidfd; /* -1: none runs */
	pid_t pid;
	uint64_t start_ns; /* when to start the next one, CLOCK_MONOTONIC */
	bool said;	   /* why there is none */
};
/* Starts one if it is time to. *ret_next: when to call again. */
void experiments_step(struct experiments *x, const struct collect_command *c, struct database *d,
		      uint64_t now, uint64_t *ret_next);
/* Its pidfd can be read. */
void experiments_ended(struct experiments *x, uint64_t now);
/* Ends it, with what it has found so far written. */
void experiments_stop(struct experiments *x);
