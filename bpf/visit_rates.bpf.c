// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* How often functions, probes and system calls of processes are passed, to propose progress points
 * for them; and how often blocks of a function are executed. Nothing of the ledger. */
#include "bpf/namespace.h"
#include "shared/abi.h"
#include "shared/visit_rates.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

/* The process that counts; 0: those that a session has in scope. */
const volatile unsigned int visit_rates_process = 0;
const volatile unsigned int visit_rates_children = 0; /* ... with all that come from it */
/* Upper half of the cookies of the probes that count now. Those of an earlier window may not be
 * gone yet. */
unsigned int visit_rates_window = 0;
/* Hits of all probes that count, by any process: from them follows what the probes cost. */
unsigned long long visit_rates_hits = 0;

#define MOST_GENERATIONS 16

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, VISIT_RATES_SITES + VISIT_RATES_CALLS);
	__type(key, u32);
	__type(value, u64);
} visit_rates SEC(".maps");

/* A session's map (procs of bpf/maps.h) takes the place of this one. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct abi_proc);
} visit_rates_procs SEC(".maps");

static __always_inline bool visit_rates_in_scope(const struct task_struct *task)
{
	u32 process = task_process(task);
	struct abi_proc *p = process ? bpf_map_lookup_elem(&visit_rates_procs, &process) : NULL;

	return p && p->flags & ABI_PROC_IN;
}

static __always_inline bool visit_rates_counts(const struct task_struct *task)
{
	if (!visit_rates_process)
		return visit_rates_in_scope(task);
	for (u32 i = 0; i < MOST_GENERATIONS; i++) {
		u32 process = task_process(task);

		if (process == visit_rates_process)
			return true;
		if (!visit_rates_children || !process)
			return false;
		task = task->real_parent;
	}
	return false;
}

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

	if (cookie >> 32 != visit_rates_window)
		return 0;
	__sync_fetch_and_add(&visit_rates_hits, 1);
	if (visit_rates_counts(bpf_get_current_task_btf()))
		visit_rates_add((u32)cookie);
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(visit_rates_call, struct pt_regs *regs, long number)
{
	if (number >= 0 && number < VISIT_RATES_CALLS &&
	    visit_rates_counts(bpf_get_current_task_btf()))
		visit_rates_add(VISIT_RATES_SITES + (u64)number);
	return 0;
}
