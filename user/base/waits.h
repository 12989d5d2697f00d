/* SPDX-License-Identifier: BSD-2-Clause */
/* What targets that are waits are called: "PLACE [KIND]", or "[KIND]" for all waits of a kind
 * (shared/waits.def; R9 in bpf/README.md). */
#pragma once

#include <stddef.h>

#define WAITS_ALL ((1U << WAIT_KINDS) - 1) /* a bit for each kind, and bit 0 for execution */
#define WAITS_ON_CPU "on-cpu"		   /* of --what: execution, which is no wait */

/* Kinds are from 1 on; 0 is no wait. */
enum {
	WAIT_NONE,
#define WAIT(name, text) WAIT_##name,
#include "shared/waits.def"
#undef WAIT
	WAIT_KINDS
};
/* 0 < @kind < WAIT_KINDS. */
const char *wait_name(unsigned int kind);
/* The kind that @name of @n bytes is; 0: none. */
unsigned int wait_named(const char *name, size_t n);
/* The kind of wait that @target is; 0: none. *ret_place (NULL is allowed): the length of its place;
 * 0: all places. */
unsigned int wait_of(const char *target, size_t *ret_place);
