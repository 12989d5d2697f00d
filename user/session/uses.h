/* SPDX-License-Identifier: BSD-2-Clause */
/* What commands and options load: the objects of a run themselves, in the configurations that it would ask for here. */
#pragma once

#include <stddef.h>

struct feature;

extern const size_t n_uses;

/* Loads number @i. @disabled: comma list of features to go without, or NULL. */
void use_try(size_t i, const char *disabled, struct feature *ret);
