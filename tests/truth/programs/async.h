/* SPDX-License-Identifier: BSD-2-Clause */
/* Handing over by what the kernel does on a thread's behalf: a pseudo terminal (a kernel worker
 * carries the bytes), AIO (a kernel worker or the waker's own call completes a request), io_uring (a
 * worker or a polling thread of the process issues the request). */
#pragma once

#include "channel.h"

#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <termios.h>

static inline void open_pty(struct channel *c)
{
	struct termios raw;

	c->out = posix_openpt(O_RDWR | O_NOCTTY);
	check(c->out >= 0 && grantpt(c->out) == 0 && unlockpt(c->out) == 0, "posix_openpt");
	c->in = open(ptsname(c->out), O_RDWR | O_NOCTTY);
	check(c->in >= 0 && tcgetattr(c->in, &raw) == 0, "the other side of a pseudo terminal");
	cfmakeraw(&raw);
	check(tcsetattr(c->in, TCSANOW, &raw) == 0, "tcsetattr");
}

/* A completion queue of AIO that one thread gives to and another takes from. */
struct aio {
	aio_context_t context;
	int fd;
	struct channel pipe;
};

static inline void open_aio(struct aio *a)
{
	check(syscall(SYS_io_setup, 128, &a->context) == 0, "io_setup");
	a->fd = memfd_create("aio", MFD_CLOEXEC);
	check(a->fd >= 0, "memfd_create");
	open_pipe(&a->pipe);
}

static inline void aio_submit(struct aio *a, int fd, uint16_t op, uint64_t events)
{
	struct iocb request = { .aio_fildes = (uint32_t)fd, .aio_lio_opcode = op, .aio_buf = events };
	struct iocb *requests[] = { &request };

	check(syscall(SYS_io_submit, a->context, 1, requests) == 1, "io_submit");
}

static inline void aio_wait(struct aio *a)
{
	struct io_event event;

	while (syscall(SYS_io_getevents, a->context, 1, 1, &event, NULL) != 1)
		check(errno == EINTR, "io_getevents");
	check(event.res >= 0, "a request of AIO");
}

/* A submission queue of io_uring that one thread writes bytes to a pipe by. */
struct uring {
	int fd;
	char *rings;
	struct io_uring_sqe *sqes;
	struct io_uring_params params;
	struct channel pipe;
};

static inline uint32_t *uring_at(struct uring *u, uint32_t offset)
{
	return (uint32_t *)(void *)(u->rings + offset);
}

static inline void open_uring(struct uring *u, uint32_t flags, uint32_t idle_ms)
{
	struct io_uring_params *p = &u->params;
	size_t sq, cq;

	*p = (struct io_uring_params){ .flags = flags, .sq_thread_idle = idle_ms };
	u->fd = (int)syscall(SYS_io_uring_setup, 64, p);
	check(u->fd >= 0, "io_uring_setup");
	sq = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
	cq = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
	u->rings = mmap(NULL, sq > cq ? sq : cq, PROT_READ | PROT_WRITE, MAP_SHARED, u->fd, IORING_OFF_SQ_RING);
	u->sqes = mmap(NULL, p->sq_entries * sizeof(*u->sqes), PROT_READ | PROT_WRITE, MAP_SHARED, u->fd, IORING_OFF_SQES);
	check(u->rings != MAP_FAILED && (void *)u->sqes != MAP_FAILED, "mmap");
	open_pipe(&u->pipe);
}

struct sqpoll {
	struct uring *uring;
	uint32_t idle_ms;
};

static void *make_sqpoll(void *arg)
{
	struct sched_param none = { 0 };
	struct sqpoll *s = arg;

	(void)sched_setscheduler(0, SCHED_BATCH, &none);
	open_uring(s->uring, IORING_SETUP_SQPOLL, s->idle_ms);
	return NULL;
}

/* The polling thread has the scheduling policy of the thread that makes the ring: whatever policy the
 * others run with, it must not keep a CPU from them. It sleeps after @idle_ms without a request. */
static inline void open_polled(struct uring *u, uint32_t idle_ms)
{
	struct sqpoll s = { u, idle_ms };
	pthread_t maker;

	check(pthread_create(&maker, NULL, make_sqpoll, &s) == 0 && pthread_join(maker, NULL) == 0, "pthread_create");
}

/* @sqe_flags: IOSQE_ASYNC has a worker write. */
static inline void uring_give(struct uring *u, uint8_t sqe_flags)
{
	const struct io_sqring_offsets *sq = &u->params.sq_off;
	const struct io_cqring_offsets *cq = &u->params.cq_off;
	uint32_t tail = *uring_at(u, sq->tail), i = tail & *uring_at(u, sq->ring_mask), flags = 0;

	u->sqes[i] = (struct io_uring_sqe){ .opcode = IORING_OP_WRITE, .flags = sqe_flags, .fd = u->pipe.out,
					    .addr = (uint64_t)(uintptr_t) "x", .len = 1, .off = (uint64_t)-1 };
	uring_at(u, sq->array)[i] = i;
	/* Earlier completions are of no interest. */
	__atomic_store_n(uring_at(u, cq->head), __atomic_load_n(uring_at(u, cq->tail), __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
	__atomic_store_n(uring_at(u, sq->tail), tail + 1, __ATOMIC_SEQ_CST);
	if (u->params.flags & IORING_SETUP_SQPOLL) {
		if (!(__atomic_load_n(uring_at(u, sq->flags), __ATOMIC_SEQ_CST) & IORING_SQ_NEED_WAKEUP))
			return;
		flags = IORING_ENTER_SQ_WAKEUP;
	}
	check(syscall(SYS_io_uring_enter, u->fd, 1, 0, flags, NULL, 0) >= 0, "io_uring_enter");
}
