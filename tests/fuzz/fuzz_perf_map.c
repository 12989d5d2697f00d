// SPDX-License-Identifier: BSD-2-Clause
/* Mutates perf maps, which are the inputs, and checks what the parser promises of its result. */
#include "fuzz.h"
#include "text_change.h"

#include "program/elf/perf_map.h"

#include <string.h>

#define ROOM 4096

static const char seed_text[] = "7f0000001000 40 JS:*fib /srv/app.js:12:17\n"
				"7f0000001040 40 JS:~ /srv/app.js:1:1\n"
				"7f0000001020 40 LazyCompile:^fib /srv/app.js:12:17\n"
				"0x00007f0000002000 0x0000000000000080 int java.lang.String.f()\n"
				"0x7f0000003000 20 py::fib:/srv/app.py\n"
				"00007F0000001010 a0 void [app] Program::Work(int32)[Tier0]\n"
				"7f0000000000 1000000 TRACE_1::app.lua:3\r\n";

static const char *const tokens[] = {" ",
				     "\n",
				     "0x",
				     "JS:*",
				     "[",
				     ")[Tier1]",
				     "\xe2\x82\xac",
				     "\x7f",
				     "\x11",
				     "1000",
				     "7f0000001000 10 f\n",
				     "ffffffffffffffff"};

static const struct text_change changes = {ROOM, "0123456789abcdef", tokens,
					   sizeof(tokens) / sizeof(tokens[0])};

const unsigned long fuzz_iterations = 20000;

bool fuzz_begin(void)
{
	return true;
}

void fuzz_end(void)
{
}

size_t fuzz_make(struct rng *r, unsigned char *out, size_t room)
{
	return make_text(r, &changes, seed_text, sizeof(seed_text) - 1, out, room);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct perf_map m = {0};
	size_t lines = 0;

	for (size_t i = 0; i < size; i++)
		lines += data[i] == '\n';
	fuzz_must(perf_map_parse((const char *)data, size, &m) == 0);
	fuzz_must(perf_map_is_sound(&m) && m.n <= 2 * lines);
	for (size_t i = 0; i < m.n; i++) {
		const struct perf_map_entry *x = &m.all[i];
		const char *name = m.names + x->name;

		fuzz_must(perf_map_at(&m, x->lo) == x && perf_map_at(&m, x->hi - 1) == x);
		fuzz_must(strlen(name) <= PERF_MAP_MAX_NAME + sizeof("(anonymous)"));
		fuzz_must(x->hash == perf_map_hash(name, strlen(name)));
		for (const char *c = name; *c; c++)
			fuzz_must((unsigned char)*c >= 0x20 && *c != 0x7f);
	}
	if (m.n)
		fuzz_read();
	perf_map_free(&m);
	return 0;
}
