// SPDX-License-Identifier: BSD-2-Clause
/* What confined processes can do: a decoder reads what it is given and answers; a program that is
 * not ours runs, with its libraries, and can do nothing besides. */
#include "base/sandbox/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const struct sandbox_bounds bounds = {1 << 20, 4ULL << 30, 5};

static bool has_landlock(void)
{
	return syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0;
}

static bool can_open(const char *path, int flags)
{
	return open(path, flags | O_CLOEXEC, 0600) >= 0;
}

static bool can_map(int protection, int flags, int fd)
{
	return mmap(NULL, 4096, protection, MAP_PRIVATE | flags, fd, 0) != MAP_FAILED;
}

/* Each is forbidden. A bit for each that works all the same; without Landlock some do. */
static uint64_t try_all(bool landlock)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const bool works[] = {
		landlock && can_open("/etc/passwd", O_RDONLY),
		landlock && can_open("/proc/self/status", O_RDONLY),
		landlock && can_open("/dev/null", O_RDONLY),
		can_open("/dev/null", O_WRONLY),
		can_open("/tmp/cozbpf-confined", O_WRONLY | O_CREAT),
		can_open("/tmp", O_RDWR | O_TMPFILE),
		socket(AF_INET, SOCK_STREAM, 0) >= 0,
		socket(AF_UNIX, SOCK_STREAM, 0) >= 0,
		fork() >= 0,
		syscall(SYS_clone, SIGCHLD | CLONE_VM, 0, 0, 0, 0) >= 0,
		kill(getppid(), 0) == 0,
		syscall(SYS_tgkill, getpid(), gettid(), SIGUSR1) == 0,
		ptrace(PTRACE_TRACEME, 0, NULL, NULL) == 0,
		can_map(PROT_READ | PROT_WRITE | PROT_EXEC, MAP_ANONYMOUS, -1),
		can_map(PROT_READ | PROT_EXEC, MAP_ANONYMOUS, -1),
		mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0,
		memfd_create("x", 0) >= 0,
		unlink("/tmp/cozbpf-confined") == 0 || errno == ENOENT,
		mkdir("/tmp/cozbpf-confined", 0700) == 0,
		setuid(0) == 0 && geteuid() == 0,
		syscall(SYS_unshare, CLONE_NEWUSER) == 0,
		syscall(SYS_bpf, 0, NULL, 0) == 0,
		syscall(SYS_io_uring_setup, 1, NULL) >= 0 || errno != EPERM,
	};
	uint64_t all = 0;

	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
		all |= (uint64_t)works[i] << i;
	return all;
}

static int end_of(pid_t pid)
{
	int status = 0;

	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void nothing_else_works(void **state)
{
	uint64_t all = 0;
	int ends[2];
	bool landlock = has_landlock();
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		if (!sandbox_confine_program(&bounds))
			_exit(1);
		all = try_all(landlock);
		_exit(write(ends[1], &all, sizeof(all)) != sizeof(all));
	}
	(void)close(ends[1]);
	assert_int_equal(end_of(pid), 0);
	assert_int_equal(read(ends[0], &all, sizeof(all)), sizeof(all));
	(void)close(ends[0]);
	if (all)
		fail_msg("these work: %llx", (unsigned long long)all);
}

/* @text on its input; what it writes goes to *answer. */
static int run(const char *path, const char *text, char *answer, size_t size)
{
	char *const words[] = {(char *)(uintptr_t)path, NULL}, *const environment[] = {NULL};
	int in = memfd_create("in", MFD_CLOEXEC), out = memfd_create("out", MFD_CLOEXEC), status;
	ssize_t n;
	pid_t pid;

	assert_true(write(in, text, strlen(text)) == (ssize_t)strlen(text) &&
		    lseek(in, 0, SEEK_SET) == 0);
	pid = fork();
	if (pid == 0) {
		if (dup2(in, 0) < 0 || dup2(out, 1) < 0 || !sandbox_confine_program(&bounds))
			_exit(126);
		(void)execve(path, words, environment);
		_exit(127);
	}
	status = end_of(pid);
	n = pread(out, answer, size - 1, 0);
	answer[n > 0 ? n : 0] = '\0';
	(void)close(in);
	(void)close(out);
	return status;
}

