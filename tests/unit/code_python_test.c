// SPDX-License-Identifier: BSD-2-Clause
/* CPython's code objects, in this process's own memory: whose instruction is it, of which line? */
#include "program/code/python.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of 3.11, by its headers. */
#define TYPE 8
#define SIZE 16
#define FIRST_LINE 72
#define FILE_NAME 112
#define FUNCTION 128
#define TABLE 136
#define CODE 184
#define STATE 32
#define ASCII_BEGIN 48
#define COMPACT_BEGIN 72
#define BYTES_BEGIN 32
#define CODE_TYPE 0x1234567890abcdefULL

enum { ASCII = 16 + 8, COMPACT = 8 };

static void put(unsigned char *at, uint64_t value)
{
	memcpy(at, &value, sizeof(value));
}

/* A str of @n characters of @width bytes. */
static void make_string(unsigned char *at, const void *characters, size_t n, unsigned int width,
			unsigned int flags)
{
	put(at + SIZE, n);
	put(at + STATE, (width | flags) << 2);
	memcpy(at + (flags & 16 ? ASCII_BEGIN : COMPACT_BEGIN), characters, n * width);
}

struct module {
	unsigned char code[CODE + 400] __attribute__((aligned(16)));
	unsigned char file[256], function[256], table[256];
};

static struct module *make_module(const unsigned char *table, size_t n, size_t units)
{
	struct module *m = calloc(1, sizeof(*m));
	uint32_t line = 10;

	assert_non_null(m);
	put(m->code + TYPE, CODE_TYPE);
	put(m->code + SIZE, units);
	memcpy(m->code + FIRST_LINE, &line, sizeof(line));
	put(m->code + FILE_NAME, (uintptr_t)m->file);
	put(m->code + FUNCTION, (uintptr_t)m->function);
	put(m->code + TABLE, (uintptr_t)m->table);
	make_string(m->file, "/srv/app.py", 11, 1, ASCII);
	make_string(m->function, "App.f", 5, 1, ASCII);
	put(m->table + SIZE, n);
	memcpy(m->table + BYTES_BEGIN, table, n);
	return m;
}

static struct python make_python(void)
{
	return (struct python){
		.pid = getpid(), .layout = python_layout_of(11), .code_type = CODE_TYPE};
}

static const struct python_code *at(struct python *p, const struct module *m, size_t unit)
{
	return python_code_at(p, (uintptr_t)m->code + CODE + 2 * unit);
}

#define ENTRY(code, units) (0x80 | (code) << 3 | ((units)-1))

static uint32_t line(struct python *p, const struct module *m, size_t unit)
{
	return python_line_at(at(p, m, unit), (uintptr_t)m->code + CODE + 2 * unit);
}

static void lines_of_all_forms(void **state)
{
	static const unsigned char table[] = {
		ENTRY(0, 2),
		0x12, /* no other line, columns in a byte */
		ENTRY(11, 1),
		3,
		9, /* the next one, columns in two */
		ENTRY(13, 1),
		0x0a, /* five on, no columns: 5 << 1 */
		ENTRY(14, 3),
		0x07,
		0,
		1,
		2,	      /* three back: 3 << 1 | 1; its end, and columns */
		ENTRY(15, 2), /* of no line */
		ENTRY(13, 8),
		0x40 | 0x08,
		0x04, /* 132 on, in two pieces: (4 << 6 | 8) >> 1 */
		ENTRY(12, 8),
		0,
		0,
	};
	struct module *m = make_module(table, sizeof(table), 20);
	struct python p = make_python();
	const struct python_code *c = at(&p, m, 0);

	(void)state;
	assert_non_null(c);
	assert_string_equal(c->file, "/srv/app.py");
	assert_string_equal(c->function, "App.f");
	assert_int_equal(line(&p, m, 0), 10);
	assert_int_equal(line(&p, m, 1), 10);
	assert_int_equal(line(&p, m, 2), 11);
	assert_int_equal(line(&p, m, 3), 16);
	assert_int_equal(line(&p, m, 4), 13);
	assert_int_equal(line(&p, m, 6), 13);
	assert_int_equal(line(&p, m, 7), 0);
	assert_int_equal(line(&p, m, 9), 13 + 132);
	assert_int_equal(line(&p, m, 17), 13 + 132 + 2);
	assert_int_equal(line(&p, m, 19), 13 + 132 + 2);
	assert_null(at(&p, m, 20));
	assert_int_equal(p.n, 1);
	python_free(&p);
	free(m);
}

