// SPDX-License-Identifier: BSD-2-Clause
#include "profile/addresses.h"

#include "base/memory.h"
#include "profile/record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of one record: what a reader takes of a string. */
#define MOST_TEXT (SOURCE_MAX_STRING - 1)
#define PAIR_ROOM 40

void profile_addresses_add(struct profile *p, const struct profile_addresses *of,
			   const struct profile_place *places, size_t n)
{
	char text[MOST_TEXT + 1];
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%" PRIx64 ":%" PRIu64,
					 used ? " " : "", places[i].offset, places[i].count);
		if (i + 1 < n && used + PAIR_ROOM < sizeof(text))
			continue;
		p->addresses =
			xreallocarray(p->addresses, p->n_addresses + 1, sizeof(*p->addresses));
		p->addresses[p->n_addresses++] = (struct profile_addresses){
			.path = xstrdup(of->path),
			.build = of->build ? xstrdup(of->build) : NULL,
			.inode = of->inode,
			.changed_ns = of->changed_ns,
			.counts = xstrndup(text, used),
		};
		used = 0;
	}
}

int profile_addresses_each(const struct profile_addresses *a,
			   int (*cb)(const struct profile_place *at, void *arg), void *arg)
{
	const char *s = a->counts;
	struct profile_place at;
	char *end;
	int r = 0;

	while (r == 0) {
		at.offset = strtoull(s, &end, 16);
		if (end == s || *end != ':')
			break;
		s = end + 1;
		at.count = strtoull(s, &end, 10);
		if (end == s)
			break;
		s = end;
		r = cb(&at, arg);
	}
	return r;
}
