// SPDX-License-Identifier: BSD-2-Clause
/* Runs a target: NAME [ITERATIONS [SEED]] on inputs that it makes, or NAME FILE... on those in
 * files (what libFuzzer found).
 *
 * Iteration i is made from SEED + i alone, so that NAME 1 SEED+i repeats it. Many run in one
 * process, which is what makes them cheap; when one crashes or hangs, a new process goes on behind
 * it. */
#include "base/clock.h"
#include "crash.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>

/* Of CPU time, or ten times as many altogether: a machine may stop for as long as it likes. */
#define SECONDS 20
#define MEMORY (4ULL << 30)
/* Of one process: what a leak takes is then found before it hurts, and libraries that leak do no
 * harm. */
#define PER_PROCESS 20000

enum outcome { FINE, LIBRARY_CRASH, LIBRARY_HANG, OUR_CRASH, OUR_HANG, LEAK, N_OUTCOMES };

static const char *const outcome_names[] = {
	"fine", "crashed in a library", "hung in a library", "crashed", "hung", "leaked"};

/* What the processes share. */
static struct {
	unsigned long at, read, count[N_OUTCOMES];
	int stop; /* somebody has seen enough: the counts so far are printed */
} * shared;

static unsigned char *room;

#if defined(__SANITIZE_ADDRESS__)
int __lsan_do_recoverable_leak_check(void);
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libelf\nleak:libdwarf\n";
}
#endif

void fuzz_read(void)
{
	shared->read++;
}

static void on_crash(int sig)
{
	void *frames[64];
	int n = backtrace(frames, 64);
	/* The first is this handler. */
	bool library = crash_is_library(frames + 1, n - 1);

	if (!library || fuzz_verbose)
		backtrace_symbols_fd(frames, n, STDERR_FILENO);
	_exit(sig == SIGALRM || sig == SIGPROF ? (library ? LIBRARY_HANG : OUR_HANG)
					       : (library ? LIBRARY_CRASH : OUR_CRASH));
}

static void watch(void)
{
	const struct itimerval t = {.it_value.tv_sec = SECONDS};

	(void)setitimer(ITIMER_PROF, &t, NULL);
	(void)alarm(10 * SECONDS);
}

static void on_stop(int sig)
{
	(void)sig;
	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELAXED);
}

static bool stopped(void)
{
	return __atomic_load_n(&shared->stop, __ATOMIC_RELAXED);
}

static void run_one(uint64_t seed)
{
	struct rng r;
	size_t n;
	unsigned char *exact;

	rng_seed(&r, seed);
	n = fuzz_make(&r, room, FUZZ_ROOM);
	/* A buffer of exactly that size, so that the sanitizer sees one byte too far. */
	exact = malloc(n ? n : 1);
	if (!exact)
		return;
	memcpy(exact, room, n);
	(void)LLVMFuzzerTestOneInput(exact, n);
	free(exact);
}

static _Noreturn void be_worker(unsigned long end, uint64_t seed)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM, SIGPROF};

	catch_crashes(signals, sizeof(signals) / sizeof(signals[0]), on_crash);
#ifndef __SANITIZE_ADDRESS__
	(void)setrlimit(RLIMIT_AS, &(struct rlimit){MEMORY, MEMORY});
#endif
	for (; shared->at < end && !stopped(); shared->at++) {
		watch();
		run_one(seed + shared->at);
		shared->count[FINE]++;
	}
	(void)alarm(0);
	(void)setitimer(ITIMER_PROF, &(struct itimerval){0}, NULL);
#ifdef __SANITIZE_ADDRESS__
	if (__lsan_do_recoverable_leak_check())
		_exit(LEAK);
#endif
	_exit(FINE);
}

