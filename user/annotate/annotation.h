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
	enum skid skid;		 /* of samples, as measured here */
	struct model model;	 /* cycles NULL: there is none */
	struct error unmodelled; /* why not; "" where there is one */
	double *samples;	 /* of each instruction. Owned */
	double all, between;	 /* of the function, and those that found no instruction's start */
};

/* Of the code of @s in @o. *ret is the caller's (annotation_free). -ERANGE: it is not in the file; -ENOMEM. */
int annotation_make(const struct elf_object *o, const struct elf_symbol *s, const struct annotation_sample *samples, size_t n, struct annotation *ret,
		    struct error *e);
void annotation_free(struct annotation *a);

/* The instruction in Intel's syntax, at most @size bytes with the end; a target in the function as its address, one elsewhere by the name of its
 * function. */
void annotation_text(const struct annotation *a, const struct elf_object *o, size_t instruction, char *text, size_t size);
