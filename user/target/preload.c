// SPDX-License-Identifier: BSD-2-Clause
#include "target/preload.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define BACKLOG 64
#define PATIENCE_US 200000 /* with a client that connects and says nothing */
#define PAUSE_NS 20000000  /* before the next try, when no connection can be accepted */

struct preload_server {
	struct preload_options o;
	int listener;
	bool stops;
	pthread_t thread;
	bool running;
};

static bool send_descriptors(const struct preload_server *s, int to)
{
	const int fds[SHIM_FDS] = {s->o.image_fd, s->o.page_fd, s->o.slots_fd};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(fds))];
	} control = {0};
	char answer = SHIM_ASK_DESCRIPTORS;
	struct iovec part = {&answer, 1};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(c), fds, sizeof(fds));
	return sendmsg(to, &m, MSG_NOSIGNAL) == 1;
}

static void serve(struct preload_server *s, int client)
{
	const struct timeval patience = {.tv_usec = PATIENCE_US};
	struct ucred who;
	socklen_t size = sizeof(who);
	char what;

	/* Strangers are turned away before anything is waited for. */
	if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0 || who.pid <= 0 || !s->o.may_ask(s->o.arg, who.pid))
		return;
	(void)setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (recv(client, &what, 1, 0) != 1)
		return;
	if (what == SHIM_ASK_DESCRIPTORS)
		(void)send_descriptors(s, client);
	if (what != SHIM_ASK_READY)
		return;
	s->o.ready(s->o.arg, who.pid, 1);
	/* One that has given up waiting may be another program by now. */
	if (send(client, &what, 1, MSG_NOSIGNAL) != 1)
		s->o.ready(s->o.arg, who.pid, 0);
}

static void *answer(void *arg)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	struct preload_server *s = arg;

	while (!__atomic_load_n(&s->stops, __ATOMIC_ACQUIRE)) {
		_cleanup_close_ int client = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);

		if (client >= 0)
			serve(s, client);
		else if (errno != EINTR && errno != ECONNABORTED)
			/* Without a free descriptor or memory the connection goes on waiting, and accept fails at once each time. */
			(void)nanosleep(&pause, NULL);
	}
	return NULL;
}

int preload_name(char ret[SHIM_SERVER_NAME], struct error *e)
{
	unsigned long long secret;

	if (getrandom(&secret, sizeof(secret), 0) != (ssize_t)sizeof(secret))
		return fail(e, EIO, "cannot get random bytes for the name of a socket");
	(void)snprintf(ret, SHIM_SERVER_NAME, "cozbpf-%016llx", secret);
	return 0;
}

static int listen_by_name(struct preload_server *s)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	size_t n = strlen(s->o.name);

	memcpy(at.sun_path + 1, s->o.name, n);
	s->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (s->listener < 0 ||
	    bind(s->listener, (const struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) < 0 ||
	    listen(s->listener, BACKLOG) < 0)
		return -errno;
	return 0;
}

int preload_serve(const struct preload_options *o, struct preload_server **ret, struct error *e)
{
	struct preload_server *s = calloc(1, sizeof(*s));
	sigset_t all, before;
	int r;

	if (!s)
		return fail(e, ENOMEM, "out of memory");
	*s = (struct preload_server){.o = *o, .listener = -1};
	r = listen_by_name(s);
	if (r < 0)
		(void)fail(e, -r, "cannot offer the preloaded library to child programs: %s", strerror(-r));
	if (r == 0) {
		/* Signals are the main thread's. */
		(void)sigfillset(&all);
		(void)pthread_sigmask(SIG_SETMASK, &all, &before);
		r = -pthread_create(&s->thread, NULL, answer, s);
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
		s->running = r == 0;
		if (r < 0)
			(void)fail(e, -r, "cannot start a thread: %s", strerror(-r));
	}
	if (r < 0) {
		preload_stop(s);
		return r;
	}
	s->o.name = NULL;
	__atomic_store_n(&o->page->serves, 1, __ATOMIC_RELEASE);
	*ret = s;
	return 0;
}

void preload_stop(struct preload_server *s)
{
	if (!s)
		return;
	__atomic_store_n(&s->o.page->serves, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&s->stops, true, __ATOMIC_RELEASE);
	/* Ends a wait in accept. */
	if (s->listener >= 0)
		(void)shutdown(s->listener, SHUT_RDWR);
	if (s->running)
		(void)pthread_join(s->thread, NULL);
	if (s->listener >= 0)
		(void)close(s->listener);
	free(s);
}
