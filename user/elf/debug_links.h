/* SPDX-License-Identifier: BSD-2-Clause */
/* How files that belong together know each other: build ids, names and checksums in small sections. For debug_file.c. */
#pragma once

#include "elf/debug_file.h"

/* Takes what the section @name of @f (@size bytes at @offset) says into f->build_id, f->debuglink and f->altlink. */
void debug_links_add(struct debug_file *f, uint64_t offset, uint64_t size, const char *name);
