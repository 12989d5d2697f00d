/* SPDX-License-Identifier: BSD-2-Clause */
/* Recognises programs that end since they run on a copy of their own code that has our probes in it
 * (bpf/text.bpf.c). */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct cozbpf_bpf;
struct elf_object;
struct text;

/* Begins to watch the processes in scope of @skel, which is loaded and stays the caller's. -errno:
 * this kernel, or this user, cannot have that. */
int text_open(struct cozbpf_bpf *skel, struct text **ret);
void text_close(struct text *t); /* NULL is allowed */
/* A probe will stand at @vaddr of @o. NULL is allowed. */
void text_add(struct text *t, const struct elf_object *o, uint64_t vaddr);
/* The last process that ended so; 0: none did, or @t is NULL. */
pid_t text_died(const struct text *t);
