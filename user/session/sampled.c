// SPDX-License-Identifier: BSD-2-Clause
/* Points whose visits are samples in a line. A line's samples stand for the time that its execution takes, and a visit of it always
 * takes the same: the samples' weight is proportional to the visits, which is all that effects need, being relative. */
#include "session/internal.h"

#include "base/error.h"
#include "cozbpf.skel.h"
#include "session/code_map.h"

#include <errno.h>
#include <string.h>

uint64_t sampled_unit(const struct session *s)
{
	return 1000000000ULL / (s->options.rate_hz ? s->options.rate_hz : SESSION_RATE_ALONE);
}

static size_t intervals_of(struct session *s, size_t point, struct addr_range ret[ABI_MAX_SAMPLED])
{
	size_t n;

	if (!s->code || code_map_intervals(s->code, s->points[point].sampled, ret, ABI_MAX_SAMPLED, &n) < 0)
		return 0;
	return n;
}

void sampled_update(struct session *s)
{
	struct abi_sampled *a = &s->skel->bss->sampled, all = {0};
	struct addr_range ranges[ABI_MAX_SAMPLED];

	if (!s->skel->rodata->config.has_sampled)
		return;
	for (size_t i = 0; i < s->n_points; i++) {
		size_t n = s->points[i].sampled ? intervals_of(s, i, ranges) : 0;

		for (size_t j = 0; j < n && all.n < ABI_MAX_SAMPLED; j++)
			all.intervals[all.n++] = (struct abi_sampled_interval){ranges[j].lo, ranges[j].hi, i};
	}
	if (all.n == a->n && !memcmp(all.intervals, a->intervals, all.n * sizeof(*all.intervals)))
		return;
	/* A sample in between finds none. */
	__atomic_store_n(&a->n, 0, __ATOMIC_SEQ_CST);
	memcpy(a->intervals, all.intervals, all.n * sizeof(*all.intervals));
	__atomic_store_n(&a->n, all.n, __ATOMIC_SEQ_CST);
}

int session_attach_sampled(struct session *s, size_t point, const char *line, struct error *e)
{
	s->points[point].sampled = strdup(line);
	if (!s->points[point].sampled)
		return fail(e, ENOMEM, "out of memory");
	sampled_update(s);
	return 0;
}
