// SPDX-License-Identifier: BSD-2-Clause
/* Probes on instructions: all of an object's with one link where the kernel has such, else each with its own. */
#include "points/private.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "cozbpf.skel.h"
#include "elf/object.h"
#include "kernel/text.h"
#include "kernel/uprobe_multi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void uprobe_path(const struct elf_object *o, char path[UPROBE_PATH])
{
	(void)snprintf(path, UPROBE_PATH, "/proc/self/fd/%d", elf_object_fd(o));
}

static int refused(const struct point_site *site, const char *what, int err, struct error *e)
{
	const char *path = elf_object_path(site->object);

	if (err == -EPERM || err == -EACCES)
		return fail(e, -err, "%s: not allowed to put probes into %s: run as root (sudo cozbpf ...) or with CAP_BPF and CAP_PERFMON", what,
			    path);
	return fail(e, -err, "%s: cannot put a probe at 0x%llx of %s: %s", what, (unsigned long long)site->vaddr, path, strerror(-err));
}

static int file_offsets(const struct point_site *site, const char *what, uint64_t *ret, uint64_t *ret_semaphore, struct error *e)
{
	unsigned char code;

	*ret_semaphore = 0;
	if (elf_object_vaddr_to_offset(site->object, site->vaddr, ret) < 0)
		return fail(e, ERANGE, "%s: %s: the address 0x%llx is not in the file", what, elf_object_path(site->object),
			    (unsigned long long)site->vaddr);
	/* Its page is in memory then. Linux 6.18 warns (ext4_check_map_extents_env) where it has to read it for a probe. */
	(void)elf_object_read(site->object, site->vaddr, &code, 1);
	if (site->semaphore && elf_object_vaddr_to_offset(site->object, site->semaphore, ret_semaphore) < 0)
		return fail(e, ERANGE, "%s: %s: the probe's semaphore 0x%llx is not in the file", what, elf_object_path(site->object),
			    (unsigned long long)site->semaphore);
	return 0;
}

static int attach_one(struct point *p, const struct uprobes *u, const struct point_site *site, struct error *e)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = u->cookie, .retprobe = u->at_return);
	uint64_t offset, semaphore;
	struct bpf_link *link;
	char path[UPROBE_PATH];
	int r = file_offsets(site, u->what, &offset, &semaphore, e);

	if (r < 0)
		return r;
	opts.ref_ctr_offset = semaphore;
	uprobe_path(site->object, path);
	link = bpf_program__attach_uprobe_opts(u->one, uprobe_process(u->pid), path, offset, &opts);
	if (!link)
		return refused(site, u->what, -errno, e);
	r = point_keep(p, link);
	return r < 0 ? fail(e, -r, "out of memory") : 0;
}

/* Sites of one object. */
static int attach_all(struct point *p, const struct uprobes *u, const struct point_site *sites, size_t n, struct error *e)
{
	_cleanup_free_ uint64_t *numbers = calloc(3 * n, sizeof(*numbers));
	struct uprobe_multi m = {.offsets = numbers,
				 .semaphores = numbers + n,
				 .cookies = numbers + 2 * n,
				 .n = n,
				 .pid = u->pid > 0 ? u->pid : 0,
				 .at_return = u->at_return};
	char path[UPROBE_PATH];
	int r, fd;

	if (!numbers)
		return fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < n; i++) {
		r = file_offsets(&sites[i], u->what, &numbers[i], &numbers[n + i], e);
		if (r < 0)
			return r;
		numbers[2 * n + i] = u->cookie;
	}
	uprobe_path(sites[0].object, path);
	m.path = path;
	fd = uprobe_multi_link(bpf_program__fd(u->multi), &m);
	if (fd < 0)
		return refused(&sites[0], u->what, fd, e);
	r = point_keep_fd(p, fd);
	return r < 0 ? fail(e, -r, "out of memory") : 0;
}

int uprobes_attach(const struct points *ps, struct point *p, const struct uprobes *u, const struct point_site *sites, size_t n, struct error *e)
{
	int r = 0;

	for (size_t i = 0; i < n; i++)
		text_add(ps->text, sites[i].object, sites[i].vaddr);
	for (size_t i = 0, end; r == 0 && i < n; i = end) {
		for (end = i + 1; ps->multi && end < n && sites[end].object == sites[i].object;)
			end++;
		r = ps->multi ? attach_all(p, u, &sites[i], end - i, e) : attach_one(p, u, &sites[i], e);
	}
	return r;
}

struct uprobes uprobes_of_point(const struct points *ps, size_t index, pid_t pid, bool at_return, const char *what)
{
	return (struct uprobes){
		.one = ps->skel->progs.progress_visit,
		.multi = ps->skel->progs.progress_multi,
		.cookie = index,
		.pid = pid,
		.at_return = at_return,
		.what = what,
	};
}
