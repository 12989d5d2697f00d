/* SPDX-License-Identifier: BSD-2-Clause */
/* Naming samples while an experiment is under way, for as long as that finds out something about what is in scope. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct run;

struct discovery {
	size_t learned;	     /* code_map_learned, when that changed last ... */
	uint64_t learned_ns; /* ... which was then */
	uint64_t next_ns;
};

/* Once samples are taken. Names those so far if it is time to, and takes code that is out of scope out of the tables. Returns when to come
 * again. */
uint64_t run_discovery_step(struct discovery *d, struct run *r, uint64_t now);
