// SPDX-License-Identifier: BSD-2-Clause
/* What a database has, row by row: counts of samples, and experiments. */
#include "report/export/export.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "collect/database/database.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>

struct cell {
	const char *column;
	const char *text; /* NULL: a number */
	uint64_t number;
	bool is_share; /* ... with six digits after the point: of 0..1 */
	double share;
};

struct writing {
	FILE *out;
	bool csv, headed;
	struct error *e;
};

static void put_json(FILE *out, const char *s)
{
	_cleanup_free_ char *clean = utf8_clean(s, strlen(s));
	struct json_object *o = or_out_of_memory(json_object_new_string(clean));

	utf8_put_json(out, json_object_to_json_string_ext(
				   o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
	json_object_put(o);
}

/* A row as an object of JSON on a line of its own, or as CSV, which begins with the names of the
 * columns. */
static void put(struct writing *w, const struct cell *cells, size_t n)
{
	for (size_t i = 0; w->csv && !w->headed && i < n; i++)
		(void)fprintf(w->out, "%s%s", cells[i].column, i + 1 < n ? "," : "\n");
	w->headed = true;
	for (size_t i = 0; i < n; i++) {
		if (w->csv)
			(void)fputs(i ? "," : "", w->out);
		else
			(void)fprintf(w->out, "%s\"%s\":", i ? "," : "{", cells[i].column);
		if (cells[i].is_share)
			(void)fprintf(w->out, "%.6f", cells[i].share);
		else if (!cells[i].text)
			(void)fprintf(w->out, "%" PRIu64, cells[i].number);
		else if (w->csv)
			utf8_put_csv(w->out, cells[i].text, true);
		else
			put_json(w->out, cells[i].text);
	}
	(void)fputs(w->csv ? "\n" : "}\n", w->out);
}

static int put_counts(struct counts *c, void *arg)
{
	struct writing *w = arg;
	const char *kind = counts_kind_name(c->image.kind);

	for (size_t i = 0; i < c->n_rows; i++) {
		const struct counts_row *row = &c->rows[i];
		const struct counts_who *who = &c->who[row->who];
		const struct cell cells[] = {
			{"begin", .number = c->begin_s},
			{"seconds", .number = c->seconds},
			{"host", who->host},
			{"cgroup", who->cgroup},
			{"process", who->process},
			{"image", *c->image.path || !kind ? c->image.path : kind},
			{"build_id", c->image.build_id},
			{"offset", .number = row->offset},
			{"event", c->events[row->event].name},
			{"every", .number = c->events[row->event].every},
			{"count", .number = row->count},
		};

		put(w, cells, sizeof(cells) / sizeof(cells[0]));
	}
	return ferror(w->out) ? -EIO : 0;
}

int export_counts(FILE *out, bool csv, struct database *d, uint64_t from_s, uint64_t to_s,
		  struct error *e)
{
	struct writing w = {.out = out, .csv = csv, .e = e};

	return database_each(d, from_s, to_s, put_counts, &w, e);
}

static const char *or_nothing(const char *s)
{
	return s ? s : "";
}

static void put_experiment(struct writing *w, const struct profile *p,
			   const struct profile_run_experiment *x)
{
	const struct profile_startup *run = &p->runs[x->run];

	for (size_t i = 0; i < x->n_points; i++) {
		const struct profile_point *point = &x->points[i];
		bool timed = point->timed;
		/* From the first timed visit to the last there is one less than there are visits.
		 */
		const struct cell cells[] = {
			{"run", .number = run->time / 1000000000},
			{"host", or_nothing(run->host)},
			{"build_id", or_nothing(run->build)},
			{"line", x->x.selected},
			{"function", or_nothing(x->x.function)},
			{"speedup", .is_share = true, .share = x->x.speedup},
			{"burst", .number = x->x.burst},
			{"began_ns", .number = x->x.began},
			{"elapsed_ns", .number = x->x.elapsed},
			{"effective_ns", .number = timed ? point->effective_ns : x->x.duration},
			{"point", point->name},
			{"kind", point->kind == PROFILE_LATENCY ? "latency" : "throughput"},
			{"visits", .number = point->kind == PROFILE_LATENCY ? point->departures
					     : timed ? point->timed_visits - 1
						     : point->delta},
		};

		put(w, cells, sizeof(cells) / sizeof(cells[0]));
	}
}

static int put_profile(int fd, const char *path, void *arg)
{
	struct writing *w = arg;
	struct profile p = {0};
	int r = profile_read_fd(&p, fd, path, w->e);

	for (size_t i = 0; r == 0 && i < p.n_experiments; i++)
		put_experiment(w, &p, &p.experiments[i]);
	profile_free(&p);
	if (r < 0 && r != -ENOMEM)
		r = 0; /* a crash has left it without a record */
	return r < 0 ? r : ferror(w->out) ? -EIO : 0;
}

int export_experiments(FILE *out, bool csv, struct database *d, uint64_t from_s, uint64_t to_s,
		       struct error *e)
{
	struct writing w = {.out = out, .csv = csv, .e = e};

	return database_each_profile(d, from_s, to_s, put_profile, &w, e);
}
