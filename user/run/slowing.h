/* SPDX-License-Identifier: BSD-2-Clause */
/* How `cozbpf validate` slows the line: it is found out before the first experiment whether a probe at each visit will do. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct error;
struct run;

struct run_slowing {
	enum run_slowing_state { SLOWING_LOOKS, SLOWING_MEASURES, SLOWING_DECIDED } state;
	bool by_probe;
	char why[512];		    /* by samples though a probe was asked for: the end of a sentence; else "" */
	uint64_t begun_ns, took_ns; /* of the experiment that found it out */
	uint64_t due_ns;
};

/* May experiments begin? Else *ret_next is lowered to when to ask again. Only of runs that slow the line. */
bool run_slowing_step(struct run *r, uint64_t now, uint64_t *ret_next);
/* Says by what the line was slowed, on stdout. Before the session is closed. */
void run_slowing_print(const struct run *r);
