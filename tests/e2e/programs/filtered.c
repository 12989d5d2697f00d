// SPDX-License-Identifier: BSD-2-Clause
/* Threads that may make few system calls: any other one ends the process by SIGSYS. usage: filtered KIND SECONDS. KIND: first (the filter
 * comes before the threads), late (each thread takes it after half of the time), other (only the thread beside the line of burn has it),
 * exec (the filter comes, then the program starts itself over), none, locks (threads that lock, signal, start others and wait for a signal).
 * Two threads compute, one of them in the line of burn. */
#include "helper.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define ALLOW(name) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static uint64_t until, half;
static bool late, other;

static void filter(void)
{
	/* What this program does itself, and the C library for it. */
	static struct sock_filter calls[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(write), ALLOW(exit), ALLOW(exit_group), ALLOW(futex), ALLOW(mmap), ALLOW(munmap), ALLOW(mprotect), ALLOW(madvise), ALLOW(brk),
		ALLOW(clone), ALLOW(clone3), ALLOW(rseq), ALLOW(set_robust_list), ALLOW(rt_sigprocmask), ALLOW(rt_sigaction), ALLOW(fstat),
		ALLOW(newfstatat), ALLOW(execve), ALLOW(arch_prctl), ALLOW(access), ALLOW(openat), ALLOW(close), ALLOW(read), ALLOW(pread64),
		ALLOW(set_tid_address), ALLOW(prlimit64), ALLOW(getrandom), ALLOW(rt_sigtimedwait), ALLOW(wait4),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	const struct sock_fprog p = { sizeof(calls) / sizeof(*calls), calls };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p) < 0) {
		perror("seccomp");
		exit(2);
	}
}

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

static KEEP void beside(uint64_t n)
{
	BURN(n);
}

static void *work(void *arg)
{
	bool in_line = arg != NULL, pending = late;

	if (other && !in_line)
		filter();
	for (uint64_t now = now_ns(); now < until; now = now_ns()) {
		if (pending && now > half) {
			filter();
			pending = false;
		}
		if (in_line)
			burn(100000);
		else
			beside(100000);
		progress();
	}
	return NULL;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int turn;

static void *hand_over(void *arg)
{
	int me = arg != NULL;

	for (int i = 0; i < 50; i++) {
		pthread_mutex_lock(&mutex);
		while (turn != me)
			pthread_cond_wait(&cond, &mutex);
		pthread_mutex_unlock(&mutex);
		if (me)
			burn(20000);
		else
			beside(20000);
		progress();
		pthread_mutex_lock(&mutex);
		turn = !me;
		pthread_cond_signal(&cond);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static void run_pair(void *(*body)(void *))
{
	pthread_t a, b;

	start_thread(&a, body, NULL);
	start_thread(&b, body, (void *)&turn);
	pthread_join(a, NULL);
	pthread_join(b, NULL);
}

static void locks(void)
{
	int sent, status;
	sigset_t set;
	pid_t child;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	child = fork();
	if (child == 0) {
		(void)usleep(200000);
		(void)kill(getppid(), SIGUSR1);
		_exit(0);
	}
	filter();
	sigwait(&set, &sent);
	(void)waitpid(child, &status, 0);
	while (now_ns() < until)
		run_pair(hand_over);
	printf("signal %d\n", sent == SIGUSR1);
}

int main(int argc, char **argv)
{
	double seconds = argc == 3 ? atof(argv[2]) : 0;

	if (!(seconds > 0)) {
		fprintf(stderr, "usage: %s KIND SECONDS\n", argv[0]);
		return 2;
	}
	half = now_ns() + (uint64_t)(seconds * 5e8);
	until = now_ns() + (uint64_t)(seconds * 1e9);
	late = strcmp(argv[1], "late") == 0;
	other = strcmp(argv[1], "other") == 0;
	if (strcmp(argv[1], "exec") == 0) {
		argv[1] = "after";
		filter();
		(void)execv(argv[0], argv);
		perror(argv[0]);
		return 2;
	}
	if (strcmp(argv[1], "first") == 0)
		filter();
	if (strcmp(argv[1], "locks") == 0)
		locks();
	else
		run_pair(work);
	printf("done %s\n", argv[1]);
	return 0;
}
