/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs llvm-mca. Internal to the package. */
#pragma once

#include <stddef.h>

struct error;

struct mca_answer {
	char *out, *complaints; /* owned; each with a zero behind it */
	int status;		/* of the program */
};

/* Gives it @text to read. @cpu: as LLVM calls it, or "native". *ret is the caller's
 * (mca_answer_free). Errors as of model_make. */
int mca_run(const char *text, size_t n, const char *cpu, unsigned int iterations,
	    struct mca_answer *ret, struct error *e);
void mca_answer_free(struct mca_answer *a);
