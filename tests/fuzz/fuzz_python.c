// SPDX-License-Identifier: BSD-2-Clause
/* Memory with a code object of CPython's in it, which is the input, changed where it hurts. */
#include "fuzz.h"

#include "program/code/python.h"

#include <string.h>
#include <unistd.h>

#define ROOM 4096
#define CODE_TYPE 0x1234567890abcdefULL
#define OBJECT 64   /* where the code object is */
#define STRING 1024 /* its name, and its file's */
#define TABLE 2048
#define UNITS 128

/* Pointers lead into it. */
static unsigned char memory[ROOM] __attribute__((aligned(4096)));

static const struct {
	unsigned int minor, first_line, file, function, table, code;
} versions[] = {
	{11, 72, 112, 128, 136, 184}, {12, 68, 112, 128, 136, 192}, {14, 68, 112, 128, 136, 208}};

const unsigned long fuzz_iterations = 1000;

bool fuzz_begin(void)
{
	return true;
}

void fuzz_end(void)
{
}

static void put(unsigned char *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

size_t fuzz_make(struct rng *r, unsigned char *out, size_t room)
{
	static const unsigned int offsets[] = {0,   8,	 16,  68,  72,	112, 120,
					       128, 136, 144, 184, 192, 208};
	uint64_t version = rng_below(r, sizeof(versions) / sizeof(versions[0]));
	uint32_t line = 10;

	if (room < ROOM)
		return 0;
	memset(out, 0, ROOM);
	out[0] = (unsigned char)version;
	put(out + OBJECT + 8, CODE_TYPE);
	put(out + OBJECT + 16, UNITS);
	memcpy(out + OBJECT + versions[version].first_line, &line, sizeof(line));
	put(out + OBJECT + versions[version].file, (uintptr_t)memory + STRING);
	put(out + OBJECT + versions[version].function, (uintptr_t)memory + STRING);
	put(out + OBJECT + versions[version].table, (uintptr_t)memory + TABLE);
	put(out + STRING + 16, 12);
	out[STRING + 32] = (unsigned char)((1 | 8 | (rng_below(r, 2) ? 16 : 0)) << 2);
	memset(out + STRING + 40, 'n', 64);
	put(out + TABLE + 16, UNITS * 2);
	for (size_t i = 0; i < UNITS * 2; i++)
		out[TABLE + 32 + i] = (unsigned char)(rng_next(r) | (i % 3 ? 0 : 0x80));
	for (uint64_t k = rng_below(r, 4); k > 0; k--) {
		size_t at = rng_below(r, 3)
				    ? OBJECT + offsets[rng_below(r, sizeof(offsets) /
									    sizeof(offsets[0]))]
				    : (rng_below(r, 2) ? STRING : TABLE) + rng_below(r, 5) * 8;

		put(out + at, rng_below(r, 2) ? rng_next(r) : rng_below(r, 4096));
	}
	return ROOM;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct python p = {.pid = getpid(), .code_type = CODE_TYPE};

	if (size != ROOM || data[0] >= sizeof(versions) / sizeof(versions[0]))
		return 0;
	memcpy(memory, data, size);
	p.layout = python_layout_of(versions[data[0]].minor);
	for (size_t i = OBJECT; i < STRING; i += 30) {
		const struct python_code *c = python_code_at(&p, (uintptr_t)memory + i);

		p.soon_ns = 0;
		if (!c)
			continue;
		fuzz_must(c->range.lo <= (uintptr_t)memory + i &&
			  (uintptr_t)memory + i < c->range.hi);
		fuzz_must(c->n_lines <= (c->range.hi - c->range.lo) / 2);
		for (size_t k = 0; k < c->n_lines; k++)
			fuzz_must(c->lines[k].line <= INT32_MAX &&
				  (k == 0 || c->lines[k].at > c->lines[k - 1].at));
		for (const char *s = c->function; *s; s++)
			fuzz_must((unsigned char)*s >= 0x20 && *s != '[');
		(void)python_line_at(c, (uintptr_t)memory + i);
	}
	for (size_t i = 1; i < p.n; i++)
		fuzz_must(p.codes[i - 1]->range.hi <= p.codes[i]->range.lo);
	if (p.n)
		fuzz_read();
	python_free(&p);
	return 0;
}
