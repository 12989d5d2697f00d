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
	for (char *c = text; *c; c++)
		if (*c == ',')
			*c = '.'; /* the locale's decimal point; JSON has one only */
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

/* The text form has no escapes: what would end a value or a record becomes a space, what would
 * steer a terminal a question mark. */
static void text_value(FILE *out, const char *key, const char *value)
{
	_cleanup_free_ char *clean = utf8_clean(value ? value : "", SOURCE_MAX_STRING);

	for (char *c = clean; *c; c++)
		if (*c == '\t' || *c == '\n' || *c == '\r')
			*c = ' ';
	utf8_make_printable(clean, true);
	(void)fprintf(out, "\t%s=%s", key, clean);
}

/* Two decimals, and never 0.00 for what is not a baseline. */
static void text_share(FILE *out, const char *key, double share)
{
	long hundredths = share >= 0 && share <= 1 ? lround(share * 100) : 0;

	if (hundredths == 0 && share > 0)
		hundredths = 1;
	(void)fprintf(out, "\t%s=%ld.%02ld", key, hundredths / 100, hundredths % 100);
}

static void text_record(FILE *out, const char *type, const struct field_table *t,
			const void *record)
{
	(void)fputs(type, out);
	for (size_t i = 0; i < t->n_coz; i++) {
		const void *at = (const char *)record + t->fields[i].offset;
		char key[32];

		/* Coz has '-' where the members of JSON objects have '_'. */
		(void)snprintf(key, sizeof(key), "%s", t->fields[i].key);
		for (char *c = key; *c; c++)
			*c = *c == '_' ? '-' : *c;
		switch (t->fields[i].kind) {
		case FIELD_STRING:
			text_value(out, key, *(char *const *)at);
			break;
		case FIELD_U64:
			(void)fprintf(out, "\t%s=%" PRIu64, key, *(const uint64_t *)at);
			break;
		case FIELD_I64:
			(void)fprintf(out, "\t%s=%" PRId64, key, *(const int64_t *)at);
			break;
		case FIELD_SHARE:
			text_share(out, key, *(const double *)at);
			break;
		}
	}
	(void)fputc('\n', out);
}

/* Begins a record with the fields of @t. NULL: nothing can be added to it, since that is all of it
 * in the text form, which has no record without a field of Coz's. */
static struct json_object *begin(FILE *out, enum profile_format format, const char *type,
				 const struct field_table *t, const void *record)
{
	struct json_object *o;

	if (format == PROFILE_COZ_TEXT && t->n_coz)
		text_record(out, type, t, record);
	if (format == PROFILE_COZ_TEXT)
		return NULL;
	o = or_out_of_memory(json_object_new_object());
	add(o, "type", json_object_new_string(type));
	add_fields(o, t, record);
	return o;
}

static void end(FILE *out, struct json_object *o)
{
	const char *s;

	if (!o)
		return;
	s = json_object_to_json_string_ext(o,
					   JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	if (!s)
		out_of_memory();
	utf8_put_json(out, s);
	(void)fputc('\n', out);
	json_object_put(o);
}

void render(FILE *out, enum profile_format format, const char *type, const struct field_table *t,
	    const void *record)
{
	end(out, begin(out, format, type, t, record));
}

void render_startup(FILE *out, enum profile_format format, const struct profile_startup *s)
{
	struct json_object *o = begin(out, format, "startup", &startup_time_fields, s), *ours;

	if (!o)
		return;
	ours = or_out_of_memory(json_object_new_object());
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

static void render_point(FILE *out, enum profile_format format, const struct profile_point *p)
{
	bool latency = p->kind == PROFILE_LATENCY;
	struct json_object *o =
		latency ? begin(out, format, "latency-point", &latency_fields, p)
			: begin(out, format, "throughput-point", &throughput_fields, p);

	if (o && !latency)
		add_throughput(o, p);
	else if (o && p->latency)
		add_latency(o, p->latency);
	end(out, o);
}

void render_experiment(FILE *out, enum profile_format format, const struct profile_experiment *x,
		       const struct profile_point *points, size_t n_points)
{
	render(out, format, "experiment", &experiment_fields, x);
	for (size_t i = 0; i < n_points; i++)
		render_point(out, format, &points[i]);
}

void render_log(FILE *out, enum profile_format format, const struct profile_runtime *t,
		const struct profile *p)
{
	struct json_object *o = begin(out, format, "runtime", &runtime_fields, t);

	if (o && (t->too_deep || t->cut_short))
		add_fields(o, &chains_fields, t);
	if (o && t->machine_ns)
		add_fields(o, &machine_fields, t);
	if (o && t->run_ns)
		add_fields(o, &ended_fields, t);
	end(out, o);
	for (size_t i = 0; i < p->n_samples; i++)
		render(out, format, "samples", &samples_fields, &p->samples[i]);
	for (size_t i = 0; i < p->n_elsewhere; i++)
		render(out, format, "elsewhere", &elsewhere_fields, &p->elsewhere[i]);
	for (size_t i = 0; i < p->n_addresses; i++)
		render(out, format, "addresses", &addresses_fields, &p->addresses[i]);
}
