// SPDX-License-Identifier: BSD-2-Clause
/* Names of waits: of the place where a thread waited, and the kind of wait (base/waits.h). */
#include "program/code/map.h"
#include "program/code/private.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/waits.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int)ABI_WAITS == (int)WAIT_KINDS, "kinds are those of base/waits.h");

int code_map_name(struct code_map *m, uint64_t code, const char **ret_line,
		  const char **ret_function)
{
	unsigned int kind = ABI_CODE_WAIT(code);
	_cleanup_free_ char *text = NULL;
	struct code_name *whole;
	const char *place = NULL;
	int r = 0;

	/* A thread can be kept from its CPU anywhere. */
	if (ret_function)
		*ret_function = NULL;
	if (kind != WAIT_CPU)
		r = code_place_name(m, ABI_CODE_PLACE(code), &place, ret_function);
	if (r < 0)
		return r;
	*ret_line = place;
	if (!kind || kind >= WAIT_KINDS)
		return r;
	text = xasprintf("%s%s[%s]", place ? place : "", place ? " " : "", wait_name(kind));
	whole = code_name_intern(m, text);
	whole->place = place;
	*ret_line = whole->text;
	return r;
}

static int intervals_of_place(struct code_map *m, const char *name, size_t n,
			      struct addr_range *ret, size_t max, size_t *ret_n)
{
	_cleanup_free_ char *written = NULL;
	struct code_name *whole;

	HASH_FIND(hh, m->names, name, strlen(name), whole);
	/* The name that the place was given, not one that happens to read alike: that it is ours
	 * says what has been read. */
	if (whole && whole->place)
		return code_place_intervals(m, whole->place, ret, max, ret_n);
	written = xstrndup(name, n);
	return code_place_intervals(m, written, ret, max, ret_n);
}

int code_map_intervals(struct code_map *m, const char *name, struct addr_range *ret, size_t max,
		       size_t *ret_n)
{
	size_t place;
	unsigned int kind = wait_of(name, &place);
	int r;

	if (!kind)
		return code_place_intervals(m, name, ret, max, ret_n);
	if (!place) {
		*ret = (struct addr_range){ABI_CODE_WAITS(kind, 0), ABI_CODE_WAITS(kind + 1, 0)};
		*ret_n = 1;
		return 0;
	}
	r = intervals_of_place(m, name, place, ret, max, ret_n);
	for (size_t i = 0; r == 0 && i < *ret_n; i++)
		ret[i] = (struct addr_range){ABI_CODE_WAITS(kind, ret[i].lo),
					     ABI_CODE_WAITS(kind, ret[i].hi)};
	return r;
}
