/* SPDX-License-Identifier: BSD-2-Clause */
/* One function of the images that were sampled, with the samples of each place in it. */
#pragma once

#include "program/elf/object.h"
#include "collect/shares/shares.h"

struct line_table;
struct places;

struct shares_place {
	uint64_t vaddr, samples;
};

struct shares_code {
	const struct elf_object *object; /* its file */
	struct line_table *lines;	 /* NULL: it has none */
	struct elf_symbol symbol;
	char *image, *event;	  /* owned; the image's path, what was counted */
	uint64_t samples, total;  /* in the function, and of all that was chosen */
	struct shares_place *all; /* owned; by address */
	size_t n;
	struct places *places; /* what keeps the file open */
};

/* The function called @name, or the one that "FILE:LINE" is in, of the image with the most samples
 * that has it and samples in it. *ret is the caller's (shares_code_free). -ENOENT: there is none,
 * and @e says what there is instead; -ENOMEM and what reading gives. */
int shares_find_code(const struct shares_source *from, const struct shares_choice *c,
		     const char *name, struct shares_code *ret, struct error *e);
void shares_code_free(struct shares_code *c);
