// SPDX-License-Identifier: BSD-2-Clause
/* One producer (work a), one consumer (work b), handing over through the mechanism that --kind names. Credits go the
 * other way: with --window 1 the two strictly alternate and an item takes a + b (both lines help in full); with more,
 * the slower of the two sets the pace. a and b together are a round, --share-a of it a. Each mechanism is a counter
 * that one side gives to and the other takes from, blocking at zero. */
#include "program.h"

#include <linux/futex.h>
#include <semaphore.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

struct channel {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	uint32_t count; /* of mutex and futex */
	sem_t sem;
	int in, out; /* descriptors to take from and to give to */
};

struct mechanism {
	const char *name;
	void (*open)(struct channel *c);
	void (*give)(struct channel *c);
	void (*take)(struct channel *c);
};

static uint64_t steps_a, steps_b;
static struct program p = { .round_us = 5000, .share_a = 60, .window = 1, .kind = "mutex" };
static struct channel items, credits;
static const struct mechanism *how;

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static KEEP void work_b(void)
{
	SPIN(steps_b); /* LINE:b */
}

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

static void open_mutex(struct channel *c)
{
	(void)pthread_mutex_init(&c->lock, NULL);
	(void)pthread_cond_init(&c->cond, NULL);
}

static void give_mutex(struct channel *c)
{
	(void)pthread_mutex_lock(&c->lock);
	c->count++;
	(void)pthread_cond_signal(&c->cond);
	(void)pthread_mutex_unlock(&c->lock);
}

static void take_mutex(struct channel *c)
{
	(void)pthread_mutex_lock(&c->lock);
	while (c->count == 0)
		(void)pthread_cond_wait(&c->cond, &c->lock);
	c->count--;
	(void)pthread_mutex_unlock(&c->lock);
}

static void open_semaphore(struct channel *c)
{
	check(sem_init(&c->sem, 0, 0) == 0, "sem_init");
}

static void give_semaphore(struct channel *c)
{
	check(sem_post(&c->sem) == 0, "sem_post");
}

static void take_semaphore(struct channel *c)
{
	while (sem_wait(&c->sem) < 0)
		check(errno == EINTR, "sem_wait");
}

static void open_futex(struct channel *c)
{
	c->count = 0;
}

static void give_futex(struct channel *c)
{
	(void)__atomic_add_fetch(&c->count, 1, __ATOMIC_ACQ_REL);
	(void)syscall(SYS_futex, &c->count, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void take_futex(struct channel *c)
{
	while (__atomic_load_n(&c->count, __ATOMIC_ACQUIRE) == 0)
		(void)syscall(SYS_futex, &c->count, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
	(void)__atomic_sub_fetch(&c->count, 1, __ATOMIC_ACQ_REL); /* only one thread takes: it cannot fall below zero */
}

static void open_pipe(struct channel *c)
{
	int fds[2];

	check(pipe(fds) == 0, "pipe");
	c->in = fds[0];
	c->out = fds[1];
}

static void open_socketpair(struct channel *c)
{
	int fds[2];

	check(socketpair(AF_UNIX, SOCK_STREAM, 0, fds) == 0, "socketpair");
	c->in = fds[0];
	c->out = fds[1];
}

static void give_byte(struct channel *c)
{
	check(write(c->out, "x", 1) == 1, "write");
}

static void take_byte(struct channel *c)
{
	char byte;

	while (read(c->in, &byte, 1) != 1)
		check(errno == EINTR, "read");
}

static void open_eventfd(struct channel *c)
{
	c->in = c->out = eventfd(0, EFD_SEMAPHORE);
	check(c->in >= 0, "eventfd");
}

static void give_event(struct channel *c)
{
	uint64_t one = 1;

	check(write(c->out, &one, sizeof(one)) == sizeof(one), "write");
}

static void take_event(struct channel *c)
{
	uint64_t one;

	while (read(c->in, &one, sizeof(one)) != sizeof(one))
		check(errno == EINTR, "read");
}

static const struct mechanism mechanisms[] = {
	{ "mutex", open_mutex, give_mutex, take_mutex },
	{ "semaphore", open_semaphore, give_semaphore, take_semaphore },
	{ "futex", open_futex, give_futex, take_futex },
	{ "pipe", open_pipe, give_byte, take_byte },
	{ "eventfd", open_eventfd, give_event, take_event },
	{ "socketpair", open_socketpair, give_byte, take_byte },
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
