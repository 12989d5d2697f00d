/* SPDX-License-Identifier: BSD-2-Clause */
/* Which key of a record is which field of its struct: one table for what writes and what reads. Internal to the package. */
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

/* Everything of an experiment; the first EXPERIMENT_COZ_FIELDS are Coz's, the rest ours. */
#define EXPERIMENT_COZ_FIELDS 4
extern const struct field_table experiment_fields;
/* The members of a startup record's "cozbpf" object. */
extern const struct field_table startup_fields;
extern const struct field_table throughput_fields, throughput_timing_fields, throughput_part_fields, throughput_settled_fields,
	throughput_cost_fields, latency_fields, runtime_fields, machine_fields;
extern const struct field_table samples_fields;
/* Of a struct profile_latency. */
extern const struct field_table latency_measured_fields;

/* Frees the strings among the fields of @record and clears them. */
void fields_free(const struct field_table *t, void *record);
/* Bytes that the strings among the fields of @record take, and @each more for each of them. */
size_t fields_size(const struct field_table *t, const void *record, size_t each);
