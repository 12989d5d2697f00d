// SPDX-License-Identifier: BSD-2-Clause
#include "profile/record.h"

#include <stdlib.h>
#include <string.h>

#define TABLE(list)                                    \
	{                                              \
		list, sizeof(list) / sizeof((list)[0]) \
	}
#define FIELD(type, member, kind, required)                            \
	{                                                              \
#member, offsetof(struct type, member), kind, required \
	}
#define X(member, kind, required) FIELD(profile_experiment, member, kind, required)
#define S(member, kind) FIELD(profile_startup, member, kind, false)
#define P(member, kind, required) FIELD(profile_point, member, kind, required)
#define L(member, kind) FIELD(profile_latency, member, kind, true)

#define SUM(kind, name, json) X(name, FIELD_##kind, false),
static const struct field experiment_list[] = {
	X(selected, FIELD_STRING, true),
	X(speedup, FIELD_SHARE, true),
	X(duration, FIELD_U64, true),
#include "shared/sums.def"
	X(function, FIELD_STRING, false),
	X(elapsed, FIELD_U64, false),
	X(growth, FIELD_U64, false),
	X(owed, FIELD_U64, false),
	X(ahead, FIELD_U64, false),
	X(late, FIELD_U64, false),
	X(threads, FIELD_U64, false),
	X(imbalance, FIELD_I64, false),
	X(began, FIELD_U64, false),
	X(burst, FIELD_U64, false),
	X(executed_ns, FIELD_U64, false),
	X(settled_elapsed, FIELD_U64, false),
	X(settled_duration, FIELD_U64, false),
	X(settled_executed_ns, FIELD_U64, false),
	X(period_ns, FIELD_U64, false),
	X(throttled, FIELD_SHARE, false),
	X(stolen, FIELD_SHARE, false),
	X(foreign, FIELD_SHARE, false),
};
#undef SUM
const struct field_table experiment_fields = TABLE(experiment_list);

const struct field_table startup_time_fields = {&(const struct field)S(time, FIELD_U64), 1};

static const struct field startup_list[] = {
	S(version, FIELD_STRING),      S(command, FIELD_STRING),
	S(build, FIELD_STRING),	       S(kernel, FIELD_STRING),
	S(host, FIELD_STRING),	       S(cpus, FIELD_U64),
	S(sync, FIELD_STRING),	       S(pay, FIELD_STRING),
	S(fallback, FIELD_STRING),     S(shared, FIELD_STRING),
	S(granularity, FIELD_STRING),  S(seed, FIELD_U64),
	S(period_ns, FIELD_U64),       S(pay_overhead_ns, FIELD_U64),
	S(hit_overhead_ns, FIELD_U64), S(tick_overhead_ns, FIELD_U64),
	S(attribution, FIELD_STRING),  S(inject, FIELD_STRING),
	S(chosen, FIELD_STRING),       S(choice, FIELD_STRING),
	S(program, FIELD_STRING),
};
const struct field_table startup_fields = TABLE(startup_list);

static const struct field throughput_list[] = {
	P(name, FIELD_STRING, true),
	P(delta, FIELD_U64, true),
};
const struct field_table throughput_fields = TABLE(throughput_list);

/* Valid together or not at all, hence a table of their own with nothing optional. */
static const struct field throughput_timing_list[] = {
	P(first_ns, FIELD_U64, true),
	P(last_ns, FIELD_U64, true),
	P(effective_ns, FIELD_U64, true),
};
const struct field_table throughput_timing_fields = TABLE(throughput_timing_list);

/* Of experiments whose first part is not read. */
const struct field_table throughput_settled_fields = {
	&(const struct field)P(settled_delta, FIELD_U64, true), 1};

/* Where not all visits were timed. */
const struct field_table throughput_part_fields = {
	&(const struct field)P(timed_visits, FIELD_U64, true), 1};

/* Of points that cost something. */
const struct field_table throughput_cost_fields = {&(const struct field)P(cost_ns, FIELD_U64, true),
						   1};

static const struct field latency_list[] = {
	P(name, FIELD_STRING, true),
	P(arrivals, FIELD_U64, true),
	P(departures, FIELD_U64, true),
	P(difference, FIELD_I64, true),
};
const struct field_table latency_fields = TABLE(latency_list);

