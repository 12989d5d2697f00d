// SPDX-License-Identifier: BSD-2-Clause
/* Mutates small files with debug information of all kinds, and walks the line map over them.
 * An input is the seed's kind, the sizes of three files (two bytes each), and the files: the
 * program, the split one, the alternate one. */
#include "fuzz.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "program/dwarf/lines.h"
#include "program/elf/object.h"

#include "elf_change.h"
#include "line_seeds.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char top[64];

/* Kind and sizes of the files. */
#define HEAD 7

enum { PROGRAM, SPLIT, ALTERNATE, N_FILES };

static const char *name_of(int file, unsigned int kind)
{
	return file == PROGRAM	     ? "seed"
	       : file == ALTERNATE   ? "seed.alt"
	       : kind & SEED_PACKAGE ? "seed.dwp"
				     : "seed.dwo";
}

static bool write_file(int file, unsigned int kind, const unsigned char *bytes, size_t n)
{
	char path[80];

	(void)snprintf(path, sizeof(path), "%s/%s", top, name_of(file, kind));
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	return fd >= 0 && write(fd, bytes, n) == (ssize_t)n;
}

static void remove_files(void)
{
	static const char *const names[] = {"seed", "seed.alt", "seed.dwo", "seed.dwp"};
	char path[80];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", top, names[i]);
		(void)unlink(path);
	}
}

/* What a walk found: of an unharmed seed each must be there. */
struct seen {
	struct line_table *t;
	size_t lines, sites, at, calls;
	bool complaint;
};

static int see_line(const char *file, uint32_t line, void *arg)
{
	struct seen *s = arg;
	uint64_t *addresses;
	uint32_t nearest;
	size_t n;

	s->lines++;
	if (line_table_statements(s->t, file, line, &addresses, &n, &nearest) == 0) {
		s->sites += n;
		free(addresses);
	}
	return s->lines > 300;
}

static bool every_other(const char *file, void *arg)
{
	(void)arg;
	return strlen(file) & 1;
}

static void walk_into(const char *path, struct seen *s)
{
	_cleanup_elf_object_ struct elf_object *o = NULL;
	const char *roots[] = {top}, *prefixes[] = {"/seed=/srv", ".=/here"};
	struct debug_options options = {roots, 1, prefixes, 2};
	struct line_location where;
	struct line_copy *copies;
	struct addr_range *ranges;
	const char *near[4];
	struct error e;
	size_t n;

	if (elf_object_open(path, &o, &e) < 0 || line_table_open(o, &options, &s->t, &e) < 0)
		return;
	for (uint64_t i = 0; i < 0x90; i++)
		s->at += line_table_at(s->t, CODE + i, &where) == 0 && where.line &&
			 strlen(where.file);
	for (uint64_t i = 0; i < 0x90; i++) {
		struct line_location calls[8];
		size_t n_calls = line_table_calls(s->t, CODE + i, UINT64_MAX, calls, 8);

		s->calls += n_calls;
		for (size_t k = 0; k < n_calls; k++)
			s->at += !calls[k].line + !*calls[k].file; /* neither can be */
	}
	if (line_table_copies(s->t, "f", &copies, &n) == 0)
		free(copies);
	if (line_table_scope(s->t, every_other, NULL, &ranges, &n) == 0)
		free(ranges);
	(void)line_table_each(s->t, see_line, s);
	(void)line_table_similar_files(s->t, "a.h", near, 4);
	s->complaint = line_table_warning(s->t);
	if (s->complaint && fuzz_verbose)
		(void)puts(line_table_warning(s->t));
	line_table_close(s->t);
}

/* The seeds themselves must be read in full, or mutating them would test little. */
static bool seeds_are_sound(void)
{
	static unsigned char bytes[SEED_ROOM];
	char path[80];
	bool good = true;

	(void)snprintf(path, sizeof(path), "%s/seed", top);
	for (unsigned int kind = 0; kind < N_SEEDS; kind++) {
		struct seen s = {0};

		remove_files();
		if (!write_file(PROGRAM, kind, bytes, seed_program(kind, bytes)) ||
		    !write_file(SPLIT, kind, bytes, seed_split(kind, bytes)) ||
		    !write_file(ALTERNATE, kind, bytes, seed_alternate(bytes)))
			return false;
		walk_into(path, &s);
		if (s.at < 0x20 || s.calls < 6 || s.lines < 3 || s.sites < s.lines || s.complaint) {
			(void)fprintf(
				stderr,
				"seed kind %u: %zu addresses, %zu calls, %zu lines, %zu sites%s\n",
				kind, s.at, s.calls, s.lines, s.sites,
				s.complaint ? ", and a warning" : "");
			good = false;
		}
	}
	return good;
}

const unsigned long fuzz_iterations = 2000;

/* Three files are written for each input: in memory, if there is a place. */
bool fuzz_begin(void)
{
	static const char *const places[] = {"/dev/shm", "/tmp"};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		(void)snprintf(top, sizeof(top), "%s/cozbpf-fuzz-XXXXXX", places[i]);
		if (mkdtemp(top))
			return seeds_are_sound();
	}
	perror(top);
	return false;
}

void fuzz_end(void)
{
	remove_files();
	(void)rmdir(top);
}

size_t fuzz_make(struct rng *r, unsigned char *out, size_t room)
{
	static unsigned char bytes[N_FILES][SEED_ROOM], original[SEED_ROOM];
	unsigned int kind = (unsigned int)rng_below(r, N_SEEDS);
	size_t n[N_FILES] = {seed_program(kind, bytes[PROGRAM]), seed_split(kind, bytes[SPLIT]),
			     seed_alternate(bytes[ALTERNATE])},
	       at = HEAD;
	int victim = kind & SEED_SPLIT && rng_below(r, 2)  ? SPLIT
		     : kind & SEED_ALT && !rng_below(r, 8) ? ALTERNATE
							   : PROGRAM;

	memcpy(original, bytes[victim], n[victim]);
	change_elf(r, original, n[victim], bytes[victim]);
	if (rng_below(r, 32) == 0)
		n[victim] = rng_below(r, n[victim]);
	if (HEAD + n[PROGRAM] + n[SPLIT] + n[ALTERNATE] > room)
		return 0;
	out[0] = (unsigned char)kind;
	for (int i = 0; i < N_FILES; i++) {
		uint16_t size = (uint16_t)n[i];

		memcpy(out + 1 + 2 * i, &size, sizeof(size));
		memcpy(out + at, bytes[i], n[i]);
		at += n[i];
	}
	return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t at = HEAD;
	struct seen s = {0};
	char path[80];

	if (size < HEAD)
		return 0;
	remove_files();
	for (int i = 0; i < N_FILES; i++) {
		uint16_t n;

		memcpy(&n, data + 1 + 2 * i, sizeof(n));
		if (n > size - at)
			n = (uint16_t)(size - at);
		if (n && !write_file(i, data[0], data + at, n))
			abort();
		at += n;
	}
	(void)snprintf(path, sizeof(path), "%s/seed", top);
	walk_into(path, &s);
	if (s.t)
		fuzz_read();
	return 0;
}
