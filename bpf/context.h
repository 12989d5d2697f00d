/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Does the current task do this, or an interrupt that borrowed its context? A wake-up by an interrupt is no wake edge: `current` is
 * then whoever was interrupted. */
#pragma once

#include "bpf/maps.h"

#define THREAD_SIZE (16 * 1024) /* x86-64 without KASAN */

/* @ctx is the context of a BTF tracepoint program: the tracepoint's arguments, which lie on the stack that fired it. An interrupt that
 * hit the kernel runs on the CPU's interrupt stack; one that hit user mode stays on the task's stack, above saved registers whose
 * orig_ax is negative (a system call's is its number). __preempt_count would say the same, but is not in kallsyms everywhere.
 * Exceptions from user mode (page faults) read as interrupts: what they wake is not the program's doing. A wake-up in a softirq on the
 * interrupt stack is taken for an interrupt even if the task's own send raised it. */
static __always_inline bool in_task_context(const void *ctx, struct task_struct *current)
{
	const void *on_stack = ctx;
	u64 sp = 0, stack = (u64)current->stack;
	struct pt_regs *regs;

	/* The verifier keeps pointers typed; a copy through memory is a number. */
	if (bpf_probe_read_kernel(&sp, sizeof(sp), &on_stack))
		return false;
	if (sp < stack || sp >= stack + THREAD_SIZE)
		return false;
	regs = (struct pt_regs *)bpf_task_pt_regs(current);
	return (s64)BPF_CORE_READ(regs, orig_ax) >= 0;
}
