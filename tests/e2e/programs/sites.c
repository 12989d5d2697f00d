// SPDX-License-Identifier: BSD-2-Clause
/* What a probe costs where it is hit, by the instruction that it sits on, and what the scheduler's events cost two threads that wake each
 * other through pipes: nanoseconds, each the median over batches. usage: sites; prints `nop5=X nop1=X stepped=X pipe=X` */
#include "helper.h"

enum { BATCHES = 50, CALLS = 1000, TURNS = 300 };

/* Their first instructions: five bytes that do nothing, one byte that does nothing, and one that the kernel has to single-step. */
#define SITE(name, instruction)                      \
	__asm__(".pushsection .text\n"               \
		".balign 16\n"                       \
		".globl " #name "\n"                 \
		".type " #name ", @function\n"       \
		#name ":\n" instruction "\n"         \
		"ret\n"                              \
		".size " #name ", .-" #name "\n"     \
		".popsection\n");                    \
	void name(void)
SITE(site_nop5, ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00");
SITE(site_nop1, "nop");
SITE(site_stepped, "mov %rsp, %rax");

static int there[2], back[2];

static void *answer(void *arg)
{
	char c;

	while (read(there[0], &c, 1) == 1 && write(back[1], &c, 1) == 1)
		;
	return arg;
}

static void turn(void)
{
	char c = 0;

	if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
		exit(1);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double cost(void (*call)(void), int calls)
{
	double batches[BATCHES];

	for (int i = 0; i < BATCHES; i++) {
		uint64_t from = now_ns();

		for (int j = 0; j < calls; j++)
			call();
		batches[i] = (double)(now_ns() - from) / calls; /* LINE:batch */
		progress();
	}
	qsort(batches, BATCHES, sizeof(*batches), compare);
	return batches[BATCHES / 2];
}

int main(void)
{
	pthread_t t;

	if (pipe(there) < 0 || pipe(back) < 0)
		return 1;
	start_thread(&t, answer, NULL);
	printf("nop5=%.1f ", cost(site_nop5, CALLS));
	printf("nop1=%.1f ", cost(site_nop1, CALLS));
	printf("stepped=%.1f ", cost(site_stepped, CALLS));
	printf("pipe=%.1f\n", cost(turn, TURNS));
	(void)close(there[1]);
	(void)pthread_join(t, NULL);
	return 0;
}
