// SPDX-License-Identifier: BSD-2-Clause
#include "cli/options/quantities.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/open_file.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define MOST_LINE 4096
#define MAX_SECONDS (31 * 24 * 3600)

/* A number, and behind it one of the units or none. */
static int set_quantity(void *target, const struct option_row *row, const char *value,
			const char *units, const uint64_t *factors, const char *allowed,
			struct error *e)
{
	size_t digits = strspn(value, "0123456789");
	const char *unit = value[digits] ? strchr(units, value[digits]) : NULL;
	bool good = digits && digits <= 18 && (!value[digits] || (unit && !value[digits + 1]));
	uint64_t v = good ? strtoull(value, NULL, 10) : 0;

	if (!v || __builtin_mul_overflow(v, unit ? factors[unit - units] : 1, &v) || v > INT64_MAX)
		return fail(e, EINVAL, "--%s '%s': allowed are %s", row->name, value, allowed);
	*(uint64_t *)((char *)target + row->offset) = v;
	return 0;
}

int option_set_seconds(void *target, const struct option_row *row, const char *value,
		       struct error *e)
{
	static const char units[] = "smhd";
	static const double factors[] = {1, 60, 3600, 86400};
	size_t n = strlen(value);
	const char *unit = n ? strchr(units, value[n - 1]) : NULL;
	_cleanup_free_ char *number = xstrndup(value, n - (unit != NULL));
	double s = 0;
	bool good = option_real(row, number, 0, MAX_SECONDS, &s, NULL) == 0;

	s *= unit ? factors[unit - units] : 1;
	if (!good || s > MAX_SECONDS)
		return fail(e, EINVAL,
			    "--%s '%s': allowed are times such as 10, 10s, 1.5m, 2h, up to 31d",
			    row->name, value);
	*(uint64_t *)((char *)target + row->offset) = (uint64_t)(s * (double)NSEC_PER_SEC + 0.5);
	return 0;
}

int option_set_span(void *target, const struct option_row *row, const char *value, struct error *e)
{
	static const uint64_t factors[] = {1, 60, 3600, 86400, 7 * 86400};

	return set_quantity(target, row, value, "smhdw", factors, "times such as 90s, 15m, 1h, 30d",
			    e);
}

/* One day, hour or minute. */
static bool moment(const char *text, uint64_t *ret_from, uint64_t *ret_to)
{
	static const struct {
		const char *form;
		uint64_t seconds;
	} forms[] = {{"%Y-%m-%d", 86400}, {"%Y-%m-%dT%H", 3600}, {"%Y-%m-%dT%H:%M", 60}};

	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct tm tm = {0};
		const char *end = strptime(text, forms[i].form, &tm);

		if (!end || *end)
			continue;
		*ret_from = (uint64_t)timegm(&tm);
		*ret_to = *ret_from + forms[i].seconds;
		return true;
	}
	return false;
}

int option_range(const struct option_row *row, const char *value, uint64_t *ret_from,
		 uint64_t *ret_to, struct error *e)
{
	const char *dots = strstr(value, "..");
	_cleanup_free_ char *first = xstrndup(value, dots ? (size_t)(dots - value) : strlen(value));
	uint64_t unused;

	if (!moment(first, ret_from, ret_to) || (dots && !moment(dots + 2, &unused, ret_to)) ||
	    *ret_to <= *ret_from)
		return fail(e, EINVAL,
			    "%s%s '%s': allowed are times of UTC such as 2026-11-27, "
			    "2026-11-27T07, 2026-11-27T07:30, or two of them with '..' between",
			    row ? "--" : "", row ? row->name : "", value);
	return 0;
}

int option_set_since(void *target, const struct option_row *row, const char *value, struct error *e)
{
	uint64_t *at = (uint64_t *)((char *)target + row->offset), to, now = (uint64_t)time(NULL);

	if (moment(value, at, &to))
		return 0;
	if (option_set_span(target, row, value, NULL) < 0)
		return fail(e, EINVAL,
			    "--%s '%s': allowed are spans such as 30m, 1h, 7d, and times of UTC "
			    "such as 2026-11-27 or 2026-11-27T07:30",
			    row->name, value);
	*at = now > *at ? now - *at : 0;
	return 0;
}

int option_set_size(void *target, const struct option_row *row, const char *value, struct error *e)
{
	static const uint64_t factors[] = {1ULL << 10, 1ULL << 20, 1ULL << 30, 1ULL << 40};

	return set_quantity(target, row, value, "KMGT", factors, "sizes such as 200M, 1G", e);
}

int option_set_group(void *target, const struct option_row *row, const char *value, struct error *e)
{
	const struct group *g = getgrnam(value);
	uint64_t number;

	if (!g && option_unsigned(row, value, 0, INT32_MAX, &number, NULL) < 0)
		return fail(e, EINVAL, "--%s '%s': there is no such group", row->name, value);
	*(gid_t *)((char *)target + row->offset) = g ? g->gr_gid : (gid_t)number;
	return 0;
}

void option_file_free(struct option_file *f)
{
	for (int i = 0; i < f->n; i++)
		free(f->words[i]);
	free((void *)f->words);
	*f = (struct option_file){0};
}

/* Takes @word over. */
static void add_word(struct option_file *f, char *word)
{
	xarray_room(f->words, (size_t)f->n);
	f->words[f->n++] = word;
}

static char *trimmed(char *s)
{
	char *end = s + strlen(s);

	while (end > s && strchr(" \t\r\n", end[-1]))
		*--end = '\0';
	return s + strspn(s, " \t");
}

static void add_line(struct option_file *f, char *line)
{
	char *name, *value;

	line[strcspn(line, "#")] = '\0';
	name = trimmed(line);
	value = strchr(name, '=');
	if (value)
		*value++ = '\0';
	if (*name)
		add_word(f, xasprintf("--%s%s%s", trimmed(name), value ? "=" : "",
				      value ? trimmed(value) : ""));
}

static int read_lines(struct option_file *f, FILE *in)
{
	_cleanup_free_ char *line = NULL;
	size_t room = 0;
	ssize_t n;

	while ((n = getline(&line, &room, in)) > 0) {
		if (n > MOST_LINE || strlen(line) != (size_t)n)
			return -EINVAL;
		add_line(f, line);
	}
	return ferror(in) ? -EIO : 0;
}

int option_file_read(const char *path, struct option_file *ret, struct error *e)
{
	_cleanup_fclose_ FILE *in = NULL;
	struct option_file f = {0};
	struct stat st;
	int fd = open_file(path, NULL), r;

	if (fd < 0)
		return fail(e, -fd, "cannot read '%s': %s", path,
			    fd == -ENOEXEC ? "it is not a regular file" : strerror(-fd));
	in = or_out_of_memory(fdopen(fd, "r"));
	if (fstat(fd, &st) < 0 || (st.st_uid != 0 && st.st_uid != geteuid()) ||
	    st.st_mode & (S_IWGRP | S_IWOTH))
		return fail(
			e, EPERM,
			"'%s' is not taken: it belongs to another user, or others may write to it",
			path);
	add_word(&f, xstrdup(path));
	r = read_lines(&f, in);
	if (r < 0) {
		option_file_free(&f);
		return fail(e, -r, "cannot read '%s': %s", path,
			    r == -EINVAL
				    ? "it has a line that is too long, or bytes that are no text"
				    : strerror(-r));
	}
	*ret = f;
	return 0;
}
