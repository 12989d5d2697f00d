// SPDX-License-Identifier: BSD-2-Clause
/* Eight threads in four pairs, each pair handing a number to and fro in a way of its own (pipe, epoll and eventfd, raw futex, socket
 * pair), with some half a millisecond of computing between. For a profiler that comes and goes: each line `N` on standard input has the pairs do N
 * rounds together, each taking the next as long as there are some, so that no CPU idles whoever is the faster. That prints
 * `sum=N elapsed_ns=N eintr=N`: the sum depends on N alone, eintr is how many calls were interrupted so far, and no signal is ever sent
 * here. Ends with its input. */
#include "helper.h"

#include <linux/futex.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>

enum { PAIRS = 4, STEPS = 1000000 };

/* One direction of a pair: a number goes in at one end and out at the other. */
struct way {
	int in, out, epoll;
	uint32_t full;
	uint64_t value;
};

static struct pair {
	void (*give)(struct way *w, uint64_t value);
	uint64_t (*take)(struct way *w);
	struct way there, back;
} pairs[PAIRS];

static const uint64_t over = UINT32_MAX;
static uint64_t rounds, next, sum, eintr;
static pthread_barrier_t begin, end;

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

static _Noreturn void fail_at(const char *what)
{
	perror(what);
	exit(2);
}

/* Of a call that failed: to be made again if it was interrupted. */
static void interrupted(const char *what)
{
	if (errno != EINTR)
		fail_at(what);
	(void)__atomic_add_fetch(&eintr, 1, __ATOMIC_RELAXED);
}

static void give_bytes(struct way *w, uint64_t value)
{
	while (write(w->in, &value, sizeof(value)) != sizeof(value))
		interrupted("write");
}

static uint64_t take_bytes(struct way *w)
{
	uint64_t value;

	while (read(w->out, &value, sizeof(value)) != sizeof(value))
		interrupted("read");
	return value;
}

static uint64_t take_event(struct way *w)
{
	struct epoll_event event;

	while (epoll_wait(w->epoll, &event, 1, -1) != 1)
		interrupted("epoll_wait");
	return take_bytes(w) - 1;
}

/* An event descriptor adds up; one that is 0 cannot be read. */
static void give_event(struct way *w, uint64_t value)
{
	give_bytes(w, value + 1);
}

static void give_word(struct way *w, uint64_t value)
{
	w->value = value;
	__atomic_store_n(&w->full, 1, __ATOMIC_RELEASE);
	if (syscall(SYS_futex, &w->full, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) < 0)
		fail_at("futex");
}

static uint64_t take_word(struct way *w)
{
	while (!__atomic_load_n(&w->full, __ATOMIC_ACQUIRE))
		if (syscall(SYS_futex, &w->full, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0) < 0 && errno != EAGAIN)
			interrupted("futex");
	__atomic_store_n(&w->full, 0, __ATOMIC_RELAXED);
	return w->value;
}

static void open_way(struct way *w, int how)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fds[2] = { -1, -1 };

	if (how == 0 && pipe(fds) < 0)
		fail_at("pipe");
	if (how == 3 && socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0)
		fail_at("socketpair");
	w->out = fds[0];
	w->in = fds[1];
	if (how != 1)
		return;
	w->in = w->out = eventfd(0, 0);
	w->epoll = epoll_create1(0);
	if (w->in < 0 || w->epoll < 0 || epoll_ctl(w->epoll, EPOLL_CTL_ADD, w->in, &event) < 0)
		fail_at("epoll");
}

static void *leader(void *arg)
{
	struct pair *p = arg;

	for (;;) {
		uint64_t i;

		(void)pthread_barrier_wait(&begin);
		while ((i = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)) < rounds) {
			burn(STEPS);
			p->give(&p->there, i);
			(void)__atomic_add_fetch(&sum, p->take(&p->back), __ATOMIC_RELAXED);
			progress();
		}
		p->give(&p->there, over);
		(void)pthread_barrier_wait(&end);
	}
	return NULL;
}

static void *follower(void *arg)
{
	struct pair *p = arg;

	for (;;) {
		uint64_t value;

		(void)pthread_barrier_wait(&begin);
		while ((value = p->take(&p->there)) != over) {
			burn(STEPS);
			p->give(&p->back, value * value);
		}
		(void)pthread_barrier_wait(&end);
	}
	return NULL;
}

int main(void)
{
	char line[32];
	pthread_t t;

	setvbuf(stdout, NULL, _IOLBF, 0);
	(void)pthread_barrier_init(&begin, NULL, 2 * PAIRS + 1);
	(void)pthread_barrier_init(&end, NULL, 2 * PAIRS + 1);
	for (int i = 0; i < PAIRS; i++) {
		pairs[i].give = i == 1 ? give_event : i == 2 ? give_word : give_bytes;
		pairs[i].take = i == 1 ? take_event : i == 2 ? take_word : take_bytes;
		open_way(&pairs[i].there, i);
		open_way(&pairs[i].back, i);
		start_thread(&t, leader, &pairs[i]);
		start_thread(&t, follower, &pairs[i]);
	}
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t from;

		rounds = strtoull(line, NULL, 10);
		next = sum = 0;
		from = now_ns();
		(void)pthread_barrier_wait(&begin);
		(void)pthread_barrier_wait(&end);
		printf("sum=%llu elapsed_ns=%llu eintr=%llu\n", (unsigned long long)sum, (unsigned long long)(now_ns() - from),
		       (unsigned long long)__atomic_load_n(&eintr, __ATOMIC_RELAXED));
	}
	return 0;
}
