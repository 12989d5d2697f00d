/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of `cozbpf run`; the target of the rows is a struct run_options that holds the
 * defaults. */
#pragma once

#include "options/options.h"

#include <limits.h>

struct point_spec;
struct run_options;

#define RUN_DEFAULT_OUTPUT "cozbpf.jsonl"

extern const struct option_row run_option_rows[];
extern const size_t n_run_option_rows;

extern const char *const color_names[]; /* of enum color_when */

/* Setters that several files share, for the field at the row's offset: a const char * that borrows
 * a checked list of feature names, and a struct debug_options, whose arrays grow and are the
 * caller's while their strings are borrowed. */
int option_set_features(void *target, const struct option_row *row, const char *value,
			struct error *e);
int option_add_debug_dir(void *target, const struct option_row *row, const char *value,
			 struct error *e);
int option_add_source_prefix(void *target, const struct option_row *row, const char *value,
			     struct error *e);
/* A struct option_words: appends a pattern, which may begin with '!'. */
int option_add_glob(void *target, const struct option_row *row, const char *value, struct error *e);
/* A const char * that borrows a word, which may not be empty. */
int option_set_word(void *target, const struct option_row *row, const char *value, struct error *e);
/* A uint64_t: a whole number from @row->min to @row->max. */
int option_set_whole(void *target, const struct option_row *row, const char *value,
		     struct error *e);
/* A uint64_t of nanoseconds: seconds, with a fraction. */
int option_set_seconds(void *target, const struct option_row *row, const char *value,
		       struct error *e);
/* An enum report_form: the one of the option's name, which no other may have chosen. */
int option_set_form(void *target, const struct option_row *row, const char *value, struct error *e);
/* An int: a real-time signal. */
int option_set_signal(void *target, const struct option_row *row, const char *value,
		      struct error *e);

/* Takes over what @spec has. */
void run_options_add_point(struct run_options *o, struct point_spec *spec);
/* Of `run`, in latency_spec.c. */
int option_add_latency(void *target, const struct option_row *row, const char *value,
		       struct error *e);

#define OPTION_ROW_VERBOSE(offset)                                                            \
	{                                                                                     \
		"verbose", 0, NULL,                                                           \
			"print what the kernel and libbpf say of programs that they\nrefuse", \
			option_flag, offset, .expert = true                                   \
	}

/* Rows for the struct report_choice at offset @at of the target; @without: as not_for. */
#define OPTION_ROWS_REPORT(at, without)                                                        \
	{"top",                                                                                \
	 0,                                                                                    \
	 "N",                                                                                  \
	 "at most so many lines per progress point (15)",                                      \
	 option_set_whole,                                                                     \
	 (at) + offsetof(struct report_choice, top),                                           \
	 without,                                                                              \
	 .min = 1,                                                                             \
	 .max = INT_MAX},                                                                      \
		{"width",                                                                      \
		 0,                                                                            \
		 "N",                                                                          \
		 "columns to use (the terminal's, else 100)",                                  \
		 option_set_whole,                                                             \
		 (at) + offsetof(struct report_choice, width),                                 \
		 without,                                                                      \
		 .min = 1,                                                                     \
		 .max = INT_MAX},                                                              \
		{"no-curves",	0,	     NULL,                                             \
		 "tables only", option_flag, (at) + offsetof(struct report_choice, no_curves), \
		 without},                                                                     \
		{"inline",    0,                                                               \
		 NULL,	      "show under each table where its lines were inlined",            \
		 option_flag, (at) + offsetof(struct report_choice, inlined),                  \
		 without},                                                                     \
		{"html",	  0,                                                           \
		 "FILE",	  "write the report as one HTML file, too",                    \
		 option_set_word, (at) + offsetof(struct report_choice, html),                 \
		 without},                                                                     \
		{"with-source", 0,                                                             \
		 NULL,		"keep the source around each line that was tried, for --html", \
		 option_flag,	(at) + offsetof(struct report_choice, with_source),            \
		 without},                                                                     \
		{"json",                                                                       \
		 0,                                                                            \
		 NULL,                                                                         \
		 "all that is known as one JSON object, for other programs",                   \
		 option_set_form,                                                              \
		 (at) + offsetof(struct report_choice, form),                                  \
		 without},                                                                     \
		{"csv",                                                                        \
		 0,                                                                            \
		 NULL,                                                                         \
		 "the tables as comma-separated values",                                       \
		 option_set_form,                                                              \
		 (at) + offsetof(struct report_choice, form),                                  \
		 without},                                                                     \
	{                                                                                      \
		"markdown", 0, NULL, "the tables for a pull request", option_set_form,         \
			(at) + offsetof(struct report_choice, form), without                   \
	}
#define OPTION_ROW_COLOR(offset)                                                         \
	{                                                                                \
		"color", 0, "WHEN", "auto, always, never (auto)", option_choice, offset, \
			.choices = color_names                                           \
	}

/* Rows for the latter, in the commands that read line information. */
#define OPTION_ROW_DEBUG_DIR(offset)                                                       \
	{                                                                                  \
		"debug-dir", 0, "DIR",                                                     \
			"look for debug files in DIR before /usr/lib/debug\n(repeatable)", \
			option_add_debug_dir, offset                                       \
	}
#define OPTION_ROW_SOURCE_PREFIX(offset)                                      \
	{                                                                     \
		"source-prefix", 0, "OLD=NEW",                                \
			"name source files in OLD as if in NEW (repeatable)", \
			option_add_source_prefix, offset                      \
	}
