// SPDX-License-Identifier: BSD-2-Clause
#include "report/export/export.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>

/* Each run is a process of the trace, each experiment a slice of its one thread, so that runs on
 * several hosts lie below each other. */
#define THREAD 1

static struct json_object *text_of(const char *s)
{
	_cleanup_free_ char *clean = utf8_clean(s ? s : "", strlen(s ? s : ""));

	return json_object_new_string(clean);
}

/* Microseconds since the run's first experiment. */
static double us(uint64_t ns)
{
	return (double)ns / 1000;
}

static void put(FILE *out, struct json_object *event, bool *some)
{
	const char *text = json_object_to_json_string_ext(
		event, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);

	(void)fprintf(out, "%s\n", *some ? "," : "");
	utf8_put_json(out, text ? text : "null");
	*some = true;
	json_object_put(event);
}

/* What all events have. */
static struct json_object *event(const char *phase, const char *name, size_t run, double ts)
{
	struct json_object *o = json_object_new_object();

	(void)json_object_object_add(o, "ph", json_object_new_string(phase));
	(void)json_object_object_add(o, "name", text_of(name));
	(void)json_object_object_add(o, "pid", json_object_new_uint64(run + 1));
	(void)json_object_object_add(o, "tid", json_object_new_int(THREAD));
	(void)json_object_object_add(o, "ts", json_object_new_double(ts));
	return o;
}

static struct json_object *arguments(struct json_object *to)
{
	struct json_object *args = json_object_new_object();

	(void)json_object_object_add(to, "args", args);
	return args;
}

static void put_run(FILE *out, const struct profile_startup *s, size_t run, bool *some)
{
	struct json_object *o = event("M", "process_name", run, 0);
	_cleanup_free_ char *name = xasprintf("run %zu: %s on %s", run + 1,
					      s->program   ? s->program
					      : s->command ? s->command
							   : "?",
					      s->host ? s->host : "?");

	(void)json_object_object_add(arguments(o), "name", text_of(name));
	put(out, o, some);
}

static void put_counter(FILE *out, const char *name, size_t run, double ts, double value,
			bool *some)
{
	struct json_object *o = event("C", name, run, ts);

	(void)json_object_object_add(arguments(o), "value", json_object_new_double(value));
	put(out, o, some);
}

static void put_experiment(FILE *out, const struct profile_run_experiment *x, double ts,
			   double delayed_ms, bool *some)
{
	_cleanup_free_ char *name = xasprintf("%s %.0f %%", x->x.selected, 100 * x->x.speedup);
	struct json_object *o = event("X", name, x->run, ts), *args;

	(void)json_object_object_add(o, "dur", json_object_new_double(us(x->x.elapsed)));
	args = arguments(o);
	(void)json_object_object_add(args, "line", text_of(x->x.selected));
	(void)json_object_object_add(args, "speedup", json_object_new_double(x->x.speedup));
	(void)json_object_object_add(args, "growth_ms",
				     json_object_new_double((double)x->x.growth / 1e6));
	put(out, o, some);
	put_counter(out, "delay, ms", x->run, ts, delayed_ms, some);
	put_counter(out, "waiting behind other programs, %", x->run, ts, 100 * x->x.foreign, some);
	for (size_t i = 0; i < x->n_points; i++) {
		const struct profile_point *p = &x->points[i];
		_cleanup_free_ char *counter = xasprintf("%s per second", p->name);
		double visits =
			p->kind == PROFILE_LATENCY ? (double)p->departures : (double)p->delta;

		put_counter(out, counter, x->run, ts, 1e9 * visits / (double)x->x.elapsed, some);
	}
}

int export_trace(FILE *out, const struct profile *p)
{
	_cleanup_free_ uint64_t *first = xcalloc(p->n_runs, sizeof(*first));
	_cleanup_free_ double *delayed_ms = xcalloc(p->n_runs, sizeof(*delayed_ms));
	bool some = false, known = false;

	for (size_t i = 0; i < p->n_experiments; i++)
		known |= p->experiments[i].x.began && p->experiments[i].x.elapsed;
	if (!known)
		return -ENODATA;
	(void)fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", out);
	for (size_t i = 0; i < p->n_runs; i++)
		put_run(out, &p->runs[i], i, &some);
	for (size_t i = 0; i < p->n_experiments; i++) {
		const struct profile_run_experiment *x = &p->experiments[i];

		if (!x->x.began || !x->x.elapsed)
			continue;
		if (!first[x->run])
			first[x->run] = x->x.began;
		delayed_ms[x->run] += (double)x->x.growth / 1e6;
		/* A file can say any time. */
		if (x->x.began >= first[x->run])
			put_experiment(out, x, us(x->x.began - first[x->run]), delayed_ms[x->run],
				       &some);
	}
	(void)fputs("\n]}\n", out);
	return fflush(out) ? -errno : 0;
}
