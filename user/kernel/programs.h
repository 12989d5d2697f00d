/* SPDX-License-Identifier: BSD-2-Clause */
/* The objects with the BPF programs: which variant this kernel takes, and loading with a reason for
 * a failure. */
#pragma once

#include <stdbool.h>

struct bpf_object_skeleton;
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
