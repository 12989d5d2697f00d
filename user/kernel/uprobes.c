// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/uprobes.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/proc.h"
#include "program/elf/code_place.h"
#include "program/elf/object.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PATH 32 /* "/proc/self/fd/N" */

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

static const char *name_of(const struct uprobes *u)
{
	return u->name ? u->name : elf_object_path(u->places->o);
}

bool uprobes_alone_in(pid_t pid)
{
	return proc_thread(pid) == pid;
}

/* The kernel holds locks of the whole machine while it reads a page for a probe. */
static int check_file(const struct uprobes *u, struct error *e)
{
	if (!elf_object_is_copy(u->places->o))
		return 0;
	return fail(e, EREMOTE,
		    "%s: on a mount that a user has made, who can have the kernel wait for it "
		    "while it puts a probe there: give a point of samples, or run a copy of the "
		    "program that is elsewhere",
		    name_of(u));
}

static int check_process(const struct uprobes *u, struct error *e)
{
	if (!u->pid || uprobes_alone_in(u->pid))
		return 0;
	return fail(e, ESRCH,
		    "the first thread of process %d has ended: probes would not be in it alone, "
		    "but slow down all processes that map %s",
		    (int)u->pid, name_of(u));
}

static int link_many(int program_fd, const char *path, const uint64_t *numbers, size_t n, pid_t pid)
{
	struct link_create a = {
		.prog_fd = (uint32_t)program_fd,
		.attach_type = UPROBE_MULTI,
		.path = address(path),
		.offsets = address(numbers),
		.semaphores = address(numbers + n),
		.cookies = address(numbers + 2 * n),
		.n = (uint32_t)n,
		.pid = (uint32_t)pid,
	};
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &a, sizeof(a));

	return fd < 0 ? -errno : fd;
}

int uprobes_try(int program_fd)
{
	static const uint64_t nowhere[3];
	_cleanup_close_ int fd = link_many(program_fd, "/", nowhere, 1, 0), other = -1;

	/* What is wrong with it is that "/" is no file. */
	if (fd != -EBADF)
		return fd < 0 ? fd : -EOPNOTSUPP;
	/* The change that made processes of threads also refuses such process ids, before it looks
	 * for one. */
	other = link_many(program_fd, "/", nowhere, 1, -1);
	return other == -EINVAL ? 0 : -EOPNOTSUPP;
}

int uprobe_allowed(void)
{
	static const char type_path[] = "/sys/bus/event_source/devices/uprobe/type";
	struct perf_event_attr attr = {.size = sizeof(attr), .config1 = address("/")};
	_cleanup_fclose_ FILE *f = fopen(type_path, "re");
	_cleanup_close_ int fd = -1;

	if (!f)
		return -errno;
	if (fscanf(f, "%u", &attr.type) != 1)
		return -EINVAL;
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	/* To whom it is allowed the kernel says that "/" is no file. */
	return fd < 0 && (errno == EACCES || errno == EPERM) ? -errno : 0;
}

/* What the object was opened as may be another file by now, or nothing in our own mount namespace:
 * the descriptor is the file. */
static const char *path_of(const struct uprobes *u, char buf[PATH])
{
	if (u->path)
		return u->path;
	(void)snprintf(buf, PATH, "/proc/self/fd/%d", elf_object_fd(u->places->o));
	return buf;
}

/* Decides on a place. */
static int look(const struct uprobes *u, const struct uprobe *p, uint64_t *ret_offset,
		uint64_t *ret_semaphore, struct error *e)
{
	const struct elf_object *o = u->places->o;
	int r = p->certain ? 0 : code_place_check(u->places, p->vaddr, e);
	unsigned char byte;

	if (r < 0)
		return r;
	*ret_semaphore = 0;
	if (elf_object_vaddr_to_offset(o, p->vaddr, ret_offset) < 0)
		return fail(e, ERANGE, "the address 0x%llx is not in the file %s",
			    (unsigned long long)p->vaddr, name_of(u));
	if (p->semaphore && (elf_object_is_code(o, p->semaphore) ||
			     elf_object_vaddr_to_offset(o, p->semaphore, ret_semaphore) < 0))
		return fail(e, ERANGE, "the probe's semaphore 0x%llx is not in the data of %s",
			    (unsigned long long)p->semaphore, name_of(u));
	/* Its page is in memory then. Linux 6.18 warns (ext4_check_map_extents_env) where it has to
	 * read it for a probe. */
	(void)elf_object_read(o, p->vaddr, &byte, 1);
	return 0;
}

static int refused(const struct uprobes *u, const struct uprobe *p, bool by_link, int err,
		   struct error *e)
{
	/* Never -EACCES, which is said of programs that may not be executed. */
	if (err == -EPERM || err == -EACCES)
		return fail(e, EPERM,
			    "not allowed to put probes into %s: run as root (sudo cozbpf ...)%s",
			    name_of(u),
			    by_link ? " or with CAP_BPF and CAP_PERFMON"
				    : "; CAP_BPF and CAP_PERFMON do for progress points, from "
				      "Linux 6.10 on, and CAP_SYS_ADMIN for all probes");
	return fail(e, -err, "cannot put a probe at 0x%llx of %s: %s", (unsigned long long)p->vaddr,
		    name_of(u), strerror(-err));
}

int uprobe_attach(const struct uprobes *u, size_t i, const struct bpf_program *program,
		  struct bpf_link **ret, struct error *e)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = u->all[i].cookie);
	uint64_t offset, semaphore;
	struct bpf_link *link;
	char path[PATH];
	int r = check_process(u, e);

	if (r == 0)
		r = check_file(u, e);
	if (r == 0)
		r = look(u, &u->all[i], &offset, &semaphore, e);
	if (r < 0)
		return r;
	opts.ref_ctr_offset = semaphore;
	link = bpf_program__attach_uprobe_opts(program, u->pid ? u->pid : -1, path_of(u, path),
					       offset, &opts);
	if (!link)
		return refused(u, &u->all[i], false, -errno, e);
	*ret = link;
	return 0;
}

int uprobes_link(const struct uprobes *u, const struct bpf_program *program, struct error *e)
{
	_cleanup_free_ uint64_t *numbers = xcalloc(3 * u->n + 1, sizeof(*numbers));
	char path[PATH];
	int r = check_process(u, e), fd;

	if (r == 0)
		r = check_file(u, e);
	for (size_t i = 0; r == 0 && i < u->n; i++) {
		r = look(u, &u->all[i], &numbers[i], &numbers[u->n + i], e);
		numbers[2 * u->n + i] = u->all[i].cookie;
	}
	if (r < 0)
		return r;
	fd = link_many(bpf_program__fd(program), path_of(u, path), numbers, u->n, u->pid);
	return fd < 0 ? refused(u, &u->all[0], true, fd, e) : fd;
}
