// SPDX-License-Identifier: BSD-2-Clause
/* Lines in scope that spend their time in the C library, in libm and, by attributed_more.cc, in
 * libstdc++, beside some of their own. Prints the CPU time that each part took: NAME_ns=N, where
 * NAME is the function; a comparison that the C library calls back belongs to `sort`. Built by
 * attribution.py. usage: attributed SECONDS */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define KEEP __attribute__((noinline))
#define NUMBERS 4000

/* attributed_more.cc */
void sort_vector(const int *n, int count);
void fill_map(const int *n, int count);
void write_stream(void);
void build_strings(void);
void throw_and_catch(void);

static char from[1 << 16], to[1 << 16], text[512];
static int numbers[NUMBERS], sorted[NUMBERS];
static volatile double sink;

static inline uint64_t mix(uint64_t x)
{
	x ^= x >> 31;
	return x * 0x9e3779b97f4a7c15U + 1;
}

/* Called by the library: in scope again. */
static int by_value(const void *pa, const void *pb)
{
	int a = *(const int *)pa, b = *(const int *)pb;

	return (a > b) - (a < b);
}

static KEEP void copy(void)
{
	for (int i = 0; i < 120; i++)
		memcpy(to, from, sizeof(to) - (size_t)(i & 7));
}

static KEEP void sort(void)
{
	memcpy(sorted, numbers, sizeof(sorted));
	qsort(sorted, NUMBERS, sizeof(*sorted), by_value);
}

static KEEP void print(void)
{
	for (int i = 0; i < 1200; i++)
		snprintf(text, sizeof(text), "%s %d %.9f", "some", i, i * 0.37);
}

static KEEP void scan(void)
{
	double sum = 0;

	for (int i = 0; i < 6000; i++)
		sum += strtod("3.141592653589793238", NULL);
	sink = sum;
}

static KEEP void compute(void)
{
	double sum = 0;

	for (int i = 0; i < 12000; i++)
		sum += sin(i * 1e5);
	for (int i = 1; i < 9000; i++)
		sum += pow(i, 0.3);
	sink = sum;
}

static KEEP void allocate(void)
{
	void *all[64];

	for (int i = 0; i < 200; i++) {
		for (int k = 0; k < 64; k++)
			all[k] = malloc((size_t)(k * 24 + 1));
		for (int k = 0; k < 64; k++)
			free(all[k]);
	}
}

static KEEP void own(void)
{
	uint64_t x = (uint64_t)sorted[0] + 1;

	for (int i = 0; i < 250000; i++)
		x = mix(x);
	sink = (double)x;
}

/* The progress point. */
static KEEP void progress(void)
{
	__asm__ volatile("nop"); /* LINE:progress */
}

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#define PART(name, ...)                                             \
	do {                                                        \
		static double name##_s;                             \
		double begin = now(CLOCK_THREAD_CPUTIME_ID);        \
                                                                    \
		if (last)                                           \
			printf(#name "_ns=%.0f\n", name##_s * 1e9); \
		else                                                \
			name(__VA_ARGS__);                          \
		name##_s += now(CLOCK_THREAD_CPUTIME_ID) - begin;   \
	} while (0)

static void round_of_work(int last)
{
	PART(copy);
	PART(sort);
	PART(print);
	PART(scan);
	PART(compute);
	PART(allocate);
	PART(own);
	PART(sort_vector, numbers, NUMBERS);
	PART(fill_map, numbers, NUMBERS);
	PART(write_stream);
	PART(build_strings);
	PART(throw_and_catch);
	progress();
}

int main(int argc, char **argv)
{
	double end;
	uint64_t x = 1;

	end = now(CLOCK_MONOTONIC) + (argc > 1 ? atof(argv[1]) : 1);
	for (int i = 0; i < NUMBERS; i++) {
		x = mix(x);
		numbers[i] = (int)(x >> 33);
	}
	while (now(CLOCK_MONOTONIC) < end)
		round_of_work(0);
	round_of_work(1);
	return 0;
}
