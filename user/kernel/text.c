// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/text.h"

#include "base/open_file.h"
#include "program/elf/object.h"
#include "shared/abi.h"
#include "shared/latency.h"
#include "shared/text.h"

#include "cozbpf.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>

void text_add(const struct cozbpf_bpf *skel, const struct elf_object *o, uint64_t vaddr)
{
	struct text_site site = {.place = vaddr - elf_object_code_base(o)};
	struct statx st;
	struct statfs fs;
	unsigned char is = 1;

	/* Where a copy was read, the file is not asked for its file system: it need not answer. */
	if (elf_object_is_copy(o) || file_look_at_open(elf_object_fd(o), &st) < 0 ||
	    fstatfs(elf_object_fd(o), &fs) < 0)
		return;
	if (fs.f_type != OVERLAYFS_SUPER_MAGIC && fs.f_type != BTRFS_SUPER_MAGIC)
		site.device = (unsigned long long)st.stx_dev_major << 20 | st.stx_dev_minor;
	site.inode = st.stx_ino;
	site.size = st.stx_size;
	(void)bpf_map_update_elem(bpf_map__fd(skel->maps.text_sites), &site, &is, BPF_ANY);
}

pid_t text_died(const struct cozbpf_bpf *skel)
{
	return (pid_t)__atomic_load_n(&skel->bss->text_died, __ATOMIC_RELAXED);
}
