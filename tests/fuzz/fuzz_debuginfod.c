// SPDX-License-Identifier: BSD-2-Clause
/* What a server of debug files answers: a file that claims the build id of a program without debug
 * information, mutated. The program is sound. An input is the answer. */
#include "fuzz.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "program/dwarf/lines.h"
#include "program/elf/debuginfod.h"
#include "program/elf/object_private.h"
#include "program/elf/readers.h"

#include "elf_change.h"
#include "line_seeds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define TEXT 64

static unsigned char program[SEED_ROOM];
static size_t n_program;
static const uint8_t *answer;
static size_t n_answer;
static bool was_asked;
static struct elf_readers readers;

const unsigned long fuzz_iterations = 10000;

static void put_build_id(struct seed *s)
{
	PUT(&s->s[S_NOTE], 4, 0, 0, 0, 4, 0, 0, 0, NT_GNU_BUILD_ID, 0, 0, 0, 'G', 'N', 'U', 0, 0xab,
	    0xcd, 0xef, 1);
}

static size_t make_answer(unsigned int kind, unsigned char *out)
{
	struct seed s = {.kind = kind};

	s.s[S_TEXT].n = TEXT;
	seed_sections(&s);
	put_build_id(&s);
	return seed_link(&s, out);
}

/* All that is asked for is that answer, as a server would be trusted. */
static int answer_named(const struct elf_object *o, const struct debug_options *options,
			const char *path)
{
	int fd;

	(void)o;
	(void)options;
	if (strncmp(path, DEBUGINFOD_SCHEME, strlen(DEBUGINFOD_SCHEME)) != 0)
		return -ENOENT;
	was_asked = true;
	fd = memfd_create("answer", MFD_CLOEXEC);
	if (fd < 0 || write(fd, answer, n_answer) != (ssize_t)n_answer)
		abort();
	return fd;
}

static int see_function(const struct elf_symbol *s, void *arg)
{
	(void)arg;
	return s->addr == 0 && !*s->name;
}

/* How many addresses of the code have a line. */
static size_t walk(void)
{
	_cleanup_elf_object_ struct elf_object *o = NULL;
	struct line_table *t = NULL;
	struct error e = {0};
	size_t n = 0;

	if (elf_object_open(fuzz_file(program, n_program), &o, &e) < 0)
		abort();
	(void)elf_object_each_function(o, see_function, NULL);
	if (line_table_open(o, NULL, &t, &e) < 0) {
		fuzz_must(e.text[0]);
		return 0;
	}
	for (uint64_t at = CODE - 16; at < CODE + 2 * TEXT; at++) {
		struct line_location where;

		if (line_table_at(t, at, &where) == 0) {
			fuzz_must(where.file && *where.file && where.line);
			n++;
		}
	}
	line_table_close(t);
	return n;
}

/* Without files of their own: split units and what dwz moved out are fuzz_lines' to try. */
static bool has_one_file(unsigned int kind)
{
	return !(kind & (SEED_SPLIT | SEED_PACKAGE | SEED_ALT));
}

bool fuzz_begin(void)
{
	static unsigned char bytes[SEED_ROOM];
	struct seed s = {0};

	if (setenv("DEBUGINFOD_URLS", "http://127.0.0.1:9/", 1) < 0)
		return false;
	s.s[S_TEXT].n = TEXT;
	put_build_id(&s);
	n_program = seed_link(&s, program);
	readers = elf_readers_here;
	readers.open_named = answer_named;
	elf_readers_use(&readers);
	for (unsigned int kind = 0; kind < N_SEEDS; kind++) {
		if (!has_one_file(kind))
			continue;
		answer = bytes;
		n_answer = make_answer(kind, bytes);
		if (!walk() || !was_asked)
			return false;
	}
	return true;
}

void fuzz_end(void)
{
	elf_readers_use(&elf_readers_here);
}

size_t fuzz_make(struct rng *r, unsigned char *out, size_t room)
{
	static unsigned char original[SEED_ROOM];
	unsigned int kind = (unsigned int)rng_below(r, N_SEEDS);
	size_t n;

	while (!has_one_file(kind))
		kind = (unsigned int)rng_below(r, N_SEEDS);
	n = make_answer(kind, original);
	if (n > room)
		return 0;
	memcpy(out, original, n);
	change_elf(r, original, n, out);
	return rng_below(r, 32) ? n : rng_below(r, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	answer = data;
	n_answer = size;
	if (walk())
		fuzz_read();
	return 0;
}
