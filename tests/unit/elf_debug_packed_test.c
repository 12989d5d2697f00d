// SPDX-License-Identifier: BSD-2-Clause
/* Pieces of a big compressed section against the bytes that were compressed, in whatever order they
 * are asked for. */
#include "program/elf/debug_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#define SIZE (20U << 20)
#define OLD_HEADER 12

struct packed {
	unsigned char *plain;
	FILE *file;
	struct debug_file in;
	struct debug_section section;
};

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

/* Text that repeats some of what was before, as debug information does. */
static unsigned char *some_text(uint64_t seed)
{
	unsigned char *text = malloc(SIZE);

	assert_non_null(text);
	for (size_t at = 0; at < SIZE;) {
		size_t n = 1 + next(&seed) % 40,
		       from = at > 30000 ? at - 1 - next(&seed) % 30000 : 0;

		for (size_t i = 0; i < n && at < SIZE; i++, at++)
			text[at] = at > 30000 && n > 12 ? text[from + i]
							: (unsigned char)('a' + next(&seed) % 20);
	}
	return text;
}

/* Both are taken over. */
static void put(struct packed *p, unsigned char *plain, unsigned char *stream, size_t n)
{
	unsigned char head[OLD_HEADER] = "ZLIB";

	*p = (struct packed){.plain = plain, .file = tmpfile()};
	assert_non_null(p->file);
	assert_int_equal(fwrite(head, 1, sizeof(head), p->file), sizeof(head));
	assert_int_equal(fwrite(stream, 1, n, p->file), n);
	assert_int_equal(fflush(p->file), 0);
	free(stream);
	p->in = (struct debug_file){.path = (char *)(uintptr_t) "test",
				    .fd = fileno(p->file),
				    .size = n + sizeof(head)};
	/* Not a section of libelf's: it only must be there. */
	p->section = (struct debug_section){.file = &p->in,
					    .scn = (void *)p,
					    .stored = n + sizeof(head),
					    .size = SIZE,
					    .packed = true,
					    .old_packed = true};
}

/* @plain is taken over; @cut bytes of the stream are left out at its end. */
static void pack(struct packed *p, unsigned char *plain, size_t cut)
{
	uLongf n = compressBound(SIZE);
	unsigned char *stream = malloc(n);

	assert_non_null(stream);
	assert_int_equal(compress2(stream, &n, plain, SIZE, 1), Z_OK);
	assert_true(n > cut);
	put(p, plain, stream, n - cut);
}

struct bits {
	unsigned char *bytes;
	size_t n;
};

/* Codes are written from their highest bit on. */
static void put_code(struct bits *b, unsigned int code, unsigned int length)
{
	while (length--) {
		b->bytes[b->n / 8] |= (unsigned char)((code >> length & 1) << b->n % 8);
		b->n++;
	}
}

/* One letter over and over as a single block of fixed codes (RFC 1951, 3.2.6), which zlib would not
 * write. */
static void pack_one_block(struct packed *p)
{
	unsigned char *plain = malloc(SIZE), *stream = calloc(1, SIZE / 64);
	struct bits b = {.bytes = stream};
	uLong sum;
	size_t at;

	assert_non_null(plain);
	assert_non_null(stream);
	memset(plain, 'x', SIZE);
	stream[0] = 0x78;
	stream[1] = 0x01;
	b.n = 16;
	put_code(&b, 6, 3); /* the last block, fixed codes */
	for (at = 0; at < 1 + (SIZE - 1) % 258; at++)
		put_code(&b, 0x30 + 'x', 8);
	for (; at < SIZE; at += 258)
		put_code(&b, 0xc5U << 5, 13); /* 258 times what is 1 before */
	put_code(&b, 0, 7);
	sum = adler32(adler32(0, NULL, 0), plain, SIZE);
	b.n = (b.n + 7) / 8 * 8;
	for (int i = 3; i >= 0; i--)
		stream[b.n / 8 + 3 - (size_t)i] = (unsigned char)(sum >> 8 * i);
	put(p, plain, stream, b.n / 8 + 4);
}

