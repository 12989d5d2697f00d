/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of this package share. */
#pragma once

#include "points/points.h"

#include <bpf/libbpf.h>

/* uprobes.c: those that count visits for map entry @index. */
struct point_probes points_probes_of(const struct points *ps, size_t index, pid_t pid,
				     const char *what);

/* syscalls.c: has the kernel report the begin (0) or the end (1) of system calls. */
int syscalls_trace(struct points *ps, unsigned int end, struct error *e);
/* What looking at the system calls that are no visits has cost, in ns for each visit of such
 * points. */
uint64_t syscalls_looks(const struct points *ps, unsigned int end, uint64_t visits);

/* tracepoints.c. Can a thread be preempted in a tracepoint's program? Then visits of others are
 * lost. Attaches one to all system calls for a moment. */
bool tracepoints_preempted(void);
/* A tracepoint by perf, which is to call a program on all CPUs: a descriptor, or -errno. */
int tracepoint_open(const char *category, const char *name);
/* Has a tracepoint count as a visit of point @index; NULL on failure. *event is a copy of the
 * program that is attached, or NULL if it is the session's; bpf_link__destroy, then
 * cozbpf_bpf__destroy. */
struct bpf_link *tracepoint_link(struct points *ps, size_t index, const char *category,
				 const char *name, struct cozbpf_bpf **event, struct error *e);

/* latency.c: before the programs are loaded. */
int latency_configure(struct points *ps, struct error *e);
void latency_close(struct points *ps);
