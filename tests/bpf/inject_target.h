/* SPDX-License-Identifier: BSD-2-Clause */
/* The process that payment handlers are put into: threads that sleep, read, wait or compute, and
 * say how often a call of theirs was interrupted. */
#pragma once

#include "base/proc.h"
#include "target/process.h"

#include <dirent.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define MSEC 1000000LL

enum { SLEEPS, READS, WAITS, SHORT_WAITS, TIMED_RECEIVE, COMPUTES, KINDS };

/* The target tells of itself here, and stops by it. */
static struct {
	int ready, stop, fork, filter,
		filtered; /* filter: bits of the kinds that are to filter their system calls */
	pid_t tids[KINDS], child;
	uint64_t eintr, turns[KINDS];
} * shared;

static int ways[2], talk[2];

static void note(int kind, long r)
{
	if (r < 0 && errno == EINTR)
		(void)__atomic_add_fetch(&shared->eintr, 1, __ATOMIC_RELAXED);
	(void)__atomic_add_fetch(&shared->turns[kind], 1, __ATOMIC_RELAXED);
}

/* What threads that sleep or compute need, and no more: for any other call the process is killed.
 */
static void filter_all_but_own(void)
{
	static const int own[] = {SYS_clock_nanosleep, SYS_nanosleep, SYS_rt_sigreturn,
				  SYS_rt_sigprocmask,  SYS_madvise,   SYS_munmap,
				  SYS_futex,	       SYS_exit,      SYS_exit_group};
	enum { OWN = sizeof(own) / sizeof(*own) };
	struct sock_filter f[2 * OWN + 2] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0 /* the number */)};
	struct sock_fprog p = {2 * OWN + 2, f};

	for (size_t i = 0; i < OWN; i++) {
		f[2 * i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K,
							    (unsigned int)own[i], 0, 1);
		f[2 * i + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	}
	f[2 * OWN + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	(void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p, 0, 0);
	(void)__atomic_add_fetch(&shared->filtered, 1, __ATOMIC_RELEASE);
}

static void *live(void *arg)
{
	int kind = (int)(intptr_t)arg, epoll = epoll_create1(0);
	const struct timeval patience = {.tv_usec = 20000};
	struct timespec nap = {.tv_nsec = 3 * MSEC};
	struct epoll_event e;
	char c;

	shared->tids[kind] = (pid_t)syscall(SYS_gettid);
	(void)__atomic_add_fetch(&shared->ready, 1, __ATOMIC_RELEASE);
	(void)setsockopt(talk[0], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	while (!__atomic_load_n(&shared->stop, __ATOMIC_ACQUIRE)) {
		if (__atomic_fetch_and(&shared->filter, ~(1 << kind), __ATOMIC_ACQ_REL) >> kind & 1)
			filter_all_but_own();
		switch (kind) {
		case SLEEPS:
			note(kind, nanosleep(&nap, NULL));
			break;
		case READS:
			note(kind, read(ways[0], &c, 1)); /* until the end of the test */
			break;
		case WAITS:
			note(kind, epoll_wait(epoll, &e, 1, 500));
			break;
		case SHORT_WAITS:
			note(kind, epoll_wait(epoll, &e, 1, 2));
			break;
		case TIMED_RECEIVE:
			note(kind, recv(talk[0], &c, 1, 0));
			break;
		default:
			for (volatile int i = 0; i < 100000; i++)
				;
			note(kind, 0);
			if (__atomic_exchange_n(&shared->fork, 0, __ATOMIC_ACQ_REL)) {
				pid_t pid = fork();

				if (pid == 0) {
					while (!__atomic_load_n(&shared->stop, __ATOMIC_ACQUIRE))
						(void)usleep(1000);
					_exit(0);
				}
				shared->child = pid;
			}
		}
	}
	return NULL;
}

/* The first thread ends, and the others live on. */
static bool headless;

static _Noreturn void target(int kinds)
{
	pthread_t threads[KINDS];

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < KINDS; i++)
		if (kinds >> i & 1)
			(void)pthread_create(&threads[i], NULL, live, (void *)(intptr_t)i);
	if (headless)
		pthread_exit(NULL);
	for (int i = 0; i < KINDS; i++)
		if (kinds >> i & 1)
			(void)pthread_join(threads[i], NULL);
	_exit(0);
}

/* The state of the process, as the kernel writes it: 'T' is stopped. */
static char state_of(pid_t pid)
{
	struct process_facts f = {.state = 0};

	assert_int_equal(process_read(pid, &f), 0);
	return f.state;
}

static bool blocks_signals(pid_t pid)
{
	char *status = process_text(pid, "status");
	bool blocks = status && process_field(status, "\nSigBlk:", 16);

	free(status);
	return blocks;
}

static pid_t start(int kinds, void (*first)(void))
{
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	assert_int_equal(pipe(ways), 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, talk), 0);
	pid = fork();
	if (pid == 0) {
		if (first)
			first();
		target(kinds);
	}
	assert_true(pid > 0);
	while (__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE) <
	       __builtin_popcount((unsigned int)kinds))
		(void)usleep(1000);
	while (headless && proc_thread(pid) == pid)
		(void)usleep(1000);
	/* The C library blocks signals while it makes a thread. */
	while (!headless && blocks_signals(pid))
		(void)usleep(1000);
	return pid;
}

static void finish(pid_t pid)
{
	int status;

	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELEASE);
	assert_int_equal(write(ways[1], "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	for (int i = 0; i < 2; i++) {
		(void)close(ways[i]);
		(void)close(talk[i]);
	}
}

/* The mappings, the descriptors and the signals of a process, as far as they are its own. */
static char *facts(pid_t pid)
{
	char path[64], *text = calloc(1, 1 << 20);
	size_t used = 0, fds = 0;
	DIR *d;

	assert_non_null(text);
	/* The heap and what the C library maps for its threads may grow. */
	for (int i = 0; i < 2; i++) {
		char *all = process_text(pid, i ? "status" : "maps"), *at = all, *line;

		assert_non_null(all);
		while ((line = strsep(&at, "\n")))
			if (strstr(line, "-xp ") || strstr(line, "rw-s ") ||
			    (strncmp(line, "Sig", 3) == 0 && strncmp(line, "SigQ", 4) != 0))
				used += (size_t)snprintf(text + used, (1 << 20) - used, "%s\n",
							 line);
		free(all);
	}
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	d = opendir(path);
	assert_non_null(d);
	while (readdir(d))
		fds++;
	(void)closedir(d);
	(void)snprintf(text + used, (1 << 20) - used, "descriptors %zu\n", fds);
	return text;
}

static void same_facts(pid_t pid, char *before)
{
	char *after = facts(pid);
	const char *was = before, *is = after;

	if (strcmp(before, after) == 0) {
		free(after);
		return;
	}
	for (size_t n; (n = strcspn(was, "\n")) == strcspn(is, "\n") && !memcmp(was, is, n);) {
		was += n + 1;
		is += n + 1;
	}
	fail_msg("it was '%.*s' and is '%.*s'", (int)strcspn(was, "\n"), was,
		 (int)strcspn(is, "\n"), is);
}

static void finish_as_before(pid_t pid, char *before)
{
	same_facts(pid, before);
	finish(pid);
	free(before);
}
