/* SPDX-License-Identifier: BSD-2-Clause */
/* Decoding elsewhere. What stands in a target's files comes from the people who built them, and is
 * read by libraries and by our own long code: symbols, line information and call frame information
 * are therefore read by processes without rights, one for each object. They get open files from us
 * and give back flat arrays, which are checked. One that crashes, or takes too much memory or time,
 * takes its object's information along and nothing else. One more makes the names of all objects
 * readable.
 *
 * Not started, everything is read in this process (tests and fuzzers do so). Images in memory (the
 * vDSO) always are. */
#pragma once

#include <stdint.h>

struct error;

struct decoder_limits {
	uint64_t memory_bytes; /* address space of a decoder, beyond what it is born with */
	unsigned int cpu_s;    /* for one request, of a decoder's own time */
	unsigned int wall_s;   /* until it is given up, by the clock */
	unsigned int total_s;  /* that this process waits for all answers of all decoders; then none
				  is asked any more */
	uint64_t total_bytes;  /* of all answers about objects that are open */
};

/* Starts the process that makes decoders; @limits NULL: the usual ones. To be called early, while
 * this process has one thread and holds nothing that a decoder should not inherit. -EPERM and
 * others: it cannot be had, and @e says why. */
int decoder_start(const struct decoder_limits *limits, struct error *e);
/* Ends it and all decoders. Objects that are open keep what they know. Not started: allowed. */
void decoder_stop(void);
