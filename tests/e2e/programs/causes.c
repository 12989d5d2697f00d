// SPDX-License-Identifier: BSD-2-Clause
/* Functions that each wait for one thing, planted: `causes [SECONDS]` calls them in turn. Their loops are written as instructions, so that what waits for
 * what is known whatever compiles them. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SIZE (128UL << 20)
#define PAGE 4096UL

static char *memory; /* chains of offsets: one over all lines, one over one line of each page */
static char *pages, *fresh;
#define DRAWN (1U << 20)
static unsigned char drawn[DRAWN];

#define KERNEL __attribute__((noinline, noclone)) static void

/* A load whose address is the result of the one before it, each of another line of the cache. */
KERNEL data_cache(void)
{
	uint64_t at = 0;

	for (int i = 0; i < 20000; i++)
		__asm__ volatile("mov (%1,%0), %0" : "+r"(at) : "r"(memory)); /* LINE:load */
}

/* The same of lines that all fit into a cache, on more pages than a CPU keeps the addresses of. */
KERNEL dtlb(void)
{
	uint64_t at = 0;

	for (int i = 0; i < 20000; i++)
		__asm__ volatile("mov (%1,%0), %0" : "+r"(at) : "r"(pages));
}

KERNEL divider(void)
{
	uint64_t quotient, rest;

	for (int i = 0; i < 50000; i++)
		__asm__ volatile("mov %2, %%rax; xor %%edx, %%edx; divq %3" : "=&a"(quotient), "=&d"(rest) : "r"(~0UL), "r"(7UL));
}

KERNEL lock(void)
{
	static uint64_t word;

	for (int i = 0; i < 50000; i++)
		__asm__ volatile("lock incq %0" : "+m"(word));
}

/* A byte is written, then the eight that it is one of are read. */
KERNEL forwarding(void)
{
	uint64_t word = 0, x = 0;

	for (int i = 0; i < 50000; i++)
		__asm__ volatile("movb %b1, 3%0; mov %0, %1" : "+m"(word), "+r"(x));
}

/* Lines are written one after another, faster than the memory takes them. */
KERNEL store_buffer(void)
{
	char *at = memory;

	for (int i = 0; i < 50000; i++)
		__asm__ volatile("mov %1, 8(%0); add $320, %0" : "+r"(at) : "r"((uint64_t)i));
}

/* A branch on bits that were drawn. */
KERNEL misprediction(void)
{
	static unsigned int part;
	const unsigned char *at = drawn + part * (DRAWN / 8), *end = at + DRAWN / 8;
	uint64_t n = 0;

	part = (part + 1) % 8;
	for (; at < end; at++)
		__asm__ volatile("testb $16, (%1); jz 1f; add $3, %0; jmp 2f; 1: sub $5, %0; 2:" : "+r"(n) : "r"(at) : "cc");
}

/* Roots of roots would be the divider; products of products are nothing but slow. */
KERNEL latency(void)
{
	double x = 1.0000001;

	for (int i = 0; i < 60000; i++)
		__asm__ volatile("mulsd %0, %0; mulsd %0, %0; mulsd %0, %0; mulsd %0, %0" : "+x"(x));
}

/* Blocks of one line each, which jump to one another in an order that no prefetcher follows: 768 KiB of code. */
KERNEL code_cache(void)
{
	__asm__ volatile(".balign 64\n"
			 "1000: jmp 1001f\n"
			 ".balign 64\n"
			 "1001:\n"
			 ".set .Lblock, 0\n"
			 ".rept 12288\n"
			 "nop\n"
			 ".if .Lblock == 12288 - 7187\n" /* the last of the round */
			 "jmp 1002f\n"
			 ".else\n"
			 "jmp 1001b + 64 * ((.Lblock + 7187) %% 12288)\n"
			 ".endif\n"
			 ".balign 64\n"
			 ".set .Lblock, .Lblock + 1\n"
			 ".endr\n"
			 "1002:\n" ::
				 : "memory");
}

KERNEL system_call(void)
{
	for (int i = 0; i < 3000; i++) {
		long n = SYS_getppid;

		__asm__ volatile("syscall" : "+a"(n)::"rcx", "r11", "memory");
	}
}

/* Pages that the kernel has yet to give. */
KERNEL page_fault(void)
{
	(void)madvise(fresh, 256 * PAGE, MADV_DONTNEED);
	for (unsigned long i = 0; i < 256; i++)
		__asm__ volatile("movb $1, (%0)" ::"r"(fresh + i * PAGE) : "memory");
}

__attribute__((noinline, noclone)) static void progress(void)
{
	__asm__ volatile("");
}

/* At @base, a ring of @n places with @step bytes from one to the next, and up to @spread more: each has the offset of the next one, which is another @stride
 * places on. */
static void chain(char *base, unsigned long n, unsigned long step, unsigned long spread, unsigned long stride)
{
	unsigned long at = 0, to;

	for (unsigned long i = 0; i < n; i++) {
		to = (at + stride) % n;
		*(uint64_t *)(void *)(base + at * step + at * 64 % spread) = to * step + to * 64 % spread;
		at = to;
	}
}

static char *map(unsigned long size)
{
	char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED || madvise(at, size, MADV_NOHUGEPAGE)) {
		perror("causes: mmap");
		exit(1);
	}
	return at;
}

int main(int argc, char **argv)
{
	uint64_t x = 88172645463325252ULL;
	time_t end = time(NULL) + (argc > 1 ? atol(argv[1]) : 1L << 30);

	for (unsigned int i = 0; i < DRAWN; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		drawn[i] = (unsigned char)x;
	}
	memory = map(SIZE);
	pages = map(6000 * PAGE);
	fresh = map(256 * PAGE);
	chain(memory, SIZE / 64, 64, 64, 1300021);
	chain(pages, 6000, PAGE, PAGE, 2477);
	while (time(NULL) < end) {
		data_cache();
		dtlb();
		divider();
		lock();
		forwarding();
		store_buffer();
		misprediction();
		latency();
		for (int i = 0; i < 4; i++)
			code_cache();
		system_call();
		page_fault();
		progress();
	}
	return 0;
}