static const struct field latency_measured_list[] = {
	L(sum_ns, FIELD_I64),	     L(unmatched, FIELD_U64), L(unended, FIELD_U64),
	L(crossed, FIELD_U64),	     L(lost, FIELD_U64),      L(in_flight_begin, FIELD_I64),
	L(in_flight_end, FIELD_I64),
};
const struct field_table latency_measured_fields = TABLE(latency_measured_list);
static const struct field runtime_list[] = {
	FIELD(profile_runtime, time, FIELD_U64, true),
	FIELD(profile_runtime, samples, FIELD_U64, false),
	FIELD(profile_runtime, unattributed, FIELD_U64, false),
};
const struct field_table runtime_fields = TABLE(runtime_list);

/* Of runs in which there were such. */
static const struct field chains_list[] = {
	FIELD(profile_runtime, too_deep, FIELD_U64, false),
	FIELD(profile_runtime, cut_short, FIELD_U64, false),
};
const struct field_table chains_fields = TABLE(chains_list);

/* Of runs that know what the machine had. */
static const struct field machine_list[] = {
	FIELD(profile_runtime, machine_ns, FIELD_U64, false),
	FIELD(profile_runtime, own_cpu_ns, FIELD_U64, false),
	FIELD(profile_runtime, kernel_cpu_ns, FIELD_U64, false),
	FIELD(profile_runtime, scope_cpu_ns, FIELD_U64, false),
	FIELD(profile_runtime, foreign_cpu_ns, FIELD_U64, false),
};
const struct field_table machine_fields = TABLE(machine_list);

/* Of programs that came to their end. */
static const struct field ended_list[] = {
	FIELD(profile_runtime, run_ns, FIELD_U64, true),
	FIELD(profile_runtime, user_ns, FIELD_U64, true),
	FIELD(profile_runtime, system_ns, FIELD_U64, true),
};
const struct field_table ended_fields = TABLE(ended_list);

static const struct field samples_list[] = {
	FIELD(profile_samples, location, FIELD_STRING, true),
	FIELD(profile_samples, count, FIELD_U64, true),
	FIELD(profile_samples, function, FIELD_STRING, false),
	FIELD(profile_samples, ns, FIELD_U64, false),
	FIELD(profile_samples, inlined, FIELD_STRING, false),
	FIELD(profile_samples, source, FIELD_STRING, false),
	FIELD(profile_samples, object, FIELD_STRING, false),
};
const struct field_table samples_fields = TABLE(samples_list);

static const struct field elsewhere_list[] = {
	FIELD(profile_elsewhere, object, FIELD_STRING, true),
	FIELD(profile_elsewhere, count, FIELD_U64, true),
	FIELD(profile_elsewhere, location, FIELD_STRING, false),
};
const struct field_table elsewhere_fields = TABLE(elsewhere_list);

static const struct field addresses_list[] = {
	FIELD(profile_addresses, path, FIELD_STRING, true),
	FIELD(profile_addresses, build, FIELD_STRING, false),
	FIELD(profile_addresses, inode, FIELD_U64, false),
	FIELD(profile_addresses, changed_ns, FIELD_U64, false),
	FIELD(profile_addresses, counts, FIELD_STRING, true),
};
const struct field_table addresses_fields = TABLE(addresses_list);

const char *const profile_class_names[PROFILE_CLASSES] = {"p50", "p90", "p99", "max"};

static const struct field slopes_list[] = {
	FIELD(profile_slopes, point, FIELD_STRING, true),
	FIELD(profile_slopes, class, FIELD_STRING, false),
	FIELD(profile_slopes, began, FIELD_U64, true),
	FIELD(profile_slopes, length, FIELD_U64, true),
	FIELD(profile_slopes, seen, FIELD_U64, true),
	FIELD(profile_slopes, visits, FIELD_U64, true),
	FIELD(profile_slopes, time_ns, FIELD_U64, true),
	FIELD(profile_slopes, own_ns, FIELD_U64, true),
	FIELD(profile_slopes, places, FIELD_STRING, true),
};
const struct field_table slopes_fields = TABLE(slopes_list);

void fields_free(const struct field_table *t, void *record)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->fields[i].kind == FIELD_STRING) {
			char **s = (char **)((char *)record + t->fields[i].offset);

			free(*s);
			*s = NULL;
		}
}

void fields_free_all(const struct field_table *t, void *array_ptr, size_t *n, size_t size)
{
	void **array = array_ptr;

	for (size_t i = 0; i < *n; i++)
		fields_free(t, (char *)*array + i * size);
	free(*array);
	*array = NULL;
	*n = 0;
}

size_t fields_size(const struct field_table *t, const void *record, size_t each)
{
	size_t size = 0;

	for (size_t i = 0; i < t->n; i++)
		if (t->fields[i].kind == FIELD_STRING) {
			const char *s =
				*(char *const *)((const char *)record + t->fields[i].offset);

			size += s ? strlen(s) + 1 + each : 0;
		}
	return size;
}
