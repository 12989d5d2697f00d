// SPDX-License-Identifier: BSD-2-Clause
#include "profile/reader.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "profile/fields.h"
#include "profile/record.h"

#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Bounds on foreign bytes, far above what a day of experiments writes. */
#define MAX_FILE (128u << 20)
#define MAX_LINE (1u << 20)
#define MAX_EXPERIMENTS (1u << 20)
#define MAX_POINTS 4096u /* of one experiment */
#define MAX_SAMPLES (1u << 20)
#define MAX_RUNS (1u << 16)

/* A profile under construction, and the log that is being read: a run's logs are cumulative, the last one counts. */
struct parser {
	struct profile p;
	struct profile_samples *log;
	size_t n_log;
	struct profile_runtime log_time;
	bool in_experiment; /* points belong to the last experiment */
	size_t good;
};

/* Makes room for one more element, by doubling when @n reaches a power of two: no capacity to store. */
static int grow(void *array_ptr, size_t n, size_t size, size_t max)
{
	void **array = array_ptr;
	void *bigger;

	if (n >= max)
		return -E2BIG;
	if (n & (n - 1))
		return 0;
	bigger = reallocarray(*array, n ? 2 * n : 1, size);
	if (!bigger)
		return -ENOMEM;
	*array = bigger;
	return 0;
}

static void clear_log(struct parser *ps)
{
	for (size_t i = 0; i < ps->n_log; i++)
		fields_free(&samples_fields, &ps->log[i]);
	free(ps->log);
	ps->log = NULL;
	ps->n_log = 0;
}

static int by_location(const void *a, const void *b)
{
	return strcmp(((const struct profile_samples *)a)->location, ((const struct profile_samples *)b)->location);
}

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/* Sorts by location and folds equal ones; frees the strings that fall away. */
static size_t merge_samples(struct profile_samples *s, size_t n)
{
	size_t out = 0;

	if (n == 0)
		return 0;
	qsort(s, n, sizeof(*s), by_location);
	for (size_t i = 1; i < n; i++) {
		if (strcmp(s[i].location, s[out].location) == 0) {
			/* Of two runs' copies, those of the one with more samples. */
			if (s[i].inlined && (!s[out].inlined || s[i].count > s[out].count)) {
				char *other = s[out].inlined;

				s[out].inlined = s[i].inlined;
				s[i].inlined = other;
			}
			s[out].count = add_saturated(s[out].count, s[i].count);
			fields_free(&samples_fields, &s[i]);
		} else {
			s[++out] = s[i];
		}
	}
	return out + 1;
}

/* Moves @n samples to the end of @p's, unmerged. -ENOMEM leaves both as they were. */
static int move_samples(struct profile *p, struct profile_samples *s, size_t n)
{
	struct profile_samples *all;

	if (n == 0)
		return 0;
	all = reallocarray(p->samples, p->n_samples + n, sizeof(*all));
	if (!all)
		return -ENOMEM;
	memcpy(all + p->n_samples, s, n * sizeof(*s));
	p->samples = all;
	p->n_samples += n;
	return 0;
}

/* The current run is over: its last log is what counts. */
static int end_run(struct parser *ps)
{
	uint64_t sampled = ps->log_time.samples;
	int r;

	for (size_t i = 0; !ps->log_time.samples && i < ps->n_log; i++)
		sampled = add_saturated(sampled, ps->log[i].count);
	r = move_samples(&ps->p, ps->log, ps->n_log);
	if (r)
		return r;
	free(ps->log);
	ps->log = NULL;
	ps->n_log = 0;
	ps->p.runtime_ns = add_saturated(ps->p.runtime_ns, ps->log_time.time);
	ps->p.sampled = add_saturated(ps->p.sampled, sampled);
	ps->p.unattributed = add_saturated(ps->p.unattributed, ps->log_time.unattributed);
	profile_machine_add_run(&ps->p.machine, &ps->log_time);
	ps->log_time = (struct profile_runtime){0};
	return 0;
}

static int add_run(struct parser *ps, const struct profile_startup *s)
{
	int r = end_run(ps);

	if (!r)
		r = grow(&ps->p.runs, ps->p.n_runs, sizeof(*ps->p.runs), MAX_RUNS);
	if (r)
		return r;
	ps->p.runs[ps->p.n_runs++] = *s;
	ps->in_experiment = false;
	return 0;
}

