// SPDX-License-Identifier: BSD-2-Clause
/* What a decoder that somebody has taken over answers: whatever it is, it is refused, or what is
 * made of it can be used. An input is a byte, which says what is asked, and all that the decoder
 * will send. */
#include "fuzz.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "program/elf/cfi.h"
#include "program/decoder/private.h"
#include "base/message.h"
#include "program/dwarf/lines_private.h"
#include "program/elf/object_private.h"
#include "program/elf/perf_map.h"
#include "program/elf/symbols_private.h"

#include "elf_seeds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define MAX_ROWS 1000
#define ROOM 4096

enum what { SYMBOLS, FRAMES, LINES, MAPS, N_WHATS };

static unsigned char seed[ELF_SEED_ROOM];
static size_t seed_size;

const unsigned long fuzz_iterations = 1500;

bool fuzz_begin(void)
{
	struct rng r;

	rng_seed(&r, 1);
	seed_size = seed_elf(&r, 0, seed);
	return true;
}

void fuzz_end(void)
{
}

static void add(struct bytes *b, const void *from, size_t n)
{
	put_all(b, from, n < sizeof(b->p) - b->n ? n : sizeof(b->p) - b->n);
}

/* A number that is wrong now and then. */
static uint64_t about(struct rng *r, uint64_t right)
{
	static const uint64_t values[] = {0,	      1,	 2,	     0xffff, 0x7fffffff,
					  0xffffffff, INT64_MAX, UINT64_MAX, CODE,   CODE + 0x1000,
					  1ULL << 22};

	switch (rng_below(r, 60)) {
	case 0:
		return right + 1;
	case 1:
		return right - 1;
	case 2:
		return values[rng_below(r, sizeof(values) / sizeof(values[0]))];
	case 3:
		return rng_next(r) >> rng_below(r, 64);
	default:
		return right;
	}
}

static void add_answer(struct bytes *out, struct rng *r, int32_t status, uint64_t a,
		       const void *array, size_t size, const char *more, size_t more_size,
		       const char *names, size_t names_size)
{
	static const char *const files[] = {"/proc/self/exe", "/etc/passwd", "/no/such/file", "",
					    "/dev/zero"};
	const char *file = files[rng_below(r, sizeof(files) / sizeof(files[0]))],
		   *text = rng_below(r, 8) ? "" : "a warning";
	struct decoder_head h = {.kind = DECODER_OPEN, .size = {about(r, strlen(file))}};

	if (rng_below(r, 16) == 0) {
		add(out, &h, sizeof(h));
		add(out, file, strlen(file));
	}
	h = (struct decoder_head){.kind = (uint32_t)about(r, DECODER_RESULT),
				  .status = (int32_t)about(r, (uint64_t)(int64_t)status),
				  .a = about(r, a),
				  .b = about(r, 0),
				  .size = {about(r, size), about(r, more_size),
					   about(r, names_size), about(r, strlen(text))}};
	add(out, &h, sizeof(h));
	add(out, array, size);
	add(out, more, more_size);
	add(out, names, names_size);
	add(out, text, strlen(text));
}

static void make_symbols(struct bytes *out, struct rng *r)
{
	static const char names[] = "f.cold\0f\0_ZN2ns1fEi\0g";
	static const uint32_t at[] = {0, 7, 9, 20};
	struct symbol all[16];
	size_t n = rng_below(r, 16);

	for (size_t i = 0; i < n; i++) {
		uint32_t name = at[rng_below(r, 4)];

		all[i] = (struct symbol){.addr = about(r, CODE + i * 16),
					 .size = about(r, 16),
					 .name = (const char *)about(r, name),
					 .own = (const char *)about(r, name ? name : 7),
					 .kind = (enum symbol_kind)about(r, !name),
					 .rank = (uint32_t)about(r, 0),
					 .unit = (uint32_t)about(r, 1),
					 .order = (uint32_t)about(r, i),
					 .nameless = about(r, 0) & 1};
	}
	add_answer(out, r, 0, rng_below(r, 2), all, n * sizeof(*all), names,
		   sizeof(names) - rng_below(r, 2), "", 0);
}

static void make_frames(struct bytes *out, struct rng *r)
{
	struct abi_row all[16];
	size_t n = 1 + rng_below(r, 15);

	for (size_t i = 0; i < n; i++)
		all[i] = (struct abi_row){
			.pc = (uint32_t)about(r, i * 16),
			.cfa_offset = (int16_t)about(r, 16),
			.rbp_slot = (int8_t)about(r, 0),
			.kind = (uint8_t)about(r, i + 1 < n ? rng_below(r, ABI_ROW_DRAP + 1)
							    : ABI_ROW_NONE)};
	add_answer(out, r, 0, 0, all, n * sizeof(*all), "", 0, "", 0);
}

