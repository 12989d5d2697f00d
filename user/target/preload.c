// SPDX-License-Identifier: BSD-2-Clause
#include "target/preload.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "shared/shim_abi.h"
#include "target/internal.h"

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
#include <unistd.h>

#define BACKLOG 64
#define PATIENCE_US 200000 /* with one who connects and says nothing */

struct preload_server {
	struct preload_options o;
	int image_fd, listener;
	pthread_t thread;
	bool running;
};

static bool send_descriptors(const struct preload_server *s, int to)
{
	const int fds[SHIM_FDS] = {s->image_fd, s->o.page_fd, s->o.slots_fd};
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

	if (getsockopt(client, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0 || (who.uid != s->o.uid && who.uid != 0) || who.pid <= 0)
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
	struct preload_server *s = arg;

	for (;;) {
		_cleanup_close_ int client = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);

		if (client < 0 && errno != EINTR && errno != ECONNABORTED && errno != EMFILE && errno != ENFILE)
			return NULL;
		if (client >= 0)
			serve(s, client);
	}
}

/* A name that nobody else has, and nobody can guess. */
static int listen_somewhere(struct preload_server *s, char *name)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX};
	unsigned long long secret;
	size_t n;

	if (getrandom(&secret, sizeof(secret), 0) != (ssize_t)sizeof(secret))
		return -EIO;
	n = (size_t)snprintf(name, SHIM_SERVER_NAME, "cozbpf-%016llx", secret);
	memcpy(at.sun_path + 1, name, n);
	s->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (s->listener < 0 ||
	    bind(s->listener, (const struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)) < 0 ||
	    listen(s->listener, BACKLOG) < 0)
		return -errno;
	return 0;
}

int preload_serve(const struct preload_options *o, struct preload_server **ret, char *ret_name, struct error *e)
{
	struct preload_server *s = calloc(1, sizeof(*s));
	sigset_t all, before;
	int r;

	if (!s)
		return fail(e, ENOMEM, "out of memory");
	*s = (struct preload_server){.o = *o, .image_fd = -1, .listener = -1};
	r = target_make_image(o->shim, o->shim_size, &s->image_fd, e);
	if (r == 0) {
		r = listen_somewhere(s, ret_name);
		if (r < 0)
			(void)fail(e, -r, "cannot offer the preloaded library to child programs: %s", strerror(-r));
	}
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
	*ret = s;
	return 0;
}

void preload_stop(struct preload_server *s)
{
	if (!s)
		return;
	/* Who waits in accept is woken by this. */
	if (s->listener >= 0)
		(void)shutdown(s->listener, SHUT_RDWR);
	if (s->running)
		(void)pthread_join(s->thread, NULL);
	if (s->listener >= 0)
		(void)close(s->listener);
	if (s->image_fd >= 0)
		(void)close(s->image_fd);
	free(s);
}
