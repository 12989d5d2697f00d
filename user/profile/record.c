// SPDX-License-Identifier: BSD-2-Clause
#include "profile/record.h"

#include "base/cleanup.h"
#include "profile/reader.h"

#include <errno.h>

static int parse_startup(const struct source *src, struct record *ret)
{
	_cleanup_(source_free) struct source ours = {0};
	int r = source_child(src, "cozbpf", &ours);

	return r == -ENOENT ? 0 : source_fill(&ours, &startup_fields, &ret->startup);
}

/* What is malformed beyond Coz's keys is not there, here and below. */
static int parse_throughput(const struct source *src, struct record *ret)
{
	struct profile_point *p = &ret->point, timed, part = {0};

	p->kind = PROFILE_THROUGHPUT;
	timed = *p;
	if (p->delta >= 2 && source_fill(src, &throughput_timing_fields, &timed) == 0) {
		*p = timed;
		p->timed = true;
		p->timed_visits = p->delta;
		if (source_fill(src, &throughput_part_fields, &part) == 0 &&
		    part.timed_visits >= 2 && part.timed_visits < p->delta)
			p->timed_visits = part.timed_visits;
	}
	(void)source_fill(src, &throughput_settled_fields, p);
	(void)source_fill(src, &throughput_cost_fields, p);
	return 0;
}

static int parse_latency(const struct source *src, struct record *ret)
{
	ret->point.kind = PROFILE_LATENCY;
	ret->point.latency = latency_parse(src);
	return 0;
}

static int parse_runtime(const struct source *src, struct record *ret)
{
	struct profile_runtime with_chains = ret->runtime, with_machine, with_end;

	if (source_fill(src, &chains_fields, &with_chains) == 0)
		ret->runtime = with_chains;
	with_machine = ret->runtime;
	if (source_fill(src, &machine_fields, &with_machine) == 0)
		ret->runtime = with_machine;
	with_end = ret->runtime;
	if (source_fill(src, &ended_fields, &with_end) == 0)
		ret->runtime = with_end;
	return 0;
}

static const struct field_table nothing;

static const struct {
	const char *name;
	enum record_type type;
	const struct field_table *fields;
	int (*more)(const struct source *src,
		    struct record *ret); /* what stands beside the fields; NULL: nothing */
} kinds[] = {
	{"experiment", RECORD_EXPERIMENT, &experiment_fields, NULL},
	{"throughput-point", RECORD_POINT, &throughput_fields, parse_throughput},
	/* Early Coz called every throughput point a progress point, with its kind under "type". */
	{"progress-point", RECORD_POINT, &throughput_fields, parse_throughput},
	{"latency-point", RECORD_POINT, &latency_fields, parse_latency},
	{"samples", RECORD_SAMPLES, &samples_fields, NULL},
	{"elsewhere", RECORD_ELSEWHERE, &elsewhere_fields, NULL},
	{"addresses", RECORD_ADDRESSES, &addresses_fields, NULL},
	{"slopes", RECORD_SLOPES, &slopes_fields, NULL},
	{"startup", RECORD_STARTUP, &startup_time_fields, parse_startup},
	{"runtime", RECORD_RUNTIME, &runtime_fields, parse_runtime},
	{"shutdown", RECORD_IGNORED, &nothing, NULL},
};

/* What is kept of a record by its type: its struct, and the fields that have its strings. */
static const struct {
	size_t size;
	const struct field_table *strings;
} kept[] = {
	[RECORD_IGNORED] = {0, &nothing},
	[RECORD_STARTUP] = {sizeof(struct profile_startup), &startup_fields},
	[RECORD_EXPERIMENT] = {sizeof(struct profile_run_experiment), &experiment_fields},
	[RECORD_POINT] = {sizeof(struct profile_point),
			  &latency_fields}, /* the name, whichever the kind */
	[RECORD_RUNTIME] = {0, &nothing},
	[RECORD_SAMPLES] = {sizeof(struct profile_samples), &samples_fields},
	[RECORD_ELSEWHERE] = {sizeof(struct profile_elsewhere), &elsewhere_fields},
	[RECORD_ADDRESSES] = {sizeof(struct profile_addresses), &addresses_fields},
	[RECORD_SLOPES] = {sizeof(struct profile_slopes), &slopes_fields},
};

static int parse(const struct source *src, struct record *ret)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int r;

		if (!source_is(src, kinds[i].name))
			continue;
		ret->type = kinds[i].type;
		r = source_fill(src, kinds[i].fields, &ret->any);
		return r || !kinds[i].more ? r : kinds[i].more(src, ret);
	}
	return -EINVAL;
}

int record_parse(struct json_tokener *tok, const char *line, size_t len, struct record *ret)
{
	_cleanup_(source_free) struct source src = {0};
	struct record rec = {0};
	int r = source_parse(tok, line, len, &src);

	if (r)
		return r;
	r = parse(&src, &rec);
	if (r) {
		record_free(&rec);
		return r;
	}
	*ret = rec;
	return 0;
}

size_t record_size(const struct record *r)
{
	const struct profile_latency *l = r->type == RECORD_POINT ? r->point.latency : NULL;

	return 2 * kept[r->type].size + fields_size(kept[r->type].strings, &r->any, 32) +
	       (l ? sizeof(*l) + l->n_buckets * sizeof(*l->buckets) : 0);
}

void record_free(struct record *r)
{
	fields_free(kept[r->type].strings, &r->any);
	if (r->type == RECORD_POINT)
		profile_latency_free(r->point.latency);
}
