/* SPDX-License-Identifier: BSD-2-Clause */
/* One line of a profile as keys and values, whichever form it has. Internal to the package. */
#pragma once

#include "profile/fields.h"

struct json_object;
struct json_tokener;

#define SOURCE_MAX_PAIRS 32
#define SOURCE_MAX_STRING 4096 /* a longer name or path is no name */

struct source_slice {
	const char *s;
	size_t n;
};

struct source {
	struct json_object *json; /* NULL: text form */
	struct source_slice type; /* valid as long as the source */
	struct {
		struct source_slice key, value;
	} pairs[SOURCE_MAX_PAIRS];
	size_t n_pairs;
};

/* Takes a line without its newline apart. -EINVAL: neither form; -ENOMEM. */
int source_parse(struct json_tokener *tok, const char *line, size_t len, struct source *ret);
/* The same with the members of the object under @key; -ENOENT if there is none. */
int source_child(const struct source *src, const char *key, struct source *ret);
void source_free(struct source *src);

/* True if the record's type is @type; '_' and '-' are one (Coz had both). */
bool source_is(const struct source *src, const char *type);
/* Fills @record's fields from the source. -EINVAL: one is malformed, or required and missing; -ENOMEM. What was filled in is
 * the caller's to free either way. */
int source_fill(const struct source *src, const struct field_table *t, void *record);
/* The members of the object under @key, whose names are numbers below @limit without leading zeros; zero counts are left out. *ret is the
 * caller's. -ENOENT: there is none; -EINVAL, -ENOMEM. */
int source_counts(const struct source *src, const char *key, uint32_t limit, struct profile_bucket **ret, size_t *ret_n);
/* One number. -ENOENT, -EINVAL. */
int source_u64(const struct source *src, const char *key, uint64_t *ret);
