// SPDX-License-Identifier: BSD-2-Clause
/* Passes one place of each cost of a probe, round after round, and prints how long a round took: `ns_per_round=N`. usage: places ROUNDS */
#include "helper.h"

#include <sys/syscall.h>

/* Offsets: a mov 0, a nop of five bytes 2, a nop 7, a push 8, a pop 9. */
void site(void);
__asm__(".text\n"
	".type site, %function\n"
	"site:\n"
	"	mov %edi, %eax\n"
	"	.byte 0x0f, 0x1f, 0x44, 0, 0\n"
	"	nop\n"
	"	push %rax\n"
	"	pop %rax\n"
	"	ret\n"
	".size site, .-site\n");

static KEEP uint64_t rounds(uint64_t n, volatile uint64_t *table)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < n; i++) {
		site();
		(void)syscall(SYS_getppid);
		sum += table[i & 7]; /* LINE:sum */
	}
	return sum;
}

int main(int argc, char **argv)
{
	volatile uint64_t table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
	uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000, start, took;

	(void)rounds(n / 10 + 1, table);
	start = now_ns();
	(void)rounds(n, table);
	took = now_ns() - start;
	printf("ns_per_round=%.1f\n", (double)took / (double)n);
	return 0;
}
