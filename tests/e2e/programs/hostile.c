// SPDX-License-Identifier: BSD-2-Clause
/* Programs that make it hard for whoever attaches to them. usage: hostile KIND SECONDS. KIND: steady (nothing of the kind; prints its
 * number first), unmap (gives up all its mappings but the stack and a page of code), exec (starts itself over and over), block (blocks
 * all signals), many (more children than can be profiled, all asleep), chain (each child has one itself at once, and ends soon: there is always one that nobody has looked at). Two threads compute in the line
 * of burn, but of unmap and exec, which have one, and many and chain, which have none. */
#include "helper.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { MAX_RANGES = 256 };

static uint64_t batches;

struct range {
	unsigned long start, length;
};

/* What the code on the page has left. */
struct island {
	struct range ranges[MAX_RANGES];
	uint64_t n, until_s;
};

extern const char __start_island[], __stop_island[];

#ifdef __clang__
#define ISLAND __attribute__((section("island"), noinline, no_stack_protector))
#else
#define ISLAND __attribute__((section("island"), noinline, optimize("no-stack-protector", "no-tree-loop-distribute-patterns")))
#endif

static inline __attribute__((always_inline)) long call2(long number, unsigned long a, unsigned long b)
{
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(number), "D"(a), "S"(b) : "rcx", "r11", "memory");
	return r;
}

/* Runs as a copy: it may call nothing and use no data. */
ISLAND void on_island(struct island *all);
ISLAND void on_island(struct island *all)
{
	struct timespec t;

	for (uint64_t i = 0; i < all->n; i++)
		(void)call2(SYS_munmap, all->ranges[i].start, all->ranges[i].length);
	do {
		BURN(1000000);
		(void)call2(SYS_clock_gettime, CLOCK_MONOTONIC, (unsigned long)&t);
	} while ((uint64_t)t.tv_sec < all->until_s);
	(void)call2(SYS_exit_group, 0, 0);
}

static void unmap(double seconds)
{
	size_t size = (size_t)(__stop_island - __start_island);
	char *code = mmap(NULL, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct island *all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void (*run)(struct island *);
	FILE *f = fopen("/proc/self/maps", "re");
	char line[512];

	memcpy(code, __start_island, size);
	while (f && fgets(line, sizeof(line), f)) {
		unsigned long start, end;

		if (sscanf(line, "%lx-%lx", &start, &end) != 2 || strstr(line, "[stack]") || strstr(line, "[vsyscall]"))
			continue;
		if ((start <= (unsigned long)code && (unsigned long)code < end) || (start <= (unsigned long)all && (unsigned long)all < end))
			continue;
		if (all->n < MAX_RANGES)
			all->ranges[all->n++] = (struct range){ start, end - start };
	}
	all->until_s = now_ns() / 1000000000U + (uint64_t)seconds + 1;
	code += (const char *)(uintptr_t)on_island - __start_island;
	memcpy(&run, &code, sizeof(run));
	run(all);
}

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

static void *body(void *arg)
{
	/* Half of the time: many of these run beside other tests. */
	for (;;) {
		burn(500000);
		visit(&batches);
		(void)usleep(200);
	}
	return arg;
}

static void chain(double seconds)
{
	uint64_t end = now_ns() + (uint64_t)(seconds * 1e9);

	(void)prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int i = 0; i < 4; i++)
		if (fork() == 0)
			for (;;)
				if (now_ns() > end || fork() > 0) {
					(void)usleep(20000);
					_exit(0);
				}
	while (wait(NULL) > 0)
		continue;
}

static void many(double seconds)
{
	for (int i = 0; i < 8300; i++)
		if (fork() == 0) {
			(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
			for (;;)
				(void)pause();
		}
	printf("born\n");
	(void)usleep((useconds_t)(seconds * 1e6));
}

int main(int argc, char **argv)
{
	double seconds = argc == 3 ? atof(argv[2]) : 0;
	pthread_t t;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!(seconds > 0)) {
		fprintf(stderr, "usage: %s KIND SECONDS\n", argv[0]);
		return 2;
	}
	if (strcmp(argv[1], "exec") == 0) {
		static char left[32];
		uint64_t from = now_ns();

		burn(3000000);
		visit(&batches);
		(void)snprintf(left, sizeof(left), "%.6f", seconds - (double)(now_ns() - from) * 1e-9 - 0.001);
		argv[2] = left;
		if (atof(left) > 0)
			(void)execv("/proc/self/exe", argv);
		return 0;
	}
	printf("pid %d\n", (int)getpid());
	if (strcmp(argv[1], "chain") == 0 || strcmp(argv[1], "many") == 0) {
		(*argv[1] == 'c' ? chain : many)(seconds);
		return 0;
	}
	if (strcmp(argv[1], "unmap") == 0)
		unmap(seconds);
	if (strcmp(argv[1], "block") == 0) {
		sigset_t all;

		(void)sigfillset(&all);
		(void)sigprocmask(SIG_BLOCK, &all, NULL);
	}
	for (int signo = 1; signo < NSIG && strcmp(argv[1], "reset") == 0; signo++)
		(void)signal(signo, SIG_DFL);
	for (int i = 0; i < 2; i++)
		start_thread(&t, body, NULL);
	for (double i = 0; i < seconds; i += 0.05)
		(void)usleep(50000);
	printf("batches %llu\n", (unsigned long long)__atomic_load_n(&batches, __ATOMIC_RELAXED));
	return 0;
}
