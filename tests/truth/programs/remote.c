// SPDX-License-Identifier: BSD-2-Clause
/* Threads that wait for something outside of the program (line b, --kind): a timer, an answer of another process that waits for a timer itself, by pipe,
 * socket pair or TCP, a page that such a process serves, or a disk. The waits do not queue for each other: each thread has a process of its own.
 *
 * With --threads N each thread waits (b) and works (a), and that is a visit. With --window 8 instead, one thread waits (b) and works for --more, and hands
 * over to another one that works (a), through a queue of eight; of the kind own, which waits for a timer, the first one works (a) and the other one for
 * --more. The closing line has asleep_us, what a wait really took. */
#include "channel.h"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>

enum kind { TIMER, OWN, PIPE, SOCKETPAIR, TCP, FAULT, DISK, KINDS };
enum { PAGE = 4096, WRITE = 1 << 20 };

/* What a thread waits for. */
struct outside {
	int fd[2]; /* to ask and to be answered; of DISK, the file */
	char *page;
};

static const char *const kinds[KINDS] = { "timer", "own", "pipe", "socketpair", "tcp", "fault", "disk" };
static enum kind kind;
static struct program p = { .round_us = 5000, .share_a = 40, .threads = 1, .kind = "timer" };
static uint64_t steps_a, steps_more, waits, waited_ns;
static double wait_us;
static struct channel items, room;

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static void works(bool at_a)
{
	if (at_a)
		work_a();
	else
		SPIN(steps_more);
}

static void *aligned(size_t size)
{
	void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	check(page != MAP_FAILED, "mmap");
	return page;
}

/* Until the program ends. */
static void serve_bytes(int in, int out)
{
	char byte;

	while (read(in, &byte, 1) == 1) {
		sleep_seconds(wait_us / 1e6);
		check(write(out, &byte, 1) == 1, "write");
	}
}

static void serve_pages(int fd)
{
	char *content = aligned(PAGE);
	struct uffd_msg m;
	struct pollfd ready = { .fd = fd, .events = POLLIN };

	while (poll(&ready, 1, -1) == 1 && read(fd, &m, sizeof(m)) == (ssize_t)sizeof(m)) {
		struct uffdio_copy copy = { .dst = m.arg.pagefault.address & ~(uint64_t)(PAGE - 1), .src = (uintptr_t)content, .len = PAGE };

		sleep_seconds(wait_us / 1e6);
		(void)ioctl(fd, UFFDIO_COPY, &copy);
	}
}

static void start_server(int in, int out)
{
	if (!in_child())
		return;
	if (kind == FAULT)
		serve_pages(in);
	else
		serve_bytes(in, out);
	_exit(2);
}

static void open_pages(struct outside *o)
{
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register r = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	check(fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0, "userfaultfd");
	o->page = aligned(PAGE);
	r.range.start = (uintptr_t)o->page;
	r.range.len = PAGE;
	check(ioctl(fd, UFFDIO_REGISTER, &r) == 0, "UFFDIO_REGISTER");
	start_server(fd, -1);
}

static void open_outside(struct outside *o)
{
	char name[] = "remote-XXXXXX";
	int ask[2], answer[2];

	switch (kind) {
	case TIMER:
	case OWN:
		return;
	case FAULT:
		open_pages(o);
		return;
	case DISK:
		o->fd[0] = mkostemp(name, O_DIRECT | O_DSYNC | O_CLOEXEC);
		check(o->fd[0] >= 0 && unlink(name) == 0, "a file for direct writes");
		o->page = aligned(WRITE);
		memset(o->page, 'x', WRITE);
		return;
	case PIPE:
		check(pipe(ask) == 0 && pipe(answer) == 0, "pipe");
		start_server(ask[0], answer[1]);
		o->fd[0] = ask[1];
		o->fd[1] = answer[0];
		return;
	default:
		if (kind == TCP)
			open_tcp(ask);
		else
			check(socketpair(AF_UNIX, SOCK_STREAM, 0, ask) == 0, "socketpair");
		start_server(ask[0], ask[0]);
		o->fd[0] = o->fd[1] = ask[1];
	}
}

/* What a large write takes of the CPU is none of the wait. */
static uint64_t off_cpu_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC) - (kind == DISK ? clock_ns(CLOCK_THREAD_CPUTIME_ID) : 0);
}

/* All of it in the line that uses it. */
#define ASK(o)                                                                                                                   \
	do {                                                                                                                     \
		uint64_t ask_from = off_cpu_ns();                                                                                \
		char ask_byte = 'x';                                                                                             \
		if (kind == TIMER || kind == OWN)                                                                                \
			sleep_seconds(wait_us / 1e6);                                                                            \
		else if (kind == FAULT)                                                                                          \
			*(volatile char *)(o)->page = 1;                                                                         \
		else if (kind == DISK)                                                                                           \
			check(p.speedup_b == 100 || pwrite((o)->fd[0], (o)->page, WRITE, 0) == WRITE, "pwrite");                 \
		else                                                                                                             \
			check(write((o)->fd[0], &ask_byte, 1) == 1 && read((o)->fd[1], &ask_byte, 1) == 1, "the other process"); \
		(void)__atomic_add_fetch(&waits, 1, __ATOMIC_RELAXED);                                                           \
		(void)__atomic_add_fetch(&waited_ns, off_cpu_ns() - ask_from, __ATOMIC_RELAXED);                                 \
	} while (0)

static KEEP void wait_b(struct outside *o)
{
	ASK(o); /* LINE:b */
}

static void *alone(void *arg)
{
	struct outside *o = arg;

	for (;;) {
		wait_b(o);
		if (kind == FAULT)
			check(madvise(o->page, PAGE, MADV_DONTNEED) == 0, "madvise");
		work_a();
		visit();
	}
	return NULL;
}

static void *fetch(void *arg)
{
	struct outside *o = arg;

	pin_to(&p, 0);
	for (;;) {
		wait_b(o);
		if (kind == FAULT)
			check(madvise(o->page, PAGE, MADV_DONTNEED) == 0, "madvise");
		works(kind == OWN);
		take_counter(&room);
		give_counter(&items);
	}
	return NULL;
}

static void *consume(void *arg)
{
	pin_to(&p, 1);
	for (;;) {
		take_counter(&items);
		give_counter(&room);
		works(kind != OWN);
		visit();
	}
	return arg;
}

static void print_waits(void)
{
	printf("asleep_us=%.2f\n", waits ? (double)waited_ns / 1e3 / (double)waits : 0.0);
}

int main(int argc, char **argv)
{
	struct outside *all;

	program_start(&p, argc, argv);
	while (kind < KINDS && strcmp(p.kind, kinds[kind]) != 0)
		kind++;
	if (kind == KINDS)
		program_usage(argv[0]);
	steps_a = program_steps(&p, p.round_us * p.share_a / 100, p.speedup_a);
	steps_more = program_steps(&p, p.more_us, 0);
	wait_us = p.round_us * (100 - p.share_a) / 100 * (1 - p.speedup_b / 100);
	all = calloc((size_t)p.threads, sizeof(*all));
	check(all != NULL, "calloc");
	for (long i = 0; i < p.threads; i++)
		open_outside(&all[i]);
	open_counter(&items, false);
	open_counter(&room, false);
	for (long i = 0; i < p.window; i++)
		give_counter(&room);
	for (long i = 0; i < p.threads; i++)
		start_thread(p.window ? fetch : alone, &all[i]);
	if (p.window)
		start_thread(consume, NULL);
	program_finish(&p, print_waits);
}
