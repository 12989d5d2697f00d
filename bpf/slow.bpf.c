// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Slowing the selected line for real, visit by visit: the thread spins in a probe on the line for
 * as much longer as the visit is to take, and nobody else owes anything. The probe is passed in all
 * experiments alike, so that what it takes by itself is part of the line in each of them; what it
 * takes longer where the line is slowed is all on the clock. */
#include "bpf/thread.h"

struct abi_slowed slowed[ABI_MAX_CPUS] SEC(".bss") = {};
/* By which each visit is to be made longer, 0: not at all; as abi_control.setups. */
abi_u64 slow_spin_ns[2] SEC(".bss") = {};

struct spin {
	struct thread *t;
	u64 epoch;
	s64 wanted, spun;
};

/* The switch that puts the thread back on a CPU moves hold_from: it was not slow while it was away.
 */
static long spin_step(u64 i, struct spin *s)
{
	struct thread *t = s->t;
	u64 now = bpf_ktime_get_ns(), from;

	if (!t)
		return 1;
	from = *(volatile u64 *)&t->pause.hold_from;
	if (now > from) {
		s->spun += (s64)(now - from);
		t->pause.hold_from = now;
	}
	return s->spun >= s->wanted || *(volatile u64 *)&control.epoch != s->epoch;
}

/* Stopped, as a payment by hold is: its ticks are no samples of the program, and the time is not
 * executed. */
static __always_inline void spin(struct task_struct *task, struct abi_slowed *here, u64 ns,
				 u64 epoch)
{
	struct spin s = {.t = thread_get(task), .epoch = epoch, .wanted = (s64)ns - here->ahead};

	if (!s.t)
		return;
	if (s.wanted > 0) {
		s.t->pause.hold_from = bpf_ktime_get_ns();
		bpf_loop(1 << 20, spin_step, &s, 0);
		s.t->pause.hold_from = 0;
		thread_stopped(s.t, s.spun);
		ADD(here->spun_ns, s.spun);
	}
	/* The last step goes too far, and an interrupt in it much further: what follows is shorter
	 * by that. */
	here->ahead = s.spun > s.wanted ? s.spun - s.wanted : 0;
}

/* Only a session that slows a line so loads this. */
SEC("?uprobe")
int slow_visit(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	u64 epoch = *(volatile u64 *)&control.epoch, ns;
	u32 me = cpu_index();

	if (!experiment_active(epoch) || !in_scope(task))
		return 0;
	ADD(slowed[me].visits, 1);
	ns = *(volatile u64 *)&slow_spin_ns[(epoch >> 1) & 1];
	if (ns)
		spin(task, &slowed[me], ns, epoch);
	return 0;
}
