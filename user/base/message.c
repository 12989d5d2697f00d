// SPDX-License-Identifier: BSD-2-Clause
#include "base/message.h"

#include "base/clock.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MOST_NS (60 * NSEC_PER_SEC)

/* For @events, or the end of the other side. */
static int wait_for(int fd, short events, uint64_t deadline_ns)
{
	struct pollfd p = {.fd = fd, .events = events};

	for (;;) {
		uint64_t now = deadline_ns ? clock_monotonic_ns() : 0;
		int r;

		if (deadline_ns && now >= deadline_ns)
			return -ETIMEDOUT;
		r = poll(&p, 1,
			 deadline_ns ? (int)(deadline_ns - now < MOST_NS
						     ? (deadline_ns - now) / NSEC_PER_MSEC + 1
						     : 60000)
				     : -1);
		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return -EPIPE;
	}
}

/* As much as there is room for. Without a descriptor by send(): decoders need no sendmsg(), by
 * which whoever has taken one over could pass descriptors to us. */
static ssize_t send_some(int fd, struct msghdr *m, uint64_t deadline_ns)
{
	for (;;) {
		int err = wait_for(fd, POLLOUT, deadline_ns);
		ssize_t r = err < 0	     ? err
			    : m->msg_control ? sendmsg(fd, m, MSG_NOSIGNAL | MSG_DONTWAIT)
					     : send(fd, m->msg_iov->iov_base, m->msg_iov->iov_len,
						    MSG_NOSIGNAL | MSG_DONTWAIT);

		if (r >= 0 || err < 0)
			return r;
		if (errno != EINTR && errno != EAGAIN)
			return -EPIPE;
	}
}

int message_send_fd(int fd, int passed, const void *bytes, size_t n, uint64_t deadline_ns)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec v = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = n};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};

	if (passed >= 0) {
		struct cmsghdr *c;

		m.msg_control = control.bytes;
		m.msg_controllen = sizeof(control.bytes);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(c), &passed, sizeof(int));
	}
	while (v.iov_len) {
		ssize_t r = send_some(fd, &m, deadline_ns);

		if (r <= 0)
			return r < 0 ? (int)r : -EPIPE;
		v.iov_base = (char *)v.iov_base + r;
		v.iov_len -= (size_t)r;
		m.msg_control = NULL; /* it went with the first bytes */
		m.msg_controllen = 0;
	}
	return 0;
}

int message_send(int fd, const void *bytes, size_t n, uint64_t deadline_ns)
{
	return n ? message_send_fd(fd, -1, bytes, n, deadline_ns) : 0;
}

int message_read(int fd, void *bytes, size_t n, uint64_t deadline_ns)
{
	while (n) {
		ssize_t r;
		int err = wait_for(fd, POLLIN, deadline_ns);

		if (err < 0)
			return err;
		r = recv(fd, bytes, n, 0);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0)
			return -EPIPE;
		bytes = (char *)bytes + r;
		n -= (size_t)r;
	}
	return 0;
}

/* One is the most that is ever sent; whoever has taken over a decoder may send several. */
static void take_files(const unsigned char *bytes, size_t n, int *ret_fd)
{
	for (size_t i = 0; i < n; i++) {
		int fd;

		memcpy(&fd, bytes + i * sizeof(fd), sizeof(fd));
		if (*ret_fd < 0)
			*ret_fd = fd;
		else
			(void)close(fd);
	}
}

static void take_control(struct msghdr *m, int *ret_fd, int *ret_pid)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_RIGHTS)
			take_files(CMSG_DATA(c), (c->cmsg_len - CMSG_LEN(0)) / sizeof(int), ret_fd);
		if (c->cmsg_type == SCM_CREDENTIALS &&
		    c->cmsg_len == CMSG_LEN(sizeof(struct ucred)) && ret_pid) {
			struct ucred who;

			memcpy(&who, CMSG_DATA(c), sizeof(who));
			*ret_pid = who.pid;
		}
	}
}

int message_read_fd(int fd, void *bytes, size_t n, uint64_t deadline_ns, int *ret_fd, int *ret_pid)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec v = {.iov_base = bytes, .iov_len = n};
	struct msghdr m = {.msg_iov = &v,
			   .msg_iovlen = 1,
			   .msg_control = control.bytes,
			   .msg_controllen = sizeof(control.bytes)};
	ssize_t r;
	int err = wait_for(fd, POLLIN, deadline_ns);

	*ret_fd = -1;
	if (err < 0)
		return err;
	do
		r = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	while (r < 0 && errno == EINTR);
	if (r <= 0)
		return -EPIPE;
	take_control(&m, ret_fd, ret_pid);
	err = message_read(fd, (char *)bytes + r, n - (size_t)r, deadline_ns);
	if (err < 0 && *ret_fd >= 0) {
		(void)close(*ret_fd);
		*ret_fd = -1;
	}
	return err;
}