static void unpack_free(struct packed *p)
{
	debug_packed_close(p->section.pieces);
	free(p->section.bytes);
	(void)fclose(p->file);
	free(p->plain);
}

static void check_piece(struct debug_packed *d, const struct packed *p, uint64_t at, size_t n)
{
	unsigned char buf[4096];
	size_t expected = SIZE - at < n ? SIZE - at : n;
	bool slow;

	assert_true(n <= sizeof(buf));
	assert_int_equal(debug_packed_read(d, at, buf, n, &slow), expected);
	assert_false(slow);
	assert_memory_equal(buf, p->plain + at, expected);
}

static void pieces_are_what_was_packed(void **state)
{
	struct debug_packed *d;
	struct packed p;
	uint64_t random = 99;

	(void)state;
	pack(&p, some_text(7), 0);
	d = debug_packed_open(&p.section);
	assert_non_null(d);
	/* The first is far away, so that all marks are set in passing. */
	check_piece(d, &p, SIZE - 100, 4000);
	for (int i = 0; i < 60; i++)
		check_piece(d, &p, next(&random) % SIZE, 1 + next(&random) % 4000);
	for (uint64_t at = 0; at + 4096 < SIZE; at += SIZE / 50)
		check_piece(d, &p, at, 4096);
	check_piece(d, &p, (1U << 18) - 5, 10); /* in two chunks */
	debug_packed_close(d);
	unpack_free(&p);
}

static void what_is_cut_off_is_not_there(void **state)
{
	struct debug_packed *d;
	struct packed p;
	unsigned char buf[64];
	bool slow;

	(void)state;
	pack(&p, some_text(8), 1U << 20);
	d = debug_packed_open(&p.section);
	assert_non_null(d);
	assert_int_equal(debug_packed_read(d, SIZE - 64, buf, sizeof(buf), &slow), 0);
	assert_false(slow);
	check_piece(d, &p, 1000, 4000);
	debug_packed_close(d);
	unpack_free(&p);
}

static void a_damaged_header_is_refused(void **state)
{
	struct packed p;

	(void)state;
	pack(&p, some_text(9), 0);
	assert_int_equal(fseek(p.file, OLD_HEADER, SEEK_SET), 0);
	assert_int_equal(fwrite("\xff\xff", 1, 2, p.file), 2);
	assert_int_equal(fflush(p.file), 0);
	assert_null(debug_packed_open(&p.section));
	unpack_free(&p);
}

/* Then there is nothing to begin at. The section must be had all the same. */
static void a_stream_of_one_block_is_unpacked_as_a_whole(void **state)
{
	struct debug_packed *d;
	struct packed p;
	unsigned char buf[100];
	bool slow;

	(void)state;
	pack_one_block(&p);
	d = debug_packed_open(&p.section);
	assert_non_null(d);
	check_piece(d, &p, SIZE - 1000, 100);
	assert_int_equal(debug_packed_read(d, 17U << 20, buf, sizeof(buf), &slow), 0);
	assert_true(slow);
	debug_packed_close(d);
	assert_int_equal(debug_section_read(&p.section, SIZE - 1000, buf, sizeof(buf)),
			 sizeof(buf));
	assert_memory_equal(buf, p.plain, sizeof(buf));
	assert_null(p.section.bytes);
	assert_int_equal(debug_section_read(&p.section, 17U << 20, buf, sizeof(buf)), sizeof(buf));
	assert_memory_equal(buf, p.plain, sizeof(buf));
	assert_non_null(p.section.bytes);
	unpack_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_what_was_packed),
		cmocka_unit_test(what_is_cut_off_is_not_there),
		cmocka_unit_test(a_damaged_header_is_refused),
		cmocka_unit_test(a_stream_of_one_block_is_unpacked_as_a_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
