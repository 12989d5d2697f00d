// SPDX-License-Identifier: BSD-2-Clause
/* Counts system calls that return EINTR. Six threads each block in one call (epoll_wait, nanosleep, read, futex, poll,
 * accept), for a millisecond or two at a time, then compute a little, so that they are sampled and owe pauses too; two
 * more threads keep the CPUs busy in one line (of burn). No signal is ever sent here: every EINTR is somebody else's
 * doing. usage: eintr SECONDS [FILE]: no longer than until FILE is there. Prints `NAME calls=N eintr=N` for each and ends with status 1 if any was
 * interrupted. */
#include "helper.h"

#include <linux/futex.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#define LOOK_SECONDS 0.1
enum { CALLS = 6, BURNERS = 2, PAUSE_NS = 1700000 };

struct call {
	const char *name;
	int (*block)(struct call *c); /* negative: the call failed, errno says why */
	void (*poke)(struct call *c); /* wakes the blocked thread; NULL: it wakes by time */
	int fd, other;
	uint32_t word;
	bool times_out; /* by itself, when it is not poked */
	uint64_t calls, eintr;
};

static struct sockaddr_un address = { .sun_family = AF_UNIX };
static socklen_t address_length;
static int stop;

static void fail_at(const char *what)
{
	perror(what);
	exit(2);
}

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

static void doze(void)
{
	struct timespec t = { .tv_nsec = PAUSE_NS };

	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static int block_epoll(struct call *c)
{
	struct epoll_event event;
	uint64_t value;
	int r = epoll_wait(c->fd, &event, 1, 2); /* by turns woken and timed out */

	if (r > 0 && read(c->other, &value, sizeof(value)) < 0)
		return -1;
	return r;
}

static void poke_eventfd(struct call *c)
{
	uint64_t one = 1;

	if (write(c->other, &one, sizeof(one)) < 0)
		fail_at("write");
}

static int block_nanosleep(struct call *c)
{
	struct timespec t = { .tv_nsec = PAUSE_NS };

	(void)c;
	return nanosleep(&t, NULL);
}

static int block_read(struct call *c)
{
	char byte;

	return (int)read(c->fd, &byte, 1);
}

static void poke_pipe(struct call *c)
{
	if (write(c->other, "x", 1) < 0)
		fail_at("write");
}

static int block_futex(struct call *c)
{
	struct timespec t = { .tv_nsec = PAUSE_NS };
	long r = syscall(SYS_futex, &c->word, FUTEX_WAIT_PRIVATE, __atomic_load_n(&c->word, __ATOMIC_ACQUIRE), &t, NULL,
			 0);

	return r < 0 && (errno == ETIMEDOUT || errno == EAGAIN) ? 0 : (int)r;
}

static void poke_futex(struct call *c)
{
	(void)__atomic_add_fetch(&c->word, 1, __ATOMIC_ACQ_REL);
	(void)syscall(SYS_futex, &c->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static int block_poll(struct call *c)
{
	struct pollfd p = { .fd = c->fd, .events = POLLIN };
	int r = poll(&p, 1, 2);
	char byte;

	if (r > 0 && read(c->fd, &byte, 1) < 0)
		return -1;
	return r;
}

static int block_accept(struct call *c)
{
	int fd = accept(c->fd, NULL, NULL);

	if (fd >= 0)
		(void)close(fd);
	return fd;
}

static void poke_connect(struct call *c)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)c;
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, address_length) < 0)
		fail_at("connect");
	(void)close(fd);
}

static struct call calls[CALLS] = {
	{ .name = "epoll_wait", .block = block_epoll, .poke = poke_eventfd, .times_out = true },
	{ .name = "nanosleep", .block = block_nanosleep },
	{ .name = "read", .block = block_read, .poke = poke_pipe },
	{ .name = "futex", .block = block_futex, .poke = poke_futex, .times_out = true },
	{ .name = "poll", .block = block_poll, .poke = poke_pipe, .times_out = true },
	{ .name = "accept", .block = block_accept, .poke = poke_connect },
};

static void prepare(void)
{
	struct epoll_event event = { .events = EPOLLIN };
	int fds[2], length;

	calls[0].fd = epoll_create1(0);
	calls[0].other = eventfd(0, 0);
	if (calls[0].fd < 0 || epoll_ctl(calls[0].fd, EPOLL_CTL_ADD, calls[0].other, &event) < 0)
		fail_at("epoll");
	for (int i = 2; i <= 4; i += 2) { /* read and poll */
		if (pipe(fds) < 0)
			fail_at("pipe");
		calls[i].fd = fds[0];
		calls[i].other = fds[1];
	}
	/* An abstract address: nothing is left in the file system. */
	length = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "eintr-%d", getpid());
	address_length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
	calls[5].fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (calls[5].fd < 0 || bind(calls[5].fd, (struct sockaddr *)&address, address_length) < 0)
		fail_at("bind");
	if (listen(calls[5].fd, 16) < 0)
		fail_at("listen");
}

static void *blocker(void *arg)
{
	struct call *c = arg;

	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		int r = c->block(c), e = errno;

		(void)__atomic_add_fetch(&c->calls, 1, __ATOMIC_RELAXED);
		if (r < 0 && e == EINTR)
			(void)__atomic_add_fetch(&c->eintr, 1, __ATOMIC_RELAXED);
		else if (r < 0)
			fail_at(c->name);
		burn(50000);
	}
	return NULL;
}

static void *poker(void *arg)
{
	for (unsigned int turn = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); turn++) {
		doze();
		for (int i = 0; i < CALLS; i++)
			/* What can time out does, every other time. */
			if (calls[i].poke && (turn % 2 || !calls[i].times_out))
				calls[i].poke(&calls[i]);
	}
	return arg;
}

static void *burner(void *arg)
{
	while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
		burn(1000000);
		progress();
	}
	return arg;
}

int main(int argc, char **argv)
{
	double seconds = seconds_of(argc > 2 ? 2 : argc, argv);
	pthread_t t;
	int status = 0;

	prepare();
	for (int i = 0; i < CALLS; i++)
		start_thread(&t, blocker, &calls[i]);
	for (int i = 0; i < BURNERS; i++)
		start_thread(&t, burner, NULL);
	start_thread(&t, poker, NULL);
	/* The main thread sleeps in the same call. */
	for (double slept = 0; slept < seconds && (argc < 3 || access(argv[2], F_OK) < 0); slept += LOOK_SECONDS)
		calls[1].eintr += sleep_seconds(LOOK_SECONDS);
	__atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < CALLS; i++) {
		uint64_t eintr = __atomic_load_n(&calls[i].eintr, __ATOMIC_RELAXED);

		printf("%s calls=%llu eintr=%llu\n", calls[i].name,
		       (unsigned long long)__atomic_load_n(&calls[i].calls, __ATOMIC_RELAXED),
		       (unsigned long long)eintr);
		status |= eintr != 0;
	}
	return status;
}
