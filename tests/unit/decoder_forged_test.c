// SPDX-License-Identifier: BSD-2-Clause
/* What a decoder that somebody has taken over may answer is refused, and it gets no file that it
 * should not have. */
#include "program/elf/cfi.h"
#include "program/elf/code_place.h"
#include "program/decoder/private.h"
#include "base/message.h"
#include "program/dwarf/lines_private.h"
#include "program/elf/object_private.h"
#include "program/elf/symbols_private.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX_ROWS (1U << 22)

static struct elf_object *open_self(void)
{
	struct elf_object *o = NULL;
	struct error e = {.text = ""};

	if (elf_object_open("/proc/self/exe", &o, &e) < 0)
		fail_msg("%s", e.text);
	return o;
}

static void write_all(int fd, const void *bytes, size_t n)
{
	assert_int_equal(write(fd, bytes, n), n);
}

/* An object whose decoder is this test: what it will answer has been written to the other end
 * already. */
struct forged {
	struct elf_object *object;
	int other;
};

static struct forged forge(void)
{
	struct forged f;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	f.object = open_self();
	f.other = ends[1];
	assert_int_equal(decoder_adopt(f.object, ends[0]), 0);
	return f;
}

static void forge_end(struct forged *f)
{
	elf_object_close(f->object);
	(void)close(f->other);
}

static void answer(struct forged *f, uint64_t a, const void *const blobs[DECODER_BLOBS],
		   const size_t sizes[DECODER_BLOBS])
{
	struct decoder_head h = {.kind = DECODER_RESULT, .a = a};

	for (int i = 0; i < DECODER_BLOBS; i++)
		h.size[i] = sizes[i];
	write_all(f->other, &h, sizeof(h));
	for (int i = 0; i < DECODER_BLOBS; i++)
		write_all(f->other, blobs[i], sizes[i]);
}
#define ANSWER(f, a, array, array_size, more, more_size, names, names_size)     \
	answer(f, a, (const void *[DECODER_BLOBS]){array, more, names, "", ""}, \
	       (size_t[DECODER_BLOBS]){array_size, more_size, names_size})

static void refuse_symbols(const void *array, size_t size, const char *strings, size_t strings_size)
{
	struct forged f = forge();

	ANSWER(&f, 0, array, size, strings, strings_size, "", 0);
	assert_false(elf_object_has_symbols(f.object));
	assert_non_null(strstr(elf_object_symbol_problem(f.object), "impossible"));
	forge_end(&f);
}

/* Where functions are, as @n extents: a sound answer makes @wanted, others leave nothing. */
static void try_extents(const struct cfi_extent *extents, size_t size, int wanted)
{
	struct forged f = forge();
	struct cfi_extent at;

	answer(&f, 0, (const void *[DECODER_BLOBS]){"", "", "", "", extents},
	       (size_t[DECODER_BLOBS]){[BLOB_EXTENTS] = size});
	assert_int_equal(code_body_at(f.object, extents[0].lo, &at), wanted);
	forge_end(&f);
}

static void test_forged_extents(void **state)
{
	_cleanup_elf_object_ struct elf_object *o = open_self();
	const uint64_t code = elf_object_code_base(o);
	const struct cfi_extent sound[] = {{.lo = code, .hi = code + 8},
					   {.lo = code + 8, .hi = code + 16}},
				over[] = {{.lo = code, .hi = code + 12},
					  {.lo = code + 8, .hi = code + 16}},
				falling[] = {{.lo = code + 8, .hi = code + 16},
					     {.lo = code, .hi = code + 8}},
				empty[] = {{.lo = code, .hi = code}},
				outside[] = {{.lo = code - 8, .hi = code}},
				endless[] = {{.lo = code, .hi = UINT64_MAX}};

	(void)state;
	try_extents(sound, sizeof(sound), 0);
	try_extents(over, sizeof(over), -ENOENT);
	try_extents(falling, sizeof(falling), -ENOENT);
	try_extents(empty, sizeof(empty), -ENOENT);
	try_extents(outside, sizeof(outside), -ENOENT);
	try_extents(endless, sizeof(endless), -ENOENT);
	try_extents(sound, sizeof(sound) - 1, -ENOENT);
}

/* A name as it stands in an answer: an offset. */
#define AT(offset) ((const char *)(uintptr_t)(offset))

