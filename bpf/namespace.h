/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Numbers of processes and threads. A thread has one in its own PID namespace and in each around
 * it. The controller knows those of the namespace that it runs in, the kernel those of the first
 * one. All numbers that the two tell each other are the controller's, and come from here. A thread
 * that is neither in that namespace nor below it has no number there: 0, which is in no scope.
 *
 * task_struct.pid and .tgid, the kernel's numbers, are for comparisons among BPF programs and for
 * kernel functions only. In the first namespace both are alike, and the verifier removes the rest.
 */
#pragma once

#include "bpf/kernel.h"
#include "shared/namespace.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

const volatile struct own_namespace own_namespace __weak SEC(".rodata") = {};

/* What @pid is called in the namespace around it at @level, at most its own. Before Linux 6.6 the
 * array has one element for BTF, so no index would do. */
static __always_inline struct upid namespace_at(const struct pid *pid, u32 level)
{
	struct upid at = {};

	/* A failure leaves zeros. */
	(void)bpf_probe_read_kernel(&at, sizeof(at),
				    (const char *)pid + bpf_core_field_offset(struct pid, numbers) +
					    level * bpf_core_type_size(struct upid));
	return at;
}

/* The controller's number of @pid; NULL, as of a thread that has been waited for: 0. */
static __always_inline u32 namespace_number(const struct pid *pid)
{
	struct upid at;

	if (BPF_CORE_READ(pid, level) < own_namespace.level)
		return 0;
	at = namespace_at(pid, own_namespace.level);
	return BPF_CORE_READ(at.ns, ns.inum) == own_namespace.inode ? (u32)at.nr : 0;
}

/* The controller's number of @task's process. */
static __always_inline u32 task_process(const struct task_struct *task)
{
	return own_namespace.level
		       ? namespace_number(BPF_CORE_READ(task, signal, pids[PIDTYPE_TGID]))
		       : (u32)task->tgid;
}

/* The controller's number of @task itself. */
static __always_inline u32 task_thread(const struct task_struct *task)
{
	return own_namespace.level ? namespace_number(BPF_CORE_READ(task, thread_pid))
				   : (u32)task->pid;
}

/* As task_process(), of a @task that has no type for the verifier. */
static __always_inline u32 untyped_task_process(const struct task_struct *task)
{
	return own_namespace.level
		       ? namespace_number(BPF_CORE_READ(task, signal, pids[PIDTYPE_TGID]))
		       : (u32)BPF_CORE_READ(task, tgid);
}
