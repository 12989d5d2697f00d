// SPDX-License-Identifier: BSD-2-Clause
#include "report/export/export.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/waits.h"
#include "base/utf8.h"
#include "profile.pb-c.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { SAMPLES, COUNT, CPU, NANOSECONDS, CRITICAL, N_FIXED };
static const char *const fixed_words[N_FIXED] = {[SAMPLES] = "samples",
						 [COUNT] = "count",
						 [CPU] = "cpu",
						 [NANOSECONDS] = "nanoseconds",
						 [CRITICAL] = "critical"};
/* Of each sample. The last one only where slopes are known. */
enum { VALUES = 3 };

/* One for each location of the profile, and what they point to. */
struct entry {
	Pprof__Sample sample;
	Pprof__Location location;
	Pprof__Line line, *line_at;
	Pprof__Function function;
	uint64_t id;
	int64_t values[VALUES];
};

struct message {
	struct entry *entries;
	Pprof__Sample **samples;
	Pprof__Location **locations;
	Pprof__Function **functions;
	char **strings; /* "", the fixed words, then a name and a file for each entry */
	size_t n, n_strings, n_values;
};

static void message_free(struct message *m)
{
	for (size_t i = 0; i < m->n_strings; i++)
		free(m->strings[i]);
	free(m->entries);
	free(m->samples);
	free(m->locations);
	free(m->functions);
	free(m->strings);
}

/* The index of a copy. Room is there for all. */
static int64_t add_string(struct message *m, const char *s, size_t n)
{
	char *cut = xstrndup(s, n);

	/* Tools that print it need not know that a name can steer a terminal. */
	utf8_make_printable(cut, true);
	m->strings[m->n_strings] = cut;
	return (int64_t)m->n_strings++;
}

/* A file can say any number. */
static int64_t value(uint64_t v)
{
	return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

/* For each of the profile's locations the function that an experiment names for it, or NULL. */
static void find_functions(const struct profile *p, const char **ret)
{
	for (size_t i = 0; i < p->n_experiments; i++) {
		const struct profile_experiment *x = &p->experiments[i].x;
		const struct profile_samples *s =
			x->function ? profile_find_samples(p, x->selected) : NULL;

		if (s)
			ret[s - p->samples] = x->function;
	}
}

static void fill_entry(struct message *m, const struct profile_samples *s, const char *function,
		       uint64_t critical_ns)
{
	size_t i = m->n++;
	const char *colon = strrchr(s->location, ':'), *digits = colon ? colon + 1 : "";
	bool is_line = *digits && strspn(digits, "0123456789") == strlen(digits);
	struct entry *e = &m->entries[i];

	*e = (struct entry){.id = i + 1,
			    .values = {value(s->count), value(s->ns), value(critical_ns)}};
	if (wait_of(s->location, NULL))
		e->values[0] = e->values[1] = 0; /* no CPU time */
	pprof__sample__init(&e->sample);
	pprof__location__init(&e->location);
	pprof__line__init(&e->line);
	pprof__function__init(&e->function);
	e->function.id = e->location.id = e->line.function_id = e->id;
	e->function.name = e->function.system_name = add_string(
		m, function ? function : s->location, strlen(function ? function : s->location));
	e->function.filename =
		is_line ? add_string(m, s->location, (size_t)(colon - s->location)) : 0;
	e->line.line = is_line ? (int64_t)strtoull(digits, NULL, 10) : 0;
	e->line_at = &e->line;
	e->location.n_line = 1;
	e->location.line = &e->line_at;
	e->sample.n_location_id = 1;
	e->sample.location_id = &e->id;
	e->sample.n_value = m->n_values;
	e->sample.value = e->values;
	m->samples[i] = &e->sample;
	m->locations[i] = &e->location;
	m->functions[i] = &e->function;
}

/* What the line takes of the chains of events that led to visits, as a part of the run's time. */
static uint64_t critical_of(const struct profile *p, const struct export_slope *s)
{
	double ns = s->slope * (double)p->runtime_ns;

	return !(ns > 0) ? 0 : ns < 0x1p63 ? (uint64_t)ns : UINT64_MAX;
}

static const struct export_slope *slope_at(const struct export_slope *slopes, size_t n,
					   const char *location)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(slopes[i].location, location) == 0)
			return &slopes[i];
	return NULL;
}

