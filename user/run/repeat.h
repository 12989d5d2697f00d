/* SPDX-License-Identifier: BSD-2-Clause */
/* `cozbpf run -n N`: a program that ends is measured from end to end, one run one experiment, for those that have no place to count. */
#pragma once

#include "options/run_options.h"
#include "experiment/plan.h"
#include "profile/reader.h"

struct error;
struct run;

struct repeat {
	struct profile all; /* of the runs so far */
	struct plan plan;
	char *line; /* of the next run; NULL: whichever it samples first */
	size_t done;
};

/* -EINVAL with @e: the options make no sense together. repeat_free ends it. */
int repeat_init(struct repeat *x, const struct run_options *o, struct error *e);
void repeat_free(struct repeat *x);
/* Draws what the next run tries, into the options. The first tries nothing: it says how long the program takes, and where. -ENOMEM. */
int repeat_next(struct repeat *x, struct run_options *o, struct error *e);
/* Takes in the profile of a run that is over. -ENOMEM. */
int repeat_keep(struct repeat *x, struct run *r, struct error *e);
