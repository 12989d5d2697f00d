/* SPDX-License-Identifier: BSD-2-Clause */
/* What a user writes after --latency: NAME=BEGIN,END[,key=argI[:argJ]]. BEGIN and END are WHEREs of
 * point_spec.h. Commas in brackets of any kind belong to a name, and so does that of C++'s
 * "operator,". */
#pragma once

#include "points/point_spec.h"

struct latency_spec {
	char *name;
	struct point_spec ends[2]; /* begin and end: called NAME and "NAME end" */
	unsigned int arguments[2]; /* the key's, at each, from 1; 0: an interval is its thread's */
};

/* -EINVAL: malformed, or a place that cannot be an end; @e names the text and what is allowed. What
 * point_spec_parse says, in words that speak of --latency. The contents of *ret are the caller's
 * (latency_spec_free). */
int latency_spec_parse(const char *text, struct latency_spec *ret, struct error *e);
void latency_spec_free(struct latency_spec *l); /* frees the contents, not @l */

/* Has an error about an end say so: what resolving and attaching call "-p NAME" is "--latency NAME,
 * BEGIN" or END. */
void latency_reword(const char *name, struct error *e);
