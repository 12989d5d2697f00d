/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* For developers (--trace-payments): when the ledger stopped whom, and at each tick what it has
 * booked for that, so that a program that watches its own clock can hold it against what it saw
 * (tools/bench/paid.py). Told inside of what is measured of each stop, so as not to make it longer
 * unseen. Where that is not asked for, the verifier takes it all out. */
#pragma once

#include "bpf/maps.h"

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, ABI_TRACE_BYTES);
} traces __weak SEC(".maps");

/* Of the current thread: a stop that began at @at; or a tick, up to which @paid_ns has been booked.
 */
static __always_inline void trace_stop(u32 kind, u64 at, s64 paid_ns)
{
	struct abi_trace r = {.at = at, .paid_ns = paid_ns, .kind = kind};

	if (!config.traces)
		return;
	r.tid = task_thread(bpf_get_current_task_btf());
	if (bpf_ringbuf_output(&traces, &r, sizeof(r), 1 /* BPF_RB_NO_WAKEUP */))
		count(COUNTER_trace_lost);
}
