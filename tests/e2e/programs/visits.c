// SPDX-License-Identifier: BSD-2-Clause
/* Visits places a known number of times, from two threads, after a moment of computing in which a profiler gets its
 * first experiment under way, and says how often: `request=N stepped=N stepped_inner=N bump=N locked=N rare=1
 * settle_ns=N`. usage: visits ROUNDS [SETTLE_SECONDS] */
#include "settle.h"

struct counts {
	uint64_t request, stepped, stepped_inner, bump;
};

/* Counted in plain memory of each thread's own: an atomic instruction is no place for a probe (see locked below). */
static __thread struct counts mine;
static struct counts counts[2];
static uint64_t locked_visits;
static long rounds;

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

static KEEP void request(void)
{
	mine.request++;
}

/* On x86 all of its line is one instruction with a lock prefix, where the kernel does not place a probe. */
static KEEP void locked(void)
{
	(void)__atomic_add_fetch(&locked_visits, 1, __ATOMIC_RELAXED); /* LINE:locked */
}

/* A function that can be entered at its start and four bytes later; on all machines a nop is one byte or four. */
void stepped(void);
void stepped_inner(void);
__asm__(".text\n"
	".globl stepped\n"
	".type stepped, %function\n"
	"stepped:\n"
	"	nop\n"
#if defined(__x86_64__) || defined(__i386__)
	"	nop\n"
	"	nop\n"
	"	nop\n"
#endif
	".globl stepped_inner\n"
	"stepped_inner:\n"
	"	nop\n"
	"	ret\n"
	".size stepped, .-stepped\n");

/* Three copies of one line, in the next three functions. */
static inline __attribute__((always_inline)) void bump(void)
{
	mine.bump++; /* LINE:bump */
}

static KEEP void one_copy(void)
{
	burn(10);
	bump();
	burn(10);
}

static KEEP void two_copy(void)
{
	burn(20);
	bump();
	burn(20);
}

static KEEP void three_copy(uint64_t n)
{
	if (n % 3 == 0)
		bump();
	burn(30);
}

static KEEP void rare(void)
{
	__asm__ volatile("" : : : "memory");
}

static void *body(void *arg)
{
	for (long i = 0; i < rounds; i++) {
		request();
		stepped();
		mine.stepped++;
		mine.stepped_inner++;
		if (i % 2) {
			stepped_inner();
			mine.stepped_inner++;
		}
		locked();
		one_copy();
		two_copy();
		three_copy((uint64_t)i);
		burn(20000);
	}
	*(struct counts *)arg = mine;
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t length = settle_length(argc, argv);

	rounds = argc > 1 ? atol(argv[1]) : 1000;
	settle(length);
	run_threads(2, body, counts, sizeof(counts[0]));
	rare();
	settle(length / 4);
	printf("request=%llu stepped=%llu stepped_inner=%llu bump=%llu locked=%llu rare=1 settle_ns=%llu\n",
	       (unsigned long long)(counts[0].request + counts[1].request),
	       (unsigned long long)(counts[0].stepped + counts[1].stepped),
	       (unsigned long long)(counts[0].stepped_inner + counts[1].stepped_inner),
	       (unsigned long long)(counts[0].bump + counts[1].bump), (unsigned long long)locked_visits,
	       (unsigned long long)length);
	return 0;
}
