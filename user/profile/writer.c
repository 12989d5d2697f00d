// SPDX-License-Identifier: BSD-2-Clause
#include "profile/writer.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "profile/file.h"
#include "profile/render.h"

#include <errno.h>

struct profile_writer {
	struct profile_file file;
	enum profile_format format;
	int first_error;
};

int profile_writer_open(const char *path, enum profile_format format, uid_t uid, gid_t gid, struct profile_writer **ret, struct error *e)
{
	_cleanup_free_ struct profile_writer *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return fail(e, ENOMEM, "cannot write '%s': out of memory", path);
	w->format = format;
	r = profile_file_open(path, format, uid, gid, &w->file, e);
	if (r)
		return r;
	*ret = TAKE_PTR(w);
	return 0;
}

/* One group of records, one write. */
static int flush(struct profile_writer *w, const struct buffer *b)
{
	int r = b->error ? b->error : profile_file_append(&w->file, b->data, b->size);

	if (r && !w->first_error)
		w->first_error = r;
	return r;
}

int profile_write_startup(struct profile_writer *w, const struct profile_startup *s)
{
	_cleanup_(buffer_free) struct buffer b = {0};

	render_startup(&b, w->format, s);
	return flush(w, &b);
}

int profile_write_experiment(struct profile_writer *w, const struct profile_experiment *x, const struct profile_point *points, size_t n_points)
{
	_cleanup_(buffer_free) struct buffer b = {0};

	render_experiment(&b, w->format, x);
	for (size_t i = 0; i < n_points; i++)
		render_point(&b, w->format, &points[i]);
	return flush(w, &b);
}

int profile_write_log(struct profile_writer *w, const struct profile_runtime *t, const struct profile_samples *samples, size_t n)
{
	_cleanup_(buffer_free) struct buffer b = {0};

	render_runtime(&b, w->format, t);
	for (size_t i = 0; i < n; i++)
		render_samples(&b, w->format, &samples[i]);
	return flush(w, &b);
}

int profile_writer_close(struct profile_writer *w)
{
	int r, first;

	if (!w)
		return 0;
	first = w->first_error;
	r = profile_file_close(&w->file);
	free(w);
	return first ? first : r;
}
