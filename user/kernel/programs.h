/* SPDX-License-Identifier: BSD-2-Clause */
/* The objects with the BPF programs: which variant this kernel takes, loading with a reason for a
 * failure, and having perf events call one. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct bpf_link;
struct bpf_object_skeleton;
struct bpf_program;
struct cozbpf_bpf;
struct refusal;

/* What the kernels since 7.0 call bpf_task_work_schedule_resume, without the suffix _impl: does
 * this one have it? */
bool programs_task_work_plain(void);
/* Can a program say that it is not to be preempted (6.11)? */
bool programs_preempt_disable(void);
/* The ledger's programs, not loaded; NULL with errno. cozbpf_bpf__destroy. */
struct cozbpf_bpf *programs_open(void);
/* Loads the programs of a skeleton. On failure @why says why. */
int programs_load(struct bpf_object_skeleton *skeleton, struct refusal *why);
/* A sampling clock of a CPU (@pid -1), or of the thread @pid (0: the calling one; @cpu -1), where
 * it ticks while that runs: stopped until a program is attached. A descriptor, or a negative errno.
 */
int programs_open_clock(pid_t pid, int cpu, uint64_t period_ns);
/* Has the perf event @fd call @program; *ret owns it then. On failure, a negative errno, @fd is
 * closed; a negative @fd is returned. */
int programs_attach_perf(const struct bpf_program *program, int fd, uint64_t cookie,
			 struct bpf_link **ret);
