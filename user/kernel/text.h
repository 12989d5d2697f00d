/* SPDX-License-Identifier: BSD-2-Clause */
/* Recognises programs that end since they run on a copy of their own code that has our probes in it
 * (bpf/text.bpf.c). */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct cozbpf_bpf;
struct elf_object;

/* The processes in scope of @skel, which is loaded, are watched by its program text_trap: once that
 * is attached, each place is to be named here where a probe will stand, @vaddr of @o. */
void text_add(const struct cozbpf_bpf *skel, const struct elf_object *o, uint64_t vaddr);
/* The last process that ended so; 0: none did. */
pid_t text_died(const struct cozbpf_bpf *skel);