static void test_forged_symbols(void **state)
{
	_cleanup_elf_object_ struct elf_object *o = open_self();
	const uint64_t code = elf_object_code_base(o);
	struct symbol s[2] = {{.addr = code, .size = 16, .name = AT(0), .own = AT(0)},
			      {.addr = code + 16, .size = 16, .name = AT(2), .own = AT(2)}},
		      bad[2];
	struct forged f = forge();
	struct elf_symbol found;

	(void)state;
	ANSWER(&f, 0, s, sizeof(s), "a\0b", 4, "", 0);
	assert_int_equal(elf_object_function_at(f.object, code + 20, &found), 0);
	assert_string_equal(found.name, "b");
	forge_end(&f);
	f = forge();
	ANSWER(&f, 0, s, sizeof(s), "a\0b", 3, "", 0); /* unended: the end is ours */
	assert_true(elf_object_has_symbols(f.object));
	forge_end(&f);
	for (int i = 0; i < 2; i++)
		s[i].nameless = 1;
	f = forge();
	ANSWER(&f, 0, s, sizeof(s), "a\0b", 4, "", 0);
	assert_true(elf_object_has_functions(f.object) && !elf_object_has_symbols(f.object));
	assert_int_equal(elf_object_function_at(f.object, code + 20, &found), 0);
	assert_true(found.is_nameless);
	forge_end(&f);
#define REFUSE(change)                                       \
	do {                                                 \
		memcpy(bad, s, sizeof(s));                   \
		change;                                      \
		refuse_symbols(bad, sizeof(bad), "a\0b", 4); \
	} while (0)
	REFUSE(bad[1].name = AT(4));
	REFUSE(bad[1].own = AT(UINT64_MAX));
	REFUSE(bad[0].name = AT(1));
	REFUSE(bad[1].addr = code - 4096 * 4096ULL);
	REFUSE(bad[1].addr = 0x7fffffffffff);
	REFUSE(bad[1].size = UINT64_MAX);
	REFUSE(bad[1].kind = (enum symbol_kind)77);
	REFUSE(bad[0].addr = code + 17);
#undef REFUSE
	refuse_symbols(s, sizeof(s) - 1, "a\0b", 4);
	refuse_symbols(s, sizeof(s), "", 0);
}

static void refuse_cfi(const struct abi_row *rows, size_t size, size_t max)
{
	struct forged f = forge();
	struct error e = {.text = ""};
	struct cfi_table t;

	ANSWER(&f, 0, rows, size, "", 0, "", 0);
	assert_int_equal(cfi_table_read(f.object, max, &t, &e), -EIO);
	assert_non_null(strstr(e.text, "impossible"));
	assert_int_equal(cfi_table_read(f.object, max, &t, &e), -EIO); /* it is not asked again */
	forge_end(&f);
}

static void test_forged_cfi(void **state)
{
	const struct abi_row good[] = {{.pc = 0, .kind = ABI_ROW_RSP},
				       {.pc = 4, .kind = ABI_ROW_NONE}};
	const struct abi_row late[] = {{.pc = 1, .kind = ABI_ROW_RSP},
				       {.pc = 4, .kind = ABI_ROW_NONE}};
	const struct abi_row fallen[] = {{.pc = 0, .kind = ABI_ROW_RSP},
					 {.pc = 0, .kind = ABI_ROW_NONE}};
	const struct abi_row unknown[] = {{.pc = 0, .kind = 99}, {.pc = 4, .kind = ABI_ROW_NONE}};
	const struct abi_row open_ended[] = {{.pc = 0, .kind = ABI_ROW_RSP},
					     {.pc = 4, .kind = ABI_ROW_RSP}};
	struct forged f = forge();
	struct error e = {.text = ""};
	struct cfi_table t;

	(void)state;
	ANSWER(&f, 0, good, sizeof(good), "", 0, "", 0);
	assert_int_equal(cfi_table_read(f.object, 10, &t, &e), 0);
	assert_int_equal(t.n, 2);
	cfi_table_free(&t);
	forge_end(&f);
	refuse_cfi(late, sizeof(late), 10);
	refuse_cfi(fallen, sizeof(fallen), 10);
	refuse_cfi(unknown, sizeof(unknown), 10);
	refuse_cfi(open_ended, sizeof(open_ended), 10);
	refuse_cfi(good, sizeof(good) - 1, 10);
	refuse_cfi(good, sizeof(good), 1);
	refuse_cfi(good, 0, 10);
}

