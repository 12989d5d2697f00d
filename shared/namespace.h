/* SPDX-License-Identifier: BSD-2-Clause */
/* The PID namespace that cozbpf runs in, as its BPF programs know it. */
#pragma once

struct own_namespace {
	unsigned int level; /* how many namespaces are around it; 0: it is the first one */
	unsigned int inode; /* of /proc/PID/ns/pid; not used where it is the first one */
};
