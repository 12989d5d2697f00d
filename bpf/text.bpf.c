// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Recognises programs that run on a copy of their own code, as those do that move it to huge pages.
 * A probe is a breakpoint in the code, which is copied with it. The copy is not the file's, so the
 * kernel knows of no probe there, and the breakpoint ends the program by SIGTRAP.
 *
 * The place of a probe in the process follows from mm->start_code, which is set for the main
 * executable alone: copies of libraries are not recognised. */
#include "bpf/maps.h"
#include "shared/text.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define SIGTRAP 5
#define SI_KERNEL 0x80
#define PAGE_MASK (~4095ULL)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernel_siginfo {
	int si_code;
};

#pragma clang attribute pop

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TEXT_SITES);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct text_site);
	__type(value, u8);
} text_sites SEC(".maps");

/* The last process that executed a copy of a breakpoint that cozbpf placed; 0: none. */
unsigned int text_died = 0;

/* The kernel sends it to the running thread, whose instruction pointer is behind the breakpoint.
 * Another process than those in scope could have a breakpoint at the same place, by ptrace, and
 * have it said that the program runs on a copy. */
SEC("tp_btf/signal_generate")
int BPF_PROG(text_trap, int signal, struct kernel_siginfo *info, struct task_struct *to)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct text_site site = {};
	struct mm_struct *mm;
	struct inode *inode;

	if (signal != SIGTRAP || to != task || !in_scope(task) ||
	    BPF_CORE_READ(info, si_code) != SI_KERNEL)
		return 0;
	mm = BPF_CORE_READ(task, mm);
	inode = BPF_CORE_READ(mm, exe_file, f_inode);
	site.device = BPF_CORE_READ(inode, i_sb, s_dev);
	site.inode = BPF_CORE_READ(inode, i_ino);
	site.size = BPF_CORE_READ(inode, i_size);
	site.place = BPF_CORE_READ((struct pt_regs *)bpf_task_pt_regs(task), ip) - 1 -
		     (BPF_CORE_READ(mm, start_code) & PAGE_MASK);
	if (!bpf_map_lookup_elem(&text_sites, &site)) {
		site.device = 0;
		if (!bpf_map_lookup_elem(&text_sites, &site))
			return 0;
	}
	text_died = task_process(task);
	return 0;
}
