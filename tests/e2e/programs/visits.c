// SPDX-License-Identifier: BSD-2-Clause
/* Visits places a known number of times, from two threads, after a moment of computing in which a profiler gets its
 * first experiment under way, and says how often: `request=N stepped=N stepped_inner=N bump=N rare=1 settle_ns=N`.
 * usage: visits ROUNDS [SETTLE_SECONDS] */
#include "helper.h"

static uint64_t requests, steps, inner_steps, bumps;
static long rounds;

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

static KEEP void request(void)
{
	__asm__ volatile("" : : : "memory");
	(void)__atomic_add_fetch(&requests, 1, __ATOMIC_RELAXED);
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

/* Three copies of one line, in one.., two.. and three.. below. */
static inline __attribute__((always_inline)) void bump(void)
{
	(void)__atomic_add_fetch(&bumps, 1, __ATOMIC_RELAXED); /* LINE:bump */
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
		(void)__atomic_add_fetch(&steps, 1, __ATOMIC_RELAXED);
		(void)__atomic_add_fetch(&inner_steps, 1, __ATOMIC_RELAXED);
		if (i % 2) {
			stepped_inner();
			(void)__atomic_add_fetch(&inner_steps, 1, __ATOMIC_RELAXED);
		}
		one_copy();
		two_copy();
		three_copy((uint64_t)i);
		burn(20000);
	}
	return arg;
}

static void settle(uint64_t length)
{
	uint64_t end = now_ns() + length;

	while (now_ns() < end)
		burn(100000);
}

int main(int argc, char **argv)
{
	uint64_t length = (uint64_t)((argc > 2 ? atof(argv[2]) : 0.5) * 1e9);
	pthread_t t[2];

	rounds = argc > 1 ? atol(argv[1]) : 1000;
	settle(length);
	for (int i = 0; i < 2; i++)
		start_thread(&t[i], body, NULL);
	for (int i = 0; i < 2; i++)
		(void)pthread_join(t[i], NULL);
	rare();
	settle(length / 4);
	printf("request=%llu stepped=%llu stepped_inner=%llu bump=%llu rare=1 settle_ns=%llu\n", (unsigned long long)requests,
	       (unsigned long long)steps, (unsigned long long)inner_steps, (unsigned long long)bumps,
	       (unsigned long long)length);
	return 0;
}
