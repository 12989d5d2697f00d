// SPDX-License-Identifier: BSD-2-Clause
#include "profile/render.h"

#include "base/cleanup.h"
#include "profile/fields.h"
#include "profile/source.h"
#include "base/utf8.h"
#include "shared/histogram.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <math.h>
#include <string.h>

void buffer_free(struct buffer *b)
{
	free(b->data);
	*b = (struct buffer){0};
}

static void put(struct buffer *b, const char *s, size_t n)
{
	if (b->error)
		return;
	if (n > b->room - b->size) {
		size_t room = b->room ? b->room : 512;
		char *bigger;

		while (n > room - b->size)
			room *= 2;
		bigger = realloc(b->data, room);
		if (!bigger) {
			b->error = -ENOMEM;
			return;
		}
		b->data = bigger;
		b->room = room;
	}
	memcpy(b->data + b->size, s, n);
	b->size += n;
}

static void put_string(struct buffer *b, const char *s)
{
	put(b, s, strlen(s));
}

/* A share 0..1 as the shortest text that reads back as the same number: 0.25, not 0.25000000000000000. */
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

/* Adds a member; on failure the record is dropped by the caller through @b's error. */
static void add(struct buffer *b, struct json_object *o, const char *key, struct json_object *value)
{
	if (value && json_object_object_add(o, key, value) == 0)
		return;
	json_object_put(value);
	b->error = -ENOMEM;
}

static void add_string(struct buffer *b, struct json_object *o, const char *key, const char *value)
{
	_cleanup_free_ char *clean = utf8_clean(value, SOURCE_MAX_STRING);

	add(b, o, key, clean ? json_object_new_string(clean) : NULL);
}

static void add_fields(struct buffer *b, struct json_object *o, const struct field_table *t, const void *record)
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
				add_string(b, o, f->key, s ? s : "");
			break;
		case FIELD_U64:
			add(b, o, f->key, json_object_new_uint64(*(const uint64_t *)at));
			break;
		case FIELD_I64:
			add(b, o, f->key, json_object_new_int64(*(const int64_t *)at));
			break;
		case FIELD_SHARE:
			format_share(share, *(const double *)at);
			add(b, o, f->key, json_object_new_double_s(*(const double *)at, share));
			break;
		}
	}
}

static struct json_object *begin(struct buffer *b, const char *type)
{
	struct json_object *o = json_object_new_object();

	if (!o) {
		b->error = -ENOMEM;
		return NULL;
	}
	add(b, o, "type", json_object_new_string(type));
	return o;
}

static void end(struct buffer *b, struct json_object *o)
{
	size_t n = 0;
	const char *s = b->error ? NULL : json_object_to_json_string_length(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &n);

	if (s) {
		put(b, s, n);
		put(b, "\n", 1);
	} else if (!b->error) {
		b->error = -ENOMEM;
	}
	json_object_put(o);
}

static void json_record(struct buffer *b, const char *type, const struct field_table *t, const void *record)
{
	struct json_object *o = begin(b, type);

	if (!o)
		return;
	add_fields(b, o, t, record);
	end(b, o);
}

/* The text form has no escapes: what would end a value or a record becomes a space. */
static void text_value(struct buffer *b, const char *key, const char *value)
{
	_cleanup_free_ char *clean = utf8_clean(value ? value : "", SOURCE_MAX_STRING);

	if (!clean) {
		b->error = -ENOMEM;
		return;
	}
	for (char *c = clean; *c; c++)
		if (*c == '\t' || *c == '\n' || *c == '\r')
			*c = ' ';
	put(b, "\t", 1);
	put_string(b, key);
	put(b, "=", 1);
	put_string(b, clean);
}

static void text_number(struct buffer *b, const char *key, uint64_t value)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%" PRIu64, value);
	text_value(b, key, text);
}

/* Two decimals, and never 0.00 for what is not a baseline. */
static void text_speedup(struct buffer *b, double speedup)
{
	char text[32];
	long hundredths = speedup >= 0 && speedup <= 1 ? lround(speedup * 100) : 0;

	if (hundredths == 0 && speedup > 0)
		hundredths = 1;
	(void)snprintf(text, sizeof(text), "%ld.%02ld", hundredths / 100, hundredths % 100);
	text_value(b, "speedup", text);
}

