// SPDX-License-Identifier: BSD-2-Clause
/* Functions that are left in each way that there is, called the same number of times from four threads: `rounds=N taken=N settle_ns=N`, where half of
 * the conditional jumps out of a function were taken. usage: exits ROUNDS [SETTLE_SECONDS] */
#include "settle.h"

#include <setjmp.h>

#define THREADS 4

#define FUNCTION(name, code)                                                                                              \
	void name(unsigned long x);                                                                                       \
	__asm__(".text\n.type " #name ", @function\n" #name ": .cfi_startproc\n" code ".cfi_endproc\n.size " #name ", . - " #name "\n")

/* Forms of return. */
FUNCTION(plain, "	mov %rdi, %rax\n	ret\n");
FUNCTION(repeated, "	test $1, %dil\n	jne 1f\n	rep; ret\n1:	nop\n	ret\n");
FUNCTION(bound, "	mov %rdi, %rax\n	.byte 0xf2\n	ret\n");
FUNCTION(pops, "	pop %rax\n	push %rax\n	push %rax\n	mov %rax, 8(%rsp)\n	ret $8\n");
/* Jumps to another function: direct, by a register, by memory, if a flag is set. */
FUNCTION(thunk, "	ret\n");
FUNCTION(direct, "	mov %rdi, %rax\n	jmp thunk\n");
FUNCTION(by_register, "	lea thunk(%rip), %r11\n	jmp *%r11\n");
FUNCTION(by_memory, "	lea thunk_slots(%rip), %rax\n	and $3, %edi\n	jmp *8(%rax, %rdi, 8)\n");
FUNCTION(by_flag, "	test $1, %dil\n	je thunk\n1:	sub $1, %rdi\n	ja 1b\n	ret\n");
FUNCTION(half, "	test $1, %dil\n	je thunk\n1:	pause\n	jmp 1b\n");
/* Jumps that stay in it: by a register that nothing says much of, back to its begin. */
FUNCTION(inside, "	lea 1f(%rip), %rax\n	jmp *%rax\n	nop\n1:	ret\n");
FUNCTION(again, "	sub $1, %rdi\n	jg again\n	ret\n");
/* Its cold code returns in its place, or comes back. */
FUNCTION(split, "	test $3, %dil\n	je split.cold\n1:	ret\nsplit_back:	nop\n	ret\n");
__asm__(".section .text.unlikely, \"ax\"\n"
	".type split.cold, @function\n"
	"split.cold: .cfi_startproc\n"
	"	test $4, %dil\n"
	"	je split_back\n"
	"	ret\n"
	".cfi_endproc\n"
	".size split.cold, . - split.cold\n"
	".text\n");
__asm__(".data\n.balign 8\nthunk_slots: .8byte 0, thunk, thunk, thunk, thunk\n.text\n");

/* No function whose returns could be told from those of others. */
FUNCTION(runs_on, "	test %edi, %edi\n	je 1f\n	ret\n1:	nop\n");
FUNCTION(shared, "	mov %rdi, %rax\nshared_middle:	nop\n	ret\n");
FUNCTION(sharing, "	mov %rdi, %rax\n	jmp shared_middle\n");
FUNCTION(mixed, "	jmp 1f\n	.byte 0x06, 0x06\n1:	ret\n");
FUNCTION(never, "1:	pause\n	jmp 1b\n");
FUNCTION(own_middle, "	call 1f\n	ret\n1:	ret\n");

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

static KEEP int by_table(unsigned long x)
{
	static volatile int sums[8];

	switch (x & 7) {
	case 0:
		return sums[0] += 3;
	case 1:
		return sums[1] -= 5;
	case 2:
		return sums[2] *= 7;
	case 3:
		return sums[3] ^= 9;
	case 4:
		return sums[4] |= 11;
	case 5:
		return sums[5] &= 13;
	default:
		sums[6]++;
		burn(0);
		return sums[7]--;
	}
}

static KEEP int by_label(unsigned long x)
{
	static const void *const labels[] = {&&one, &&two, &&three, &&one};
	static volatile int sum;

	goto *labels[x & 3];
one:
	return sum += 3;
two:
	sum *= 5;
three:
	return sum ^= 7;
}

static KEEP int nested(unsigned long depth)
{
	int x = depth ? nested(depth - 1) : 0;

	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

/* Half of its calls do not return. */
static KEEP int jumps_out(jmp_buf to, unsigned long x)
{
	if (x & 1)
		longjmp(to, 1);
	__asm__ volatile("" : "+r"(x));
	return (int)x;
}

static KEEP int twice(jmp_buf here)
{
	int x = _setjmp(here);

	__asm__ volatile("" : "+r"(x));
	return x;
}

struct counts {
	uint64_t rounds, taken;
};

static struct counts counts[THREADS];
static long rounds;

static KEEP void leave_all(unsigned long i)
{
	jmp_buf here;

	plain(i);
	repeated(i);
	bound(i);
	pops(i);
	direct(i);
	by_register(i);
	by_memory(i);
	by_flag(i);
	inside(i);
	again(2);
	split(i);
	(void)by_table(i);
	(void)by_label(i);
	(void)nested(1);
	(void)twice(here);
	if (!_setjmp(here))
		(void)jumps_out(here, i);
	if (i % 2 == 0)
		half(i);
}

static void *body(void *arg)
{
	struct counts mine = {0};

	for (long i = 0; i < rounds; i++) {
		leave_all((unsigned long)i);
		mine.rounds++;
		mine.taken += i % 2 == 0;
	}
	*(struct counts *)arg = mine;
	return NULL;
}

int main(int argc, char **argv)
{
	uint64_t length = settle_length(argc, argv);
	struct counts all = {0};

	rounds = (argc > 1 ? atol(argv[1]) : 1000) / THREADS;
	settle(length);
	if (rounds < 0) { /* never */
		runs_on(1);
		shared(1);
		sharing(1);
		mixed(1);
		own_middle(1);
		never(1);
	}
	run_threads(THREADS, body, counts, sizeof(counts[0]));
	for (int i = 0; i < THREADS; i++) {
		all.rounds += counts[i].rounds;
		all.taken += counts[i].taken;
	}
	settle(length / 4);
	printf("rounds=%llu taken=%llu settle_ns=%llu\n", (unsigned long long)all.rounds, (unsigned long long)all.taken,
	       (unsigned long long)length);
	return 0;
}
