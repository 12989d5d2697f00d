// SPDX-License-Identifier: BSD-2-Clause
#include "cli/options/options.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/suggest.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* getopt returns this plus the row's index for a long option, so that a letter and a row never
 * collide. */
#define ROW_BASE 256
#define HELP_COLUMN 28

/* Appends the rows of @table to *@all, which has *@n. */
static void add_rows(const struct option_row *table, size_t offset, unsigned int without,
		     struct option_row **all, size_t *n)
{
	for (; table->name || table->include; table++) {
		if (table->not_for & without)
			continue;
		if (table->include) {
			add_rows(table->include, offset + table->offset, without | table->without,
				 all, n);
			continue;
		}
		xarray_add(*all, *n, *table);
		(*all)[*n - 1].offset += offset;
	}
}

struct option_row *options_all(const struct option_row *table, size_t *ret_n)
{
	struct option_row *all = NULL;

	*ret_n = 0;
	add_rows(table, 0, 0, &all, ret_n);
	xarray_room(all, *ret_n);
	all[*ret_n] = (struct option_row){0};
	return all;
}

struct getopt_tables {
	struct option *longs;
	char *shorts;
};

static void free_tables(struct getopt_tables *t)
{
	free(t->longs);
	free(t->shorts);
}

static struct getopt_tables make_tables(const struct option_row *rows, size_t n, bool among_words)
{
	struct getopt_tables t = {.longs = xcalloc(n + 1, sizeof(*t.longs)),
				  .shorts = xcalloc(2 * n + 3, 1)};
	char *s = t.shorts;

	/* Either words are returned in their order, or the first one ends the options. */
	*s++ = among_words ? '-' : '+';
	*s++ = ':'; /* a missing value is told apart from an unknown option */
	for (size_t i = 0; i < n; i++) {
		t.longs[i].name = rows[i].name;
		t.longs[i].has_arg = rows[i].arg ? required_argument : no_argument;
		t.longs[i].val = ROW_BASE + (int)i;
		if (!rows[i].letter)
			continue;
		*s++ = rows[i].letter;
		if (rows[i].arg)
			*s++ = ':';
	}
	return t;
}

static const struct option_row *row_of(const struct option_row *rows, size_t n, int val)
{
	if (val >= ROW_BASE)
		return (size_t)(val - ROW_BASE) < n ? &rows[val - ROW_BASE] : NULL;
	for (size_t i = 0; i < n; i++)
		if (val && rows[i].letter == val)
			return &rows[i];
	return NULL;
}

/* @word is what the user wrote, "--progess=x" or "-x" inside a cluster (then @letter). */
static int unknown_option(const struct option_row *rows, size_t n, const char *word, int letter,
			  struct error *e)
{
	_cleanup_free_ const char **names = NULL;
	_cleanup_free_ char *name = NULL;
	const char *near = NULL, *first = NULL, *second = NULL;
	size_t len, listed = 0;

	if (letter)
		return fail(e, EINVAL, "unknown option '-%c'; --help lists the options", letter);
	names = xcalloc(n + 1, sizeof(*names));
	name = xstrndup(word + 2, strcspn(word + 2, "="));
	len = strlen(name);
	for (size_t i = 0; i < n; i++) {
		if (!rows[i].help)
			continue;
		names[listed++] = rows[i].name;
		if (len && strncmp(rows[i].name, name, len) == 0) {
			if (!first)
				first = rows[i].name;
			else
				second = rows[i].name;
		}
	}
	if (second)
		return fail(e, EINVAL, "option '--%s' is ambiguous: --%s or --%s", name, first,
			    second);
	near = suggest(name, names);
	if (near)
		return fail(e, EINVAL, "unknown option '--%s'; did you mean --%s?", name, near);
	return fail(e, EINVAL, "unknown option '--%s'; --help lists the options", name);
}

static int bad_option(const struct option_row *rows, size_t n, char **argv, int at, int opt,
		      struct error *e)
{
	const struct option_row *row = row_of(rows, n, optopt);
	const char *word = argv[at];

	if (opt == ':' && row && optopt < ROW_BASE)
		return fail(e, EINVAL, "option '-%c' needs a value: %s", row->letter, row->arg);
	if (opt == ':' && row)
		return fail(e, EINVAL, "option '--%s' needs a value: %s", row->name, row->arg);
	if (row && optopt >= ROW_BASE)
		return fail(e, EINVAL, "option '--%s' takes no value: '%s'", row->name, word);
	return unknown_option(rows, n, word, strncmp(word, "--", 2) == 0 ? 0 : optopt, e);
}

#define WORD 1 /* what getopt returns for one that is no option */

