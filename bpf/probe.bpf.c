// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* One program for each thing that a kernel may lack; each is loaded on its own to see whether it can be. Never attached. */
#include "bpf/kernel.h"

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u64);
} probe_storage_map SEC(".maps");

struct probe_work {
	struct bpf_task_work tw;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct probe_work);
} probe_work_map SEC(".maps");

extern int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *tw, void *map__map,
					      int (*callback)(struct bpf_map *, void *, void *), void *aux__prog) __ksym __weak;
extern int bpf_send_signal_task(struct task_struct *task, int sig, enum pid_type type, u64 value) __ksym __weak;
extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym __weak;
extern void bpf_task_release(struct task_struct *p) __ksym __weak;

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

SEC("?uprobe")
int probe_uprobe(struct pt_regs *ctx)
{
	return (int)bpf_get_attach_cookie(ctx);
}

static long probe_step(u32 i, void *arg)
{
	return 1;
}

SEC("?perf_event")
int probe_storage(void *ctx)
{
	u64 *v = bpf_task_storage_get(&probe_storage_map, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	return v ? bpf_loop(1, probe_step, NULL, 0) : 0;
}

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
		bpf_task_work_schedule_resume_impl(task, &w->tw, &probe_work_map, probe_callback, NULL);
	bpf_task_release(task);
	return 0;
}

SEC("?perf_event")
int probe_send_signal_task(void *ctx)
{
	return bpf_send_signal_task(bpf_get_current_task_btf(), 0, PIDTYPE_PID, 0);
}

SEC("?iter/task")
int probe_iter(struct bpf_iter__task *ctx)
{
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
