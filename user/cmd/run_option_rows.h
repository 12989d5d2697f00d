/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of `cozbpf run`; the target of the rows is a struct run_options that holds the defaults. */
#pragma once

#include "cmd/options.h"

#define RUN_DEFAULT_OUTPUT "cozbpf.jsonl"

extern const struct option_row run_option_rows[];
extern const size_t n_run_option_rows;

/* Setters that other commands share, for the field at the row's offset: an enum color_when, and a const char * that borrows a
 * checked list of feature names. */
int option_set_color(void *target, const struct option_row *row, const char *value, struct error *e);
int option_set_features(void *target, const struct option_row *row, const char *value, struct error *e);
