/* SPDX-License-Identifier: BSD-2-Clause */
/* A system call that reads a map, while others run. As long as it lasts the kernel calls no program
 *by perf on its CPU, neither a clock's nor a tracepoint's. A kernel that preempts itself could
 *leave it at that for a time slice; so it is one that other threads do not preempt. _map_call_ bool
 *raised = map_call_begin(); */
#pragma once

#include "base/cleanup.h"

#include <stdbool.h>

#define _map_call_ _cleanup_(map_call_end) __attribute__((unused))
bool map_call_begin(void);
void map_call_end(const bool *raised);
