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

/* A profile under construction, and the log that is being read: a run's logs are cumulative, the
 * last one counts. */
struct parser {
	struct profile p;
	struct json_tokener *tok;
	struct profile_samples *log;
	size_t n_log;
	struct profile_addresses *log_addresses;
	size_t n_log_addresses;
	struct profile_runtime log_time;
	bool in_experiment; /* points belong to the last experiment */
	size_t good;
	size_t line;	       /* number of the line that is read */
	bool in_long_line;     /* its beginning was too long, and is counted already */
	size_t kept, log_kept; /* bytes that records take, the log's apart */
	size_t bad;	       /* bytes that are no records */
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

static void clear_log(struct parser *ps)
{
	for (size_t i = 0; i < ps->n_log; i++)
		fields_free(&samples_fields, &ps->log[i]);
	free(ps->log);
	ps->log = NULL;
	ps->n_log = 0;
	for (size_t i = 0; i < ps->n_log_addresses; i++)
		fields_free(&addresses_fields, &ps->log_addresses[i]);
	free(ps->log_addresses);
	ps->log_addresses = NULL;
	ps->n_log_addresses = 0;
	ps->log_kept = 0;
}

/* The current run is over: its last log is what counts. */
static void end_run(struct parser *ps)
{
	uint64_t sampled = ps->log_time.samples;

	for (size_t i = 0; !ps->log_time.samples && i < ps->n_log; i++)
		profile_add_count(&sampled, ps->log[i].count);
	profile_move_samples(&ps->p, ps->log, ps->n_log);
	profile_move_addresses(&ps->p, ps->log_addresses, ps->n_log_addresses);
	ps->n_log = ps->n_log_addresses = 0; /* they have moved */
	ps->kept += ps->log_kept;
	clear_log(ps);
	profile_add_count(&ps->p.runtime_ns, ps->log_time.time);
	profile_add_count(&ps->p.sampled, sampled);
	profile_add_count(&ps->p.unattributed, ps->log_time.unattributed);
	profile_add_count(&ps->p.too_deep, ps->log_time.too_deep);
	profile_add_count(&ps->p.cut_short, ps->log_time.cut_short);
	profile_machine_add_run(&ps->p.machine, &ps->log_time);
	ps->log_time = (struct profile_runtime){0};
}

static int add_run(struct parser *ps, const struct profile_startup *s)
{
	end_run(ps);
	ps->in_experiment = false;
	return append(&ps->p.runs, &ps->p.n_runs, s, sizeof(*s), MAX_RUNS);
}

static int add_experiment(struct parser *ps, const struct profile_experiment *x)
{
	struct profile_run_experiment experiment = {.x = *x, .run = ps->p.n_runs - 1};

	ps->in_experiment = true;
	return append(&ps->p.experiments, &ps->p.n_experiments, &experiment, sizeof(experiment),
		      MAX_EXPERIMENTS);
}

static int add_point(struct parser *ps, const struct profile_point *point)
{
	struct profile_run_experiment *x;
	int r;

	if (!ps->in_experiment)
		return -EINVAL;
	x = &ps->p.experiments[ps->p.n_experiments - 1];
	r = append(&x->points, &x->n_points, point, sizeof(*point), MAX_POINTS);
	return r == -E2BIG ? -EINVAL : r;
}

static int add_samples(struct parser *ps, const struct profile_samples *s)
{
	ps->in_experiment = false;
	return append(&ps->log, &ps->n_log, s, sizeof(*s), MAX_SAMPLES);
}

static int add_addresses(struct parser *ps, const struct profile_addresses *a)
{
	ps->in_experiment = false;
	return append(&ps->log_addresses, &ps->n_log_addresses, a, sizeof(*a), MAX_SAMPLES);
}

static int add_slopes(struct parser *ps, const struct profile_slopes *s)
{
	ps->in_experiment = false;
	return append(&ps->p.slopes, &ps->p.n_slopes, s, sizeof(*s), MAX_EXPERIMENTS);
}

/* Takes over @rec's strings on success only. -EINVAL: out of place, to be counted as a bad line;
 * other errors end the reading. */
static int add_record(struct parser *ps, const struct record *rec)
{
	static const struct profile_startup nameless;
	int r = 0;

	/* A file may begin in the middle of a run (its head cut off by a log rotation, say). */
	if (rec->type != RECORD_STARTUP && ps->p.n_runs == 0)
		r = add_run(ps, &nameless);
	if (r)
		return r;
	switch (rec->type) {
	case RECORD_STARTUP:
		return add_run(ps, &rec->startup);
	case RECORD_EXPERIMENT:
		return add_experiment(ps, &rec->experiment);
	case RECORD_POINT:
		return add_point(ps, &rec->point);
	case RECORD_RUNTIME:
		clear_log(ps);
		ps->log_time = rec->runtime;
		ps->in_experiment = false;
		return 0;
	case RECORD_SAMPLES:
		return add_samples(ps, &rec->samples);
	case RECORD_ADDRESSES:
		return add_addresses(ps, &rec->addresses);
	case RECORD_SLOPES:
		return add_slopes(ps, &rec->slopes);
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
	r = ps->kept + ps->log_kept + size > profile_most_kept ? -E2BIG : add_record(ps, &rec);
	if (r) {
		record_free(&rec);
		return r;
	}
	*(rec.type == RECORD_SAMPLES || rec.type == RECORD_ADDRESSES ? &ps->log_kept : &ps->kept) +=
		size;
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
	clear_log(ps);
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
	if (!r) {
		ps->p.kept = ps->kept;
		profile_merge(p, &ps->p);
	}
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
	for (size_t i = 0; i < p->n_runs; i++)
		fields_free(&startup_fields, &p->runs[i]);
	for (size_t i = 0; i < p->n_experiments; i++) {
		struct profile_run_experiment *x = &p->experiments[i];

		for (size_t j = 0; j < x->n_points; j++) {
			fields_free(&latency_fields, &x->points[j]);
			profile_latency_free(x->points[j].latency);
		}
		free(x->points);
		fields_free(&experiment_fields, &x->x);
	}
	profile_clear_samples(p);
	profile_clear_addresses(p);
	for (size_t i = 0; i < p->n_slopes; i++)
		fields_free(&slopes_fields, &p->slopes[i]);
	free(p->runs);
	free(p->experiments);
	free(p->slopes);
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
	for (size_t i = 0; i < p->n_slopes; i++)
		rename_words(&p->slopes[i].places, rename, arg);
	profile_add_up_samples(p);
}
