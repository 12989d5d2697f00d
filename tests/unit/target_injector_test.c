// SPDX-License-Identifier: BSD-2-Clause
/* The process that injects payment handlers, with a worker that hangs in a program's memory and
 * cannot be killed, and hung up itself. Its patience is cut here. */
#include "base/error.h"
#include "target/shim/image.h"
#include "target/inject.h"
#include "target/injector.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

#define SHORT_MS 100
#define ANSWER_S 5 /* for what takes a few SHORT_MS */
#define TOO_LONG_S 60

static struct {
	pid_t server, worker;
	bool gets_on;
} * ours;

int __wrap_inject_enter(const struct inject_options *o, pid_t pid, int pidfd,
			const struct inject_layout *known, size_t n_known,
			struct inject_layout *ret, struct injected *ret_threads, struct error *e);
int __wrap_inject_enter(const struct inject_options *o, pid_t pid, int pidfd,
			const struct inject_layout *known, size_t n_known,
			struct inject_layout *ret, struct injected *ret_threads, struct error *e)
{
	(void)pid, (void)pidfd, (void)known, (void)n_known, (void)ret, (void)ret_threads, (void)e;
	for (int i = 0; ours->gets_on && i < 30; i++) {
		o->progress->steps++;
		(void)usleep(SHORT_MS * 1000 / 10);
	}
	if (ours->gets_on)
		return 0;
	ours->server = getppid();
	ours->worker = getpid();
	(void)sleep(2 * TOO_LONG_S);
	_exit(1);
}

int __real_kill(pid_t pid, int signo);
int __wrap_kill(pid_t pid, int signo);
int __wrap_kill(pid_t pid, int signo)
{
	return pid == ours->worker ? 0 : __real_kill(pid, signo);
}

int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
	return __real_poll(fds, n, timeout > SHORT_MS ? SHORT_MS : timeout);
}

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t size);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	const struct timeval patience = {.tv_sec = ANSWER_S};

	return name == SO_RCVTIMEO ? __real_setsockopt(fd, level, name, &patience, sizeof(patience))
				   : __real_setsockopt(fd, level, name, value, size);
}

/* Starts one and returns what injector_enter says of this process. */
static int start_and_enter(struct injector **ret, struct error *e)
{
	const struct injector_options o = {
		.image = shim_blob_image, .size = shim_blob_image_size, .signo = SIGRTMAX - 4};
	int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0), r;
	struct injected got;

	assert_true(pidfd >= 0);
	assert_int_equal(injector_start(&o, ret, e), 0);
	r = injector_enter(*ret, getpid(), pidfd, &got, e);
	(void)close(pidfd);
	return r;
}

static void waits_for_nobody_for_ever(void **state)
{
	struct injector *i;
	struct error e = {""};

	(void)state;
	(void)alarm(TOO_LONG_S);
	assert_int_equal(start_and_enter(&i, &e), -EIO);
	assert_int_equal(__real_kill(ours->server, SIGSTOP), 0);
	assert_int_equal(injector_stop(i, &e), -EPIPE);
	(void)alarm(0);
}

/* Of a process that gets the CPU now and then a step takes long: it must not be let go before its
 * registers are its own again. */
static void leaves_nobody_halfway(void **state)
{
	struct injector *i;
	struct error e = {""};

	(void)state;
	ours->gets_on = true;
	assert_int_equal(start_and_enter(&i, &e), 0);
	ours->gets_on = false;
	(void)injector_stop(i, &e);
}

static int end_them(void **state)
{
	(void)state;
	if (ours->server)
		(void)__real_kill(ours->server, SIGKILL);
	if (ours->worker)
		(void)__real_kill(ours->worker, SIGKILL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaves_nobody_halfway),
		cmocka_unit_test_teardown(waits_for_nobody_for_ever, end_them),
	};

	ours = mmap(NULL, sizeof(*ours), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return ours == MAP_FAILED ? 125 : cmocka_run_group_tests(tests, NULL, NULL);
}
