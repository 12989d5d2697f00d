// SPDX-License-Identifier: BSD-2-Clause
/* Mutates an ELF file, opens it, walks its symbols and lines.
 * fuzz_elf [FILE] [ITERATIONS [SEED]]; FILE is this program itself unless given.
 *
 * Each file is read in a child with a time limit and a memory limit. A crash or a hang whose innermost frame among this program and
 * the libraries is libdwarf's or libelf's is counted apart: those cannot be mended here. Any other is a failure. */
#include "base/cleanup.h"
#include "base/error.h"
#include "base/rng.h"
#include "elf/lines.h"
#include "elf/object.h"

#include <ctype.h>
#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
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
		library = strstr(at.dli_fname, "libdwarf") || strstr(at.dli_fname, "libelf");
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

static struct file read_file(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct file f = {0};
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return f;
	f.bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	f.size = f.bytes == MAP_FAILED ? 0 : (size_t)st.st_size;
	return f;
}

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

static int see_function(const struct elf_symbol *s, void *arg)
{
	struct elf_symbol again;
	unsigned char code[16];
	uint64_t offset;

	(void)elf_object_function_at(arg, s->addr, &again);
	(void)elf_object_vaddr_to_offset(arg, s->addr, &offset);
	(void)elf_object_read(arg, s->addr, code, sizeof(code));
	return 0;
}

struct seen {
	struct line_table *t;
	size_t n;
};

static int see_line(const char *file, uint32_t line, void *arg)
{
	struct seen *s = arg;
	uint64_t *addresses;
	uint32_t nearest;
	size_t n;

	/* Not all: it reads a unit's tree of entries each time. */
	if (s->n++ % 97 == 0 && line_table_statements(s->t, file, line, &addresses, &n, &nearest) == 0)
		free(addresses);
	return s->n > 2000;
}

static bool every_other(const char *file, void *arg)
{
	(void)arg;
	return strlen(file) & 1;
}

static void walk(const char *path)
{
	_cleanup_elf_object_ struct elf_object *o = NULL;
	struct line_location where;
	struct addr_range *ranges;
	struct elf_symbol s, *entries;
	struct seen seen = {0};
	struct error e;
	char *names[4];
	size_t n;

	if (elf_object_open(path, &o, &e) < 0)
		return;
	(void)elf_object_each_function(o, see_function, o);
	(void)elf_object_find_function(o, "ns::f(int)", &s);
	if (elf_object_find_entries(o, "walk", &entries, &n) == 0)
		free(entries);
	(void)elf_object_symbol_problem(o);
	n = elf_object_similar_functions(o, "walk_lines", names, 4);
	while (n)
		free(names[--n]);
	if (line_table_open(o, &seen.t, &e) < 0)
		return;
	if (elf_object_find_function(o, "main", &s) == 0)
		for (uint64_t i = 0; i < 64; i++)
			(void)line_table_at(seen.t, s.addr + i, &where);
	if (line_table_scope(seen.t, every_other, NULL, &ranges, &n) == 0)
		free(ranges);
	(void)line_table_each(seen.t, see_line, &seen);
	line_table_close(seen.t);
}

static enum outcome try(const struct file *original, struct rng *r)
{
	_cleanup_close_ int fd = memfd_create("mutated", MFD_CLOEXEC);
	unsigned char *bytes;
	int status;
	pid_t pid;

	if (fd < 0 || ftruncate(fd, (off_t)original->size) < 0)
		return OUR_CRASH;
	bytes = mmap(NULL, original->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED)
		return OUR_CRASH;
	memcpy(bytes, original->bytes, original->size);
	mutate(r, original, bytes);
	(void)munmap(bytes, original->size);
	if (rng_below(r, 16) == 0)
		(void)ftruncate(fd, (off_t)rng_below(r, original->size));
	pid = fork();
	if (pid == 0) {
		char path[64];

		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
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

int main(int argc, char **argv)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
	const char *path = argc > 1 && !isdigit((unsigned char)argv[1][0]) ? argv[1] : "/proc/self/exe";
	char **rest = argv + 1 + (path == argv[1]);
	unsigned long iterations = argc > rest - argv ? strtoul(rest[0], NULL, 10) : 300;
	uint64_t seed = argc > rest - argv + 1 ? strtoull(rest[1], NULL, 10) : 1;
	struct file original = read_file(path);
	unsigned long count[N_OUTCOMES] = {0};
	void *warm[4];

	if (original.size < sizeof(Elf64_Ehdr) || memcmp(original.bytes, ELFMAG, SELFMAG)) {
		(void)fprintf(stderr, "%s: not an ELF file\n", path);
		return 1;
	}
	verbose = iterations == 1;
	(void)backtrace(warm, 4); /* loads its library now, not in the handler */
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		(void)signal(signals[i], on_crash);
	for (unsigned long i = 0; i < iterations; i++) {
		struct rng r;
		enum outcome o;

		/* So that one iteration can be repeated alone: fuzz_elf FILE 1 SEED+i */
		rng_seed(&r, seed + i);
		o = try(&original, &r);
		count[o]++;
		if (o >= OUR_CRASH)
			(void)fprintf(stderr, "seed %llu %s\n", (unsigned long long)(seed + i), outcome_names[o]);
	}
	for (int i = 0; i < N_OUTCOMES; i++)
		(void)printf("%s%lu %s", i ? ", " : "", count[i], outcome_names[i]);
	(void)printf("\n");
	return count[OUR_CRASH] || count[OUR_HANG];
}
