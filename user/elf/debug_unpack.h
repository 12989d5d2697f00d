/* SPDX-License-Identifier: BSD-2-Clause */
/* Compressed sections. */
#pragma once

#include "elf/debug_file.h"

/* All of a packed section, s->size bytes; the caller frees. NULL: it does not unpack to that, or out of memory. */
unsigned char *debug_unpack(const struct debug_section *s);
