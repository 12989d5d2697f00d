// SPDX-License-Identifier: BSD-2-Clause
/* Functions that begin with a nop of five bytes, called by the program and by a child that it forks: `entered=N settle_ns=N`; its status is 1 if the
 * child crashed. usage: nops ROUNDS [SETTLE_SECONDS] */
#include "settle.h"

#include <sys/wait.h>

#define NOP5 ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n"

/* What is behind the nop is passed as often; or in each turn of a loop. */
void entered(unsigned long turns);
void looping(unsigned long turns);
__asm__(".text\n"
	".type entered, %function\n"
	"entered:\n" NOP5
	"	mov %rdi, %rax\n"
	"	ret\n"
	".size entered, .-entered\n"
	".type looping, %function\n"
	"looping:\n" NOP5
	"1:	sub $1, %rdi\n"
	"	jnz 1b\n"
	"	ret\n"
	".size looping, .-looping\n");

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

static void call_both(unsigned long rounds)
{
	for (unsigned long i = 0; i < rounds; i++) {
		entered(3);
		looping(3);
	}
}

int main(int argc, char **argv)
{
	unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	uint64_t length = settle_length(argc, argv);
	int status = 1;
	pid_t child;

	settle(length);
	call_both(rounds);
	child = fork();
	if (child == 0) {
		call_both(rounds);
		_exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 2;
	settle(length / 4);
	printf("entered=%lu settle_ns=%llu\n", 2 * rounds, (unsigned long long)length);
	return status != 0;
}