static void fill(struct message *m, const struct profile *p, const struct export_slope *slopes,
		 size_t n_slopes)
{
	size_t room = p->n_samples + n_slopes;
	_cleanup_free_ const char **functions = xcalloc(p->n_samples, sizeof(*functions));

	m->n_values = n_slopes ? VALUES : VALUES - 1;
	m->entries = xcalloc(room, sizeof(*m->entries));
	m->samples = xcalloc(room, sizeof(*m->samples));
	m->locations = xcalloc(room, sizeof(*m->locations));
	m->functions = xcalloc(room, sizeof(*m->functions));
	m->strings = xcalloc(1 + N_FIXED + 2 * room, sizeof(*m->strings));
	find_functions(p, functions);
	(void)add_string(m, "", 0);
	for (size_t i = 0; i < N_FIXED; i++)
		(void)add_string(m, fixed_words[i], strlen(fixed_words[i]));
	for (size_t i = 0; i < p->n_samples; i++) {
		const struct export_slope *s = slope_at(slopes, n_slopes, p->samples[i].location);

		fill_entry(m, &p->samples[i], functions[i], s ? critical_of(p, s) : 0);
	}
	/* Waits that have no samples. */
	for (size_t i = 0; i < n_slopes; i++) {
		const struct profile_samples s = {.location = (char *)slopes[i].location};

		if (!profile_find_samples(p, s.location))
			fill_entry(m, &s, NULL, critical_of(p, &slopes[i]));
	}
}

static int write_compressed(FILE *out, const uint8_t *data, size_t size)
{
	z_stream z = {0};
	uLong room;
	_cleanup_free_ uint8_t *packed = NULL;
	int r;

	/* 16: with a header of gzip. */
	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + 16, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return -ENOMEM;
	room = deflateBound(&z, size);
	packed = xcalloc(1, room);
	z.next_in = (Bytef *)data;
	z.avail_in = (uInt)size;
	z.next_out = packed;
	z.avail_out = (uInt)room;
	r = size <= UINT32_MAX && deflate(&z, Z_FINISH) == Z_STREAM_END ? 0 : -ENOMEM;
	if (r == 0 && fwrite(packed, 1, z.total_out, out) != z.total_out)
		r = -EIO;
	(void)deflateEnd(&z);
	return r;
}

int export_pprof(FILE *out, const struct profile *p, const struct export_slope *slopes,
		 size_t n_slopes)
{
	_cleanup_(message_free) struct message m = {0};
	Pprof__Profile all = PPROF__PROFILE__INIT;
	Pprof__ValueType types[VALUES], *type_at[VALUES];
	_cleanup_free_ uint8_t *data = NULL;

	if (!p->n_samples)
		return -ENODATA;
	fill(&m, p, slopes, n_slopes);
	for (size_t i = 0; i < VALUES; i++) {
		pprof__value_type__init(&types[i]);
		types[i].type = 1 + (i == 0 ? SAMPLES : i == 1 ? CPU : CRITICAL);
		types[i].unit = 1 + (i == 0 ? COUNT : NANOSECONDS);
		type_at[i] = &types[i];
	}
	all.n_sample_type = m.n_values;
	all.sample_type = type_at;
	all.n_sample = all.n_location = all.n_function = m.n;
	all.sample = m.samples;
	all.location = m.locations;
	all.function = m.functions;
	all.n_string_table = m.n_strings;
	all.string_table = m.strings;
	all.time_nanos = p->n_runs ? (int64_t)p->runs[0].time : 0;
	all.duration_nanos = (int64_t)p->runtime_ns;
	all.period_type = &types[1];
	all.period = p->n_runs ? (int64_t)p->runs[0].period_ns : 0;
	data = xcalloc(1, pprof__profile__get_packed_size(&all));
	return write_compressed(out, data, pprof__profile__pack(&all, data));
}

int export_shares_pprof(FILE *out, const struct shares *s)
{
	_cleanup_free_ struct profile_samples *samples = xcalloc(s->n, sizeof(*samples));
	struct profile_startup run = {.time = s->from_s * 1000000000};
	struct profile p = {.runs = &run,
			    .n_runs = 1,
			    .samples = samples,
			    .n_samples = s->n,
			    .runtime_ns = (s->to_s - s->from_s) * 1000000000};

	for (size_t i = 0; i < s->n; i++)
		samples[i] = (struct profile_samples){.location = s->all[i].name,
						      .count = s->all[i].samples,
						      .ns = (uint64_t)s->all[i].amount};
	return export_pprof(out, &p, NULL, 0);
}
