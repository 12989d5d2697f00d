// SPDX-License-Identifier: BSD-2-Clause
/* Code that this process maps is told at once, and what others map is not taken for it. */
#include "base/error.h"
#include "session/code_watch.h"
#include "tests/bpf/require.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h> /* its fail() would meet ours */

#define PAGE 4096

static void map(int prot)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	void *p = mmap(NULL, PAGE, prot, MAP_PRIVATE, fd, 0);

	if (p == MAP_FAILED)
		_exit(1);
	(void)munmap(p, PAGE);
	(void)close(fd);
}

static void *map_in_thread(void *arg)
{
	map(PROT_READ | PROT_EXEC);
	return arg;
}

/* Is it readable within @ms? */
static bool told(const struct code_watch *w, int ms)
{
	struct pollfd fd = {.fd = code_watch_fd(w), .events = POLLIN};

	return poll(&fd, 1, ms) == 1;
}

static void tells_of_mapped_code(void **state)
{
	struct code_watch *w = NULL;
	struct error e = {.text = ""};
	pthread_t thread;
	pid_t pid;
	int status;

	(void)state;
	REQUIRE_BPF();
	if (code_watch_open(&w, &e) < 0)
		fail_msg("%s", e.text);
	(void)code_watch_saw(w, getpid());
	map(PROT_READ);
	assert_false(code_watch_saw(w, getpid()));
	for (int i = 0; i < 300; i++) {
		map(PROT_READ | PROT_EXEC);
		assert_true(told(w, 2000));
		assert_true(code_watch_saw(w, getpid()));
		assert_false(code_watch_saw(w, getpid()));
	}
	assert_int_equal(pthread_create(&thread, NULL, map_in_thread, NULL), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	assert_true(told(w, 2000));
	assert_true(code_watch_saw(w, getpid()));
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		map(PROT_READ | PROT_EXEC);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(told(w, 2000));
	assert_false(code_watch_saw(w, getpid()));
	map(PROT_READ | PROT_EXEC);
	assert_true(told(w, 2000));
	assert_true(code_watch_saw(w, getpid()));
	/* More than there is room for at one time. */
	for (int i = 0; i < 3000; i++)
		map(PROT_READ | PROT_EXEC);
	assert_true(code_watch_saw(w, getpid()));
	assert_false(code_watch_saw(w, getpid()));
	code_watch_close(w);
	code_watch_close(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_of_mapped_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