static void make_rows(struct bytes *out, struct rng *r, const char *names, size_t names_size)
{
	struct line_row all[16];
	size_t n = 1 + rng_below(r, 15);

	for (size_t i = 0; i < n; i++)
		all[i] = (struct line_row){.addr = about(r, CODE + i * 8),
					   .line = (uint32_t)about(r, rng_below(r, 9)),
					   .file = (uint32_t)about(r, rng_below(r, 2)) &
						   (MAX_FILES - 1),
					   .stmt = rng_below(r, 2),
					   .end = i + 1 == n};
	add_answer(out, r, 0, 0, all, n * sizeof(*all), "", 0, names, names_size);
}

static void make_inlined(struct bytes *out, struct rng *r)
{
	struct line_inlined all[8];
	size_t n = rng_below(r, 8);

	for (size_t i = 0; i < n; i++)
		all[i] =
			(struct line_inlined){{about(r, CODE + i * 4), about(r, CODE + i * 4 + 12)},
					      (uint32_t)about(r, rng_below(r, 2)),
					      (uint32_t)about(r, 7)};
	add_answer(out, r, 0, 0, all, n * sizeof(*all), "", 0, "", 0);
}

/* In the order in which walk_lines asks. */
static void make_lines(struct bytes *out, struct rng *r)
{
	static const char names[] = "/s/a.c\0/s/b.h";
	size_t units = 1 + rng_below(r, 3);
	struct unit_range index[3];
	uint64_t sites[4];
	struct line_copy copies[4];
	uint32_t files[] = {(uint32_t)about(r, 0), (uint32_t)about(r, 1)};

	for (size_t i = 0; i < units; i++)
		index[i] = (struct unit_range){about(r, CODE + i * 64),
					       about(r, CODE + i * 64 + 64), about(r, i)};
	for (size_t i = 0; i < 4; i++)
		sites[i] = about(r, CODE + i * 8);
	for (size_t i = 0; i < 4; i++)
		copies[i] =
			(struct line_copy){about(r, CODE + i * 8),
					   {about(r, CODE + i * 8), about(r, CODE + i * 8 + 4)}};
	add_answer(out, r, 0, units, index, units * sizeof(*index), "debug", 5, "", 0);
	make_rows(out, r, names, rng_below(r, 8) ? sizeof(names) : rng_below(r, sizeof(names)));
	make_inlined(out, r);
	add_answer(out, r, rng_below(r, 4) ? 0 : -ENOENT, 3, sites, sizeof(sites), "", 0, "", 0);
	add_answer(out, r, rng_below(r, 4) ? 0 : -ENOENT, 0, copies, sizeof(copies), "", 0, "", 0);
	for (size_t i = 0; i < units; i++)
		add_answer(out, r, 0, 0, files, sizeof(files), "", 0, "", 0);
	for (size_t i = 1; i < units; i++)
		make_rows(out, r, "", 0);
}

static void make_map(struct bytes *out, struct rng *r)
{
	static const char names[] = "f /a.js:1:2\0g\0h";
	static const uint32_t at[] = {0, 12, 14};
	struct perf_map_entry all[16];
	size_t n = rng_below(r, 16);
	struct wire_perf_map head = {.status = (int32_t)about(r, 0),
				     .n = about(r, n),
				     .names_size = about(r, sizeof(names))};

	for (size_t i = 0; i < n; i++)
		all[i] = (struct perf_map_entry){.lo = about(r, CODE + i * 16),
						 .hi = about(r, CODE + i * 16 + 16),
						 .name = (uint32_t)about(r, at[rng_below(r, 3)]),
						 .hash = (uint32_t)rng_next(r)};
	add(out, &head, sizeof(head));
	add(out, all, n * sizeof(*all));
	add(out, names, sizeof(names));
}

size_t fuzz_make(struct rng *r, unsigned char *out, size_t room)
{
	enum what what = (enum what)rng_below(r, N_WHATS);
	struct bytes b = {.n = 0};

	if (what == SYMBOLS)
		make_symbols(&b, r);
	else if (what == FRAMES)
		make_frames(&b, r);
	else if (what == MAPS)
		make_map(&b, r);
	else
		make_lines(&b, r);
	if (rng_below(r, 16) == 0)
		b.n = rng_below(r, b.n);
	if (b.n + 1 > room)
		return 0;
	out[0] = (unsigned char)what;
	memcpy(out + 1, b.p, b.n);
	return b.n + 1;
}

static int see_symbol(const struct elf_symbol *s, void *arg)
{
	const struct elf_object *o = arg;
	struct elf_symbol found;

	fuzz_must(*s->name && *s->function && elf_object_is_code(o, s->addr) &&
		  s->size <= elf_object_code_left(o, s->addr));
	(void)elf_object_function_at(o, s->addr, &found);
	return 0;
}

