// SPDX-License-Identifier: BSD-2-Clause
#include "profile/reader.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/open_file.h"
#include "profile/merge.h"
#include "profile/record.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Bounds on foreign bytes, far above what a day of experiments writes. A file may be of any size:
 * what is kept of it is bounded, and what is no record (a sparse file has no end of that). */
#define MAX_BAD (128u << 20)
#define MAX_LINE (1u << 20)
#define MAX_EXPERIMENTS (1u << 20)
#define MAX_POINTS 4096u /* of one experiment */
#define MAX_SAMPLES (1u << 20)
#define MAX_RUNS (1u << 16)

size_t profile_most_kept = (size_t)1 << 30;

/* A profile under construction. */
struct parser {
	struct profile p;
	struct profile
		log; /* that is being read: a run's logs are cumulative, the last one counts */
	struct json_tokener *tok;
	bool in_experiment; /* points belong to the last experiment */
	size_t good;
	size_t line;	   /* number of the line that is read */
	bool in_long_line; /* its beginning was too long, and is counted already */
	size_t bad;	   /* bytes that are no records */
};

/* Appends @item to an array of any type that has *n, at most @max. -E2BIG: it is unchanged. */
static int append(void *array_ptr, size_t *n, const void *item, size_t size, size_t max)
{
	void **array = array_ptr;

	if (*n >= max)
		return -E2BIG;
	*array = or_out_of_memory(array_grown(*array, *n, size));
	memcpy((char *)*array + (*n)++ * size, item, size);
	return 0;
}

/* The current run is over: its last log is what counts. */
static void end_run(struct parser *ps)
{
	for (size_t i = 0, all = ps->log.sampled; !all && i < ps->log.n_samples; i++)
		profile_add_count(&ps->log.sampled, ps->log.samples[i].count);
	profile_append(&ps->p, &ps->log);
}

static int add_run(struct parser *ps, const struct profile_startup *s)
{
	end_run(ps);
	return append(&ps->p.runs, &ps->p.n_runs, s, sizeof(*s), MAX_RUNS);
}

static int add_experiment(struct parser *ps, const struct profile_experiment *x)
{
	struct profile_run_experiment experiment = {.x = *x, .run = ps->p.n_runs - 1};

	return append(&ps->p.experiments, &ps->p.n_experiments, &experiment, sizeof(experiment),
		      MAX_EXPERIMENTS);
}

static int add_point(struct parser *ps, const struct profile_point *point)
{
	struct profile_run_experiment *x;

	if (!ps->in_experiment)
		return -EINVAL;
	x = &ps->p.experiments[ps->p.n_experiments - 1];
	return append(&x->points, &x->n_points, point, sizeof(*point), MAX_POINTS) ? -EINVAL : 0;
}

static void begin_log(struct parser *ps, const struct profile_runtime *t)
{
	profile_free(&ps->log);
	ps->log = (struct profile){.runtime_ns = t->time,
				   .sampled = t->samples,
				   .unattributed = t->unattributed,
				   .too_deep = t->too_deep,
				   .cut_short = t->cut_short};
	profile_machine_add_run(&ps->log.machine, t);
	profile_run_ended(&ps->p.runs[ps->p.n_runs - 1], t);
}

/* Takes over @rec's strings on success only. -EINVAL: out of place, to be counted as a bad line;
 * other errors end the reading. */
static int add_record(struct parser *ps, const struct record *rec)
{
	static const struct profile_startup nameless;
	struct profile *p = &ps->p, *log = &ps->log;
	int r = 0;

	/* A file may begin in the middle of a run (its head cut off by a log rotation, say). */
	if (rec->type != RECORD_STARTUP && p->n_runs == 0)
		r = add_run(ps, &nameless);
	if (r)
		return r;
	if (rec->type != RECORD_POINT && rec->type != RECORD_IGNORED)
		ps->in_experiment = rec->type == RECORD_EXPERIMENT;
	switch (rec->type) {
	case RECORD_STARTUP:
		return add_run(ps, &rec->startup);
	case RECORD_EXPERIMENT:
		return add_experiment(ps, &rec->experiment);
	case RECORD_POINT:
		return add_point(ps, &rec->point);
	case RECORD_RUNTIME:
		begin_log(ps, &rec->runtime);
		return 0;
	case RECORD_SAMPLES:
		return append(&log->samples, &log->n_samples, &rec->samples, sizeof(rec->samples),
			      MAX_SAMPLES);
	case RECORD_ELSEWHERE:
		return append(&log->elsewhere, &log->n_elsewhere, &rec->elsewhere,
			      sizeof(rec->elsewhere), MAX_SAMPLES);
	case RECORD_ADDRESSES:
		return append(&log->addresses, &log->n_addresses, &rec->addresses,
			      sizeof(rec->addresses), MAX_SAMPLES);
	case RECORD_SLOPES:
		return append(&p->slopes, &p->n_slopes, &rec->slopes, sizeof(rec->slopes),
			      MAX_EXPERIMENTS);
	case RECORD_IGNORED:
		break;
	}
	return 0;
}

