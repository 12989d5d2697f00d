// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Compiled twice, as the ledger is: bpf/task_work.h. */
#include "bpf/task_work.h"

struct probe_work {
	struct bpf_task_work tw;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct probe_work);
} probe_work_map SEC(".maps");

static int probe_callback(struct bpf_map *map, void *key, void *value)
{
	return 0;
}

SEC("?perf_event")
int probe_task_work(void *ctx)
{
	u32 zero = 0;
	struct probe_work *w = bpf_map_lookup_elem(&probe_work_map, &zero);
	struct task_struct *task = bpf_task_from_pid(1);

	if (!task)
		return 0;
	if (w)
		task_work_schedule(task, &w->tw, &probe_work_map, probe_callback);
	bpf_task_release(task);
	return 0;
}
