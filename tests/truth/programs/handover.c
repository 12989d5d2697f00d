// SPDX-License-Identifier: BSD-2-Clause
/* One producer (work a), one consumer (work b), handing over through the mechanism that --kind names. Credits go the
 * other way: with --window 1 the two strictly alternate and an item takes a + b (both lines help in full); with more,
 * the slower of the two sets the pace. a and b together are a round, --share-a of it a. Each mechanism is a counter
 * that one side gives to and the other takes from, blocking at zero. */
#include "async.h"

#include <linux/futex.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

struct handover {
	struct channel channel; /* its count is the futex, too */
	sem_t sem;
	struct aio aio;
	struct uring uring;
};

struct mechanism {
	const char *name;
	void (*open)(struct handover *h);
	void (*give)(struct handover *h);
	void (*take)(struct handover *h);
};

static uint64_t steps_a, steps_b;
static struct program p = { .round_us = 5000, .share_a = 60, .window = 1, .kind = "mutex" };
static struct handover items, credits;
static const struct mechanism *how;

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static KEEP void work_b(void)
{
	SPIN(steps_b); /* LINE:b */
}

static void open_mutex(struct handover *h)
{
	open_counter(&h->channel, false);
}

static void give_mutex(struct handover *h)
{
	give_counter(&h->channel);
}

static void take_mutex(struct handover *h)
{
	take_counter(&h->channel);
}

static void open_semaphore(struct handover *h)
{
	check(sem_init(&h->sem, 0, 0) == 0, "sem_init");
}

static void give_semaphore(struct handover *h)
{
	check(sem_post(&h->sem) == 0, "sem_post");
}

static void take_semaphore(struct handover *h)
{
	while (sem_wait(&h->sem) < 0)
		check(errno == EINTR, "sem_wait");
}

static void open_futex(struct handover *h)
{
	h->channel.count = 0;
}

static void give_futex(struct handover *h)
{
	(void)__atomic_add_fetch(&h->channel.count, 1, __ATOMIC_ACQ_REL);
	(void)syscall(SYS_futex, &h->channel.count, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void take_futex(struct handover *h)
{
	while (__atomic_load_n(&h->channel.count, __ATOMIC_ACQUIRE) == 0)
		(void)syscall(SYS_futex, &h->channel.count, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	(void)__atomic_sub_fetch(&h->channel.count, 1, __ATOMIC_ACQ_REL); /* only one thread takes: it cannot fall below zero */
}

static void open_bytes(struct handover *h)
{
	open_pipe(&h->channel);
}

static void open_socketpair(struct handover *h)
{
	int fds[2];

	check(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "socketpair");
	h->channel.in = fds[0];
	h->channel.out = fds[1];
}

static void give_bytes(struct handover *h)
{
	give_byte(&h->channel);
}

static void take_bytes(struct handover *h)
{
	take_byte(&h->channel);
}

static void open_eventfd(struct handover *h)
{
	h->channel.in = h->channel.out = eventfd(0, EFD_SEMAPHORE);
	check(h->channel.in >= 0, "eventfd");
}

static void give_event(struct handover *h)
{
	uint64_t one = 1;

	check(write(h->channel.out, &one, sizeof(one)) == sizeof(one), "write");
}

static void take_event(struct handover *h)
{
	uint64_t one;

	while (read(h->channel.in, &one, sizeof(one)) != sizeof(one))
		check(errno == EINTR, "read");
}

static void open_terminal(struct handover *h)
{
	open_pty(&h->channel);
}

static void open_requests(struct handover *h)
{
	open_aio(&h->aio);
}

/* The request is completed by a kernel worker, with which the giver queues it. */
static void give_fsync(struct handover *h)
{
	aio_submit(&h->aio, h->aio.fd, IOCB_CMD_FSYNC, 0);
}

static void take_request(struct handover *h)
{
	aio_wait(&h->aio);
}

static void give_aio_byte(struct handover *h)
{
	give_byte(&h->aio.pipe);
}

static void take_aio_poll(struct handover *h)
{
	aio_submit(&h->aio, h->aio.pipe.in, IOCB_CMD_POLL, POLLIN);
	aio_wait(&h->aio);
	take_byte(&h->aio.pipe);
}

static void open_workers(struct handover *h)
{
	open_uring(&h->uring, 0, 0);
}

static void give_by_worker(struct handover *h)
{
	uring_give(&h->uring, IOSQE_ASYNC);
}

/* One polling thread is enough: it would keep both CPUs of a small machine. */
static void open_sqpoll(struct handover *h)
{
	if (h == &items)
		open_polled(&h->uring, 1000);
	else
		open_pipe(&h->uring.pipe);
}

/* The polling thread sleeps before it is needed, and is woken. */
static void open_sqpoll_asleep(struct handover *h)
{
	open_polled(&h->uring, 1);
}

static void give_sqpoll(struct handover *h)
{
	if (h->uring.params.flags)
		uring_give(&h->uring, 0);
	else
		give_byte(&h->uring.pipe);
}

static void take_written(struct handover *h)
{
	take_byte(&h->uring.pipe);
}

static const struct mechanism mechanisms[] = {
	{ "mutex", open_mutex, give_mutex, take_mutex },
	{ "semaphore", open_semaphore, give_semaphore, take_semaphore },
	{ "futex", open_futex, give_futex, take_futex },
	{ "pipe", open_bytes, give_bytes, take_bytes },
	{ "eventfd", open_eventfd, give_event, take_event },
	{ "socketpair", open_socketpair, give_bytes, take_bytes },
	{ "pty", open_terminal, give_bytes, take_bytes },
	{ "aio", open_requests, give_fsync, take_request },
	{ "aio-poll", open_requests, give_aio_byte, take_aio_poll },
	{ "uring", open_workers, give_by_worker, take_written },
	{ "sqpoll", open_sqpoll, give_sqpoll, take_written },
	{ "sqpoll-asleep", open_sqpoll_asleep, give_sqpoll, take_written },
};

static void *producer(void *arg)
{
	pin_to(&p, 0);
	for (;;) {
		how->take(&credits);
		work_a();
		how->give(&items);
	}
	return arg;
}

static void *consumer(void *arg)
{
	pin_to(&p, 1);
	for (;;) {
		how->take(&items);
		work_b();
		visit();
		how->give(&credits);
	}
	return arg;
}

int main(int argc, char **argv)
{
	program_start(&p, argc, argv);
	for (size_t i = 0; i < sizeof(mechanisms) / sizeof(mechanisms[0]); i++)
		if (strcmp(p.kind, mechanisms[i].name) == 0)
			how = &mechanisms[i];
	if (!how)
		program_usage(argv[0]);
	steps_a = program_steps(&p, p.round_us * p.share_a / 100, p.speedup_a);
	steps_b = program_steps(&p, p.round_us * (100 - p.share_a) / 100, p.speedup_b);
	how->open(&items);
	how->open(&credits);
	for (long i = 0; i < p.window; i++)
		how->give(&credits);
	start_thread(producer, NULL);
	start_thread(consumer, NULL);
	program_finish(&p, NULL);
}
