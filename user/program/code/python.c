// SPDX-License-Identifier: BSD-2-Clause
/* What is read is a foreign program's memory, which it writes as it likes: everything is bounded,
 * and nothing is followed twice. */
#include "program/code/python.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/search.h"
#include "program/elf/object.h"
#include "target/process.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Offsets in the structures of one version, by its headers: Include/cpython/code.h, pystate.h,
 * unicodeobject.h, bytesobject.h, and Include/internal/pycore_frame.h, pycore_interp.h,
 * pycore_runtime.h. */
struct python_layout {
	unsigned int minor;	  /* of 3 */
	unsigned int interpreter; /* in _PyRuntimeState: interpreters.main */
	unsigned int threads;	  /* in PyInterpreterState: threads.head */
	unsigned int thread_id, frame, is_indirect, current, instr, previous;
	unsigned int first_line, file, function, table, code; /* in PyCodeObject */
	unsigned int ascii, compact; /* where a string's characters begin */
};

static const struct python_layout layouts[] = {
	{11, 48, 16, 152, 56, 1, 8, 56, 48, 72, 112, 128, 136, 184, 48, 72},
	{12, 48, 72, 136, 56, 1, 0, 56, 8, 68, 112, 128, 136, 192, 40, 56},
	{13, 640, 7344, 152, 72, 0, 0, 56, 8, 68, 112, 128, 136, 200, 40, 56},
	{14, 816, 7344, 152, 72, 0, 0, 56, 8, 68, 112, 128, 136, 208, 40, 56},
};

/* In all of these versions. */
#define NEXT_THREAD 8  /* in PyThreadState */
#define OBJECT_TYPE 8  /* in PyObject */
#define OBJECT_SIZE 16 /* in PyVarObject */
#define STRING_STATE 32
#define BYTES_BEGIN 32
#define UNIT 2 /* bytes of an instruction */

#define MAX_CODES 65536
#define MAX_UNITS (1U << 20) /* of one code */
#define MAX_TABLE (1U << 20) /* bytes */
#define MAX_STRING 4096	     /* characters */
#define MAX_HEAD 256	     /* of a code object, before its instructions */
#define PIECE 4096
#define CHECK_NS (5 * NSEC_PER_SEC)
#define SEARCH_PART 20 /* of a CPU's time, for searches in vain */

static bool read_all(pid_t pid, uint64_t at, void *to, size_t size)
{
	return process_read_memory(pid, at, to, size) == (ssize_t)size;
}

static uint64_t word(const void *from)
{
	uint64_t v;

	memcpy(&v, from, sizeof(v));
	return v;
}

static uint32_t half(const void *from)
{
	uint32_t v;

	memcpy(&v, from, sizeof(v));
	return v;
}

const struct python_layout *python_layout_of(unsigned int minor)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		if (minor == layouts[i].minor)
			return &layouts[i];
	return NULL;
}

bool python_find(const struct elf_object *elf, uint64_t bias, pid_t pid, struct python *ret)
{
	uint64_t runtime, type, types, version, hex, of_type;

	if (elf_object_find_data(elf, "_PyRuntime", &runtime) < 0 ||
	    elf_object_find_data(elf, "PyCode_Type", &type) < 0 ||
	    elf_object_find_data(elf, "Py_Version", &version) < 0 ||
	    elf_object_find_data(elf, "PyType_Type", &types) < 0 ||
	    !read_all(pid, version + bias, &hex, sizeof(hex)) ||
	    !read_all(pid, type + bias + OBJECT_TYPE, &of_type, sizeof(of_type)))
		return false;
	/* Objects begin otherwise where there is no lock of the interpreter (3.13t). */
	if (of_type != types + bias)
		return false;
	*ret = (struct python){.pid = pid, .code_type = type + bias};
	ret->layout = hex >> 24 == 3 ? python_layout_of(hex >> 16 & 0xff) : NULL;
	if (!ret->layout)
		return false;
	ret->state = (struct abi_python){
		.interpreter = runtime + bias + ret->layout->interpreter,
		.threads = ret->layout->threads,
		.next = NEXT_THREAD,
		.thread_id = ret->layout->thread_id,
		.frame = ret->layout->frame,
		.is_indirect = ret->layout->is_indirect,
		.current = ret->layout->current,
		.instr = ret->layout->instr,
		.previous = ret->layout->previous,
	};
	return true;
}

/* Names are in records whose parts tabs and newlines divide, and a surrogate is no character. */
static bool is_printable(uint32_t c)
{
	return c >= 0x20 && c != 0x7f && (c < 0xd800 || c > 0xdfff) && c < 0x110000;
}

