/* SPDX-License-Identifier: BSD-2-Clause */
/* A counter that one thread or process gives to and another takes from, blocking at zero: by a mutex and a condition variable, or by a byte
 * for each in whatever has two descriptors. */
#pragma once

#include "program.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>

struct channel {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	uint32_t count;
	int in, out; /* descriptors to take from and to give to */
};

static inline void check(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(2);
}

/* Forks. True in the child, which ends with its parent. */
static inline bool in_child(void)
{
	pid_t parent = getpid(), pid = fork();

	check(pid >= 0, "fork");
	if (pid == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent))
		_exit(2);
	return pid == 0;
}

/* @shared: between the processes that map it. */
static inline void open_counter(struct channel *c, bool shared)
{
	int how = shared ? PTHREAD_PROCESS_SHARED : PTHREAD_PROCESS_PRIVATE;
	pthread_mutexattr_t m;
	pthread_condattr_t v;

	(void)pthread_mutexattr_init(&m);
	(void)pthread_mutexattr_setpshared(&m, how);
	(void)pthread_mutex_init(&c->lock, &m);
	(void)pthread_condattr_init(&v);
	(void)pthread_condattr_setpshared(&v, how);
	(void)pthread_cond_init(&c->cond, &v);
}

static inline void give_counter(struct channel *c)
{
	(void)pthread_mutex_lock(&c->lock);
	c->count++;
	(void)pthread_cond_signal(&c->cond);
	(void)pthread_mutex_unlock(&c->lock);
}

static inline void take_counter(struct channel *c)
{
	(void)pthread_mutex_lock(&c->lock);
	while (c->count == 0)
		(void)pthread_cond_wait(&c->cond, &c->lock);
	c->count--;
	(void)pthread_mutex_unlock(&c->lock);
}

static inline void open_pipe(struct channel *c)
{
	int fds[2];

	check(pipe(fds) == 0, "pipe");
	c->in = fds[0];
	c->out = fds[1];
}

static inline void give_byte(struct channel *c)
{
	check(write(c->out, "x", 1) == 1, "write");
}

static inline void take_byte(struct channel *c)
{
	char byte;

	while (read(c->in, &byte, 1) != 1)
		check(errno == EINTR, "read");
}

/* Two ends of a connection over the loopback device, the accepting one first. */
static inline void open_tcp(int fds[2])
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	check(listener >= 0 && bind(listener, (struct sockaddr *)&at, size) == 0 && listen(listener, 1) == 0, "listen");
	check(getsockname(listener, (struct sockaddr *)&at, &size) == 0, "getsockname");
	fds[1] = socket(AF_INET, SOCK_STREAM, 0);
	check(fds[1] >= 0 && connect(fds[1], (struct sockaddr *)&at, size) == 0, "connect");
	(void)setsockopt(fds[1], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	fds[0] = accept(listener, NULL, NULL);
	check(fds[0] >= 0, "accept");
	(void)close(listener);
}
