// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Can task storage be made where the ledger makes it, in the interrupt of a sampling clock?
 * Attached to a clock of the controller's own thread. */
#include "bpf/kernel.h"

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} probe_storage_map SEC(".maps");

/* Ticks at which storage was refused (0), and was there (1). */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, u64);
} probe_ticks SEC(".maps");

static long probe_step(u32 i, void *arg)
{
	return 1;
}

SEC("?perf_event")
int probe_storage(void *ctx)
{
	u64 *v = bpf_task_storage_get(&probe_storage_map, bpf_get_current_task_btf(), 0,
				      BPF_LOCAL_STORAGE_GET_F_CREATE),
	    *n;
	u32 made = v != NULL;

	n = bpf_map_lookup_elem(&probe_ticks, &made);
	if (n)
		__sync_fetch_and_add(n, 1);
	return v ? bpf_loop(1, probe_step, NULL, 0) : 0;
}
