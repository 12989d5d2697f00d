/* SPDX-License-Identifier: BSD-2-Clause */
/* What samples say of the instructions of one function. */
#pragma once

#include "annotate/culprits.h"
#include "annotate/model.h"
#include "base/error.h"

struct annotation_sample {
	uint64_t vaddr, n;
};

struct annotation {
	struct flow flow;
	struct code code;
	struct culprits culprits;
	enum skid skid;		 /* of samples as they were found, measured here */
	struct model model;	 /* cycles NULL: there is none */
	struct error unmodelled; /* why not; "" where there is one */
	double *found;		 /* samples at each instruction, as they were found. Owned */
	double *samples;	 /* of each: in which it waited, or was executed. Owned */
	uint16_t *possible;	 /* what each may have waited for, a bit for each culprit. Owned */
	double *called;		 /* of each call: those in what it calls. Owned */
	/* Of each block, counted by probes: how often it was executed in a second of CPU time of
	 * its process, and the standard error of that, relative; infinite where that is not known.
	 * NULL: nothing was counted. Owned. */
	double *executed, *executed_errors;
	double clock_hz;     /* of the CPU, to make cycles of time with; 0: not known */
	double all, between; /* of the function, and those that found no instruction's start */
};

/* Of the code of @s in @o. @kernel: as of culprits_find. *ret is the caller's (annotation_free).
 * -ERANGE: it is not in the file; -ENOMEM. */
int annotation_make(const struct elf_object *o, const struct elf_symbol *s,
		    const struct annotation_sample *samples, size_t n, bool kernel,
		    struct annotation *ret, struct error *e);
void annotation_free(struct annotation *a);

/* The instruction in Intel's syntax, cut off at its end; a target in the function as its address,
 * one elsewhere by the name of its function. */
struct annotation_text {
	char text[160];
};
struct annotation_text annotation_text(const struct annotation *a, const struct elf_object *o,
				       size_t instruction);