/* A table with one unit over the first sixteen bytes of code. */
static struct line_table *open_forged(struct forged *f)
{
	const uint64_t code = elf_object_code_base(f->object);
	const struct unit_range index = {code, code + 16, 0};
	struct line_table *t = NULL;
	struct error e = {.text = ""};

	ANSWER(f, 1, &index, sizeof(index), "forged", 6, "", 0);
	if (line_table_open(f->object, NULL, &t, &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(line_table_debug_path(t), "forged");
	return t;
}

static void refuse_table(uint64_t n_units, const struct unit_range *index, size_t size)
{
	struct forged f = forge();
	struct error e = {.text = ""};
	struct line_table *t = NULL;

	ANSWER(&f, n_units, index, size, "forged", 6, "", 0);
	assert_int_equal(line_table_open(f.object, NULL, &t, &e), -EIO);
	assert_non_null(strstr(e.text, "impossible"));
	forge_end(&f);
}

static void refuse_rows(const struct line_row *rows, size_t size, const char *names,
			size_t names_size)
{
	struct forged f = forge();
	struct line_table *t = open_forged(&f);
	struct line_location where;

	ANSWER(&f, 0, rows, size, "", 0, names, names_size);
	assert_int_equal(line_table_at(t, elf_object_code_base(f.object), &where), -ENOENT);
	assert_non_null(strstr(line_table_warning(t), "impossible"));
	line_table_close(t);
	forge_end(&f);
}

static void test_forged_lines(void **state)
{
	_cleanup_elf_object_ struct elf_object *o = open_self();
	const uint64_t code = elf_object_code_base(o);
	const struct unit_range sound[] = {{code, code + 8, 0}, {code + 8, code + 16, 1}},
				overlapping[] = {{code, code + 9, 0}, {code + 8, code + 16, 1}},
				falling[] = {{code + 8, code + 16, 0}, {code, code + 8, 1}},
				inverted[] = {{code + 8, code, 0}};
	const struct line_row rows[] = {{.addr = code, .line = 7, .file = 0},
					{.addr = code + 16, .end = 1}};
	struct line_row bad[2];
	struct forged f = forge();
	struct line_table *t = open_forged(&f);
	struct line_location where;

	(void)state;
	ANSWER(&f, 0, rows, sizeof(rows), "", 0, "a.c", 4);
	assert_int_equal(line_table_at(t, code, &where), 0);
	assert_string_equal(where.file, "a.c");
	line_table_close(t);
	forge_end(&f);

	refuse_table(1, sound, sizeof(sound)); /* the second unit is one too many */
	refuse_table(UINT64_MAX, sound, sizeof(sound));
	refuse_table(2, sound, sizeof(sound) - 1);
	refuse_table(2, sound, 0);
	refuse_table(2, overlapping, sizeof(overlapping));
	refuse_table(2, falling, sizeof(falling));
	refuse_table(2, inverted, sizeof(inverted));

	refuse_rows(rows, sizeof(rows), "", 0);	     /* no such file */
	refuse_rows(rows, sizeof(rows), "a.c", 3);   /* a name without an end */
	refuse_rows(rows, sizeof(rows), "\0a.c", 5); /* one without a name */
	refuse_rows(rows, sizeof(rows) - 1, "a.c", 4);
	refuse_rows(rows, sizeof(rows[0]), "a.c", 4); /* open-ended */
	memcpy(bad, rows, sizeof(rows));
	bad[1].addr = code - 1;
	refuse_rows(bad, sizeof(bad), "a.c", 4);
	bad[1] = rows[1];
	bad[0].file = 1;
	refuse_rows(bad, sizeof(bad), "a.c", 4);
}

static void refuse_inlined(const struct line_inlined *all, size_t size)
{
	struct forged f = forge();
	struct line_table *t = open_forged(&f);
	const uint64_t code = elf_object_code_base(f.object);
	const struct line_inlined *found;
	size_t n;

	ANSWER(&f, 0, all, size, "", 0, "a.c", 4);
	assert_int_equal(line_table_inlined(t, code, code + 16, &found, &n), -ENOENT);
	assert_non_null(strstr(line_table_warning(t), "impossible"));
	line_table_close(t);
	forge_end(&f);
}

static void test_forged_inlined(void **state)
{
	_cleanup_elf_object_ struct elf_object *o = open_self();
	const uint64_t code = elf_object_code_base(o);
	const struct line_inlined sound[] = {{{code, code + 16}, 0, 5},
					     {{code + 4, code + 8}, NO_FILE, 0}},
				  empty[] = {{{code, code}, 0, 5}},
				  falling[] = {{{code + 4, code + 8}, 0, 5},
					       {{code, code + 16}, 0, 5}},
				  elsewhere[] = {{{code, code + 16}, 1, 5}},
				  nowhere[] = {{{code, code + 16}, 0, 0}};
	const uint64_t outside[] = {code, 0x7fffffffffff};
	struct forged f = forge();
	struct line_table *t = open_forged(&f);
	struct line_location calls[4];
	uint32_t nearest = 0;
	uint64_t *all;
	size_t n;

	(void)state;
	ANSWER(&f, 0, sound, sizeof(sound), "", 0, "a.c", 4);
	assert_int_equal(line_table_calls(t, code + 4, UINT64_MAX, calls, 4), 1);
	assert_string_equal(calls[0].file, "a.c");
	assert_int_equal(calls[0].line, 5);
	ANSWER(&f, 0, outside, sizeof(outside), "", 0, "", 0);
	assert_int_equal(line_table_statements(t, "a.c", 5, &all, &n, &nearest), -EIO);
	assert_non_null(strstr(line_table_warning(t), "impossible"));
	line_table_close(t);
	forge_end(&f);
	refuse_inlined(empty, sizeof(empty));
	refuse_inlined(falling, sizeof(falling));
	refuse_inlined(elsewhere, sizeof(elsewhere));
	refuse_inlined(nowhere, sizeof(nowhere));
	refuse_inlined(sound, sizeof(sound) - 1);
}

/* Whatever comes, something is returned, and what is returned can be used. */
static void ask_everything(struct forged *f)
{
	const uint64_t code = elf_object_code_base(f->object);
	struct error e = {.text = ""};
	struct line_table *t = NULL;
	struct line_location where;
	struct elf_symbol s;
	struct cfi_table c;

	(void)shutdown(f->other, SHUT_WR);
	(void)elf_object_function_at(f->object, code + 5, &s);
	if (cfi_table_read(f->object, MAX_ROWS, &c, &e) == 0)
		cfi_table_free(&c);
	if (line_table_open(f->object, NULL, &t, &e) < 0)
		return;
	(void)line_table_at(t, code, &where);
	(void)line_table_calls(t, code, UINT64_MAX, &where, 1);
	(void)line_table_warning(t);
	line_table_close(t);
}

static void test_garbage(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 7);
	for (int i = 0; i < 300; i++) {
		struct forged f = forge();
		unsigned char bytes[2048];
		struct decoder_head h = {.kind = DECODER_RESULT};

		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (unsigned char)rng_below(&rng, i % 3 ? 256 : 3);
		for (int k = 0; i % 2 && k < 3; k++) {
			for (int b = 0; b < DECODER_BLOBS; b++)
				h.size[b] = rng_below(&rng, 20) ? rng_below(&rng, 20) * 8
								: rng_below(&rng, 1ULL << 40);
			h.a = rng_below(&rng, 4);
			write_all(f.other, &h, sizeof(h));
			write_all(f.other, bytes, rng_below(&rng, 640));
		}
		write_all(f.other, bytes, rng_below(&rng, sizeof(bytes)));
		ask_everything(&f);
		forge_end(&f);
	}
}

/* What a decoder gets when it asks for @path; the file's descriptor or a negative errno. */
static int ask_for(const char *path)
{
	struct decoder_head h = {.kind = DECODER_OPEN, .size = {strlen(path)}};
	_cleanup_elf_object_ struct elf_object *o = open_self();
	struct decoder_reply r;
	int32_t status;
	int fd, ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	write_all(ends[1], &h, sizeof(h));
	write_all(ends[1], path, strlen(path));
	(void)shutdown(ends[1], SHUT_WR);
	assert_int_equal(decoder_read_reply(ends[0], o, NULL, 0, &r), -EPIPE);
	assert_int_equal(message_read_fd(ends[1], &status, sizeof(status), 0, &fd, NULL), 0);
	(void)close(ends[0]);
	(void)close(ends[1]);
	assert_true((fd >= 0) == (status == 0));
	return status ? status : fd;
}

static void test_files(void **state)
{
	char exe[64];
	_cleanup_close_ int fd = -1;

	(void)state;
	(void)snprintf(exe, sizeof(exe), "/proc/%d/exe", getpid());
	fd = ask_for(exe);
	assert_true(fd >= 0);
	assert_int_equal(ask_for("/etc/passwd"), -ENOEXEC);
	assert_int_equal(ask_for("/etc"), -ENOEXEC);
	assert_int_equal(ask_for("/dev/zero"), -ENOEXEC);
	assert_int_equal(ask_for("/no/such/file"), -ENOENT);
	assert_int_equal(ask_for(""), -ENOENT);
}

static void test_silence(void **state)
{
	struct decoder_reply r;
	uint64_t from = clock_monotonic_ns();
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(decoder_read_reply(ends[0], NULL, NULL, from + 20 * NSEC_PER_MSEC, &r),
			 -ETIMEDOUT);
	write_all(ends[1], "half", 4);
	assert_int_equal(decoder_read_reply(ends[0], NULL, NULL,
					    clock_monotonic_ns() + 20 * NSEC_PER_MSEC, &r),
			 -ETIMEDOUT);
	(void)close(ends[1]);
	assert_int_equal(decoder_read_reply(ends[0], NULL, NULL, 0, &r), -EPIPE);
	(void)close(ends[0]);
}

static void start(const struct decoder_limits *limits)
{
	struct error e = {.text = ""};

	if (decoder_start(limits, &e) < 0)
		fail_msg("%s", e.text);
}

/* However many decoders do not answer, they are waited for once. */
static void test_silence_of_all(void **state)
{
	const struct decoder_limits limits = {.memory_bytes = 1ULL << 30,
					      .cpu_s = 10,
					      .wall_s = 1,
					      .total_s = 2,
					      .total_bytes = 1ULL << 30};

	(void)state;
	start(&limits);
	(void)alarm(60);
	for (int i = 0; i < 200; i++) {
		struct forged f = forge();
		const char *problem;

		assert_false(elf_object_has_symbols(f.object));
		problem = elf_object_symbol_problem(f.object);
		assert_non_null(strstr(problem, elf_object_path(f.object)));
		if (i > 2)
			assert_non_null(strstr(problem, "take too long"));
		forge_end(&f);
	}
	(void)alarm(0);
	decoder_stop();
}

/* Asks an object for two rows. */
static struct forged ask_rows(int expected)
{
	const struct abi_row rows[] = {{.pc = 0, .kind = ABI_ROW_RSP},
				       {.pc = 4, .kind = ABI_ROW_NONE}};
	struct forged f = forge();
	struct error e = {.text = ""};
	struct cfi_table t = {0};

	ANSWER(&f, 0, rows, sizeof(rows), "", 0, "", 0);
	assert_int_equal(cfi_table_read(f.object, 10, &t, &e), expected);
	assert_true(expected == 0 || strstr(e.text, "too much memory"));
	cfi_table_free(&t);
	return f;
}

static void test_much_of_all(void **state)
{
	const struct decoder_limits limits = {.memory_bytes = 1ULL << 30,
					      .cpu_s = 10,
					      .wall_s = 60,
					      .total_s = 300,
					      .total_bytes = 5 * sizeof(struct abi_row)};
	struct forged a, b, c, d;

	(void)state;
	start(&limits);
	a = ask_rows(0);
	b = ask_rows(0);
	c = ask_rows(-EIO);
	forge_end(&c);
	forge_end(&a);
	d = ask_rows(0);
	forge_end(&b);
	forge_end(&d);
	decoder_stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forged_symbols), cmocka_unit_test(test_forged_extents),
		cmocka_unit_test(test_forged_cfi),     cmocka_unit_test(test_forged_lines),
		cmocka_unit_test(test_forged_inlined), cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_files),	       cmocka_unit_test(test_silence),
		cmocka_unit_test(test_silence_of_all), cmocka_unit_test(test_much_of_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
