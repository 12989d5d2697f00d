// SPDX-License-Identifier: BSD-2-Clause
#include "target/injector.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/message.h"
#include "shared/shim_abi.h"
#include "target/inject.h"
#include "target/process.h"
#include "target/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define PATIENCE_S 120 /* with the other side: longer than it may take */
/* A worker is given up when it makes no step for STUCK_MS, or takes WORK_MS in all, which is more
 * than a thread needs that seldom gets the CPU. To give it up earlier would let a thread go on with
 * our registers, or with its signals blocked. */
#define STUCK_MS 10000
#define WORK_MS 45000
#define LEAVE_ALL_NS (60 * NSEC_PER_SEC) /* no attempt begins later */
/* After our death the kernel takes its programs down, which takes it a moment; a signal that they
 * raise needs the handler. */
#define AFTERMATH_NS 200000000

enum { ASK_SLOTS, ASK_ENTER, ASK_LEAVE };

struct request {
	int what;
	pid_t pid;
};

struct answer {
	int result;
	struct injected injected;
	struct inject_layout layout;
	struct error e;
};

struct injector {
	int socket;
	pid_t pid;
};

/* The other process's. */
struct server {
	struct inject_options o;
	int socket;
	struct inject_layout *layouts;
	size_t n;
};

/* In a process of its own: its end lets go of whatever it has stopped. */
static _Noreturn void work(const struct server *s, const struct request *q, int pidfd, int to)
{
	struct answer a = {.e = {""}};

	remote_count_steps(&s->o.progress->steps);
	if (q->what == ASK_ENTER)
		a.result = inject_enter(&s->o, q->pid, pidfd, s->layouts, s->n, &a.layout,
					&a.injected, &a.e);
	else
		a.result = inject_leave(&s->o, s->layouts, s->n, &a.e);
	_exit(write(to, &a, sizeof(a)) == (ssize_t)sizeof(a) ? 0 : 1);
}

/* Until there is an answer; false: it has been given up. */
static bool watch(const struct server *s, int fd)
{
	struct pollfd answer = {.fd = fd, .events = POLLIN};
	uint64_t before;

	for (int ms = 0; ms < WORK_MS; ms += STUCK_MS) {
		before = s->o.progress->steps;
		if (poll(&answer, 1, STUCK_MS) != 0)
			return true;
		if (s->o.progress->steps == before)
			return false;
	}
	return false;
}

/* @pidfd: of the process that it is about; -1: none. False: it took too long. */
static bool have_worked(struct server *s, const struct request *q, int pidfd, struct answer *ret)
{
	bool in_time = true;
	int ends[2];
	pid_t pid = -1;

	*ret = (struct answer){.e = {""}};
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0) {
		ret->result = fail(&ret->e, errno, "cannot inject a payment handler: %s",
				   strerror(errno));
		return true;
	}
	pid = fork();
	if (pid == 0)
		work(s, q, pidfd, ends[1]);
	(void)close(ends[1]);
	if (pid > 0)
		in_time = watch(s, ends[0]);
	if (!in_time)
		(void)kill(pid, SIGKILL);
	/* An answer is shorter than a pipe's least buffer, and comes in one piece. */
	if (pid < 0 || read(ends[0], ret, sizeof(*ret)) != (ssize_t)sizeof(*ret))
		ret->result = fail(
			&ret->e, EIO,
			"cannot inject a payment handler: the process that does it has failed");
	(void)close(ends[0]);
	if (pid > 0)
		process_reap_soon(pid);
	return in_time;
}

static int remember(struct server *s, const struct inject_layout *l)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->layouts[i].blob == l->blob && s->layouts[i].slots == l->slots &&
		    s->layouts[i].pid == l->pid)
			return 0;
	return array_add(s->layouts, s->n, *l);
}

static void leave_all(struct server *s, struct answer *ret)
{
	const struct request q = {.what = ASK_LEAVE};
	uint64_t until = clock_monotonic_ns() + LEAVE_ALL_NS;
	struct inject_progress *p = s->o.progress;

	*ret = (struct answer){.e = {""}};
	/* A process in which the worker got stuck is left out of the next attempt. */
	while (s->n && !have_worked(s, &q, -1, ret) && p->n_hung < INJECT_MAX_HUNG &&
	       clock_monotonic_ns() < until)
		p->hung[p->n_hung++] = p->at;
}

