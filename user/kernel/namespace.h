/* SPDX-License-Identifier: BSD-2-Clause */
/* The PID namespace that cozbpf runs in, as in a container. BPF programs and the controller tell
 * each other numbers of processes as they are there (bpf/namespace.h). */
#pragma once

struct error;
struct own_namespace;

/* What the BPF programs have to know of it. Outside of the first namespace the kernel is asked, by
 * a program that takes the right to load one. -errno with @e, which may be NULL. */
int namespace_find(struct own_namespace *ret, struct error *e);
