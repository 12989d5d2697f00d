// SPDX-License-Identifier: BSD-2-Clause
#include "base/sandbox/maker.h"
#include "base/sandbox/confine.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/message.h"
#include "base/open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_S 60

/* Makes a process of each socket that arrives, which serves it. */
static _Noreturn void make(int control, void (*serve)(int fd))
{
	char byte;
	int fd;

	(void)signal(SIGCHLD, SIG_IGN); /* nobody waits for them */
	while (message_read_fd(control, &byte, 1, 0, &fd, NULL) == 0) {
		if (fd < 0)
			continue;
		if (fork() == 0) {
			(void)close(control);
			serve(fd);
		}
		(void)close(fd);
	}
	_exit(0);
}

static _Noreturn void be_maker(int control, void (*serve)(int fd), bool rights)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	char ok = 1;

	/* Not a signal of the terminal's is meant for it. */
	(void)setsid();
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		_exit(1);
	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			_exit(1);
	if (dup2(control, STDERR_FILENO + 1) < 0 ||
	    syscall(SYS_close_range, STDERR_FILENO + 2, ~0U, 0) < 0)
		_exit(1);
	control = STDERR_FILENO + 1;
	ok = rights || sandbox_drop_rights();
	if (message_send(control, &ok, 1, 0) < 0 || !ok)
		_exit(1);
	make(control, serve);
}

int maker_start(struct maker *m, void (*serve)(int fd), bool rights)
{
	int ends[2], r;
	char ok;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	m->pid = fork();
	if (m->pid == 0)
		be_maker(ends[1], serve, rights);
	r = m->pid < 0 ? -errno : 0;
	if (m->pid < 0)
		m->pid = 0;
	(void)close(ends[1]);
	m->control = ends[0];
	if (r == 0)
		r = message_read(ends[0], &ok, 1, clock_monotonic_ns() + START_S * NSEC_PER_SEC);
	return r == 0 && !ok ? -EPERM : r;
}

void maker_stop(struct maker *m)
{
	/* It ends by that as well: without CAP_KILL root cannot end what is nobody's. */
	if (m->control >= 0)
		(void)close(m->control);
	if (m->pid) {
		(void)kill(m->pid, SIGKILL); /* which takes the processes that it made along */
		(void)waitpid(m->pid, NULL, 0);
	}
	m->control = -1;
	m->pid = 0;
}

int maker_make(const struct maker *m, uint64_t deadline_ns, struct made *ret)
{
	int ends[2], on = 1, r;
	char byte = 0;

	if (descriptors_are_short())
		return -EMFILE;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
		return -errno;
	(void)setsockopt(ends[0], SOL_SOCKET, SO_PASSCRED, &on, sizeof(on));
	r = message_send_fd(m->control, ends[1], &byte, 1, deadline_ns);
	(void)close(ends[1]);
	*ret = (struct made){.fd = ends[0], .pidfd = -1};
	if (r < 0)
		made_end(ret);
	return r;
}

int made_read(struct made *m, void *bytes, size_t n, uint64_t deadline_ns)
{
	_cleanup_close_ int unwanted = -1;
	int pid = 0, r = message_read_fd(m->fd, bytes, n, deadline_ns, &unwanted, &pid);

	if (r == 0 && pid > 0)
		m->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	return r;
}

void made_end(struct made *m)
{
	if (m->pidfd >= 0) {
		(void)syscall(SYS_pidfd_send_signal, m->pidfd, SIGKILL, NULL, 0);
		(void)close(m->pidfd);
	}
	if (m->fd >= 0)
		(void)close(m->fd);
	m->fd = m->pidfd = -1;
}
