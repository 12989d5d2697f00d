// SPDX-License-Identifier: BSD-2-Clause
/* Points that are system calls. The kernel reports those of all processes or of none; for the
 * others that is a look at whose it is. So reports are asked for with the first such point, not
 * before. */
#include "points/private.h"

#include "base/error.h"
#include "cozbpf.skel.h"
#include "kernel/programs.h"

#include <errno.h>
#include <string.h>

static struct bpf_link *attach_traced(struct points *ps, unsigned int end)
{
	struct bpf_program *program =
		end ? ps->skel->progs.progress_leave_traced : ps->skel->progs.progress_enter_traced;
	struct bpf_link *link = NULL;
	int fd = tracepoint_open("raw_syscalls", end ? "sys_exit" : "sys_enter");

	errno = -programs_attach_perf(program, fd, 0, &link);
	return link;
}

int syscalls_trace(struct points *ps, unsigned int end, struct error *e)
{
	if (!ps->syscalls[end])
		ps->syscalls[end] =
			ps->traced ? attach_traced(ps, end)
				   : bpf_program__attach(end ? ps->skel->progs.progress_leave
							     : ps->skel->progs.progress_enter);
	return ps->syscalls[end] ? 0
				 : fail(e, errno,
					"cannot have system calls reported: %s; `cozbpf check` "
					"says what is missing",
					strerror(errno));
}

uint64_t syscalls_looks(const struct points *ps, unsigned int end, uint64_t visits)
{
	const unsigned long long *others =
		end ? ps->skel->bss->other_leaves : ps->skel->bss->other_enters;
	const size_t step = sizeof(ps->skel->bss->other_enters) / sizeof(*others) / ABI_MAX_CPUS;
	uint64_t n = 0;

	for (unsigned int cpu = 0; cpu < ps->nr_cpus; cpu++)
		n += __atomic_load_n(&others[cpu * step], __ATOMIC_RELAXED);
	return visits ? (uint64_t)((double)ps->costs.look[end] * (double)n / (double)visits) : 0;
}

int points_attach_syscall(struct points *ps, size_t point, unsigned int number, bool at_return,
			  struct error *e)
{
	struct abi_syscalls *a = &ps->skel->bss->syscalls;
	struct point *p = &ps->all[point];
	unsigned char *slot;

	if (number >= ABI_MAX_SYSCALLS)
		return fail(e, EINVAL, "%s: system calls are numbered from 0 to %d", p->name,
			    ABI_MAX_SYSCALLS - 1);
	slot = at_return ? &a->leave[number] : &a->enter[number];
	if (*slot)
		return fail(e, EEXIST, "%s: counted by the point %s already; one of them is enough",
			    p->name, ps->all[*slot - 1].name);
	*slot = (unsigned char)(point + 1);
	p->cost_ns = ps->costs.syscall[at_return];
	p->call = at_return + 1U;
	return syscalls_trace(ps, at_return, e);
}
