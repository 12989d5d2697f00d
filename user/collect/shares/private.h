/* SPDX-License-Identifier: BSD-2-Clause */
/* For the files of this package. */
#pragma once

#include "collect/database/counts.h"
#include "collect/shares/shares.h"

#include <stdbool.h>

/* Calls @cb with what @c chooses of each file of @from. @out gets the totals. */
int chosen_each(const struct shares_source *from, const struct shares_choice *c, struct shares *out,
		void (*cb)(struct counts *c, void *arg), void *arg, struct error *e);
/* The same with all of one image together, sorted, without whose it was; the image with the most
 * samples first. Until @cb returns non-zero, and a negative value is -ENOMEM. */
int chosen_images(const struct shares_source *from, const struct shares_choice *c,
		  struct shares *out, int (*cb)(struct counts *c, void *arg), void *arg,
		  struct error *e);
/* What an image is called in tables. */
const char *shares_called(const struct counts_image *i);

/* Names for places of images; what was read is kept until the next image. */
struct places;
struct places *places_open(void);
void places_close(struct places *p); /* NULL is allowed */
/* Takes up @image. False: its file is gone or another one now; *ret_why, static or owned by @p,
 * says so. */
bool places_take(struct places *p, const struct counts_image *image, const char **ret_why);
/* Its file, and where that has lines (NULL: none). NULL: it is none. */
const struct elf_object *places_object(const struct places *p);
struct line_table *places_lines(struct places *p);
/* The function at @offset of the image that was taken up, or NULL. Owned by @p, until the next
 * call. */
const char *places_function(struct places *p, uint64_t offset);
/* "FILE:LINE"; NULL: none is known. The same. */
const char *places_line(struct places *p, uint64_t offset);