static int parse_line(struct parser *ps, const char *line, size_t len)
{
	struct record rec;
	size_t size;
	int r;

	r = record_parse(ps->tok, line, len, &rec);
	if (r)
		return r;
	size = record_size(&rec);
	r = ps->p.kept + ps->log.kept + size > profile_most_kept ? -E2BIG : add_record(ps, &rec);
	if (r) {
		record_free(&rec);
		return r;
	}
	*(rec.type == RECORD_SAMPLES || rec.type == RECORD_ADDRESSES ? &ps->log.kept
								     : &ps->p.kept) += size;
	ps->good++;
	return 0;
}

/* -EFBIG: too much of the file is like that. */
static int skip_line(struct parser *ps, const char *line, size_t len)
{
	if (ps->p.bad_lines++ == 0)
		ps->p.first_bad_line = ps->line;
	ps->bad += len;
	/* A damaged experiment's points must not be counted to the experiment before it. */
	if (memmem(line, len, "experiment", 10))
		ps->in_experiment = false;
	return ps->bad > MAX_BAD ? -EFBIG : 0;
}

/* A line, or at the end of the file what is left of one. */
static int take_line(struct parser *ps, const char *line, size_t len)
{
	int r;

	if (len > MAX_LINE)
		return skip_line(ps, line, len);
	while (len && (line[len - 1] == '\r' || line[len - 1] == ' '))
		len--;
	if (len == 0)
		return 0;
	r = parse_line(ps, line, len);
	return r == -EINVAL ? skip_line(ps, line, len) : r;
}

/* Takes the lines that @data holds whole; @last: and what is left. *ret_used bytes are done with:
 * too long a line is not waited for. */
static int parse_lines(struct parser *ps, const char *data, size_t size, bool last,
		       size_t *ret_used)
{
	size_t at = 0;
	int r = 0;

	while (!r && at < size) {
		const char *line = data + at, *nl = memchr(line, '\n', size - at);
		size_t len = nl ? (size_t)(nl - line) : size - at;

		if (!nl && !last && len <= MAX_LINE)
			break;
		at += len + (nl ? 1 : 0);
		if (ps->in_long_line) {
			ps->bad += len;
			r = ps->bad > MAX_BAD ? -EFBIG : 0;
		} else {
			ps->line++;
			r = take_line(ps, line, len);
		}
		ps->in_long_line = !nl;
	}
	*ret_used = at;
	return r;
}

static void parser_free(struct parser *ps)
{
	profile_free(&ps->log);
	profile_free(&ps->p);
	json_tokener_free(ps->tok);
}

/* What was read becomes part of @p, unless @r says that reading failed. */
static int finish(struct parser *ps, int r, struct profile *p, const char *name, struct error *e)
{
	if (!r)
		end_run(ps);
	if (ps->good == 0 && (!r || r == -EFBIG))
		r = fail(e, EINVAL, "'%s' is not a profile: no line of it is a profile record",
			 name);
	else if (r == -E2BIG)
		(void)fail(e, E2BIG,
			   "'%s' has too many records for one profile, or they take more than %zu "
			   "MiB: report a part of it",
			   name, profile_most_kept >> 20);
	else if (r == -EFBIG)
		(void)fail(e, EFBIG, "'%s' has more than %u MiB that are no profile records", name,
			   MAX_BAD >> 20);
	if (!r)
		profile_merge(p, &ps->p);
	return r;
}

int profile_read_buffer(struct profile *p, const char *data, size_t size, const char *name,
			struct error *e)
{
	_cleanup_(parser_free) struct parser ps = {.tok = or_out_of_memory(json_tokener_new())};
	size_t used;

	if (size == 0)
		return fail(e, EINVAL, "'%s' is empty: nothing was recorded in it", name);
	return finish(&ps, parse_lines(&ps, data, size, true, &used), p, name, e);
}

