// SPDX-License-Identifier: BSD-2-Clause
#include "annotate/skid.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PERIOD_NS 50000
#define MEASURE_NS (60 * NSEC_PER_MSEC)
#define PAGES 16
/* Fewer samples tell nothing. A division takes at least that much of the loop's time, on the
 * fastest CPUs. */
#define LEAST_SAMPLES 50
#define MOST_OF_THEM 0.7

/* Divisions, each of which needs the one before it, so that nearly all of the time is waiting for
 * one; what follows a division is in the same block. Stops after @n of them. */
static uint64_t divide(uint64_t n)
{
	uint64_t x = UINT64_MAX, rest;

	__asm__ volatile("skid_loop:\n\t"
			 "xor %%edx, %%edx\n\t"
			 "or $1, %%rax\n"
			 "skid_waits: div %2\n"
			 "skid_next: bts $63, %%rax\n\t"
			 "nop\n\t"
			 "dec %1\n\t"
			 "jnz skid_loop\n"
			 : "+a"(x), "+r"(n), "+r"((uint64_t){3}), "=d"(rest)
			 :
			 : "cc");
	return x + rest;
}
extern const char skid_waits[], skid_next[];

static int open_clock(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = PERIOD_NS,
		.sample_type = PERF_SAMPLE_IP,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.disabled = 1,
	};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Counts those at the division and at what follows it, of all in the buffer. */
static void count(struct perf_event_mmap_page *head, size_t page, uint64_t *ret_at,
		  uint64_t *ret_next, uint64_t *ret_all)
{
	const unsigned char *data = (const unsigned char *)head + page;
	uint64_t end = __atomic_load_n(&head->data_head, __ATOMIC_ACQUIRE);
	size_t size = PAGES * page;

	for (uint64_t at = head->data_tail; at + sizeof(struct perf_event_header) <= end;) {
		struct perf_event_header h;
		uint64_t ip;

		/* Records are of whole words, and the buffer was large enough for all: none wraps.
		 */
		memcpy(&h, data + at % size, sizeof(h));
		if (h.size < sizeof(h))
			return;
		if (h.type == PERF_RECORD_SAMPLE && h.size >= sizeof(h) + sizeof(ip)) {
			memcpy(&ip, data + at % size + sizeof(h), sizeof(ip));
			*ret_at += ip == (uintptr_t)skid_waits;
			*ret_next += ip == (uintptr_t)skid_next;
			(*ret_all)++;
		}
		at += h.size;
	}
}

enum skid skid_measure(void)
{
	_cleanup_close_ int fd = open_clock();
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint64_t end = clock_monotonic_ns() + MEASURE_NS, at = 0, next = 0, all = 0;
	void *buffer =
		fd < 0 ? MAP_FAILED
		       : mmap(NULL, (PAGES + 1) * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (buffer == MAP_FAILED)
		return SKID_UNKNOWN;
	if (ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0) {
		while (clock_monotonic_ns() < end)
			(void)divide(10000);
		(void)ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		count(buffer, page, &at, &next, &all);
	}
	(void)munmap(buffer, (PAGES + 1) * page);
	if (all < LEAST_SAMPLES)
		return SKID_UNKNOWN;
	return (double)at >= MOST_OF_THEM * (double)all	    ? SKID_NONE
	       : (double)next >= MOST_OF_THEM * (double)all ? SKID_NEXT
							    : SKID_UNKNOWN;
}
