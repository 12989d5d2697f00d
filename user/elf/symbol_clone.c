// SPDX-License-Identifier: BSD-2-Clause
#include "elf/symbol_clone.h"

#include <stdbool.h>
#include <string.h>

static const struct {
	const char *word;
	enum symbol_kind kind;
	bool plain; /* is one without a number, too */
} suffixes[] = {
	{".part", SYMBOL_PART, false},	    {".cold", SYMBOL_COLD, true},	   {".isra", SYMBOL_COPY, false},
	{".constprop", SYMBOL_COPY, false}, {".lto_priv", SYMBOL_RENAMED, false},  {".llvm", SYMBOL_RENAMED, false},
	{".__uniq", SYMBOL_RENAMED, false}, {".localalias", SYMBOL_RENAMED, true},
};

/* The length without the last suffix, or @n if there is none. */
static size_t cut_one(const char *name, size_t n, enum symbol_kind *kind)
{
	size_t end = n;

	while (end && name[end - 1] >= '0' && name[end - 1] <= '9')
		end--;
	if (end == n || !end || name[end - 1] != '.')
		end = n; /* no number */
	else
		end--;
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		size_t len = strlen(suffixes[i].word);

		if (end <= len || (end == n && !suffixes[i].plain) || memcmp(name + end - len, suffixes[i].word, len))
			continue;
		if (suffixes[i].kind > *kind)
			*kind = suffixes[i].kind;
		return end - len;
	}
	return n;
}

size_t symbol_own_length(const char *name, enum symbol_kind *ret_kind)
{
	enum symbol_kind kind = SYMBOL_WHOLE;
	size_t n = strlen(name), shorter;

	/* A leading dot is the name's own. */
	while (n && memchr(name + 1, '.', n - 1) && (shorter = cut_one(name, n, &kind)) < n)
		n = shorter;
	*ret_kind = kind;
	return n;
}
