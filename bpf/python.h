/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The functions that CPython runs. They are no frames of the stack, but a list that the
 * interpreter's state of the thread begins: each says at which instruction of its bytecode it is,
 * and who called it. CPython's own code is marked in the unwinding tables; a call chain that comes
 * to it goes on in that list, and ends with it. */
#pragma once

#include "bpf/maps.h"

#define PYTHON_THREADS 256 /* of one interpreter */

struct abi_python pythons[ABI_MAX_SPACES] SEC(".bss") = {};

/* By thread, where its state was found, since a list of many is long. What is there is looked at.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u64);
} python_states SEC(".maps");

struct python_search {
	struct abi_python in;
	u64 self, state;
	bool found;
};

static __always_inline u64 python_read(u64 from)
{
	u64 value = 0;

	return bpf_probe_read_user(&value, sizeof(value), (void *)from) ? 0 : value;
}

static long python_search_step(u32 i, struct python_search *s)
{
	s->found = python_read(s->state + s->in.thread_id) == s->self;
	if (!s->found)
		s->state = python_read(s->state + s->in.next);
	return s->found || !s->state;
}

/* Where the innermost frame of the current thread is, in the address space @space; 0: in none. */
__noinline u64 python_top(u32 space)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct python_search s = {.self = BPF_CORE_READ(task, thread.fsbase)};
	u32 tid = task->pid;
	u64 frame, *known;

	if (space >= ABI_MAX_SPACES)
		return 0;
	s.in = pythons[space];
	if (!s.in.interpreter)
		return 0;
	known = bpf_map_lookup_elem(&python_states, &tid);
	s.state = known ? *known : 0;
	if (!s.state || python_read(s.state + s.in.thread_id) != s.self) {
		s.state = python_read(s.in.interpreter);
		s.state = s.state ? python_read(s.state + s.in.threads) : 0;
		if (s.state)
			bpf_loop(PYTHON_THREADS, python_search_step, &s, 0);
		if (!s.found)
			return 0;
		bpf_map_update_elem(&python_states, &tid, &s.state, BPF_ANY);
	}
	frame = python_read(s.state + s.in.frame);
	return frame && s.in.is_indirect ? python_read(frame + s.in.current) : frame;
}
