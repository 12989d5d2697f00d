/* SPDX-License-Identifier: BSD-2-Clause */
/* What the drivers that mutate ELF files share: the mutation, and a child per file with a time limit and a memory limit.
 *
 * A crash or a hang whose innermost frame among this program and the libraries is libdwarf's, libelf's or libdeflate's is counted apart:
 * those cannot be mended here. Any other is a failure. */
#pragma once

#include "base/rng.h"

#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define SECONDS 20
#define MEMORY (4ULL << 30)

enum outcome { FINE, LIBRARY_CRASH, LIBRARY_HANG, OUR_CRASH, OUR_HANG, N_OUTCOMES };

static const char *const outcome_names[] = {"fine", "crashed in a library", "hung in a library", "crashed", "hung"};

#ifdef __SANITIZE_ADDRESS__
/* Reports end in abort(), so that one handler judges them all. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "abort_on_error=1:handle_segv=0:handle_abort=0:handle_sigbus=0:handle_sigfpe=0:allocator_may_return_null=1:"
	       "max_allocation_size_mb=4096:detect_leaks=0";
}
#endif

static bool verbose; /* one iteration: somebody wants to see it */

static void on_crash(int sig)
{
	void *frames[64];
	int n = backtrace(frames, 64);
	bool library = false;
	Dl_info own, at;

	(void)dladdr((void *)(uintptr_t)outcome_names, &own);
	for (int i = 1; i < n; i++) { /* the first is this handler */
		if (!dladdr(frames[i], &at) || !at.dli_fname)
			continue;
		library = strstr(at.dli_fname, "libdwarf") || strstr(at.dli_fname, "libelf") || strstr(at.dli_fname, "libdeflate");
		if (library || at.dli_fbase == own.dli_fbase)
			break;
	}
	if (!library || verbose)
		backtrace_symbols_fd(frames, n, STDERR_FILENO);
	_exit(sig == SIGALRM ? (library ? LIBRARY_HANG : OUR_HANG) : (library ? LIBRARY_CRASH : OUR_CRASH));
}

struct file {
	unsigned char *bytes;
	size_t size;
};

/* Where to write: any byte would mostly hit code, which nobody reads. */
static void choose_area(struct rng *r, const struct file *f, uint64_t *at, uint64_t *n)
{
	const Elf64_Ehdr *h = (const void *)f->bytes;
	const Elf64_Shdr *s;

	*at = 0;
	*n = sizeof(*h) + h->e_phnum * sizeof(Elf64_Phdr);
	if (!h->e_shnum || h->e_shoff + h->e_shnum * sizeof(*s) > f->size)
		return;
	s = (const void *)(f->bytes + h->e_shoff);
	switch (rng_below(r, 8)) {
	case 0:
		return;
	case 1:
		*at = h->e_shoff;
		*n = h->e_shnum * sizeof(*s);
		return;
	default:
		for (int i = 0; i < 20; i++) {
			const Elf64_Shdr *x = &s[rng_below(r, h->e_shnum)];

			if (x->sh_type == SHT_NOBITS || !x->sh_size || x->sh_flags & SHF_EXECINSTR ||
			    x->sh_offset + x->sh_size > f->size)
				continue;
			*at = x->sh_offset;
			*n = x->sh_size;
			return;
		}
	}
}

static void mutate(struct rng *r, const struct file *original, unsigned char *bytes)
{
	static const uint64_t values[] = {0, 1, 0x7f, 0x80, 0xff, 0xffff, 0x7fffffff, 0xffffffff, 0xfffffff0, INT64_MAX, UINT64_MAX};
	uint64_t at, n, times = 1 + rng_below(r, 12);

	while (times--) {
		size_t width = 1ULL << rng_below(r, 4);
		uint64_t value = rng_below(r, 2) ? rng_next(r) : values[rng_below(r, sizeof(values) / sizeof(values[0]))];

		choose_area(r, original, &at, &n);
		if (rng_below(r, 3)) /* headers of units and tables are at the front */
			n = n < 256 ? n : 256;
		at += rng_below(r, n);
		if (at + width <= original->size)
			memcpy(bytes + at, &value, width);
	}
}

static void catch_crashes(void)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
	void *warm[4];

	(void)backtrace(warm, 4); /* loads its library now, not in the handler */
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)signal(signals[i], on_crash);
}

static enum outcome in_child(void (*walk)(const char *path), const char *path)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		(void)alarm(SECONDS);
#ifndef __SANITIZE_ADDRESS__
		(void)setrlimit(RLIMIT_AS, &(struct rlimit){MEMORY, MEMORY});
#endif
		walk(path);
		_exit(FINE);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0)
		return OUR_CRASH;
	return WIFEXITED(status) && WEXITSTATUS(status) < N_OUTCOMES ? (enum outcome)WEXITSTATUS(status) : OUR_CRASH;
}

/* Prints how often what happened; the exit status. */
static int summary(const unsigned long *count)
{
	for (int i = 0; i < N_OUTCOMES; i++)
		(void)printf("%s%lu %s", i ? ", " : "", count[i], outcome_names[i]);
	(void)printf("\n");
	return count[OUR_CRASH] || count[OUR_HANG];
}