static void put_character(FILE *f, uint32_t c)
{
	if (c >= 0x80) {
		if (c < 0x800) {
			(void)putc((int)(0xc0 | c >> 6), f);
		} else {
			if (c < 0x10000) {
				(void)putc((int)(0xe0 | (c >> 12 & 15)), f);
			} else {
				(void)putc((int)(0xf0 | (c >> 18 & 7)), f);
				(void)putc((int)(0x80 | (c >> 12 & 63)), f);
			}
			(void)putc((int)(0x80 | (c >> 6 & 63)), f);
		}
		c = 0x80 | (c & 63);
	}
	(void)putc((int)c, f);
}

/* A str object's characters in UTF-8, the caller's. NULL: it is none that can be read. */
static char *read_string(const struct python *p, uint64_t at)
{
	unsigned char head[STRING_STATE + 4], *characters;
	unsigned int width, is_compact, is_ascii;
	char *text = NULL;
	uint64_t length;
	size_t size;
	FILE *f;

	if (!at || !read_all(p->pid, at, head, sizeof(head)))
		return NULL;
	length = word(head + OBJECT_SIZE);
	width = half(head + STRING_STATE) >> 2; /* whether it is interned */
	is_compact = width >> 3 & 1;
	is_ascii = width >> 4 & 1;
	width &= 7;
	if (!is_compact || !(width == 1 || width == 2 || width == 4) || length > MAX_STRING)
		return NULL;
	characters = xcalloc(length + 1, width);
	if (!read_all(p->pid, at + (is_ascii ? p->layout->ascii : p->layout->compact), characters,
		      length * width)) {
		free(characters);
		return NULL;
	}
	f = xopen_memstream(&text, &size);
	for (size_t i = 0; i < length; i++) {
		uint32_t c = 0;

		memcpy(&c, characters + i * width, width);
		put_character(f, is_printable(c) ? c : '?');
	}
	xclose_memstream(f);
	free(characters);
	return text;
}

struct cursor {
	const unsigned char *at, *end;
};

/* Six bits in each byte, the lowest first; the seventh says that there is more. */
static uint32_t take_varint(struct cursor *c)
{
	uint32_t value = 0;

	for (unsigned int shift = 0; c->at < c->end; shift += 6) {
		unsigned char byte = *c->at++;

		if (shift < 32)
			value |= (uint32_t)(byte & 63) << shift;
		if (!(byte & 64))
			break;
	}
	return value;
}

/* The lowest bit is the sign; modulo 2^32. */
static uint32_t take_signed(struct cursor *c)
{
	uint32_t value = take_varint(c);

	return value & 1 ? -(value >> 1) : value >> 1;
}

/* The table of locations, as Objects/locations.md in CPython's source describes it. */
static void read_lines(struct python_code *ret, const unsigned char *table, size_t n, uint32_t line)
{
	struct cursor c = {table, table + n};
	uint64_t at = 0, size = ret->range.hi - ret->range.lo;

	while (c.at < c.end && at < size) {
		unsigned char first = *c.at++, code = first >> 3 & 15;
		uint32_t here;

		if (!(first & 0x80))
			break;
		if (code < 10) {
			c.at += 1;
		} else if (code < 13) {
			line += code - 10U;
			c.at += 2;
		} else if (code < 15) {
			line += take_signed(&c);
			for (int i = 0; code == 14 && i < 3; i++)
				(void)take_varint(&c);
		}
		here = code == 15 || line > INT32_MAX ? 0 : line;
		if (!ret->n_lines || ret->lines[ret->n_lines - 1].line != here)
			xarray_add(ret->lines, ret->n_lines,
				   (struct python_line){(uint32_t)at, here});
		at += UNIT * ((first & 7) + 1U);
	}
}

static void code_free(struct python_code *c)
{
	if (!c)
		return;
	free(c->file);
	free(c->function);
	free(c->lines);
	free(c);
}

/* What tells a code object from another one in its place. */
static uint64_t key_of(const struct python_layout *l, const unsigned char *head)
{
	return word(head + OBJECT_SIZE) ^ word(head + l->file) * 3 ^ word(head + l->function) * 5 ^
	       word(head + l->table) * 7 ^ (uint64_t)half(head + l->first_line) << 40;
}

/* The code object at @at. NULL: there is none, by its type and size. */
static struct python_code *read_code(const struct python *p, uint64_t at)
{
	const struct python_layout *l = p->layout;
	unsigned char head[MAX_HEAD], bytes[BYTES_BEGIN];
	_cleanup_free_ unsigned char *table = NULL;
	struct python_code *c;
	uint64_t units, size;

