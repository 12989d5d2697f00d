// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* May the kernel preempt a thread within a tracepoint's program? It does so since 7.3 where the
 * place of the tracepoint can be preempted; and for other threads that pass it on that CPU
 * meanwhile the program is not called. Attached for one system call (tracepoints_preempted). */
#include "bpf/kernel.h"

#include <bpf/bpf_helpers.h>

#define DEPTH                                                                                    \
	0xff /* of preempt_count: how often preemption is switched off (include/linux/preempt.h) \
	      */

extern const int __preempt_count __ksym __weak;

unsigned int preemptible_calls SEC(".bss") = 0;

SEC("tp_btf/sys_enter")
int probe_preempt(void *ctx)
{
	const int *count = &__preempt_count ? bpf_this_cpu_ptr(&__preempt_count) : NULL;

	if (count && !(*count & DEPTH))
		__sync_fetch_and_add(&preemptible_calls, 1);
	return 0;
}