/* It loads its libraries, reads and writes. */
static void programs_run(void **state)
{
	char answer[64];

	(void)state;
	assert_int_equal(run("/usr/bin/sort", "b\na\n", answer, sizeof(answer)), 0);
	assert_string_equal(answer, "a\nb\n");
	/* A shell can start nothing. */
	assert_int_not_equal(run("/bin/sh", "cat /etc/passwd; echo on", answer, sizeof(answer)), 0);
	assert_string_equal(answer, "");
}

/* May another process of nobody's read what is mapped in @pid? */
static bool nobody_sees(pid_t pid)
{
	char path[64];
	pid_t other = fork();

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	if (other == 0)
		_exit(setgroups(0, NULL) < 0 || setgid(65534) < 0 || setuid(65534) < 0 ||
		      can_open(path, O_RDONLY));
	return end_of(other) != 0;
}

/* What a confined process becomes is dumpable again. */
static void nobody_looks_in(void **state)
{
	char *const words[] = {(char *)(uintptr_t) "/usr/bin/sort", NULL};
	int in[2], out[2];
	char byte = 0;
	pid_t pid;

	(void)state;
	if (geteuid() != 0) {
		print_message("only root's programs become another user's\n");
		skip();
	}
	assert_true(pipe(in) == 0 && pipe2(out, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		(void)close(in[1]);
		if (dup2(in[0], 0) < 0 || !sandbox_confine_program(&bounds))
			_exit(126);
		(void)execve(words[0], words, NULL);
		_exit(127);
	}
	/* Closed by its exec. */
	(void)close(out[1]);
	assert_int_equal(read(out[0], &byte, 1), 0);
	assert_false(nobody_sees(pid));
	(void)close(in[1]);
	(void)close(in[0]);
	(void)close(out[0]);
	assert_int_equal(end_of(pid), 0);
}

/* A decoder, which needs less: what it is given, and to answer. */
static uint64_t try_as_decoder(int socket_fd)
{
	struct rlimit limit = {1, 1};
	char byte = 0;
	struct iovec v = {&byte, 1};
	struct msghdr m = {.msg_iov = &v, .msg_iovlen = 1};
	const bool works[] = {
		/* These must work ... */
		send(socket_fd, &byte, 1, 0) != 1,
		getrlimit(RLIMIT_CPU, &limit) != 0,
		fcntl(socket_fd, F_GETFD) < 0,
		lseek(socket_fd, 0, SEEK_CUR) == 0 || errno != ESPIPE,
		/* ... and these must not. */
		sendmsg(socket_fd, &m, 0) >= 0 || errno != EPERM,
		syscall(SYS_setrlimit, RLIMIT_CPU, &limit) == 0 || errno != EPERM,
		can_open("/etc/passwd", O_RDONLY),
		socket(AF_UNIX, SOCK_STREAM, 0) >= 0,
		fork() >= 0,
		kill(getppid(), 0) == 0,
		can_map(PROT_READ | PROT_EXEC, MAP_ANONYMOUS, -1),
		syscall(SYS_execve, "/bin/true", NULL, NULL) == 0 || errno != EPERM,
		dup(socket_fd) >= 0,
		syscall(SYS_openat2, AT_FDCWD, "/", NULL, 0) >= 0 || errno != EPERM,
		syscall(SYS_statx, AT_FDCWD, "/", 0, 0, NULL) == 0 || errno != EPERM,
	};
	uint64_t all = 0;

	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
		all |= (uint64_t)works[i] << i;
	return all;
}

static void decoders_can_answer_alone(void **state)
{
	uint64_t all = 0;
	int ends[2];
	char byte;
	pid_t pid;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	pid = fork();
	if (pid == 0) {
		if (!sandbox_drop_rights() || !sandbox_confine(1ULL << 40, 10))
			_exit(1);
		all = try_as_decoder(ends[1]);
		_exit(send(ends[1], &all, sizeof(all), 0) != sizeof(all));
	}
	assert_int_equal(end_of(pid), 0);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	assert_int_equal(read(ends[0], &all, sizeof(all)), sizeof(all));
	(void)close(ends[0]);
	(void)close(ends[1]);
	if (all)
		fail_msg("other than expected: %llx", (unsigned long long)all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_else_works),
		cmocka_unit_test(programs_run),
		cmocka_unit_test(nobody_looks_in),
		cmocka_unit_test(decoders_can_answer_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