	if (!read_all(p->pid, at, head, l->code) || word(head + OBJECT_TYPE) != p->code_type)
		return NULL;
	units = word(head + OBJECT_SIZE);
	if (!units || units > MAX_UNITS)
		return NULL;
	c = xcalloc(1, sizeof(*c));
	c->range = (struct addr_range){at + l->code, at + l->code + UNIT * units};
	c->key = key_of(l, head);
	c->checked_ns = clock_monotonic_ns();
	c->file = read_string(p, word(head + l->file));
	c->function = read_string(p, word(head + l->function));
	/* What ends in "[disk]" is a wait, and in "[jit]" the name of a perf map. */
	for (char *s = c->function; s && (s = strpbrk(s, "[]"));)
		*s = *s == '[' ? '(' : ')';
	if (c->file && c->function &&
	    read_all(p->pid, word(head + l->table), bytes, sizeof(bytes)) &&
	    (size = word(bytes + OBJECT_SIZE)) <= MAX_TABLE) {
		table = xcalloc(size + 1, 1);
		if (read_all(p->pid, word(head + l->table) + BYTES_BEGIN, table, size)) {
			read_lines(c, table, size, half(head + l->first_line));
			return c;
		}
	}
	code_free(c);
	return NULL;
}

/* The code that the instruction at @addr is of: its object begins before it. */
static struct python_code *find_code(const struct python *p, uint64_t addr)
{
	unsigned char piece[PIECE];
	uint64_t least = addr > UNIT * MAX_UNITS ? addr - UNIT * MAX_UNITS : PIECE;

	for (uint64_t from = addr & ~(PIECE - 1ULL); from >= least; from -= PIECE) {
		size_t n = addr - from < PIECE ? (size_t)(addr - from) : PIECE;

		if (!read_all(p->pid, from, piece, n))
			return NULL;
		for (size_t i = n / sizeof(uint64_t); i-- > 0;) {
			struct python_code *c;

			if (word(piece + i * sizeof(uint64_t)) != p->code_type)
				continue;
			c = read_code(p, from + i * sizeof(uint64_t) - OBJECT_TYPE);
			if (c && addr >= c->range.lo && addr < c->range.hi)
				return c;
			code_free(c);
		}
	}
	return NULL;
}

static struct python_code *search(struct python *p, uint64_t addr)
{
	uint64_t from = clock_monotonic_ns();
	struct python_code *c = from >= p->soon_ns ? find_code(p, addr) : NULL;

	if (!c && from >= p->soon_ns)
		p->soon_ns = from + SEARCH_PART * (clock_monotonic_ns() - from);
	return c;
}

/* The first one that ends above @addr. */
static size_t place_of(const struct python *p, uint64_t addr)
{
	return search_front(p->n, i, p->codes[i]->range.hi <= addr);
}

static bool is_still(const struct python *p, struct python_code *c)
{
	uint64_t now = clock_monotonic_ns();
	unsigned char head[MAX_HEAD];

	if (now < c->checked_ns + CHECK_NS)
		return true;
	c->checked_ns = now;
	/* What a process did that has ended stays what it was. */
	return !read_all(p->pid, c->range.lo - p->layout->code, head, p->layout->code) ||
	       (word(head + OBJECT_TYPE) == p->code_type && key_of(p->layout, head) == c->key);
}

static uint64_t bytes_of(const struct python_code *c)
{
	return sizeof(*c) + strlen(c->file) + strlen(c->function) + c->n_lines * sizeof(*c->lines);
}

static void drop(struct python *p, size_t i)
{
	p->bytes -= bytes_of(p->codes[i]);
	code_free(p->codes[i]);
	memmove(p->codes + i, p->codes + i + 1, (--p->n - i) * sizeof(*p->codes));
}

struct python_code *python_code_at(struct python *p, uint64_t addr)
{
	size_t i = place_of(p, addr);
	struct python_code *c;

	if (i < p->n && p->codes[i]->range.lo <= addr && is_still(p, p->codes[i]))
		return p->codes[i];
	c = p->n < MAX_CODES && p->bytes < PYTHON_BYTES ? search(p, addr) : NULL;
	if (!c)
		return NULL;
	p->bytes += bytes_of(c);
	/* It has the memory of those. */
	for (i = place_of(p, c->range.lo); i < p->n && p->codes[i]->range.lo < c->range.hi;)
		drop(p, i);
	xarray_add(p->codes, p->n, c);
	memmove(p->codes + i + 1, p->codes + i, (p->n - 1 - i) * sizeof(*p->codes));
	p->codes[i] = c;
	return c;
}

uint32_t python_line_at(const struct python_code *c, uint64_t addr)
{
	size_t i = search_front(c->n_lines, k, c->range.lo + c->lines[k].at <= addr);

	return i ? c->lines[i - 1].line : 0;
}

void python_free(struct python *p)
{
	for (size_t i = 0; i < p->n; i++)
		code_free(p->codes[i]);
	free(p->codes);
	*p = (struct python){0};
}
