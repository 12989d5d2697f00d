// SPDX-License-Identifier: BSD-2-Clause
/* Visits one place of each kind the same number of times, from four threads, after a moment of computing in which a profiler gets its
 * first experiment under way, and says how often: `rounds=N guarded=N settle_ns=N`. usage: kinds ROUNDS [SETTLE_SECONDS [PLUGIN]]; with a
 * plug-in each round calls its plugin_work as well, which is loaded before the moment of computing. */
#define _SDT_HAS_SEMAPHORES 1
#include "settle.h"

#include <dlfcn.h>
#include <sys/prctl.h>
#include <sys/sdt.h>
#include <sys/syscall.h>

#define THREADS 4

/* Not 0 while somebody wants the probe. */
unsigned short kinds_plain_semaphore __attribute__((section(".probes")));
unsigned short kinds_guarded_semaphore __attribute__((section(".probes")));

struct counts {
	uint64_t rounds, guarded;
};

static struct counts counts[THREADS];
static long rounds;
static void (*plugin_work)(uint64_t);

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

static KEEP uint64_t entered(uint64_t x)
{
	__asm__ volatile("" : "+r"(x));
	return x * 3; /* LINE:inside */
}

/* Two instructions of one byte before it returns. */
void marked(void);
__asm__(".text\n"
	".type marked, %function\n"
	"marked:\n"
	"	nop\n"
	"	nop\n"
	"	ret\n"
	".size marked, .-marked\n");

/* Calls itself: its returns are counted one by one. */
static KEEP uint64_t nested(uint64_t depth)
{
	uint64_t x = depth ? nested(depth - 1) : 0;

	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

static void *body(void *arg)
{
	struct counts mine = {0};
	uint64_t sum = 0;

	for (long i = 0; i < rounds; i++) {
		sum += entered((uint64_t)i) + nested(1); /* LINE:head */
		marked();
		(void)syscall(SYS_getppid);
		(void)prctl(PR_SET_NAME, "kinds"); /* the tracepoint task_rename, which nobody else passes for us */
		STAP_PROBE(kinds, plain);
		if (__builtin_expect(kinds_guarded_semaphore, 0)) {
			STAP_PROBE1(kinds, guarded, i);
			mine.guarded++;
		}
		if (plugin_work)
			plugin_work(10);
		mine.rounds++; /* LINE:round */
		__asm__ volatile("" : "+m"(mine), "+r"(sum));
	}
	*(struct counts *)arg = mine;
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t length = settle_length(argc, argv);
	struct counts all = {0};

	rounds = (argc > 1 ? atol(argv[1]) : 1000) / THREADS;
	if (argc > 3) {
		void *so = dlopen(argv[3], RTLD_NOW);

		plugin_work = so ? (void (*)(uint64_t))dlsym(so, "plugin_work") : NULL;
		if (!plugin_work)
			return 1;
	}
	settle(length);
	run_threads(THREADS, body, counts, sizeof(counts[0]));
	for (int i = 0; i < THREADS; i++) {
		all.rounds += counts[i].rounds;
		all.guarded += counts[i].guarded;
	}
	settle(length / 4);
	printf("rounds=%llu guarded=%llu settle_ns=%llu\n", (unsigned long long)all.rounds, (unsigned long long)all.guarded,
	       (unsigned long long)length);
	return 0;
}
