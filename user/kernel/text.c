// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/text.h"

#include "base/memory.h"
#include "elf/object.h"
#include "shared/abi.h"
#include "shared/latency.h"
#include "shared/text.h"
#include "target/process.h"

#include "cozbpf.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

struct text {
	struct cozbpf_bpf *skel;
	struct bpf_link *link;
};

int text_open(struct cozbpf_bpf *skel, struct text **ret)
{
	struct text *t = xcalloc(1, sizeof(*t));
	int r;

	t->skel = skel;
	t->link = bpf_program__attach(skel->progs.text_trap);
	if (!t->link) {
		r = -errno;
		free(t);
		return r;
	}
	*ret = t;
	return 0;
}

void text_close(struct text *t)
{
	if (!t)
		return;
	(void)bpf_link__destroy(t->link);
	free(t);
}

void text_add(struct text *t, const struct elf_object *o, uint64_t vaddr)
{
	struct text_site site = {.place = vaddr - elf_object_code_base(o)};
	struct statx st;
	struct statfs fs;
	unsigned char is = 1;

	/* Where a copy was read, the file is not asked for its file system: it need not answer. */
	if (!t || elf_object_is_copy(o) || file_look_at_open(elf_object_fd(o), &st) < 0 ||
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
