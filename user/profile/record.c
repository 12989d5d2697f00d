// SPDX-License-Identifier: BSD-2-Clause
#include "profile/record.h"

#include "base/cleanup.h"
#include "profile/source.h"

#include <errno.h>

static int parse_startup(const struct source *src, struct profile_startup *s)
{
	_cleanup_(source_free) struct source ours = {0};
	int r = source_u64(src, "time", &s->time);

	if (r && r != -ENOENT)
		return r;
	r = source_child(src, "cozbpf", &ours);
	return r == -ENOENT ? 0 : source_fill(&ours, &startup_fields, s);
}

static int parse_throughput(const struct source *src, struct profile_point *p)
{
	int r = source_fill(src, &throughput_fields, p);
	struct profile_point timing = {0};

	p->kind = PROFILE_THROUGHPUT;
	if (r)
		return r;
	if (p->delta >= 2 && source_fill(src, &throughput_timing_fields, &timing) == 0) {
		p->first_ns = timing.first_ns;
		p->last_ns = timing.last_ns;
		p->effective_ns = timing.effective_ns;
		p->timed_visits = p->delta;
		if (source_fill(src, &throughput_part_fields, &timing) == 0 && timing.timed_visits >= 2 && timing.timed_visits < p->delta)
			p->timed_visits = timing.timed_visits;
		p->timed = true;
	}
	if (source_fill(src, &throughput_settled_fields, &timing) == 0)
		p->settled_delta = timing.settled_delta;
	if (source_fill(src, &throughput_cost_fields, &timing) == 0)
		p->cost_ns = timing.cost_ns;
	return 0;
}

/* As with the times of a throughput point: what is malformed beyond Coz's keys is not there. */
static int parse_latency(const struct source *src, struct profile_point *p)
{
	int r = source_fill(src, &latency_fields, p);

	p->kind = PROFILE_LATENCY;
	if (r)
		return r;
	r = latency_parse(src, &p->latency);
	return r == -ENOMEM ? r : 0;
}

static int parse_runtime(const struct source *src, struct profile_runtime *t)
{
	struct profile_runtime machine = {0};
	int r = source_fill(src, &runtime_fields, t);

	if (r || source_fill(src, &machine_fields, &machine))
		return r;
	t->machine_ns = machine.machine_ns;
	t->own_cpu_ns = machine.own_cpu_ns;
	t->kernel_cpu_ns = machine.kernel_cpu_ns;
	t->scope_cpu_ns = machine.scope_cpu_ns;
	t->foreign_cpu_ns = machine.foreign_cpu_ns;
	return 0;
}

static int parse(const struct source *src, struct record *ret)
{
	if (source_is(src, "experiment")) {
		ret->type = RECORD_EXPERIMENT;
		return source_fill(src, &experiment_fields, &ret->experiment);
	}
	/* Early Coz called every throughput point a progress point, with its kind under "type". */
	if (source_is(src, "throughput-point") || source_is(src, "progress-point")) {
		ret->type = RECORD_POINT;
		return parse_throughput(src, &ret->point);
	}
	if (source_is(src, "latency-point")) {
		ret->type = RECORD_POINT;
		return parse_latency(src, &ret->point);
	}
	if (source_is(src, "samples")) {
		ret->type = RECORD_SAMPLES;
		return source_fill(src, &samples_fields, &ret->samples);
	}
	if (source_is(src, "startup")) {
		ret->type = RECORD_STARTUP;
		return parse_startup(src, &ret->startup);
	}
	if (source_is(src, "runtime")) {
		ret->type = RECORD_RUNTIME;
		return parse_runtime(src, &ret->runtime);
	}
	if (source_is(src, "shutdown")) {
		ret->type = RECORD_IGNORED;
		return 0;
	}
	ret->type = RECORD_IGNORED;
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

void record_free(struct record *r)
{
	switch (r->type) {
	case RECORD_STARTUP:
		fields_free(&startup_fields, &r->startup);
		break;
	case RECORD_EXPERIMENT:
		fields_free(&experiment_fields, &r->experiment);
		break;
	case RECORD_POINT:
		fields_free(&latency_fields, &r->point); /* the name, whichever the kind */
		profile_latency_free(r->point.latency);
		break;
	case RECORD_SAMPLES:
		fields_free(&samples_fields, &r->samples);
		break;
	case RECORD_RUNTIME:
	case RECORD_IGNORED:
		break;
	}
}