static int add_experiment(struct parser *ps, const struct profile_experiment *x)
{
	int r = grow(&ps->p.experiments, ps->p.n_experiments, sizeof(*ps->p.experiments), MAX_EXPERIMENTS);

	if (r)
		return r;
	ps->p.experiments[ps->p.n_experiments++] = (struct profile_run_experiment){.x = *x, .run = ps->p.n_runs - 1};
	ps->in_experiment = true;
	return 0;
}

static int add_point(struct parser *ps, const struct profile_point *point)
{
	struct profile_run_experiment *x;
	int r;

	if (!ps->in_experiment)
		return -EINVAL;
	x = &ps->p.experiments[ps->p.n_experiments - 1];
	r = grow(&x->points, x->n_points, sizeof(*x->points), MAX_POINTS);
	if (r)
		return r == -E2BIG ? -EINVAL : r;
	x->points[x->n_points++] = *point;
	return 0;
}

static int add_samples(struct parser *ps, const struct profile_samples *s)
{
	int r = grow(&ps->log, ps->n_log, sizeof(*ps->log), MAX_SAMPLES);

	if (r)
		return r;
	ps->log[ps->n_log++] = *s;
	ps->in_experiment = false;
	return 0;
}

/* Takes over @rec's strings on success only. -EINVAL: out of place, to be counted as a bad line; other errors end the
 * reading. */
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
	case RECORD_IGNORED:
		break;
	}
	return 0;
}

static int parse_line(struct parser *ps, struct json_tokener *tok, const char *line, size_t len)
{
	struct record rec;
	int r;

	if (len > MAX_LINE)
		return -EINVAL;
	r = record_parse(tok, line, len, &rec);
	if (r)
		return r;
	r = add_record(ps, &rec);
	if (r)
		record_free(&rec);
	else
		ps->good++;
	return r;
}

static int parse_lines(struct parser *ps, const char *data, size_t size)
{
	struct json_tokener *tok = json_tokener_new();
	size_t number = 0;
	int r = tok ? 0 : -ENOMEM;

	for (size_t at = 0; !r && at < size;) {
		const char *line = data + at, *nl = memchr(line, '\n', size - at);
		size_t len = nl ? (size_t)(nl - line) : size - at;

		at += len + 1;
		number++;
		while (len && (line[len - 1] == '\r' || line[len - 1] == ' '))
			len--;
		if (len == 0)
			continue;
		r = parse_line(ps, tok, line, len);
		if (r == -EINVAL) {
			if (ps->p.bad_lines++ == 0)
				ps->p.first_bad_line = number;
			/* A damaged experiment's points must not be counted to the experiment before it. */
			if (memmem(line, len, "experiment", 10))
				ps->in_experiment = false;
			r = 0;
		}
	}
	if (tok)
		json_tokener_free(tok);
	return r ? r : end_run(ps);
}

/* Moves what was read into @p. -ENOMEM leaves @p as it was. */
static int join(struct profile *p, struct profile *add)
{
	struct profile_startup *runs = p->runs;
	struct profile_run_experiment *experiments = p->experiments;

	if (add->n_runs) {
		runs = reallocarray(p->runs, p->n_runs + add->n_runs, sizeof(*runs));
		if (!runs)
			return -ENOMEM;
		p->runs = runs;
	}
	if (add->n_experiments) {
		experiments = reallocarray(p->experiments, p->n_experiments + add->n_experiments, sizeof(*experiments));
		if (!experiments)
			return -ENOMEM;
		p->experiments = experiments;
	}
	if (move_samples(p, add->samples, add->n_samples))
		return -ENOMEM;
	p->n_samples = merge_samples(p->samples, p->n_samples);
	for (size_t i = 0; i < add->n_runs; i++)
		runs[p->n_runs + i] = add->runs[i];
	for (size_t i = 0; i < add->n_experiments; i++) {
		experiments[p->n_experiments + i] = add->experiments[i];
		experiments[p->n_experiments + i].run += p->n_runs;
	}
	p->n_runs += add->n_runs;
	p->n_experiments += add->n_experiments;
	p->runtime_ns = add_saturated(p->runtime_ns, add->runtime_ns);
	p->sampled = add_saturated(p->sampled, add->sampled);
	p->unattributed = add_saturated(p->unattributed, add->unattributed);
	profile_machine_add(&p->machine, &add->machine);
	if (!p->first_bad_line)
		p->first_bad_line = add->first_bad_line;
	p->bad_lines += add->bad_lines;
	free(add->runs);
	free(add->experiments);
	free(add->samples);
	*add = (struct profile){0};
	return 0;
}

