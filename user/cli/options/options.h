/* SPDX-License-Identifier: BSD-2-Clause */
/* One table per command gives getopt_long its options, --help its text and errors their wording. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct error;

struct option_row {
	const char *name; /* without dashes; NULL: the rows of @include, else the table's end */
	char letter;	  /* 0: none */
	const char *arg;  /* what the value is called; NULL: the option takes none */
	const char *help; /* '\n' starts a new line; NULL: not listed */
	/* Stores @value (NULL for an option without one) in @target. Negative errno with @e set. */
	int (*set)(void *target, const struct option_row *row, const char *value, struct error *e);
	size_t offset;	      /* of the field in @target, for setters that serve several rows */
	unsigned int not_for; /* a bit for each command that shares the table but does not have the
				 option */
	bool expert;	      /* listed apart: its default suits nearly all programs */
	double min, max;      /* of a number, for setters that serve several rows */
	const char *const *choices; /* of option_choice: NULL-terminated */
	const struct option_row
		*include;     /* a table whose rows stand here, for what is at @offset */
	unsigned int without; /* of it: no rows whose not_for has one of these bits */
};

/* What an option that can be repeated was given. */
struct option_words {
	const char **all; /* owned; the strings are borrowed */
	size_t n;
};

/* All rows of a table, without further tables in it; ends like one. The caller's. */
struct option_row *options_all(const struct option_row *table, size_t *ret_n);

/* Reads options up to "--", wherever they stand among other words. These are moved to the end of
 * @argv; *ret_first is the index of the first one. Abbreviated long names are taken where they are
 * unique. -EINVAL with @e naming the option and, if one is near, what may have been meant. */
int options_parse(const struct option_row *table, void *target, int argc, char **argv,
		  int *ret_first, struct error *e);
/* For what has options of its own, as a command to be run: reads options up to the first word that
 * is none, "--" or Coz's "---", and leaves @argv as it is. *ret_first is the index of the word
 * after them. */
int options_parse_before(const struct option_row *table, void *target, int argc, char **argv,
			 int *ret_first, struct error *e);
/* The listed options, one or more lines each; those for experts under a heading of their own. */
void options_help(FILE *out, const struct option_row *table);

/* A setter for options without a value: the bool at @row->offset becomes true. */
int option_flag(void *target, const struct option_row *row, const char *value, struct error *e);
/* A setter for one of @row->choices: the enum at @row->offset becomes its index. */
int option_choice(void *target, const struct option_row *row, const char *value, struct error *e);

/* Values. @e names the option, the value and what is allowed. Numbers are decimal, whole text, no
 * sign. */
int option_unsigned(const struct option_row *row, const char *value, uint64_t min, uint64_t max,
		    uint64_t *ret, struct error *e);
/* With a fraction ("0.5"); no exponent, no "inf". */
int option_real(const struct option_row *row, const char *value, double min, double max,
		double *ret, struct error *e);