/* Room for the longest line, and for reading on. */
#define ROOM (2 * (size_t)MAX_LINE)

/* *ret_empty: there is not a byte in it. */
static int parse_file(struct parser *ps, int fd, char *data, bool *ret_empty)
{
	size_t size = 0, used;

	*ret_empty = true;
	for (;;) {
		ssize_t n = read(fd, data + size, ROOM - size);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		size += (size_t)n;
		*ret_empty &= n == 0;
		r = parse_lines(ps, data, size, n == 0, &used);
		if (r || n == 0)
			return r;
		size -= used;
		memmove(data, data + used, size);
	}
}

int profile_read_fd(struct profile *p, int fd, const char *path, struct error *e)
{
	_cleanup_free_ char *data = xcalloc(1, ROOM);
	_cleanup_(parser_free) struct parser ps = {.tok = or_out_of_memory(json_tokener_new())};
	bool empty;
	int r = parse_file(&ps, fd, data, &empty);

	if (!r && empty)
		return fail(e, EINVAL, "'%s' is empty: nothing was recorded in it", path);
	if (r && r != -E2BIG && r != -EFBIG)
		(void)fail(e, -r, "cannot read '%s': %s", path, strerror(-r));
	return finish(&ps, r, p, path, e);
}

int profile_read(struct profile *p, const char *path, struct error *e)
{
	_cleanup_close_ int fd = open_file_or_pipe(path);
	struct stat st;

	if (fd == -ENOEXEC && stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return fail(e, EISDIR, "'%s' is a directory, not a profile", path);
	if (fd == -ENOEXEC)
		return fail(e, EINVAL, "'%s' is not a regular file", path);
	if (fd < 0)
		return fail(e, -fd, "cannot open '%s': %s", path, strerror(-fd));
	return profile_read_fd(p, fd, path, e);
}

void profile_free(struct profile *p)
{
	for (size_t i = 0; i < p->n_experiments; i++) {
		struct profile_run_experiment *x = &p->experiments[i];

		for (size_t j = 0; j < x->n_points; j++)
			profile_latency_free(x->points[j].latency);
		fields_free_all(&latency_fields, &x->points, &x->n_points, sizeof(*x->points));
	}
	fields_free_all(&experiment_fields, &p->experiments, &p->n_experiments,
			sizeof(*p->experiments));
	fields_free_all(&startup_fields, &p->runs, &p->n_runs, sizeof(*p->runs));
	fields_free_all(&slopes_fields, &p->slopes, &p->n_slopes, sizeof(*p->slopes));
	profile_clear_samples(p);
	profile_clear_elsewhere(p);
	profile_clear_addresses(p);
	*p = (struct profile){0};
}

/* Functions, by which a profile may be too, keep their names. */
static bool is_line(const char *name)
{
	const char *colon = name ? strrchr(name, ':') : NULL;

	return colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1);
}

static void rename_one(char **name, char *(*rename)(const char *line, void *arg), void *arg)
{
	char *new;

	if (!is_line(*name))
		return;
	new = rename(*name, arg);
	free(*name);
	*name = new;
}

/* Each line in a text of numbers and lines: inlined copies, places of slopes. */
static void rename_words(char **text, char *(*rename)(const char *line, void *arg), void *arg)
{
	char *out = NULL;
	size_t size = 0;
	FILE *f = xopen_memstream(&out, &size);

	for (const char *from = *text; *from;) {
		size_t n = strcspn(from, "\t\n");
		_cleanup_free_ char *word = xstrndup(from, n);

		rename_one(&word, rename, arg);
		(void)fwrite(word, 1, strlen(word), f);
		from += n;
		if (*from)
			(void)fputc(*from++, f);
	}
	xclose_memstream(f);
	free(*text);
	*text = out;
}

void profile_rename_lines(struct profile *p, char *(*rename)(const char *line, void *arg),
			  void *arg)
{
	for (size_t i = 0; i < p->n_experiments; i++)
		rename_one(&p->experiments[i].x.selected, rename, arg);
	for (size_t i = 0; i < p->n_samples; i++) {
		rename_one(&p->samples[i].location, rename, arg);
		if (p->samples[i].inlined)
			rename_words(&p->samples[i].inlined, rename, arg);
	}
	for (size_t i = 0; i < p->n_elsewhere; i++)
		rename_one(&p->elsewhere[i].location, rename, arg);
	for (size_t i = 0; i < p->n_slopes; i++)
		rename_words(&p->slopes[i].places, rename, arg);
	profile_add_up_samples(p);
}
