// SPDX-License-Identifier: BSD-2-Clause
#include "target/preload.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "target/process.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif
#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS 83 /* Linux 6.16 */
#endif

#define BACKLOG 64
#define PATIENCE_US 200000 /* with a client that connects and says nothing */
#define PAUSE_NS 20000000  /* before the next try, when no connection can be accepted */

struct preload_server {
	struct shim_page *page;
	pid_t pid;
	int pidfd;
};

static bool send_descriptors(const struct preload_options *o, int to)
{
	const int fds[SHIM_FDS] = {o->image_fd, o->page_fd, o->slots_fd};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(fds))];
	} control = {0};
	char answer = SHIM_ASK_DESCRIPTORS;
	struct iovec part = {&answer, 1};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(c), fds, sizeof(fds));
	return sendmsg(to, &m, MSG_NOSIGNAL) == 1;
}

/* Of the process that connected; -1: it has ended. */
static int open_peer(int client, pid_t pid)
{
	int fd = -1;
	socklen_t size = sizeof(fd);

	if (getsockopt(client, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0)
		return fd;
	/* On older kernels: of the process that has the number now. */
	return errno == ENOPROTOOPT ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
}

/* While the process has not ended its number is not another's. */
static bool may_ask(const struct preload_options *o, pid_t pid, int pidfd)
{
	return o->may_ask(o->arg, pid) && !process_has_ended(pidfd);
}

static void serve(const struct preload_options *o, int client)
{
	const struct timeval patience = {.tv_usec = PATIENCE_US};
	_cleanup_close_ int pidfd = -1;
	struct ucred who;
	socklen_t size = sizeof(who);
	char what;

	if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0 || who.pid <= 0)
		return;
	pidfd = open_peer(client, who.pid);
	/* Strangers are turned away before anything is waited for. */
	if (pidfd < 0 || !may_ask(o, who.pid, pidfd))
		return;
	(void)setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (recv(client, &what, 1, 0) != 1 || !may_ask(o, who.pid, pidfd))
		return;
	if (what == SHIM_ASK_DESCRIPTORS)
		(void)send_descriptors(o, client);
	if (what != SHIM_ASK_READY)
		return;
	o->ready(o->arg, who.pid, 1);
	/* One that has given up waiting may be another program by now. */
	if (process_has_ended(pidfd) || send(client, &what, 1, MSG_NOSIGNAL) != 1)
		o->ready(o->arg, who.pid, 0);
}

static bool close_all_but(const int *keep, size_t n)
{
	unsigned int from = 0, next;

	do {
		next = ~0U;
		for (size_t i = 0; i < n; i++)
			if ((unsigned int)keep[i] >= from && (unsigned int)keep[i] < next)
				next = (unsigned int)keep[i];
		if (next > from && syscall(SYS_close_range, from, next - 1, 0) < 0)
			return false;
		from = next + 1;
	} while (next != ~0U);
	return true;
}

/* Anybody can connect, and send descriptors of files that take for ever to close: as soon as a
 * connection ends, with messages read or unread. So all ends of connections are this process's, and
 * it has nothing that others wait for: above all no probes. */
static _Noreturn void be_server(const struct preload_options *o, int listener, pid_t parent)
{
	const int keep[] = {listener, o->image_fd, o->page_fd, o->slots_fd, o->arg_fd};
	const struct timespec pause = {.tv_nsec = PAUSE_NS};

	(void)prctl(PR_SET_NAME, "coz-preload", 0, 0, 0);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || getppid() != parent ||
	    !close_all_but(keep, sizeof(keep) / sizeof(*keep)))
		_exit(1);
	for (;;) {
		_cleanup_close_ int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (client >= 0)
			serve(o, client);
		else if (errno != EINTR && errno != ECONNABORTED)
			/* Without a free descriptor or memory the connection goes on waiting, and
			 * accept fails at once each time; as it does until the parent listens. */
			(void)nanosleep(&pause, NULL);
	}
}

int preload_name(char ret[SHIM_SERVER_NAME], struct error *e)
{
	unsigned long long secret;

	if (getrandom(&secret, sizeof(secret), 0) != (ssize_t)sizeof(secret))
		return fail(e, EIO, "cannot get random bytes for the name of a socket");
	(void)snprintf(ret, SHIM_SERVER_NAME, "cozbpf-%016llx", secret);
	return 0;
}

/* The kernel tells clients who called listen: that is us (user/target/shim/handover.c). It is
 * called when the server is there, and our descriptor closed then: the process with the last one
 * closes what connections hold that were not accepted yet. */
static int start(struct preload_server *s, const struct preload_options *o)
{
	_cleanup_close_ int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	size_t n = strlen(o->name);
	pid_t parent = getpid();
	sigset_t all, before;
	int none = 0, r;

	memcpy(at.sun_path + 1, o->name, n);
	if (listener < 0 || bind(listener, (const struct sockaddr *)&at,
				 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) < 0)
		return -errno;
	/* A kernel that knows this lets nobody send descriptors. */
	(void)setsockopt(listener, SOL_SOCKET, SO_PASSRIGHTS, &none, sizeof(none));
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	s->pid = fork();
	if (s->pid == 0)
		be_server(o, listener, parent);
	r = s->pid < 0 ? -errno : 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (r < 0)
		return r;
	s->pidfd = (int)syscall(SYS_pidfd_open, s->pid, 0);
	if (s->pidfd >= 0)
		return listen(listener, BACKLOG) < 0 ? -errno : 0;
	r = -errno;
	(void)kill(s->pid, SIGKILL);
	(void)waitpid(s->pid, NULL, 0);
	return r;
}

int preload_serve(const struct preload_options *o, struct preload_server **ret, struct error *e)
{
	struct preload_server *s = malloc(sizeof(*s));
	int r;

	if (!s)
		return fail(e, ENOMEM, "out of memory");
	*s = (struct preload_server){.page = o->page, .pidfd = -1};
	r = start(s, o);
	if (r < 0) {
		preload_stop(s);
		return fail(e, -r, "cannot offer the preloaded library to child programs: %s",
			    strerror(-r));
	}
	__atomic_store_n(&o->page->serves, 1, __ATOMIC_RELEASE);
	*ret = s;
	return 0;
}

void preload_stop(struct preload_server *s)
{
	if (!s)
		return;
	__atomic_store_n(&s->page->serves, 0, __ATOMIC_RELEASE);
	if (s->pidfd >= 0) {
		(void)syscall(SYS_pidfd_send_signal, s->pidfd, SIGKILL, NULL, 0);
		process_reap_soon(s->pid);
		(void)close(s->pidfd);
	}
	free(s);
}
