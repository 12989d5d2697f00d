/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Probes that a program may have in a copy of its code: bpf/text.bpf.c and kernel/text.c. */
#pragma once

#define TEXT_SITES 65536

struct text_site {
	unsigned long long device; /* of the executable, as the kernel writes it; 0: its file system
				    * tells another one than it has */
	unsigned long long inode, size;
	unsigned long long place; /* from the page that its code begins in, in the numbering of its
				     addresses */
};
_Static_assert(sizeof(struct text_site) == 32, "text_site");
