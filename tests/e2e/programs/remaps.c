// SPDX-License-Identifier: BSD-2-Clause
/* Runs on a copy of its own code, as programs do that move it to huge pages, and passes a point before and after it. usage: remaps HOW ROUNDS, where
 * HOW is
 *   fixed    an anonymous mapping over the code, writable and executable, into which the copy is written, and then protected (iodlr, node)
 *   late     the same, but executable only when it is protected
 *   unmap    the code is unmapped first (ClickHouse)
 *   mremap   the copy is moved to where the code was, then protected
 *   file     a shared memory file takes the place of the code, is written to and protected (libhugetlbfs)
 *   never    the first, but never protected: nothing says when the copy is complete
 *   none     no copy
 * Waits for the end of the standard input before the copy, prints `remapped`, and `visits=N` at the end. */
#include "helper.h"

#include <sys/mman.h>

extern char __start_away[]; /* the first address behind the code that is copied */
static uint64_t visits;

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

/* All that runs while the code is away, on pages of its own. */
#define AWAY __attribute__((section("away"), aligned(4096), noinline))

static inline __attribute__((always_inline)) long call(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d, r8 __asm__("r8") = e, r9 __asm__("r9") = f;
	long r;

	__asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
	return r;
}

static inline __attribute__((always_inline)) void copy(char *to, const char *from, size_t n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

enum { MMAP = 9, MPROTECT = 10, MUNMAP = 11, MREMAP = 25 };

AWAY static long remap(char how, char *text, size_t size, char *spare, int file)
{
	const int rwx = PROT_READ | PROT_WRITE | PROT_EXEC, rw = PROT_READ | PROT_WRITE;
	const int anonymous = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
	long r;

	copy(spare, text, size);
	if (how == 'm') {
		r = call(MREMAP, (long)spare, (long)size, (long)size, MREMAP_MAYMOVE | MREMAP_FIXED, (long)text, 0);
	} else {
		if (how == 'u')
			(void)call(MUNMAP, (long)text, (long)size, 0, 0, 0, 0);
		r = call(MMAP, (long)text, (long)size, how == 'i' || how == 'n' ? rwx : rw, file >= 0 ? MAP_SHARED | MAP_FIXED : anonymous, file, 0);
		if (r == (long)text)
			copy(text, spare, size);
	}
	if (r != (long)text)
		return r;
	return how == 'n' ? 0 : call(MPROTECT, (long)text, (long)size, PROT_READ | PROT_EXEC, 0, 0, 0);
}

static void remap_as(const char *how)
{
	char *spare, *begin = (char *)((uintptr_t)burn & ~(uintptr_t)4095), kind = how[0];
	size_t size = (size_t)(__start_away - begin);
	int file = -1;

	spare = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (strcmp(how, "fixed") == 0)
		kind = 'i';
	if (strcmp(how, "file") == 0) {
		file = memfd_create("code", 0);
		if (file < 0 || ftruncate(file, (off_t)size) < 0)
			exit(3);
	}
	if (strcmp(how, "never") == 0)
		kind = 'n';
	if (spare == MAP_FAILED || remap(kind, begin, size, spare, file) != 0)
		exit(3);
}

int main(int argc, char **argv)
{
	long rounds = argc > 2 ? atol(argv[2]) : 1000;
	char byte;

	if (argc < 2)
		return 2;
	visit(&visits);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	if (strcmp(argv[1], "none") != 0)
		remap_as(argv[1]);
	puts("remapped");
	(void)fflush(stdout);
	for (long i = 0; i < rounds; i++) {
		burn(1000000);
		visit(&visits);
	}
	printf("visits=%llu\n", (unsigned long long)visits);
	return 0;
}
