/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Does the current task do this, or an interrupt that borrowed its context? A wake-up by an
 * interrupt is no wake edge: `current` is then the thread that was interrupted. */
#pragma once

#include "bpf/maps.h"

/* @ctx is the context of a BTF tracepoint program: the tracepoint's arguments, which lie on the
 * stack that fired it. An interrupt that hit the kernel runs on the CPU's interrupt stack; one that
 * hit user mode stays on the task's stack, above saved registers whose orig_ax is negative (a
 * system call's is its number). __preempt_count would say the same, but is not in kallsyms
 * everywhere. Exceptions from user mode (page faults) read as interrupts: what they wake is not the
 * program's doing. A wake-up in a softirq on the interrupt stack is taken for an interrupt even if
 * the task's own send raised it. */
static __always_inline bool in_task_context(const void *ctx, struct task_struct *current)
{
	u64 sp = (u64)ctx, stack = (u64)current->stack, end = stack + THREAD_SIZE;
	struct pt_regs *regs;

	/* The verifier lets a typed pointer be compared, but not be calculated with: two
	 * comparisons must not become a difference. */
	asm volatile("" : "+r"(sp));
	if (sp < stack)
		return false;
	asm volatile("" : "+r"(sp), "+r"(end));
	if (sp >= end)
		return false;
	/* Never in user mode: an interrupt cannot have found it there. What its registers say is
	 * its maker's. */
	if (current->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))
		return true;
	regs = (struct pt_regs *)bpf_task_pt_regs(current);
	return (s64)regs->orig_ax >= 0;
}
