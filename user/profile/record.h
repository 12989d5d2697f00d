/* SPDX-License-Identifier: BSD-2-Clause */
/* One record of a profile: which key is which field of its struct, for what writes and what reads;
 * and how a line of either form is decoded. Internal to the package. */
#pragma once

#include "profile/profile.h"

enum field_kind { FIELD_STRING, FIELD_U64, FIELD_I64, FIELD_SHARE /* a double in 0..1 */ };

struct field {
	const char *key;
	size_t offset;
	enum field_kind kind;
	bool required; /* a record without it is not one */
};

struct field_table {
	const struct field *fields;
	size_t n;
};

/* Everything of an experiment. */
extern const struct field_table experiment_fields;
/* A startup record's own member, and those of its "cozbpf" object. */
extern const struct field_table startup_time_fields, startup_fields;
extern const struct field_table throughput_fields, throughput_timing_fields, throughput_part_fields,
	throughput_settled_fields, throughput_cost_fields, latency_fields, runtime_fields,
	chains_fields, machine_fields, ended_fields;
extern const struct field_table samples_fields, elsewhere_fields, addresses_fields, slopes_fields;
/* Of a struct profile_latency. */
extern const struct field_table latency_measured_fields;

/* Frees the strings among the fields of @record and clears them. */
void fields_free(const struct field_table *t, void *record);
/* Frees the fields of each of the *n records of an array of any type, and the array, which is empty
 * after. */
void fields_free_all(const struct field_table *t, void *array_ptr, size_t *n, size_t size);
/* Bytes that the strings among the fields of @record take, and @each more for each of them. */
size_t fields_size(const struct field_table *t, const void *record, size_t each);

struct json_object;
struct json_tokener;

#define SOURCE_MAX_PAIRS 32
#define SOURCE_MAX_STRING 4096 /* a longer name or path is no name */

struct source_slice {
	const char *s;
	size_t n;
};

/* A line as keys and values, whichever form it has. */
struct source {
	struct json_object *json; /* NULL: text form */
	struct source_slice type; /* valid as long as the source */
	struct {
		struct source_slice key, value;
	} pairs[SOURCE_MAX_PAIRS];
	size_t n_pairs;
};

/* Takes a line without its newline apart. -EINVAL: neither form. */
int source_parse(struct json_tokener *tok, const char *line, size_t len, struct source *ret);
/* The same with the members of the object under @key; -ENOENT if there is none. */
int source_child(const struct source *src, const char *key, struct source *ret);
void source_free(struct source *src);

/* True if the record's type is @type; '_' and '-' are one (Coz had both). */
bool source_is(const struct source *src, const char *type);
/* Fills @record's fields from the source. -EINVAL: one is malformed, or required and missing. What
 * was filled in is the caller's to free either way. */
int source_fill(const struct source *src, const struct field_table *t, void *record);
/* The members of the object under @key, whose names are numbers below @limit without leading zeros;
 * zero counts are left out. *ret is the caller's. -ENOENT: there is none; -EINVAL. */
int source_counts(const struct source *src, const char *key, uint32_t limit,
		  struct profile_bucket **ret, size_t *ret_n);
/* What the record of a latency point holds beside its counters (latency.c); the caller's. NULL:
 * nothing that is well-formed. */
struct profile_latency *latency_parse(const struct source *src);

enum record_type {
	RECORD_IGNORED,
	RECORD_STARTUP,
	RECORD_EXPERIMENT,
	RECORD_POINT,
	RECORD_RUNTIME,
	RECORD_SAMPLES,
	RECORD_ELSEWHERE,
	RECORD_ADDRESSES,
	RECORD_SLOPES
};

struct record {
	enum record_type type;
	union {
		char any; /* where all of them begin */
		struct profile_startup startup;
		struct profile_experiment experiment;
		struct profile_point point;
		struct profile_samples samples;
		struct profile_elsewhere elsewhere;
		struct profile_addresses addresses;
		struct profile_runtime runtime;
		struct profile_slopes slopes;
	};
};

/* Decodes a line without its newline. -EINVAL: no record. */
int record_parse(struct json_tokener *tok, const char *line, size_t len, struct record *ret);
/* Bytes that are kept of it, about: with what its strings and lists take, and what the allocator
 * adds. */
size_t record_size(const struct record *r);
void record_free(struct record *r);
