// SPDX-License-Identifier: BSD-2-Clause
#include "session/code_watch.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Records have the path of what was mapped, so one may be as long as a page. */
#define RING_PAGES 4

struct ring {
	int fd;
	struct perf_event_mmap_page *page; /* the records follow */
};

struct code_watch {
	int epoll;
	size_t page_bytes;
	struct ring *rings;
	size_t n_rings;
};

static int open_event(int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_DUMMY,
		.mmap = 1, /* executable mappings */
		.watermark = 1,
		.wakeup_watermark = 1, /* every record wakes us */
	};

	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

/* 0 too if the CPU is offline. */
static int add_ring(struct code_watch *w, int cpu)
{
	/* Told once: an event that has ended would be readable for ever. */
	struct epoll_event interest = {.events = EPOLLIN | EPOLLET};
	_cleanup_close_ int fd = open_event(cpu);
	void *page;

	if (fd < 0)
		return errno == ENODEV ? 0 : -errno;
	page = mmap(NULL, (1 + RING_PAGES) * w->page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return -errno;
	if (epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &interest) < 0) {
		int r = -errno;

		(void)munmap(page, (1 + RING_PAGES) * w->page_bytes);
		return r;
	}
	w->rings[w->n_rings++] = (struct ring){TAKE_FD(fd), page};
	return 0;
}

int code_watch_open(struct code_watch **ret, struct error *e)
{
	struct code_watch *w = calloc(1, sizeof(*w));
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int r = 0;

	if (!w)
		return fail(e, ENOMEM, "out of memory");
	w->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	w->rings = calloc(cpus > 0 ? (size_t)cpus : 1, sizeof(*w->rings));
	if (w->epoll < 0 || !w->rings)
		r = -ENOMEM;
	for (int cpu = 0; r == 0 && cpu < cpus; cpu++)
		r = add_ring(w, cpu);
	if (r < 0) {
		code_watch_close(w);
		return fail(e, -r, "cannot watch for code that the program loads: %s; run as root or give CAP_PERFMON", strerror(-r));
	}
	*ret = w;
	return 0;
}

void code_watch_close(struct code_watch *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->n_rings; i++) {
		(void)munmap(w->rings[i].page, (1 + RING_PAGES) * w->page_bytes);
		(void)close(w->rings[i].fd);
	}
	if (w->epoll >= 0)
		(void)close(w->epoll);
	free(w->rings);
	free(w);
}

int code_watch_fd(const struct code_watch *w)
{
	return w->epoll;
}

/* What a record begins with. Records are multiples of 8 bytes long, so that no such piece is cut by the ring's end. */
struct mapped {
	struct perf_event_header header;
	uint32_t pid, tid;
};
_Static_assert(sizeof(struct mapped) == 16, "read in pieces of 8");

static uint64_t piece(const struct code_watch *w, const struct ring *r, uint64_t at)
{
	uint64_t v;

	memcpy(&v, (const char *)r->page + w->page_bytes + at % (RING_PAGES * w->page_bytes), sizeof(v));
	return v;
}

static bool take(const struct code_watch *w, struct ring *r, pid_t pid)
{
	uint64_t head = __atomic_load_n(&r->page->data_head, __ATOMIC_ACQUIRE), at = r->page->data_tail;
	bool saw = false;

	while (!saw && at < head && head - at >= sizeof(struct mapped)) {
		uint64_t pieces[2] = {piece(w, r, at), piece(w, r, at + 8)};
		struct mapped m;

		memcpy(&m, pieces, sizeof(m));
		/* Anything else, such as a note that records were lost, may hide one. */
		saw = m.header.type != PERF_RECORD_MMAP || m.pid == (uint32_t)pid || m.header.size < sizeof(m);
		at += m.header.size;
	}
	__atomic_store_n(&r->page->data_tail, head, __ATOMIC_RELEASE);
	return saw;
}

bool code_watch_saw(struct code_watch *w, pid_t pid)
{
	struct epoll_event ready[64];
	bool saw = false;

	while (epoll_wait(w->epoll, ready, 64, 0) == 64)
		;
	for (size_t i = 0; i < w->n_rings; i++)
		saw |= take(w, &w->rings[i], pid);
	return saw;
}
