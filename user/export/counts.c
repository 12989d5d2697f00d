// SPDX-License-Identifier: BSD-2-Clause
/* A database's counts, row by row. */
#include "export/export.h"

#include "base/cleanup.h"
#include "base/utf8.h"
#include "database/database.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <string.h>

struct writing {
	FILE *out;
	bool csv;
};

static const char *const columns[] = {"begin", "seconds", "host", "cgroup", "process", "image", "build_id", "offset", "event", "every", "count"};
enum { BEGIN, SECONDS, HOST, CGROUP, PROCESS, IMAGE, BUILD_ID, OFFSET, EVENT, EVERY, COUNT, N_COLUMNS };

static void put_csv(FILE *out, const char *s)
{
	_cleanup_free_ char *clean = utf8_clean(s, strlen(s));

	/* What a spreadsheet would take for a formula gets an apostrophe in front. */
	(void)fprintf(out, "\"%s", clean && *clean && strchr("=+-@", *clean) ? "'" : "");
	for (const char *c = clean ? clean : ""; *c; c++)
		(void)fprintf(out, "%s%c", *c == '"' ? "\"" : "", (unsigned char)*c < ' ' ? '?' : *c);
	(void)fputc('"', out);
}

static void put_json(FILE *out, const char *s)
{
	_cleanup_free_ char *clean = utf8_clean(s, strlen(s));
	struct json_object *o = json_object_new_string(clean ? clean : "");

	(void)fputs(o ? json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE) : "\"\"", out);
	json_object_put(o);
}

static void put_row(const struct writing *w, const struct counts *c, const struct counts_row *row)
{
	const struct counts_who *who = &c->who[row->who];
	const char *kind = counts_kind_name(c->image.kind);
	const char *texts[N_COLUMNS] = {[HOST] = who->host,
					[CGROUP] = who->cgroup,
					[PROCESS] = who->process,
					[IMAGE] = *c->image.path || !kind ? c->image.path : kind,
					[BUILD_ID] = c->image.build_id,
					[EVENT] = c->events[row->event].name};
	const uint64_t numbers[N_COLUMNS] = {
		[BEGIN] = c->begin_s, [SECONDS] = c->seconds, [OFFSET] = row->offset, [EVERY] = c->events[row->event].every, [COUNT] = row->count};

	for (size_t i = 0; i < N_COLUMNS; i++) {
		if (w->csv)
			(void)fputs(i ? "," : "", w->out);
		else
			(void)fprintf(w->out, "%s\"%s\":", i ? "," : "{", columns[i]);
		if (!texts[i])
			(void)fprintf(w->out, "%" PRIu64, numbers[i]);
		else if (w->csv)
			put_csv(w->out, texts[i]);
		else
			put_json(w->out, texts[i]);
	}
	(void)fputs(w->csv ? "\n" : "}\n", w->out);
}

static int put_counts(struct counts *c, void *arg)
{
	const struct writing *w = arg;

	for (size_t i = 0; i < c->n_rows; i++)
		put_row(w, c, &c->rows[i]);
	return ferror(w->out) ? -EIO : 0;
}

static int export_rows(FILE *out, bool csv, struct database *d, uint64_t from_s, uint64_t to_s, struct error *e)
{
	struct writing w = {out, csv};

	if (csv)
		for (size_t i = 0; i < N_COLUMNS; i++)
			(void)fprintf(out, "%s%s", columns[i], i + 1 < N_COLUMNS ? "," : "\n");
	return database_each(d, from_s, to_s, put_counts, &w, e);
}

int export_counts_json(FILE *out, struct database *d, uint64_t from_s, uint64_t to_s, struct error *e)
{
	return export_rows(out, false, d, from_s, to_s, e);
}

int export_counts_csv(FILE *out, struct database *d, uint64_t from_s, uint64_t to_s, struct error *e)
{
	return export_rows(out, true, d, from_s, to_s, e);
}
