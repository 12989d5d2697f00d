/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of `cozbpf run`; the target of the rows is a struct run_options that holds the
 * defaults. */
#pragma once

#include "cli/options/options.h"

struct point_spec;
struct run_options;

#define RUN_DEFAULT_OUTPUT "cozbpf.jsonl"

extern const struct option_row run_option_rows[];

/* Setters that several files share, for the field at the row's offset: a const char * that borrows
 * a checked list of feature names. */
int option_set_features(void *target, const struct option_row *row, const char *value,
			struct error *e);
/* A struct option_words: appends a word, or a pattern, which may begin with '!'. */
int option_add_word(void *target, const struct option_row *row, const char *value, struct error *e);
int option_add_glob(void *target, const struct option_row *row, const char *value, struct error *e);
/* A const char * that borrows a word, which may not be empty. */
int option_set_word(void *target, const struct option_row *row, const char *value, struct error *e);
/* A uint64_t: a whole number from @row->min to @row->max. */
int option_set_whole(void *target, const struct option_row *row, const char *value,
		     struct error *e);
/* A double: a number from @row->min to @row->max; of per cent as well, which becomes a share. */
int option_set_real(void *target, const struct option_row *row, const char *value, struct error *e);
int option_set_percent(void *target, const struct option_row *row, const char *value,
		       struct error *e);
/* An int: a real-time signal. */
int option_set_signal(void *target, const struct option_row *row, const char *value,
		      struct error *e);

/* Takes over what @spec has. */
void run_options_add_point(struct run_options *o, struct point_spec *spec);
/* Of `run`, in latency_spec.c. */
int option_add_latency(void *target, const struct option_row *row, const char *value,
		       struct error *e);

/* Tables to be included by those of commands; the first four are for one field: a bool, an enum
 * color_when, and a struct debug_options in the commands that read line information. */
extern const struct option_row option_verbose[], option_color[], option_debug_dir[],
	option_source_prefix[];
/* For a struct report_choice, but for its colour. */
extern const struct option_row option_report[];
