/* SPDX-License-Identifier: BSD-2-Clause */
/* For the files of this package. */
#pragma once

#include "database/counts.h"
#include "shares/shares.h"

#include <stdbool.h>

/* Names for places of images; what was read is kept until the next image. */
struct places;
int places_open(struct places **ret);
void places_close(struct places *p); /* NULL is allowed */
/* Takes up @image. False: its file is gone or another one now; *ret_why, static or owned by @p, says so. */
bool places_take(struct places *p, const struct counts_image *image, const char **ret_why);
/* The function at @offset of the image that was taken up, or NULL. Owned by @p, until the next call. */
const char *places_function(struct places *p, uint64_t offset);
/* "FILE:LINE"; NULL: none is known. The same. */
const char *places_line(struct places *p, uint64_t offset);
