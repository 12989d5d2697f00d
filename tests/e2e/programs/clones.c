// SPDX-License-Identifier: BSD-2-Clause
/* A function in the pieces that compilers make: a copy for certain arguments, a part, cold code. Says how often the function was called:
 * `worker=N partial=N`. usage: clones ROUNDS */
#include "helper.h"

static KEEP void worker(uint64_t n)
{
	BURN(n);
}

static KEEP void worker_copy(uint64_t n) __asm__("worker.constprop.0");
static KEEP void worker_copy(uint64_t n)
{
	BURN(2 * n);
}

/* As if the start of worker went on here. */
static KEEP void worker_part(uint64_t n) __asm__("worker.part.0");
static KEEP void worker_part(uint64_t n)
{
	BURN(n);
}

static KEEP void worker_cold(uint64_t n) __asm__("worker.cold");
static KEEP void worker_cold(uint64_t n)
{
	BURN(n);
}

/* The rest of this one was inlined. */
static KEEP void partial(uint64_t n) __asm__("partial.part.0");
static KEEP void partial(uint64_t n)
{
	BURN(n);
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 1000;

	/* A moment in which a profiler gets its first experiment under way. */
	for (uint64_t end = now_ns() + 700000000; now_ns() < end;)
		BURN(100000);
	for (long i = 0; i < rounds; i++) {
		worker(200000);
		worker_part(100000);
		worker_copy(200000);
		if (i % 2)
			worker_copy(10);
		worker_cold(100000);
		partial(100000);
	}
	printf("worker=%ld partial=%ld\n", 2 * rounds + rounds / 2, rounds);
	return 0;
}