static void names_in_all_widths(void **state)
{
	static const unsigned char table[] = {ENTRY(0, 1), 0};
	static const uint8_t latin[] = {'f', 0xe9};
	static const uint16_t wide[] = {'f', 0x20ac};
	static const uint32_t wider[] = {'f', 0x1f40d};
	static const uint16_t surrogate[] = {'f', 0xd800};
	static const struct {
		const void *characters;
		unsigned int width;
		const char *text;
	} all[] = {{"f[", 1, "f("},
		   {"\n]", 1, "?)"},
		   {latin, 1, "f\xc3\xa9"},
		   {wide, 2, "f\xe2\x82\xac"},
		   {wider, 4, "f\xf0\x9f\x90\x8d"},
		   {surrogate, 2, "f?"}};
	struct python p = make_python();

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct module *m = make_module(table, sizeof(table), 4);

		make_string(m->function, all[i].characters, 2, all[i].width, COMPACT);
		assert_non_null(at(&p, m, 1));
		assert_string_equal(at(&p, m, 1)->function, all[i].text);
		python_free(&p);
		p = make_python();
		free(m);
	}
}

/* Memory is given to another object. */
static void what_is_replaced_has_its_own_name(void **state)
{
	static const unsigned char table[] = {ENTRY(0, 1), 0};
	struct module *m = make_module(table, sizeof(table), 8);
	struct python p = make_python();

	(void)state;
	assert_int_equal(line(&p, m, 3), 10);
	put(m->code + SIZE, 6);
	memcpy(m->code + FIRST_LINE, &(uint32_t){70}, 4);
	assert_int_equal(line(&p, m, 3), 10); /* not looked at again so soon */
	p.codes[0]->checked_ns = 0;
	p.codes[0]->is_decided = true;
	assert_non_null(at(&p, m, 3));
	assert_false(at(&p, m, 3)->is_decided);
	assert_int_equal(line(&p, m, 3), 70);
	assert_int_equal(p.n, 1);
	python_free(&p);
	free(m);
}

static void what_makes_no_sense_is_none(void **state)
{
	static const unsigned char table[] = {ENTRY(0, 1), 0};
	static const struct {
		size_t at;
		uint64_t value;
	} damage[] = {
		{SIZE, 0},  {SIZE, UINT64_MAX}, {FILE_NAME, 0},		 {FUNCTION, 8},
		{TABLE, 0}, {TYPE, 0},		{TABLE, UINT64_MAX - 8}, {FILE_NAME, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(damage) / sizeof(damage[0]); i++) {
		struct module *m = make_module(table, sizeof(table), 8);
		struct python p = make_python();

		put(m->code + damage[i].at, damage[i].value);
		assert_null(at(&p, m, 1));
		/* Nor is it searched for at once again. */
		assert_true(p.soon_ns > 0);
		put(m->code + SIZE, 8);
		python_free(&p);
		free(m);
	}
	assert_null(python_layout_of(10));
	assert_non_null(python_layout_of(14));
}

/* Tables that end early, or go on for ever. */
static void tables_are_bounded(void **state)
{
	unsigned char table[200];
	struct python p = make_python();
	struct module *m;

	(void)state;
	memset(table, 0xff, sizeof(table)); /* of no line, eight units each */
	m = make_module(table, sizeof(table), 8);
	assert_int_equal(line(&p, m, 7), 0);
	assert_int_equal(p.codes[0]->n_lines, 1);
	python_free(&p);
	p = make_python();
	free(m);
	memset(table, ENTRY(13, 1), sizeof(table));
	m = make_module(table, sizeof(table), 100);
	assert_true(at(&p, m, 99)->n_lines <= 100);
	python_free(&p);
	p = make_python();
	free(m);
	m = make_module(table, 0, 8);
	assert_int_equal(line(&p, m, 0), 0);
	free(m);
	python_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_all_forms),
		cmocka_unit_test(names_in_all_widths),
		cmocka_unit_test(what_is_replaced_has_its_own_name),
		cmocka_unit_test(what_makes_no_sense_is_none),
		cmocka_unit_test(tables_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
