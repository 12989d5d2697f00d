// SPDX-License-Identifier: BSD-2-Clause
/* One producer (work a), one consumer (work b), handing over through the mechanism that --kind names. Credits go the
 * other way: with --window 1 the two strictly alternate and an item takes a + b (both lines help in full); with more,
 * the slower of the two sets the pace. a and b together are a round, --share-a of it a. Each mechanism is a counter
 * that one side gives to and the other takes from, blocking at zero. */
#include "channel.h"

#include <linux/futex.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

struct handover {
	struct channel channel; /* its count is the futex, too */
	sem_t sem;
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

static const struct mechanism mechanisms[] = {
	{ "mutex", open_mutex, give_mutex, take_mutex },
	{ "semaphore", open_semaphore, give_semaphore, take_semaphore },
	{ "futex", open_futex, give_futex, take_futex },
	{ "pipe", open_bytes, give_bytes, take_bytes },
	{ "eventfd", open_eventfd, give_event, take_event },
	{ "socketpair", open_socketpair, give_bytes, take_bytes },
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
