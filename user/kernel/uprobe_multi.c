// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/uprobe_multi.h"

#include "base/proc.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RETURN_FLAG 1U

/* union bpf_attr's part for this link, as of Linux 6.6: Debian 12's header is older. */
struct link_create {
	uint32_t prog_fd, target_fd;
	uint32_t attach_type;
	uint32_t flags;
	uint64_t path, offsets, semaphores, cookies;
	uint32_t n, multi_flags, pid, pad;
};
_Static_assert(sizeof(struct link_create) == 64, "link_create");

static uint64_t address(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

pid_t uprobe_process(pid_t pid)
{
	return proc_thread(pid) == pid ? pid : -1;
}

int uprobe_multi_link(int program_fd, const struct uprobe_multi *m)
{
	struct link_create a = {
		.prog_fd = (uint32_t)program_fd,
		.attach_type = UPROBE_MULTI,
		.path = address(m->path),
		.offsets = address(m->offsets),
		.semaphores = address(m->semaphores),
		.cookies = address(m->cookies),
		.n = (uint32_t)m->n,
		.multi_flags = m->at_return ? RETURN_FLAG : 0,
		.pid = m->pid > 0 && uprobe_process(m->pid) < 0 ? 0 : (uint32_t)m->pid,
	};
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &a, sizeof(a));

	return fd < 0 ? -errno : fd;
}

int uprobe_multi_try(int program_fd)
{
	static const uint64_t nowhere[1];
	struct uprobe_multi m = {.path = "/", .offsets = nowhere, .n = 1};
	int fd = uprobe_multi_link(program_fd, &m);

	if (fd >= 0)
		(void)close(fd);
	/* What is wrong with it is that "/" is no file. */
	if (fd != -EBADF)
		return fd < 0 ? fd : -EOPNOTSUPP;
	/* The change that made processes of threads also refuses such process ids, before it looks for one. */
	m.pid = -1;
	fd = uprobe_multi_link(program_fd, &m);
	if (fd >= 0)
		(void)close(fd);
	return fd == -EINVAL ? 0 : -EOPNOTSUPP;
}
