// SPDX-License-Identifier: BSD-2-Clause
#include "profile/render.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "profile/record.h"
#include "shared/histogram.h"

#include <inttypes.h>
#include <json-c/json.h>
#include <math.h>
#include <string.h>

void buffer_open(struct buffer *b)
{
	b->out = xopen_memstream(&b->data, &b->size);
}

void buffer_flush(struct buffer *b)
{
	if (fflush(b->out) || ferror(b->out))
		out_of_memory();
}

void buffer_free(struct buffer *b)
{
	cleanup_fclose(&b->out);
	free(b->data);
}

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
static void text_value(struct buffer *b, const char *key, const char *value)
{
	_cleanup_free_ char *clean = utf8_clean(value ? value : "", SOURCE_MAX_STRING);

	for (char *c = clean; *c; c++)
		if (*c == '\t' || *c == '\n' || *c == '\r')
			*c = ' ';
	utf8_make_printable(clean, true);
	(void)fprintf(b->out, "\t%s=%s", key, clean);
}

/* Two decimals, and never 0.00 for what is not a baseline. */
static void text_share(struct buffer *b, const char *key, double share)
{
	long hundredths = share >= 0 && share <= 1 ? lround(share * 100) : 0;

	if (hundredths == 0 && share > 0)
		hundredths = 1;
	(void)fprintf(b->out, "\t%s=%ld.%02ld", key, hundredths / 100, hundredths % 100);
}

static void text_record(struct buffer *b, const char *type, const struct field_table *t,
			const void *record)
{
	(void)fputs(type, b->out);
	for (size_t i = 0; i < t->n_coz; i++) {
		const void *at = (const char *)record + t->fields[i].offset;
		char key[32];

		/* Coz has '-' where the members of JSON objects have '_'. */
		(void)snprintf(key, sizeof(key), "%s", t->fields[i].key);
		for (char *c = key; *c; c++)
			*c = *c == '_' ? '-' : *c;
		switch (t->fields[i].kind) {
		case FIELD_STRING:
			text_value(b, key, *(char *const *)at);
			break;
		case FIELD_U64:
			(void)fprintf(b->out, "\t%s=%" PRIu64, key, *(const uint64_t *)at);
			break;
		case FIELD_I64:
			(void)fprintf(b->out, "\t%s=%" PRId64, key, *(const int64_t *)at);
			break;
		case FIELD_SHARE:
			text_share(b, key, *(const double *)at);
			break;
		}
	}
	(void)fputc('\n', b->out);
}

/* Begins a record with the fields of @t. NULL: nothing can be added to it, since that is all of it
 * in the text form. */
static struct json_object *begin(struct buffer *b, enum profile_format format, const char *type,
				 const struct field_table *t, const void *record)
{
	struct json_object *o;

	if (format == PROFILE_COZ_TEXT) {
		text_record(b, type, t, record);
		return NULL;
	}
	o = or_out_of_memory(json_object_new_object());
	add(o, "type", json_object_new_string(type));
	add_fields(o, t, record);
	return o;
}

static void end(struct buffer *b, struct json_object *o)
{
	const char *s;

	if (!o)
		return;
	s = json_object_to_json_string_ext(o,
					   JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	if (!s)
		out_of_memory();
	utf8_put_json(b->out, s);
	(void)fputc('\n', b->out);
	json_object_put(o);
}

void render_startup(struct buffer *b, enum profile_format format, const struct profile_startup *s)
{
	struct json_object *o = begin(b, format, "startup", &startup_time_fields, s), *ours;

	if (!o)
		return;
	ours = or_out_of_memory(json_object_new_object());
	add_fields(ours, &startup_fields, s);
	add(o, "cozbpf", ours);
	end(b, o);
}

void render_experiment(struct buffer *b, enum profile_format format,
		       const struct profile_experiment *x)
{
	end(b, begin(b, format, "experiment", &experiment_fields, x));
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

void render_point(struct buffer *b, enum profile_format format, const struct profile_point *p)
{
	bool latency = p->kind == PROFILE_LATENCY;
	struct json_object *o =
		latency ? begin(b, format, "latency-point", &latency_fields, p)
			: begin(b, format, "throughput-point", &throughput_fields, p);

	if (o && !latency)
		add_throughput(o, p);
	else if (o && p->latency)
		add_latency(o, p->latency);
	end(b, o);
}

void render_runtime(struct buffer *b, enum profile_format format, const struct profile_runtime *t)
{
	struct json_object *o = begin(b, format, "runtime", &runtime_fields, t);

	if (o && (t->too_deep || t->cut_short))
		add_fields(o, &chains_fields, t);
	if (o && t->machine_ns)
		add_fields(o, &machine_fields, t);
	end(b, o);
}

void render_samples(struct buffer *b, enum profile_format format, const struct profile_samples *s)
{
	end(b, begin(b, format, "samples", &samples_fields, s));
}

void render_slopes(struct buffer *b, enum profile_format format, const struct profile_slopes *s)
{
	if (format == PROFILE_JSON)
		end(b, begin(b, format, "slopes", &slopes_fields, s));
}

void render_addresses(struct buffer *b, enum profile_format format,
		      const struct profile_addresses *a)
{
	if (format == PROFILE_JSON)
		end(b, begin(b, format, "addresses", &addresses_fields, a));
}
