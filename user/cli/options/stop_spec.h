/* SPDX-License-Identifier: BSD-2-Clause */
/* --stop-if: when a run is to leave the program alone. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct error;

enum stop_kind {
	STOP_LATENCY, /* of a latency point: mean, or what a share of its intervals does not exceed;
			 ns */
	STOP_LOAD,    /* average number of tasks that run or want to, over a minute */
	STOP_PSI,     /* the share of the last ten seconds in which some task waited for a resource;
			 percent */
	STOP_RESTARTS, /* programs that were started in scope since the run began */
};

struct stop_spec {
	enum stop_kind kind;
	const char *text; /* as it was written; borrowed */
	char *name;	  /* owned: of a latency point, or "cpu", "memory", "io" */
	double quantile;  /* of a latency: 0.99; negative: the mean */
	double bound;
};

/* "p99(request)>50ms", "mean(request)>2ms", "load>8", "psi(cpu)>20", "restarts>3". -EINVAL with @e.
 */
int stop_spec_parse(const char *text, struct stop_spec *ret, struct error *e);
void stop_spec_free(struct stop_spec *s);
