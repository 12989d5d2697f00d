// SPDX-License-Identifier: BSD-2-Clause
#include "profile/render.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "profile/reader.h"
#include "shared/histogram.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <math.h>
#include <string.h>

/* A share 0..1 as the shortest text that reads back as the same number: 0.25, not
 * 0.25000000000000000. */
static void format_share(char text[32], double value)
{
	if (!(value >= 0))
		value = 0;
	if (value > 1)
		value = 1;
	for (int digits = 6; digits <= 17; digits += digits == 6 ? 9 : 1) {
		(void)snprintf(text, 32, "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
}

static void add(struct json_object *o, const char *key, struct json_object *value)
{
	if (!value || json_object_object_add(o, key, value) != 0)
		out_of_memory();
}

static void add_string(struct json_object *o, const char *key, const char *value)
{
	_cleanup_free_ char *clean = utf8_clean(value, SOURCE_MAX_STRING);

	add(o, key, json_object_new_string(clean));
}

static void add_fields(struct json_object *o, const struct field_table *t, const void *record)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct field *f = &t->fields[i];
		const void *at = (const char *)record + f->offset;
		const char *s;
		char share[32];

		switch (f->kind) {
		case FIELD_STRING:
			s = *(char *const *)at;
			if (s || f->required)
				add_string(o, f->key, s ? s : "");
			break;
		case FIELD_U64:
			add(o, f->key, json_object_new_uint64(*(const uint64_t *)at));
			break;
		case FIELD_I64:
			add(o, f->key, json_object_new_int64(*(const int64_t *)at));
			break;
		case FIELD_SHARE:
			format_share(share, *(const double *)at);
			add(o, f->key, json_object_new_double_s(*(const double *)at, share));
			break;
		}
	}
}

static struct json_object *begin(const char *type, const struct field_table *t, const void *record)
{
	struct json_object *o = or_out_of_memory(json_object_new_object());

	add(o, "type", json_object_new_string(type));
	add_fields(o, t, record);
	return o;
}

static void end(FILE *out, struct json_object *o)
{
	const char *s = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN |
								  JSON_C_TO_STRING_NOSLASHESCAPE);

	if (!s)
		out_of_memory();
	utf8_put_json(out, s);
	(void)fputc('\n', out);
	json_object_put(o);
}

void render(FILE *out, const char *type, const struct field_table *t, const void *record)
{
	end(out, begin(type, t, record));
}

void render_startup(FILE *out, const struct profile_startup *s)
{
	struct json_object *o = begin("startup", &startup_time_fields, s);
	struct json_object *ours = or_out_of_memory(json_object_new_object());

	add_fields(ours, &startup_fields, s);
	add(o, "cozbpf", ours);
	end(out, o);
}

static void add_throughput(struct json_object *o, const struct profile_point *p)
{
	if (p->timed && p->delta >= 2)
		add_fields(o, &throughput_timing_fields, p);
	if (p->timed && p->timed_visits < p->delta)
		add_fields(o, &throughput_part_fields, p);
	if (p->settled_delta)
		add_fields(o, &throughput_settled_fields, p);
	if (p->cost_ns)
		add_fields(o, &throughput_cost_fields, p);
}

static void add_latency(struct json_object *o, const struct profile_latency *l)
{
	struct json_object *histogram = or_out_of_memory(json_object_new_object());
	char bucket[16];

	add_fields(o, &latency_measured_fields, l);
	for (size_t i = 0; i < l->n_buckets; i++) {
		(void)snprintf(bucket, sizeof(bucket), "%" PRIu32, l->buckets[i].bucket);
		add(histogram, bucket, json_object_new_uint64(l->buckets[i].count));
	}
	add(o, HISTOGRAM_KEY, histogram);
}

static void render_point(FILE *out, const struct profile_point *p)
{
	bool latency = p->kind == PROFILE_LATENCY;
	struct json_object *o = latency ? begin("latency-point", &latency_fields, p)
					: begin("throughput-point", &throughput_fields, p);

	if (!latency)
		add_throughput(o, p);
	else if (p->latency)
		add_latency(o, p->latency);
	end(out, o);
}

void render_experiment(FILE *out, const struct profile_experiment *x,
		       const struct profile_point *points, size_t n_points)
{
	render(out, "experiment", &experiment_fields, x);
	for (size_t i = 0; i < n_points; i++)
		render_point(out, &points[i]);
}

void render_log(FILE *out, const struct profile_runtime *t, const struct profile *p)
{
	struct json_object *o = begin("runtime", &runtime_fields, t);

	if (t->too_deep || t->cut_short)
		add_fields(o, &chains_fields, t);
	if (t->machine_ns)
		add_fields(o, &machine_fields, t);
	if (t->run_ns)
		add_fields(o, &ended_fields, t);
	end(out, o);
	for (size_t i = 0; i < p->n_samples; i++)
		render(out, "samples", &samples_fields, &p->samples[i]);
	for (size_t i = 0; i < p->n_elsewhere; i++)
		render(out, "elsewhere", &elsewhere_fields, &p->elsewhere[i]);
	for (size_t i = 0; i < p->n_addresses; i++)
		render(out, "addresses", &addresses_fields, &p->addresses[i]);
}
