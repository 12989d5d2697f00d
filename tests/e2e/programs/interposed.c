// SPDX-License-Identifier: BSD-2-Clause
/* Two threads compute and share a mutex, then the program starts itself once more. Of libc it calls what cozbpf's library wraps and nothing else, so
 * that it runs with libinterpose.so as without it. usage: interposed HOW SECONDS [FILE], HOW one of exec, spawn, system (starts `interposed end SECONDS`) or
 * end. It ends early once FILE is there. Prints HOW, the name of a function of libinterpose.so that was called, if one was, and `done`. */
#include "helper.h"

#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern const char *interposed_call __attribute__((weak));
extern char **environ;

static volatile int over;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static long call(long number, long a, long b, long c, long d)
{
	register long fourth __asm__("r10") = d;
	long result;

	__asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth) : "rcx", "r11", "memory");
	return result;
}

static void say(const char *text)
{
	long n = 0;

	while (text[n]) {
		n++;
		__asm__ volatile("" : "+r"(n)); /* no call of strlen */
	}
	(void)call(SYS_write, STDOUT_FILENO, (long)text, n, 0);
	(void)call(SYS_write, STDOUT_FILENO, (long)"\n", 1, 0);
}

static double kernel_seconds(void)
{
	struct timespec t = { 0 };

	(void)call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&t, 0, 0);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

static KEEP void other(uint64_t n)
{
	BURN(n);
}

static void *body(void *arg)
{
	while (!over) {
		if (arg)
			burn(100000);
		else
			other(100000);
		(void)pthread_mutex_lock(&mutex);
		progress();
		(void)pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	char *again[] = { argv[0], (char *)(uintptr_t)"end", argc > 2 ? argv[2] : NULL, NULL };
	double seconds = argc > 2 ? atof(argv[2]) : 0, end = kernel_seconds() + seconds;
	char how = argc > 2 ? argv[1][0] : 0, line[4096];
	pthread_t t[2];
	int status = 0;
	pid_t pid;

	for (int i = 0; i < 2; i++)
		if (pthread_create(&t[i], NULL, body, i ? argv : NULL) != 0)
			return 2;
	while (kernel_seconds() < end && (argc < 4 || call(SYS_access, (long)argv[3], F_OK, 0, 0) < 0))
		(void)call(SYS_nanosleep, (long)&(struct timespec){ .tv_nsec = 1000000 }, 0, 0, 0);
	over = 1;
	for (int i = 0; i < 2; i++)
		if (pthread_join(t[i], NULL) != 0)
			return 2;
	say(argc > 2 ? argv[1] : "");
	if (&interposed_call && interposed_call)
		say(interposed_call);
	if (how == 'e' && argv[1][1] == 'x') {
		(void)execv(argv[0], again);
		return 2;
	}
	if (how == 's' && argv[1][1] == 'p') {
		if (posix_spawn(&pid, argv[0], NULL, NULL, again, environ) != 0 || call(SYS_wait4, pid, (long)&status, 0, 0) != pid || status)
			return 2;
	} else if (how == 's') {
		char *to = line;

		/* The shell does not run with a C library that returns nonsense. */
		for (char **e = environ; *e; e++)
			if ((*e)[0] == 'L' && (*e)[1] == 'D' && (*e)[2] == '_' && (*e)[3] == 'P')
				(*e)[0] = 'N';
		for (int i = 0; i < 3; i++) {
			for (const char *from = again[i]; *from; from++) {
				*to++ = *from;
				__asm__ volatile("" : "+r"(from));
			}
			*to++ = ' ';
		}
		*to = '\0';
		if (system(line) != 0)
			return 2;
	}
	if (&interposed_call && interposed_call)
		say(interposed_call);
	say("done");
	return 0;
}
