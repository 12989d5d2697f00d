/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* The functions that CPython runs. Their frames are not on the stack, but in a list that begins in
 * the interpreter's state of the thread: each frame says at which instruction of its bytecode it
 * is, and which frame called it. CPython's own code is marked in the unwinding tables; a call chain
 * that comes to it goes on in that list, and ends with it. */
#pragma once

#include "bpf/maps.h"

#define PYTHON_THREADS 256 /* of one interpreter; the others are not found */

struct abi_python pythons[ABI_MAX_SPACES] SEC(".bss") = {};

/* Where the state of each thread was found last: a list of many threads is long. It is checked
 * before it is used. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, u64);
} python_states SEC(".maps");

static __always_inline u64 python_read(u64 from)
{
	u64 value = 0;

	return bpf_probe_read_user(&value, sizeof(value), (void *)from) ? 0 : value;
}

struct python_search {
	u64 self, state; /* what is looked for, and where */
	u32 space, found;
};

static __always_inline bool python_is_self(const struct python_search *s)
{
	return s->state && s->space < ABI_MAX_SPACES &&
	       python_read(s->state + pythons[s->space].thread_id) == s->self;
}

static long python_search_step(u32 i, struct python_search *s)
{
	s->found = python_is_self(s);
	if (!s->found && s->space < ABI_MAX_SPACES)
		s->state = python_read(s->state + pythons[s->space].next);
	return s->found || !s->state;
}

/* Where the innermost frame of the current thread is, in the address space @space; 0: in none. */
__noinline u64 python_top(u32 space)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct python_search s = {.self = BPF_CORE_READ(task, thread.fsbase), .space = space};
	u32 tid = task->pid;
	u64 frame, *known;

	if (space >= ABI_MAX_SPACES || !pythons[space].interpreter)
		return 0;
	known = bpf_map_lookup_elem(&python_states, &tid);
	s.state = known ? *known : 0;
	if (!python_is_self(&s)) {
		s.state = python_read(pythons[space].interpreter);
		if (s.state)
			s.state = python_read(s.state + pythons[space].threads);
		if (s.state)
			bpf_loop(PYTHON_THREADS, python_search_step, &s, 0);
		if (!s.found)
			return 0;
		bpf_map_update_elem(&python_states, &tid, &s.state, BPF_ANY);
	}
	frame = python_read(s.state + pythons[space].frame);
	return frame && pythons[space].is_indirect ? python_read(frame + pythons[space].current)
						   : frame;
}
