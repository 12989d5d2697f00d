/* SPDX-License-Identifier: BSD-2-Clause */
/* How often functions, USDT probes and system calls of a process that runs are passed: which of
 * them a progress point may be. It takes links of many probes (Linux 6.6). */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct code_map;
struct error;
struct visit_rates;

/* What is passed less often takes long to be measured; more often it costs, and is rarely a unit of
 * work. Per second. */
#define VISIT_RATES_LEAST 10
#define VISIT_RATES_MOST 10000

struct visit_rate {
	enum visit_rate_kind { VISIT_PROBE, VISIT_FUNCTION, VISIT_CALL } kind;
	char *point; /* as --progress takes it */
	double per_s;
};

/* Puts probes on what @pid, which has the code of @code mapped, could pass: USDT probes of all
 * objects, functions of its executable that others can call; where they would not be in it alone
 * (uprobes_alone_in), only system calls are counted. visit_rates_end ends it, before the map is
 * closed. @disabled: features to go without, as of run. */
int visit_rates_begin(struct code_map *code, pid_t pid, const char *disabled,
		      struct visit_rates **ret, struct error *e);
/* Does what is due at @now (monotonic ns). What is passed far too often loses its probe after some
 * hundredths of a second. 1: all is known, and no probe is left; 0: *ret_next says when to come
 * again; or a negative errno. */
int visit_rates_step(struct visit_rates *v, uint64_t now, uint64_t *ret_next, struct error *e);
/* Once all is known: what is passed between VISIT_RATES_LEAST and VISIT_RATES_MOST times a second,
 * probes first, then functions, then system calls that wait for or move data; of each kind the most
 * frequent first, at most @most. Returns how many; *ret is owned by @v. */
size_t visit_rates_found(struct visit_rates *v, size_t most, const struct visit_rate **ret);
void visit_rates_end(struct visit_rates *v); /* NULL is allowed */