static void walk_symbols(const struct elf_object *o)
{
	struct elf_symbol s, *entries;
	char *names[4];
	size_t n;

	if (elf_object_has_symbols(o))
		fuzz_read();
	(void)elf_object_each_function(o, see_symbol, (void *)(uintptr_t)o);
	(void)elf_object_function_at(o, CODE + 33, &s);
	if (elf_object_find_entries(o, "f", &entries, &n) == 0)
		free(entries);
	(void)elf_object_find_function(o, "ns::f", &s);
	n = elf_object_similar_functions(o, "ff", names, 4);
	while (n)
		free(names[--n]);
}

static void walk_frames(const struct elf_object *o)
{
	struct error e = {.text = ""};
	struct cfi_table t;

	if (cfi_table_read(o, MAX_ROWS, &t, &e) < 0)
		return;
	fuzz_must(t.n && t.n <= MAX_ROWS && !t.rows[0].pc && t.rows[t.n - 1].kind == ABI_ROW_NONE);
	for (size_t i = 1; i < t.n; i++)
		fuzz_must(t.rows[i].pc > t.rows[i - 1].pc);
	cfi_table_free(&t);
	fuzz_read();
}

static int see_line(const char *file, uint32_t line, void *arg)
{
	size_t *n = arg;

	fuzz_must(*file && line);
	return ++*n > 1000;
}

static bool every_other(const char *file, void *arg)
{
	(void)arg;
	return strlen(file) & 1;
}

static int see_range(struct addr_range range, void *arg)
{
	(void)arg;
	fuzz_must(range.lo <= range.hi);
	return 0;
}

static void walk_lines(const struct elf_object *o)
{
	struct error e = {.text = ""};
	struct line_table *t = NULL;
	struct line_location where, calls[4];
	struct line_copy *copies;
	struct addr_range *ranges;
	const char *near[4];
	uint32_t nearest = 0;
	uint64_t *sites;
	size_t n, lines = 0;

	if (line_table_open(o, NULL, &t, &e) < 0) {
		fuzz_must(e.text[0]);
		return;
	}
	fuzz_read();
	if (line_table_at(t, CODE, &where) == 0)
		fuzz_must(*where.file && where.line);
	for (uint64_t i = 0; i < 64; i += 3) {
		n = line_table_calls(t, CODE + i, UINT64_MAX, calls, 4);
		for (size_t k = 0; k < n; k++)
			fuzz_must(*calls[k].file && calls[k].line);
	}
	if (line_table_statements(t, "a.c", 5, &sites, &n, &nearest) == 0) {
		for (size_t i = 0; i < n; i++)
			fuzz_must(elf_object_is_code(o, sites[i]));
		free(sites);
	}
	if (line_table_copies(t, "f", &copies, &n) == 0) {
		for (size_t i = 0; i < n; i++)
			fuzz_must(elf_object_is_code(o, copies[i].entry) &&
				  copies[i].range.lo < copies[i].range.hi);
		free(copies);
	}
	(void)line_table_read_file(t, "a.c");
	if (line_table_ranges(t, "a.c", 5, &ranges, &n) == 0)
		free(ranges);
	if (line_table_called(t, "a.c", 7, &ranges, &n) == 0)
		free(ranges);
	if (line_table_scope(t, every_other, NULL, &ranges, &n) == 0)
		free(ranges);
	if (line_table_covered(t, &ranges, &n) == 0)
		free(ranges);
	for (size_t i = 0; i < line_table_units(t) && i < 4; i++)
		(void)line_table_unit_ranges(t, i, see_range, NULL);
	(void)line_table_each(t, see_line, &lines);
	(void)line_table_similar_files(t, "a.h", near, 4);
	(void)line_table_warning(t);
	line_table_close(t);
}

static void walk_map(int fd)
{
	struct perf_map m = {0};

	if (decoder_read_perf_map(fd, &m, 0) < 0) {
		fuzz_must(!m.all && !m.names);
		return;
	}
	for (size_t i = 0; i < m.n; i++)
		fuzz_must(perf_map_at(&m, m.all[i].lo) == &m.all[i] &&
			  strlen(m.names + m.all[i].name) < m.names_size);
	perf_map_free(&m);
	fuzz_read();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_elf_object_ struct elf_object *o = NULL;
	struct error e = {.text = ""};
	int ends[2];

	if (!size || size > ROOM)
		return 0;
	if (elf_object_open_image("fuzzed", seed, seed_size, &o, &e) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0 ||
	    decoder_adopt(o, ends[0]) < 0 ||
	    send(ends[1], data + 1, size - 1, 0) != (ssize_t)(size - 1))
		abort();
	/* It has no more to say, and goes on to listen. */
	(void)shutdown(ends[1], SHUT_WR);
	switch (data[0] % N_WHATS) {
	case SYMBOLS:
		walk_symbols(o);
		break;
	case FRAMES:
		walk_frames(o);
		break;
	case MAPS:
		walk_map(ends[0]);
		break;
	default:
		walk_lines(o);
	}
	(void)close(ends[1]);
	return 0;
}
