/* SPDX-License-Identifier: BSD-2-Clause */
/* What it costs a program to be looked at, measured on ourselves: most of it lies outside of our
 * BPF programs, in the exceptions that a probe takes, and differs tenfold between machines and
 * between instructions. Each figure is the least of some rounds, since whatever else the machine
 * does only adds. */
#pragma once

#include "program/elf/code.h"

struct elf_object;

/* Mean time of a call, ns. */
uint64_t costs_of_call(void (*call)(void));
/* How much more @with is; 0 if it is not. */
uint64_t costs_beyond(uint64_t with, uint64_t without);

/* No point stands on nops of five bytes, nor on what comes after them in enum code_cost. */
#define COSTS_PLACES CODE_NOP5
/* Has @attach put probes on one place of each cost, in our own executable, which stay for as long
 * as the caller likes. ret_ns: what a hit takes; left alone if that fails. */
void costs_of_probes(int (*attach)(const struct elf_object *self,
				   const uint64_t vaddrs[COSTS_PLACES], void *arg),
		     void *arg, uint64_t ret_ns[COSTS_PLACES]);
