// SPDX-License-Identifier: BSD-2-Clause
/* The program is confined: what it reads was made of somebody's code. */
#include "annotate/mca.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/sandbox/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "/usr/bin/llvm-mca"
#define NOT_THERE 127
#define NOT_CONFINED 126
#define MOST_BYTES (128U << 20) /* that it may print */
#define MOST_MEMORY (2ULL << 30)
#define MOST_CPU_S 20
#define MOST_MS 60000

void mca_answer_free(struct mca_answer *a)
{
	free(a->out);
	free(a->complaints);
	*a = (struct mca_answer){0};
}

/* There is no way back from here. */
static _Noreturn void become(const int fds[3], const char *cpu, unsigned int iterations)
{
	struct sigaction usual = {.sa_handler = SIG_DFL};
	static const struct sandbox_bounds bounds = {MOST_BYTES, MOST_MEMORY, MOST_CPU_S};
	char cpu_option[64], iterations_option[32], shown_option[48];
	char *const environment[] = {NULL};
	char *const words[] = {(char *)PROGRAM,
			       cpu_option,
			       iterations_option,
			       shown_option,
			       (char *)"-timeline",
			       (char *)"-timeline-max-cycles=0",
			       (char *)"-json",
			       (char *)"-resource-pressure=false",
			       (char *)"-instruction-info=false",
			       NULL};
	sigset_t none;

	(void)snprintf(cpu_option, sizeof(cpu_option), "-mcpu=%s", cpu);
	(void)snprintf(iterations_option, sizeof(iterations_option), "-iterations=%u", iterations);
	(void)snprintf(shown_option, sizeof(shown_option), "-timeline-max-iterations=%u",
		       iterations);
	for (int s = 1; s < _NSIG; s++)
		(void)sigaction(s, &usual, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	for (int i = 0; i < 3; i++)
		if (dup2(fds[i], i) < 0)
			_exit(NOT_THERE);
	(void)syscall(SYS_close_range, 3U, ~0U, 0U);
	if (!sandbox_confine_program(&bounds))
		_exit(NOT_CONFINED);
	(void)execve(PROGRAM, words, environment);
	_exit(NOT_THERE);
}

static int read_back(int fd, char **ret)
{
	off_t n = lseek(fd, 0, SEEK_END);
	char *text;

	if (n < 0 || n > MOST_BYTES)
		return -EIO;
	text = xcalloc((size_t)n + 1, 1);
	if (pread(fd, text, (size_t)n, 0) != n) {
		free(text);
		return -EIO;
	}
	*ret = text;
	return 0;
}

/* Its status, or -ETIMEDOUT. */
static int wait_for(pid_t pid)
{
	struct pollfd end = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	int status = 0, ready = end.fd < 0 ? 1 : TEMP_FAILURE_RETRY(poll(&end, 1, MOST_MS));

	if (ready != 1)
		(void)kill(pid, SIGKILL);
	(void)TEMP_FAILURE_RETRY(waitpid(pid, &status, 0));
	if (end.fd >= 0)
		(void)close(end.fd);
	return ready == 1 ? status : -ETIMEDOUT;
}

int mca_run(const char *text, size_t n, const char *cpu, unsigned int iterations,
	    struct mca_answer *ret, struct error *e)
{
	_cleanup_close_ int in = memfd_create("mca-in", MFD_CLOEXEC),
			    out = memfd_create("mca-out", MFD_CLOEXEC);
	_cleanup_close_ int complaints = memfd_create("mca-complaints", MFD_CLOEXEC);
	_cleanup_(mca_answer_free) struct mca_answer a = {0};
	pid_t pid;
	int r;

	if (in < 0 || out < 0 || complaints < 0 || write(in, text, n) != (ssize_t)n ||
	    lseek(in, 0, SEEK_SET) < 0)
		return fail(e, errno ? errno : EIO, "cannot make files in memory: %m");
	pid = fork();
	if (pid == 0)
		become((const int[]){in, out, complaints}, cpu, iterations);
	if (pid < 0)
		return fail(e, errno, "cannot start " PROGRAM ": %m");
	r = wait_for(pid);
	if (r < 0)
		return fail(e, -r, PROGRAM " does not come to an end");
	a.status = WIFEXITED(r) ? WEXITSTATUS(r) : -1;
	if (a.status == NOT_THERE)
		return fail(e, ENOENT,
			    "there is no " PROGRAM
			    ", which knows what instructions take: install the package llvm");
	if (a.status == NOT_CONFINED)
		return fail(e, EPERM,
			    PROGRAM " is not run, since it cannot be confined here: the kernel "
				    "must allow a process to "
				    "give up its rights and to filter its system calls "
				    "(CONFIG_SECCOMP_FILTER)");
	if (a.status < 0)
		return fail(e, EIO, PROGRAM " was ended by signal %d", WTERMSIG(r));
	r = read_back(out, &a.out);
	if (r == 0)
		r = read_back(complaints, &a.complaints);
	if (r < 0)
		return fail(e, -r, "cannot read what " PROGRAM " says: %s", strerror(-r));
	*ret = a;
	a = (struct mca_answer){0};
	return 0;
}
