// SPDX-License-Identifier: BSD-2-Clause
/* Mutates an ELF file, opens it, walks its symbols and lines.
 * fuzz_elf [FILE] [ITERATIONS [SEED]]; FILE is this program itself unless given.
 */
#include "base/cleanup.h"
#include "base/error.h"
#include "elf/code.h"
#include "elf/libraries.h"
#include "elf/lines.h"
#include "elf/object.h"
#include "elf/usdt.h"

#include "fuzz_child.h"

#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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

struct places {
	const struct elf_object *o;
	size_t n;
};

/* Probes: of some functions only, since the search for jumps goes through all of the code. */
static int see_code(const struct elf_symbol *s, void *arg)
{
	struct places *x = arg;
	uint64_t returns[4], before, behind, site;
	enum code_cost cost;

	if (x->n++ % 61)
		return 0;
	(void)code_returns(x->o, s, returns, 4);
	(void)code_check_offset(x->o, s, 3, &before, &behind);
	site = code_cheap_site(x->o, s->addr, &cost);
	if (site < s->addr || cost >= CODE_COSTS)
		abort();
	return x->n > 600;
}

static int see_probe(const struct usdt_probe *p, void *arg)
{
	if (!*p->provider || !*p->name || !elf_object_is_code(arg, p->vaddr))
		abort();
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
	(void)elf_object_each_function(o, see_code, &(struct places){.o = o});
	(void)usdt_each(o, see_probe, o);
	free(library_find(o, "libnone.so"));
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
	char path[64];

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
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return in_child(walk, path);
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 && !isdigit((unsigned char)argv[1][0]) ? argv[1] : "/proc/self/exe";
	char **rest = argv + 1 + (path == argv[1]);
	unsigned long iterations = argc > rest - argv ? strtoul(rest[0], NULL, 10) : 300;
	uint64_t seed = argc > rest - argv + 1 ? strtoull(rest[1], NULL, 10) : 1;
	struct file original = read_file(path);
	unsigned long count[N_OUTCOMES] = {0};

	if (original.size < sizeof(Elf64_Ehdr) || memcmp(original.bytes, ELFMAG, SELFMAG)) {
		(void)fprintf(stderr, "%s: not an ELF file\n", path);
		return 1;
	}
	verbose = iterations == 1;
	catch_crashes();
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
	return summary(count);
}