void render_startup(struct buffer *b, enum profile_format format, const struct profile_startup *s)
{
	struct json_object *o, *ours;

	if (format == PROFILE_COZ_TEXT) {
		put_string(b, "startup");
		text_number(b, "time", s->time);
		put(b, "\n", 1);
		return;
	}
	o = begin(b, "startup");
	if (!o)
		return;
	add(b, o, "time", json_object_new_uint64(s->time));
	ours = json_object_new_object();
	if (ours)
		add_fields(b, ours, &startup_fields, s);
	add(b, o, "cozbpf", ours);
	end(b, o);
}

void render_experiment(struct buffer *b, enum profile_format format, const struct profile_experiment *x)
{
	if (format == PROFILE_JSON) {
		json_record(b, "experiment", &experiment_fields, x);
		return;
	}
	put_string(b, "experiment");
	text_value(b, "selected", x->selected);
	text_speedup(b, x->speedup);
	text_number(b, "duration", x->duration);
	text_number(b, "selected-samples", x->selected_samples);
	put(b, "\n", 1);
}

static void json_throughput(struct buffer *b, const struct profile_point *p)
{
	struct json_object *o = begin(b, "throughput-point");

	if (!o)
		return;
	add_fields(b, o, &throughput_fields, p);
	if (p->timed && p->delta >= 2)
		add_fields(b, o, &throughput_timing_fields, p);
	if (p->timed && p->timed_visits < p->delta)
		add_fields(b, o, &throughput_part_fields, p);
	if (p->settled_delta)
		add_fields(b, o, &throughput_settled_fields, p);
	if (p->cost_ns)
		add_fields(b, o, &throughput_cost_fields, p);
	end(b, o);
}

static void json_latency(struct buffer *b, const struct profile_point *p)
{
	struct json_object *o = begin(b, "latency-point"), *histogram;
	char bucket[16];

	if (!o)
		return;
	add_fields(b, o, &latency_fields, p);
	if (p->latency) {
		add_fields(b, o, &latency_measured_fields, p->latency);
		histogram = json_object_new_object();
		for (size_t i = 0; histogram && i < p->latency->n_buckets; i++) {
			(void)snprintf(bucket, sizeof(bucket), "%" PRIu32, p->latency->buckets[i].bucket);
			add(b, histogram, bucket, json_object_new_uint64(p->latency->buckets[i].count));
		}
		add(b, o, HISTOGRAM_KEY, histogram);
	}
	end(b, o);
}

void render_point(struct buffer *b, enum profile_format format, const struct profile_point *p)
{
	char text[32];

	if (format == PROFILE_JSON) {
		if (p->kind == PROFILE_LATENCY)
			json_latency(b, p);
		else
			json_throughput(b, p);
		return;
	}
	put_string(b, p->kind == PROFILE_LATENCY ? "latency-point" : "throughput-point");
	text_value(b, "name", p->name);
	if (p->kind == PROFILE_LATENCY) {
		text_number(b, "arrivals", p->arrivals);
		text_number(b, "departures", p->departures);
		(void)snprintf(text, sizeof(text), "%" PRId64, p->difference);
		text_value(b, "difference", text);
	} else {
		text_number(b, "delta", p->delta);
	}
	put(b, "\n", 1);
}

void render_runtime(struct buffer *b, enum profile_format format, const struct profile_runtime *t)
{
	struct json_object *o;

	if (format == PROFILE_COZ_TEXT) {
		put_string(b, "runtime");
		text_number(b, "time", t->time);
		put(b, "\n", 1);
		return;
	}
	o = begin(b, "runtime");
	if (!o)
		return;
	add_fields(b, o, &runtime_fields, t);
	if (t->machine_ns)
		add_fields(b, o, &machine_fields, t);
	end(b, o);
}

void render_samples(struct buffer *b, enum profile_format format, const struct profile_samples *s)
{
	if (format == PROFILE_JSON) {
		json_record(b, "samples", &samples_fields, s);
		return;
	}
	put_string(b, "samples");
	text_value(b, "location", s->location);
	text_number(b, "count", s->count);
	put(b, "\n", 1);
}
