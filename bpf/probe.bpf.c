// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* One program for each thing that a kernel may lack; each is loaded on its own to see whether it
 * can be. None is attached. What needs a map or a kernel function is in an object of its own
 * (probe_*.bpf.c): a kernel that refuses that refuses all of the object. So is what needs none of
 * the kernel's types, which libbpf then does not read. */
#include "bpf/kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

SEC("?tp_btf/sched_switch")
int probe_switch(u64 *ctx)
{
	return 0;
}

SEC("?tp_btf/sched_waking")
int probe_waking(u64 *ctx)
{
	return 0;
}

SEC("?raw_tp/sched_switch")
int probe_switch_raw(void *ctx)
{
	return (int)bpf_get_current_task_btf()->tgid;
}

SEC("?iter/task")
int probe_iter(struct bpf_iter__task *ctx)
{
	return 0;
}

/* Run once: how many PID namespaces are around that of the current task. */
SEC("?raw_tp")
int probe_level(void *ctx)
{
	return (int)BPF_CORE_READ(bpf_get_current_task_btf(), thread_pid, level);
}
