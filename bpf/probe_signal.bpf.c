// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "bpf/kernel.h"

#include <bpf/bpf_helpers.h>

SEC("?perf_event")
int probe_send_signal_task(void *ctx)
{
	return bpf_send_signal_task(bpf_get_current_task_btf(), 0, PIDTYPE_PID, 0);
}
