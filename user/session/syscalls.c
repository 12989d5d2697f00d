// SPDX-License-Identifier: BSD-2-Clause
/* Points that are system calls. The kernel reports those of all processes or of none; for the others that is a look at whose it is. So
 * reports are asked for with the first such point, not before. */
#include "session/internal.h"

#include "base/error.h"
#include "cozbpf.skel.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static struct bpf_link *attach_traced(struct session *s, unsigned int end)
{
	struct bpf_program *program = end ? s->skel->progs.progress_leave_traced : s->skel->progs.progress_enter_traced;
	int fd = tracepoint_open("raw_syscalls", end ? "sys_exit" : "sys_enter");
	struct bpf_link *link;

	if (fd < 0) {
		errno = -fd;
		return NULL;
	}
	link = bpf_program__attach_perf_event(program, fd);
	if (!link)
		(void)close(fd);
	return link;
}

int syscalls_trace(struct session *s, unsigned int end, struct error *e)
{
	if (!s->syscalls[end])
		s->syscalls[end] = s->traced ? attach_traced(s, end) : bpf_program__attach(end ? s->skel->progs.progress_leave : s->skel->progs.progress_enter);
	return s->syscalls[end] ? 0 : fail(e, errno, "cannot have system calls reported: %s; `cozbpf check` says what is missing",
					   strerror(errno));
}

uint64_t syscalls_looks(const struct session *s, unsigned int end, uint64_t visits)
{
	const unsigned long long *others = end ? s->skel->bss->other_leaves : s->skel->bss->other_enters;
	const size_t step = sizeof(s->skel->bss->other_enters) / sizeof(*others) / ABI_MAX_CPUS;
	uint64_t n = 0;

	for (unsigned int cpu = 0; cpu < s->nr_cpus; cpu++)
		n += __atomic_load_n(&others[cpu * step], __ATOMIC_RELAXED);
	return visits ? (uint64_t)((double)s->costs.look[end] * (double)n / (double)visits) : 0;
}

int session_attach_syscall(struct session *s, size_t point, unsigned int number, bool at_return, struct error *e)
{
	struct abi_syscalls *a = &s->skel->bss->syscalls;
	struct point *p = &s->points[point];
	unsigned char *slot;

	if (number >= ABI_MAX_SYSCALLS)
		return fail(e, EINVAL, "%s: system calls are numbered from 0 to %d", p->name, ABI_MAX_SYSCALLS - 1);
	slot = at_return ? &a->leave[number] : &a->enter[number];
	if (*slot)
		return fail(e, EEXIST, "%s: counted by the point %s already; one of them is enough", p->name, s->points[*slot - 1].name);
	*slot = (unsigned char)(point + 1);
	p->cost_ns = s->costs.syscall[at_return];
	p->call = at_return + 1U;
	return syscalls_trace(s, at_return, e);
}
