/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the kernel and its modules lie, and which builds they are. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct kernel_part {
	uint64_t start, end;
	char *name;	/* owned: "" is the kernel itself, else a module's */
	char *build_id; /* owned: lower-case hexadecimal, "" if it has none */
};

struct kernel_parts {
	struct kernel_part *all; /* by address */
	size_t n;
};

/* Nothing where the kernel hides its addresses. */
void kernel_parts_read(struct kernel_parts *k);
/* Modules come and go. */
void kernel_parts_refresh(struct kernel_parts *k);
void kernel_parts_free(struct kernel_parts *k);
/* The part that has @addr, or NULL. */
const struct kernel_part *kernel_parts_at(const struct kernel_parts *k, uint64_t addr);