static int parse(const struct option_row *table, void *target, int argc, char **argv,
		 bool among_words, int *ret_first, struct error *e)
{
	size_t n;
	_cleanup_free_ struct option_row *rows = options_all(table, &n);
	_cleanup_(free_tables) struct getopt_tables t = make_tables(rows, n, among_words);
	_cleanup_free_ char **words = xcalloc((size_t)argc, sizeof(*words));
	int n_words = 0, r;

	opterr = 0;
	optind = 0; /* makes glibc start afresh: a process may parse twice */
	for (;;) {
		int at = optind ? optind : 1;
		const struct option_row *row;
		int opt;

		if (!among_words && at < argc && strcmp(argv[at], "---") == 0) {
			*ret_first = at + 1;
			return 0;
		}
		opt = getopt_long(argc, argv, t.shorts, t.longs, NULL);
		if (opt == -1)
			break;
		if (opt == '?' || opt == ':')
			return bad_option(rows, n, argv, at, opt, e);
		if (opt == WORD) {
			words[n_words++] = optarg;
			continue;
		}
		row = row_of(rows, n, opt);
		r = row->set(target, row, row->arg ? optarg : NULL, e);
		if (r < 0)
			return r;
	}
	*ret_first = optind - n_words;
	for (int i = 0; i < n_words; i++)
		argv[*ret_first + i] = words[i];
	return 0;
}

int options_parse(const struct option_row *table, void *target, int argc, char **argv,
		  int *ret_first, struct error *e)
{
	return parse(table, target, argc, argv, true, ret_first, e);
}

int options_parse_before(const struct option_row *table, void *target, int argc, char **argv,
			 int *ret_first, struct error *e)
{
	return parse(table, target, argc, argv, false, ret_first, e);
}

static void print_row(FILE *out, const struct option_row *row)
{
	int column;

	if (row->letter)
		column = fprintf(out, "  -%c, --%s", row->letter, row->name);
	else
		column = fprintf(out, "      --%s", row->name);
	if (row->arg)
		column += fprintf(out, " %s", row->arg);
	if (column > HELP_COLUMN - 2) {
		(void)fputc('\n', out);
		column = 0;
	}
	(void)fprintf(out, "%*s", HELP_COLUMN - column, "");
	for (const char *c = row->help; *c; c++) {
		(void)fputc(*c, out);
		if (*c == '\n')
			(void)fprintf(out, "%*s", HELP_COLUMN, "");
	}
	(void)fputc('\n', out);
}

void options_help(FILE *out, const struct option_row *table)
{
	size_t experts = 0, n;
	_cleanup_free_ struct option_row *rows = options_all(table, &n);

	for (size_t i = 0; i < n; i++)
		if (rows[i].help && !rows[i].expert)
			print_row(out, &rows[i]);
	for (size_t i = 0; i < n; i++)
		if (rows[i].help && rows[i].expert) {
			if (experts++ == 0)
				(void)fputs("\nFor experts:\n", out);
			print_row(out, &rows[i]);
		}
}

int option_flag(void *target, const struct option_row *row, const char *value, struct error *e)
{
	(void)value, (void)e;
	*(bool *)((char *)target + row->offset) = true;
	return 0;
}

int option_unsigned(const struct option_row *row, const char *value, uint64_t min, uint64_t max,
		    uint64_t *ret, struct error *e)
{
	/* strtoull also takes signs and leading space. */
	bool good = *value && !value[strspn(value, "0123456789")];
	uint64_t v;

	errno = 0;
	v = strtoull(value, NULL, 10);
	if (!good || errno || v < min || v > max)
		return fail(e, EINVAL, "--%s '%s': allowed are whole numbers from %llu to %llu",
			    row->name, value, (unsigned long long)min, (unsigned long long)max);
	*ret = v;
	return 0;
}

int option_real(const struct option_row *row, const char *value, double min, double max,
		double *ret, struct error *e)
{
	/* strtod also takes hexadecimal, exponents, "inf", "nan" and leading space. */
	size_t whole = strspn(value, "0123456789");
	size_t fraction = value[whole] == '.' ? strspn(value + whole + 1, "0123456789") : 0;
	bool good = whole + fraction > 0 && whole + fraction <= 18 &&
		    value[whole + (value[whole] == '.') + fraction] == '\0';
	double v = good ? strtod(value, NULL) : 0;

	if (!good || v < min || v > max)
		return fail(e, EINVAL, "--%s '%s': allowed are numbers from %.10g to %.10g",
			    row->name, value, min, max);
	*ret = v;
	return 0;
}

int option_choice(void *target, const struct option_row *row, const char *value, struct error *e)
{
	const char *const *choices = row->choices;
	char list[256] = "";

	for (unsigned int i = 0; choices[i]; i++) {
		if (strcmp(choices[i], value) == 0) {
			/* What enums without negative values are. */
			*(unsigned int *)((char *)target + row->offset) = i;
			return 0;
		}
		(void)snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%s",
			       i ? ", " : "", choices[i]);
	}
	return fail(e, EINVAL, "--%s '%s': allowed are %s", row->name, value, list);
}
