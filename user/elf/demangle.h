/* SPDX-License-Identifier: BSD-2-Clause */
/* Readable names in more than one form, for searching. */
#pragma once

#include <stdbool.h>

/* Could @name be a C++ or Rust symbol? */
bool demangle_is_mangled(const char *name);
/* Is it one of Rust, of the newer (_R...) or the older scheme (_ZN...17h<hash>E)? */
bool demangle_is_rust(const char *name);
/* The readable form with or without the argument list and the result type (only template instances carry one); NULL when @name is
 * not mangled, too long when written out, or memory is out. The caller frees. */
char *demangle_as(const char *name, bool arguments, bool result);
