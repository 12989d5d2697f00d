/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles in the formats of other tools. Pure: needs no privilege. */
#pragma once

#include "profile/reader.h"
#include "collect/shares/shares.h"

#include <stdbool.h>
#include <stdio.h>

/* Chrome's trace events (JSON), for Perfetto and chrome://tracing: each experiment with its line
 * and speedup, and over time the visits per second of each point, the delay that the program has
 * taken and the load out of scope. Experiments of files that do not say when they began are left
 * out. -ENODATA: all of them; negative errno. */
int export_trace(FILE *out, const struct profile *p);
/* What is known of a line, or a kind of wait: the share of its time in the chains of events that
 * led to visits of a point, 0..1. */
struct export_slope {
	const char *location; /* as the samples spell it */
	double slope;
};
/* The samples as pprof reads them: https://github.com/google/pprof/blob/main/proto/profile.proto,
 * compressed by gzip. Each location of the profile is a function with one line. With slopes (one
 * for each location at most) each sample has a third value, `critical`: what of the run's time its
 * slope is, ns. -ENODATA: the profile has no samples; -ENOMEM; negative errno. */
int export_pprof(FILE *out, const struct profile *p, const struct export_slope *slopes,
		 size_t n_slopes);
/* The same of what a database says of functions or lines. */
int export_shares_pprof(FILE *out, const struct shares *s);
/* All that the epochs of a database that overlap [@from_s, @to_s) have, as objects of JSON, one to
 * a line, or as CSV: its counts; or its experiments, a row for each point of each. Negative errno,
 * with @e. */
int export_counts(FILE *out, bool csv, struct database *d, uint64_t from_s, uint64_t to_s,
		  struct error *e);
int export_experiments(FILE *out, bool csv, struct database *d, uint64_t from_s, uint64_t to_s,
		       struct error *e);
