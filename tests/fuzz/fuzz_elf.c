// SPDX-License-Identifier: BSD-2-Clause
/* Mutates ELF files, small ones and now and then this program itself, opens them, and walks all
 * that is read of one: symbols, probes, code, libraries, call frame information, lines. An input is
 * the file. */
#include "fuzz.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "program/elf/cfi.h"
#include "program/elf/code.h"
#include "program/elf/code_place.h"
#include "program/elf/code_returns.h"
#include "program/code/loops.h"
#include "program/elf/libraries.h"
#include "program/dwarf/lines.h"
#include "program/elf/object.h"
#include "program/elf/symbols_private.h"
#include "program/elf/usdt.h"

#include "elf_seeds.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_ROWS 100000

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
	struct line_table *t; /* or NULL */
	size_t n, every;
};

static int count_function(const struct elf_symbol *s, void *arg)
{
	(void)s;
	++*(size_t *)arg;
	return 0;
}

static int count_readable(const struct elf_symbol *s, const char *readable, void *arg)
{
	fuzz_must(*readable);
	return count_function(s, arg);
}

static int see_loop(const struct code_loop *loop, void *arg)
{
	const struct elf_symbol *s = arg;

	fuzz_must(loop->jump >= s->addr && loop->jump - s->addr < s->size);
	return 0;
}

/* Probes: where there are many functions, of some only, since the search for jumps goes through all
 * of the code. */
static int see_code(const struct elf_symbol *s, void *arg)
{
	struct places *x = arg;
	struct code_places places = {.o = x->o};
	struct code_exit *exits = NULL;
	uint64_t before, behind, site;
	enum code_cost cost;
	size_t n = 0;

	if (x->n++ % x->every)
		return 0;
	if (x->t)
		(void)code_each_loop(x->o, x->t, s, see_loop, (void *)(uintptr_t)s);
	if (code_exits(x->o, s, &exits, &n, NULL) == 0)
		fuzz_must(n > 0);
	free(exits);
	(void)code_place_check(&places, s->addr + x->n % 8, NULL);
	code_places_close(&places);
	(void)code_check_offset(x->o, s, 3, &before, &behind);
	site = code_cheap_site(x->o, s->addr, &cost);
	fuzz_must(site >= s->addr && cost < CODE_COSTS);
	return x->n > 600;
}

static int see_probe(const struct usdt_probe *p, void *arg)
{
	fuzz_must(*p->provider && *p->name && elf_object_is_code(arg, p->vaddr));
	return 0;
}

static int count_probe(const struct usdt_probe *p, void *arg)
{
	(void)p;
	++*(size_t *)arg;
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
	if (s->n++ % 97 == 0 &&
	    line_table_statements(s->t, file, line, &addresses, &n, &nearest) == 0)
		free(addresses);
	return s->n > 2000;
}

static bool every_other(const char *file, void *arg)
{
	(void)arg;
	return strlen(file) & 1;
}

static void walk_frames(const struct elf_object *o)
{
	struct error e = {.text = ""};
	struct cfi_table t;

	if (cfi_table_read(o, MAX_ROWS, &t, &e) < 0) {
		fuzz_must(e.text[0]);
		return;
	}
	fuzz_must(t.n && t.n <= MAX_ROWS && !t.rows[0].pc && t.rows[t.n - 1].kind == ABI_ROW_NONE);
	for (size_t i = 1; i < t.n; i++)
		fuzz_must(t.rows[i].pc > t.rows[i - 1].pc && t.rows[i].kind <= ABI_ROW_DRAP);
	cfi_table_free(&t);
}

static void walk_lines(const struct elf_object *o, struct line_table *t)
{
	struct seen seen = {.t = t};
	struct line_location where, calls[8];
	struct addr_range *ranges;
	struct elf_symbol s;
	size_t n;

	if (elf_object_find_function(o, "main", &s) == 0)
		for (uint64_t i = 0; i < 64; i++)
			(void)line_table_at(t, s.addr + i, &where);
	for (uint64_t i = 0; i < 0x80; i++) {
		size_t n_calls = line_table_calls(t, CODE + i, UINT64_MAX, calls, 8);

		for (size_t k = 0; k < n_calls; k++)
			fuzz_must(calls[k].line && *calls[k].file);
	}
	if (line_table_scope(t, every_other, NULL, &ranges, &n) == 0)
		free(ranges);
	(void)line_table_each(t, see_line, &seen);
}

