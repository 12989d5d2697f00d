// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/text.h"

#include "elf/object.h"
#include "kernel/namespace.h"
#include "kernel/refusal.h"
#include "shared/text.h"
#include "target/process.h"
#include "text.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

struct text {
	struct text_bpf *skel;
};

int text_open(int procs_fd, pid_t only, struct text **ret)
{
	struct text *t = calloc(1, sizeof(*t));
	struct load_log log;
	int r;

	if (!t)
		return -ENOMEM;
	/* Without it nothing is said of such an end: no reason to bother users. */
	load_log_listen(&log);
	t->skel = text_bpf__open();
	r = t->skel ? namespace_find(&t->skel->rodata->own_namespace, NULL) : -errno;
	if (r == 0)
		r = bpf_map__reuse_fd(t->skel->maps.text_procs, procs_fd);
	if (r == 0) {
		t->skel->rodata->text_only = (unsigned int)only;
		r = text_bpf__load(t->skel);
	}
	if (r == 0)
		r = text_bpf__attach(t->skel);
	load_log_listen(NULL);
	if (r < 0) {
		text_close(t);
		return r;
	}
	*ret = t;
	return 0;
}

void text_close(struct text *t)
{
	if (!t)
		return;
	text_bpf__destroy(t->skel);
	free(t);
}

void text_add(struct text *t, const struct elf_object *o, uint64_t vaddr)
{
	struct text_site site = {.place = vaddr - elf_object_code_base(o)};
	struct statx st;
	struct statfs fs;
	unsigned char is = 1;

	if (!t || file_look_at_open(elf_object_fd(o), &st) < 0 ||
	    fstatfs(elf_object_fd(o), &fs) < 0)
		return;
	if (fs.f_type != OVERLAYFS_SUPER_MAGIC && fs.f_type != BTRFS_SUPER_MAGIC)
		site.device = (unsigned long long)st.stx_dev_major << 20 | st.stx_dev_minor;
	site.inode = st.stx_ino;
	site.size = st.stx_size;
	(void)bpf_map_update_elem(bpf_map__fd(t->skel->maps.text_sites), &site, &is, BPF_ANY);
}

pid_t text_died(const struct text *t)
{
	return t ? (pid_t)__atomic_load_n(&t->skel->bss->text_died, __ATOMIC_RELAXED) : 0;
}
