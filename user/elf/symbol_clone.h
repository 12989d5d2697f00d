/* SPDX-License-Identifier: BSD-2-Clause */
/* The local symbols that compilers make of one function: "f.part.0", "f.cold", "f.isra.0.constprop.1". */
#pragma once

#include <stddef.h>

/* In the order in which they are taken for the function itself. */
enum symbol_kind {
	SYMBOL_WHOLE,	/* no suffix */
	SYMBOL_RENAMED, /* .lto_priv.N .llvm.N .__uniq.N: the function under a name that clashes with nothing; .localalias: its alias */
	SYMBOL_COPY,	/* .isra.N .constprop.N: a copy with other arguments, entered instead of the function */
	SYMBOL_PART,	/* .part.N: what inlining left over, called by the function and by the places that it was inlined into */
	SYMBOL_COLD,	/* .cold, .cold.N: jumped to from the function's middle, never entered */
};

/* How many bytes of @name are the function's own name; the rest are suffixes of the kinds above, one or several. *ret_kind is the
 * last kind in their order: a part of a copy is a part. */
size_t symbol_own_length(const char *name, enum symbol_kind *ret_kind);