int profile_read_buffer(struct profile *p, const char *data, size_t size, const char *name, struct error *e)
{
	struct parser ps = {0};
	int r;

	if (size == 0)
		return fail(e, EINVAL, "'%s' is empty: nothing was recorded in it", name);
	r = parse_lines(&ps, data, size);
	if (!r && ps.good == 0)
		r = fail(e, EINVAL, "'%s' is not a profile: no line of it is a profile record", name);
	else if (r == -E2BIG)
		(void)fail(e, E2BIG, "'%s' has too many records for one profile", name);
	else if (!r)
		r = join(p, &ps.p);
	if (r == -ENOMEM)
		(void)fail(e, ENOMEM, "cannot read '%s': out of memory", name);
	clear_log(&ps);
	profile_free(&ps.p);
	return r;
}

/* Reads to the end of @fd; -E2BIG beyond the bound. The size that stat tells is a hint only. */
static int slurp(int fd, size_t hint, char **ret, size_t *ret_size)
{
	size_t size = 0, room = hint < MAX_FILE ? hint + 1 : MAX_FILE + 1;
	_cleanup_free_ char *data = malloc(room);

	if (!data)
		return -ENOMEM;
	for (;;) {
		ssize_t n = read(fd, data + size, room - size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		size += (size_t)n;
		if (size > MAX_FILE)
			return -E2BIG;
		if (size == room) {
			char *bigger = realloc(data, 2 * room);

			if (!bigger)
				return -ENOMEM;
			data = bigger;
			room *= 2;
		}
	}
	*ret = TAKE_PTR(data);
	*ret_size = size;
	return 0;
}

int profile_read(struct profile *p, const char *path, struct error *e)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	_cleanup_free_ char *data = NULL;
	struct stat st;
	size_t size = 0;
	int r;

	if (fd < 0 || fstat(fd, &st))
		return fail(e, errno, "cannot open '%s': %m", path);
	if (S_ISDIR(st.st_mode))
		return fail(e, EISDIR, "'%s' is a directory, not a profile", path);
	if (!S_ISREG(st.st_mode) && !S_ISFIFO(st.st_mode))
		return fail(e, EINVAL, "'%s' is not a regular file", path);
	r = slurp(fd, st.st_size > 0 ? (size_t)st.st_size : 4096, &data, &size);
	if (r == -E2BIG)
		return fail(e, E2BIG, "'%s' is larger than %u MiB", path, MAX_FILE >> 20);
	if (r)
		return fail(e, -r, "cannot read '%s': %s", path, strerror(-r));
	return profile_read_buffer(p, data, size, path, e);
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
	for (size_t i = 0; i < p->n_samples; i++)
		fields_free(&samples_fields, &p->samples[i]);
	free(p->runs);
	free(p->experiments);
	free(p->samples);
	*p = (struct profile){0};
}

/* Functions, by which a profile may be too, keep their names. */
static bool is_line(const char *name)
{
	const char *colon = name ? strrchr(name, ':') : NULL;

	return colon && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1);
}

static int rename_one(char **name, char *(*rename)(const char *line, void *arg), void *arg)
{
	char *new;

	if (!is_line(*name))
		return 0;
	new = rename(*name, arg);
	if (!new)
		return -ENOMEM;
	free(*name);
	*name = new;
	return 0;
}

/* Each line of each copy. */
static int rename_inlined(char **text, char *(*rename)(const char *line, void *arg), void *arg)
{
	char *out = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&out, &size);
	int r = f ? 0 : -ENOMEM;

	for (const char *from = *text; r == 0 && *from;) {
		size_t n = strcspn(from, "\t\n");
		_cleanup_free_ char *word = strndup(from, n);

		r = word ? rename_one(&word, rename, arg) : -ENOMEM;
		if (r == 0)
			(void)fwrite(word, 1, strlen(word), f);
		from += n;
		if (r == 0 && *from)
			(void)fputc(*from++, f);
	}
	if (f && fclose(f) != 0)
		r = -ENOMEM;
	if (r < 0) {
		free(out);
		return r;
	}
	free(*text);
	*text = out;
	return 0;
}

int profile_rename_lines(struct profile *p, char *(*rename)(const char *line, void *arg), void *arg)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < p->n_experiments; i++)
		r = rename_one(&p->experiments[i].x.selected, rename, arg);
	for (size_t i = 0; r == 0 && i < p->n_samples; i++) {
		r = rename_one(&p->samples[i].location, rename, arg);
		if (r == 0 && p->samples[i].inlined)
			r = rename_inlined(&p->samples[i].inlined, rename, arg);
	}
	p->n_samples = merge_samples(p->samples, p->n_samples);
	return r;
}
