// SPDX-License-Identifier: BSD-2-Clause
/* Mutates files of counts, with checksums that are right again, and checks what counts_decode
 * promises. */
#include "fuzz.h"

#include "base/error.h"
#include "collect/database/counts.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define MAGIC 16 /* "cozbpf counts 2\n" */
#define HEAD (MAGIC + 4)
#define ROOM 4096

static unsigned char seed[ROOM];
static size_t n_seed;

const unsigned long fuzz_iterations = 40000;

bool fuzz_begin(void)
{
	static char path[] = "/usr/lib/x.so", id[] = "00ff";
	const struct counts_image image = {COUNTS_FILE, path, id, 8, 9, 10};
	struct counts c = {.begin_s = 7200, .seconds = 3600}, back;
	unsigned char *bytes;
	bool good;

	counts_copy_image(&c.image, &image);
	if (counts_who(&c, "init", "/", "h") != 0 ||
	    counts_who(&c, "sh", "/user.slice", "h") != 1 ||
	    counts_event(&c, "cpu-clock", 10000000) != 0 ||
	    counts_event(&c, "page-faults", 100) != 1)
		return false;
	for (uint32_t i = 0; i < 40; i++)
		counts_add(&c, 300 * i, i % 2, i % 3 == 0, 1 + i * i);
	counts_sort(&c);
	bytes = counts_encode(&c, &n_seed);
	good = n_seed <= ROOM && counts_decode(bytes, n_seed, &back, NULL) == 0;
	if (good) {
		memcpy(seed, bytes, n_seed);
		free(bytes);
		counts_free(&back);
	}
	counts_free(&c);
	return good;
}

void fuzz_end(void)
{
}

/* A checksum would stop every change but those that it is part of. */
static void make_right(unsigned char *bytes, size_t n)
{
	uint32_t sum = (uint32_t)crc32_z(0, bytes + HEAD, n - HEAD);

	for (size_t i = 0; i < 4; i++)
		bytes[MAGIC + i] = (unsigned char)(sum >> (8 * i));
}

size_t fuzz_make(struct rng *r, unsigned char *out, size_t room)
{
	size_t n = n_seed;

	if (room < 2 * ROOM)
		return 0;
	memcpy(out, seed, n);
	for (uint64_t k = rng_below(r, 6); k > 0; k--) {
		size_t at = HEAD + rng_below(r, n - HEAD), length = 1 + rng_below(r, 8);

		switch (rng_below(r, 4)) {
		case 0:
			out[at] ^= (unsigned char)(1 << rng_below(r, 8));
			break;
		case 1:
			out[at] = (unsigned char)rng_next(r);
			break;
		case 2: /* leave out */
			if (at + length < n) {
				memmove(out + at, out + at + length, n - at - length);
				n -= length;
			}
			break;
		default: /* double */
			if (at + length < n && n + length < ROOM) {
				memmove(out + at + length, out + at, n - at);
				n += length;
			}
		}
	}
	if (rng_below(r, 16))
		make_right(out, n);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error e = {0};
	struct counts c;
	unsigned char *bytes;
	size_t n;

	if (counts_decode(data, size, &c, &e) < 0) {
		fuzz_must(e.text[0]);
		return 0;
	}
	fuzz_must(c.seconds && c.image.path && c.image.build_id && c.image.kind < N_COUNTS_KINDS);
	/* Each is found by its name, and none is there twice. */
	for (size_t i = 0; i < c.n_who; i++)
		fuzz_must(counts_who(&c, c.who[i].process, c.who[i].cgroup, c.who[i].host) == i);
	for (size_t i = 0; i < c.n_events; i++)
		fuzz_must(counts_event(&c, c.events[i].name, c.events[i].every) == i);
	for (size_t i = 0; i < c.n_rows; i++) {
		fuzz_must(c.rows[i].who < c.n_who && c.rows[i].event < c.n_events &&
			  c.rows[i].count);
		fuzz_must(!i || c.rows[i - 1].offset <= c.rows[i].offset);
	}
	bytes = counts_encode(&c, &n);
	free(bytes);
	counts_free(&c);
	fuzz_read();
	return 0;
}
