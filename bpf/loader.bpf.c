// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Tells the controller at once when a process has mapped or unmapped libraries: the dynamic linker
 * calls an empty function then, for debuggers. */
#include "bpf/maps.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} loads SEC(".maps");

SEC("uprobe")
int loader_state(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u32 process = task_process(task);

	/* No room: it has been told of others, and has not looked since. */
	if (in_scope(task))
		bpf_ringbuf_output(&loads, &process, sizeof(process), 0);
	return 0;
}
