// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* How often functions, probes and system calls of one process are passed, to propose progress
 * points for it; and how often blocks of a function are executed. Nothing of the ledger. */
#include "bpf/namespace.h"
#include "shared/visit_rates.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

const volatile unsigned int visit_rates_process = 0;
/* Upper half of the cookies of the probes that count now. Those of an earlier window may not be
 * gone yet. */
unsigned int visit_rates_window = 0;

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, VISIT_RATES_SITES + VISIT_RATES_CALLS);
	__type(key, u32);
	__type(value, u64);
} visit_rates SEC(".maps");

static __always_inline void visit_rates_add(u64 i)
{
	u32 key = (u32)i;
	u64 *n = bpf_map_lookup_elem(&visit_rates, &key);

	if (n)
		__sync_fetch_and_add(n, 1);
}

SEC("uprobe")
int visit_rates_probe(struct pt_regs *ctx)
{
	u64 cookie = bpf_get_attach_cookie(ctx);

	if (cookie >> 32 == visit_rates_window)
		visit_rates_add((u32)cookie);
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(visit_rates_call, struct pt_regs *regs, long number)
{
	if (number >= 0 && number < VISIT_RATES_CALLS &&
	    task_process(bpf_get_current_task_btf()) == visit_rates_process)
		visit_rates_add(VISIT_RATES_SITES + (u64)number);
	return 0;
}
