/* SPDX-License-Identifier: BSD-2-Clause */
/* What targets that are waits are called: "PLACE [KIND]", or "[KIND]" for all waits of a kind (shared/waits.def; R9 in bpf/README.md). */
#pragma once

#include <stddef.h>

#define WAITS_ON_CPU "on-cpu" /* of --what: execution, which is no wait */

/* The number of kinds and 1 more: 0 is no wait. */
unsigned int wait_kinds(void);
/* 0 < @kind < wait_kinds(). */
const char *wait_name(unsigned int kind);
/* The kind that @name of @n bytes is; 0: none. */
unsigned int wait_named(const char *name, size_t n);
/* The kind of wait that @target is; 0: none. *ret_place (NULL is allowed): the length of its place; 0: all places. */
unsigned int wait_of(const char *target, size_t *ret_place);