static void walk(const struct elf_object *o)
{
	static const char *const wanted[] = {"ns::f(int)", "walk",     "work", "gone",
					     "helper",	   "foo::bar", "data", "main.main"};
	struct places places = {.o = o, .every = 1};
	struct elf_symbol s, *entries;
	size_t functions = 0, n;
	char *names[4];
	uint64_t bias;
	struct error e;

	(void)elf_object_each_function(o, see_function, (void *)(uintptr_t)o);
	(void)elf_object_each_function(o, count_function, &functions);
	(void)elf_object_each_readable(o, true, count_readable, &n);
	if (functions > 100)
		places.every = 61;
	(void)usdt_each(o, see_probe, (void *)(uintptr_t)o);
	free(library_find(o, "libnone.so"));
	if (functions <= 100)
		(void)library_can_come(o);
	free(elf_object_interpreter(o));
	(void)elf_object_mapping_bias(o, 0x7f0000000000, 0, &bias);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		(void)elf_object_find_function(o, wanted[i], &s);
		if (elf_object_find_entries(o, wanted[i], &entries, &n) == 0)
			free(entries);
	}
	(void)elf_object_symbol_problem(o);
	n = elf_object_similar_functions(o, "walk_lines", names, 4);
	while (n)
		free(names[--n]);
	walk_frames(o);
	if (line_table_open(o, NULL, &places.t, &e) < 0)
		places.t = NULL;
	else
		walk_lines(o, places.t);
	(void)elf_object_each_function(o, see_code, &places);
	line_table_close(places.t);
}

const unsigned long fuzz_iterations = 3000;

/* This program itself: mapped, since it is large and seldom used. */
static struct {
	unsigned char *bytes;
	size_t size;
} self;

/* What is found in a sound seed of each kind. */
static bool seeds_are_sound(void)
{
	static unsigned char bytes[ELF_SEED_ROOM];
	bool good = true;

	for (unsigned int kind = 0; kind < 1U << (ELF_LINES_SHIFT + 6); kind++) {
		_cleanup_elf_object_ struct elf_object *o = NULL;
		struct error e = {.text = ""};
		struct line_table *t = NULL;
		struct cfi_table frames = {0};
		size_t functions = 0, probes = 0, calls = 0, n;
		struct line_location call;
		struct rng r;

		/* Not every other one's mini debug information is sound. */
		for (uint64_t seed = 1; functions < 10 && seed < 20; seed++) {
			rng_seed(&r, seed);
			n = seed_elf(&r, kind, bytes);
			elf_object_close(o);
			o = NULL;
			functions = 0;
			if (elf_object_open(fuzz_file(bytes, n), &o, &e) < 0)
				break;
			(void)elf_object_each_function(o, count_function, &functions);
			if (kind & ELF_HEADLESS)
				break;
		}
		if (o) {
			(void)usdt_each(o, count_probe, &probes);
			(void)cfi_table_read(o, MAX_ROWS, &frames, &e);
			(void)line_table_open(o, NULL, &t, &e);
			calls = t ? line_table_calls(t, CODE + 0x20, UINT64_MAX, &call, 1) : 0;
		}
		if (!o || frames.n < 4 || !elf_object_build_id(o) ||
		    (!(kind & ELF_HEADLESS) &&
		     (functions < 10 || probes != 2 || !o->symbols->go != !(kind & ELF_GO) ||
		      (kind & ELF_LINES && !t) ||
		      ((kind & (ELF_GO | ELF_LINES)) == ELF_GO && calls != 1)))) {
			(void)fprintf(
				stderr,
				"seed kind %u: %zu functions, %zu probes, %zu rows, %s lines, %zu "
				"calls: %s\n",
				kind, functions, probes, frames.n, t ? "with" : "no", calls,
				e.text);
			good = false;
		}
		cfi_table_free(&frames);
		line_table_close(t);
	}
	return good;
}

bool fuzz_begin(void)
{
	_cleanup_close_ int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0) {
		self.bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		self.size = self.bytes == MAP_FAILED ? 0 : (size_t)st.st_size;
	}
	return seeds_are_sound();
}

void fuzz_end(void)
{
	if (self.size)
		(void)munmap(self.bytes, self.size);
}

size_t fuzz_make(struct rng *r, unsigned char *out, size_t room)
{
	static unsigned char small[ELF_SEED_ROOM];
	const unsigned char *original = small;
	size_t n;

	if (rng_below(r, 512) == 0 && self.size && self.size <= room) {
		original = self.bytes;
		n = self.size;
	} else {
		n = seed_elf(r, (unsigned int)rng_next(r), small);
	}
	if (n > room)
		return 0;
	memcpy(out, original, n);
	change_elf(r, original, n, out);
	return rng_below(r, 16) ? n : rng_below(r, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_elf_object_ struct elf_object *o = NULL;
	struct error e = {.text = ""};

	if (elf_object_open(fuzz_file(data, size), &o, &e) < 0) {
		fuzz_must(e.text[0]);
		return 0;
	}
	fuzz_read();
	walk(o);
	return 0;
}
