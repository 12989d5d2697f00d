// SPDX-License-Identifier: BSD-2-Clause
/* What can be counted. */
#include "collect/private.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/suggest.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MOST_A_SECOND 10000 /* of clocks */

static const struct collect_event known[] = {
	{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, false, 10000000},
	{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, false, 10000000},
	{"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, false, 1000000},
	{"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, false, 100000},
	{"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, false, 2000000},
	{"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, false, 100000},
	{"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, true, 10000000},
	{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, false, 100},
	{"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, false, 1},
	{"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, false, 1000},
	{"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, false, 100},
};
#define N_KNOWN (sizeof(known) / sizeof(known[0]))

int collect_event_parse(const char *text, struct collect_event *ret, struct error *e)
{
	const char *equals = strchrnul(text, '=');
	const char *names[N_KNOWN + 1] = {}, *near;
	char *end;

	for (size_t i = 0; i < N_KNOWN; i++) {
		names[i] = known[i].name;
		if (strlen(known[i].name) != (size_t)(equals - text) ||
		    strncmp(known[i].name, text, (size_t)(equals - text)) != 0)
			continue;
		*ret = known[i];
		if (!*equals)
			return 0;
		ret->every = strtoull(equals + 1, &end, 10);
		if (equals[1] < '0' || equals[1] > '9' || *end || !ret->every)
			return fail(e, EINVAL,
				    "event '%s': a whole number from 1 on is allowed after the '='",
				    text);
		if (ret->clock && ret->every < NSEC_PER_SEC / MOST_A_SECOND)
			return fail(e, EINVAL, "event '%s': at least %llu ns", text,
				    NSEC_PER_SEC / MOST_A_SECOND);
		return 0;
	}
	near = suggest(text, names);
	return near ? fail(e, EINVAL, "event '%s' is not known; did you mean %s?", text, near)
		    : fail(e, EINVAL,
			   "event '%s' is not known; there are cycles, instructions, cache-misses, "
			   "branch-misses, page-faults and others: see "
			   "cozbpf-collect(1)",
			   text);
}

struct collect_event collect_event_default(double rate_hz)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
				       .size = sizeof(attr),
				       .config = PERF_COUNT_HW_CPU_CYCLES,
				       .freq = 1,
				       .sample_freq = (uint64_t)rate_hz,
				       .disabled = 1};
	struct collect_event v = {"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, true,
				  (uint64_t)((double)NSEC_PER_SEC / rate_hz)};
	int fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	if (fd < 0)
		return v;
	(void)close(fd);
	/* The kernel chooses periods for that rate: a count stands for its part of a second, as
	 * with the clock. */
	v.name = "cycles";
	v.type = PERF_TYPE_HARDWARE;
	v.config = PERF_COUNT_HW_CPU_CYCLES;
	return v;
}
