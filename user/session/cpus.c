// SPDX-License-Identifier: BSD-2-Clause
/* CPUs that come online during a run get sampling clocks; those that go lose theirs, which the kernel does not set going again when the CPU comes
 * back. What is allocated is for all possible CPUs, and all our other programs meet whatever CPU a thread runs on. */
#include "session/internal.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "cozbpf.skel.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_EVERY_NS NSEC_PER_SEC

void cpus_parse(const char *list, bool *set, size_t n)
{
	memset(set, 0, n * sizeof(*set));
	while (*list) {
		char *end;
		unsigned long first = strtoul(list, &end, 10), last = first;

		if (end == list)
			return;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (unsigned long i = first; i <= last && i < n; i++)
			set[i] = true;
		if (*end != ',')
			return;
		list = end + 1;
	}
}

void cpus_follow(struct session *s, const char *online)
{
	bool set[ABI_MAX_CPUS];

	cpus_parse(online, set, ABI_MAX_CPUS);
	for (unsigned int cpu = 0; cpu < s->nr_cpus; cpu++) {
		bool has = events_have(s, cpu);

		if (has == set[cpu])
			continue;
		s->idle[cpu] = false;
		/* The first sample there stands for no more than the clocks have seen. */
		__atomic_store_n(&s->skel->bss->clock_states[cpu], set[cpu] ? ABI_IDLE_WOKEN : ABI_IDLE_RUNNING, __ATOMIC_SEQ_CST);
		if (has)
			events_close_cpu(s, cpu);
		else
			(void)events_open_cpu(s, cpu, NULL);
	}
}

void cpus_look(struct session *s, uint64_t now)
{
	_cleanup_close_ int fd = -1;
	char online[4096];
	ssize_t n;

	if (now < s->cpus_ns)
		return;
	s->cpus_ns = now + LOOK_EVERY_NS;
	fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, online, sizeof(online) - 1);
	if (n <= 0)
		return;
	online[n] = '\0';
	cpus_follow(s, online);
}
