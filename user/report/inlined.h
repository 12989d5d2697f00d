/* SPDX-License-Identifier: BSD-2-Clause */
/* The inlined copies of a line, as the profile has them (profile_samples.inlined). Internal to the
 * package. */
#pragma once

#include "profile/reader.h"

#define INLINED_MAX_LINES 64 /* of one copy; more are left out */

struct inlined_copy {
	uint64_t count;			/* samples */
	char *lines[INLINED_MAX_LINES]; /* innermost first; in a buffer of inlined_next's */
	size_t n;
};

/* Takes the next copy from *at, a writable string, which it cuts up. False: none is left. */
bool inlined_next(char **at, struct inlined_copy *ret);