static _Noreturn void serve(struct server *s)
{
	const struct timespec aftermath = {.tv_nsec = AFTERMATH_NS};
	struct request q;
	struct answer a;
	int fd;

	while (message_read_fd(s->socket, &q, sizeof(q), 0, &fd, NULL) == 0) {
		a = (struct answer){.e = {""}};
		if (q.what == ASK_SLOTS) {
			s->o.slots_fd = fd;
		} else if (q.what == ASK_ENTER) {
			(void)have_worked(s, &q, fd, &a);
			(void)close(fd);
			if (a.result == 0 && remember(s, &a.layout) < 0)
				a.result = fail(&a.e, ENOMEM, "out of memory");
		} else if (q.what == ASK_LEAVE) {
			leave_all(s, &a);
		}
		if (message_send(s->socket, &a, sizeof(a), 0) < 0)
			break;
		if (q.what == ASK_LEAVE)
			_exit(0);
	}
	(void)nanosleep(&aftermath, NULL);
	leave_all(s, &a);
	_exit(0);
}

/* Our descriptors would keep alive what is to end with us, and a reader of our output waiting. */
static _Noreturn void become_server(const struct injector_options *o, int socket)
{
	struct server s = {
		.o = {.image = o->image,
		      .size = o->size,
		      .pay = o->pay,
		      .signo = o->signo,
		      .slots_fd = -1},
	};
	sigset_t all;

	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)signal(SIGCHLD, SIG_DFL);
	(void)setsid();
	(void)prctl(PR_SET_NAME, "coz-inject");
	s.socket = dup2(socket, STDIN_FILENO) < 0 ? -1 : STDIN_FILENO;
	(void)syscall(SYS_close_range, STDOUT_FILENO, UINT_MAX, 0);
	s.o.progress = mmap(NULL, sizeof(*s.o.progress), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (s.socket >= 0 && chdir("/") == 0 && s.o.progress != MAP_FAILED)
		serve(&s);
	_exit(1);
}

int injector_start(const struct injector_options *o, struct injector **ret, struct error *e)
{
	const struct timeval patience = {.tv_sec = PATIENCE_S};
	struct shim_blob head;
	_cleanup_free_ struct injector *i = NULL;
	int pair[2], err;

	if (o->size < sizeof(head))
		return fail(e, EINVAL, "the payment handler is no handler");
	memcpy(&head, o->image, sizeof(head));
	if (head.magic != SHIM_BLOB_MAGIC || head.data < o->size || head.end <= head.data ||
	    head.handler >= o->size || head.restorer >= o->size)
		return fail(e, EINVAL, "the payment handler is no handler");
	i = calloc(1, sizeof(*i));
	if (!i)
		return fail(e, ENOMEM, "out of memory");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return fail(e, errno, "cannot make a socket: %s", strerror(errno));
	(void)fflush(NULL);
	i->pid = fork();
	if (i->pid == 0) {
		(void)close(pair[0]);
		become_server(o, pair[1]);
	}
	(void)close(pair[1]);
	i->socket = pair[0];
	if (i->pid < 0) {
		err = fail(e, errno, "cannot start a process: %s", strerror(errno));
		(void)close(i->socket);
		return err;
	}
	(void)setsockopt(i->socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	*ret = TAKE_PTR(i);
	return 0;
}

/* @fd: to be handed over; -1: none. */
static int ask(struct injector *i, const struct request *q, int fd, struct answer *ret,
	       struct error *e)
{
	if (message_send_fd(i->socket, fd, q, sizeof(*q), 0) < 0 ||
	    TEMP_FAILURE_RETRY(recv(i->socket, ret, sizeof(*ret), 0)) != (ssize_t)sizeof(*ret)) {
		/* An answer that comes too late would be taken for the next one's. */
		(void)shutdown(i->socket, SHUT_RDWR);
		return fail(e, EPIPE,
			    "the process that injects payment handlers has ended: handlers may be "
			    "left, which do nothing any more");
	}
	if (ret->result < 0 && e)
		*e = ret->e;
	return ret->result;
}

int injector_give_slots(struct injector *i, int slots_fd, struct error *e)
{
	const struct request q = {.what = ASK_SLOTS};
	struct answer a;

	return ask(i, &q, slots_fd, &a, e);
}

int injector_enter(struct injector *i, pid_t pid, int pidfd, struct injected *ret, struct error *e)
{
	const struct request q = {.what = ASK_ENTER, .pid = pid};
	struct answer a;
	int err = ask(i, &q, pidfd, &a, e);

	if (err == 0)
		*ret = a.injected;
	return err;
}

int injector_stop(struct injector *i, struct error *e)
{
	const struct request q = {.what = ASK_LEAVE};
	struct answer a;
	int err;

	if (!i)
		return 0;
	err = ask(i, &q, -1, &a, e);
	(void)close(i->socket);
	process_reap_soon(i->pid);
	free(i);
	return err;
}