/* From shared->at on, up to @end or to the first that ends the process, which is then counted. */
static enum outcome run_some(unsigned long end, uint64_t seed)
{
	int status;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0)
		be_worker(end, seed);
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return OUR_CRASH;
	return WIFEXITED(status) && WEXITSTATUS(status) < N_OUTCOMES
		       ? (enum outcome)WEXITSTATUS(status)
		       : OUR_CRASH;
}

static void run_all(unsigned long iterations, uint64_t seed)
{
	while (shared->at < iterations && !stopped()) {
		unsigned long from = shared->at, end = iterations - from > PER_PROCESS
							       ? from + PER_PROCESS
							       : iterations;
		enum outcome o = run_some(end, seed);

		if (o == FINE)
			continue;
		shared->count[o]++;
		if (o == LEAK)
			(void)fprintf(stderr, "one of seeds %llu to %llu leaked\n",
				      (unsigned long long)(seed + from),
				      (unsigned long long)(seed + end - 1));
		else if (o >= OUR_CRASH)
			(void)fprintf(stderr,
				      "seed %llu %s (in a process that began with seed %llu)\n",
				      (unsigned long long)(seed + shared->at), outcome_names[o],
				      (unsigned long long)(seed + from));
		if (o != LEAK)
			shared->at++;
	}
}

static int run_file(const char *path)
{
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(room, 1, FUZZ_ROOM, f) : 0;
	unsigned char *exact = malloc(n + !n);

	if (!f || !exact) {
		(void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
		return 1;
	}
	(void)fclose(f);
	memcpy(exact, room, n);
	if (fork() == 0) {
		static const int signals[] = {SIGSEGV, SIGBUS,	SIGFPE, SIGILL,
					      SIGABRT, SIGALRM, SIGPROF};

		catch_crashes(signals, sizeof(signals) / sizeof(signals[0]), on_crash);
		watch();
		(void)LLVMFuzzerTestOneInput(exact, n);
		free(exact);
		_exit(FINE);
	}
	free(exact);
	return 0;
}

/* The exit status. */
static int run_files(char **paths)
{
	int status, bad = 0;

	for (; *paths; paths++) {
		enum outcome o;

		if (run_file(*paths) || wait(&status) < 0)
			return 1;
		o = WIFEXITED(status) && WEXITSTATUS(status) < N_OUTCOMES
			    ? (enum outcome)WEXITSTATUS(status)
			    : OUR_CRASH;
		(void)printf("%s: %s\n", *paths, outcome_names[o]);
		bad |= o >= OUR_CRASH;
	}
	return bad;
}

int main(int argc, char **argv)
{
	bool files = argc > 1 && !isdigit((unsigned char)argv[1][0]);
	unsigned long iterations =
		argc > 1 && !files ? strtoul(argv[1], NULL, 10) : fuzz_iterations;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, from = clock_monotonic_ns();
	bool sound;
	int status = 0;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	room = malloc(FUZZ_ROOM);
	if (shared == MAP_FAILED || !room)
		return 1;
	fuzz_verbose = files || iterations == 1;
	(void)sigaction(SIGINT, &(struct sigaction){.sa_handler = on_stop, .sa_flags = SA_RESTART},
			NULL);
	sound = fuzz_begin();
	if (files)
		status = run_files(argv + 1);
	else
		run_all(iterations, seed);
	fuzz_end();
	free(room);
	if (files)
		return status;
	(void)printf("%lu inputs, %lu of them read, in %.1f s", shared->at, shared->read,
		     (double)(clock_monotonic_ns() - from) / 1e9);
	for (int i = 0; i < N_OUTCOMES; i++)
		(void)printf(", %lu %s", shared->count[i], outcome_names[i]);
	(void)printf("\n");
	if (shared->at >= 1000 && (shared->read < shared->at / 50 || shared->read == shared->at)) {
		(void)fprintf(stderr,
			      "nearly all inputs are refused, or none: that tries nothing\n");
		return 1;
	}
	return !sound || shared->count[OUR_CRASH] || shared->count[OUR_HANG] || shared->count[LEAK];
}
