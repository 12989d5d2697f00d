/* SPDX-License-Identifier: BSD-2-Clause */
/* Appends a run to a profile file. A file is created mode 0644 without following links, or appended
 * to if it is a profile; each experiment reaches the file in one write, so a killed run loses at
 * most the current one. */
#pragma once

#include "profile/profile.h"

#include <stdio.h>
#include <sys/types.h>

struct error;
struct profile_writer;

/* Opens @path for appending ("-": not allowed). Refuses (-EEXIST) an existing file that is not a
 * profile or is one in Coz's text form, anything that is not a regular file (-EINVAL), a path that
 * is a link (-ELOOP), and a file that belongs to another user than us,
 * @uid and root (-EPERM). A new file is given to @uid/@gid (-1: keep). Nothing is written before
 * the first record, and a file created here is removed again by profile_writer_close if nothing was
 * written. */
int profile_writer_open(const char *path, uid_t uid, gid_t gid, struct profile_writer **ret,
			struct error *e);
/* Each returns 0 or a negative errno (-ENOSPC, -EIO); after a failure the file is cut back to the
 * last whole record group. */
int profile_write_startup(struct profile_writer *w, const struct profile_startup *s);
/* The experiment and one record for each point, in one write. */
int profile_write_experiment(struct profile_writer *w, const struct profile_experiment *x,
			     const struct profile_point *points, size_t n_points);
struct profile;
/* A window's record. */
int profile_write_slopes(struct profile_writer *w, const struct profile_slopes *s);
/* The log at a run's end (or between): run time so far and @p's samples, which are those since the
 * start. */
int profile_write_log(struct profile_writer *w, const struct profile_runtime *t,
		      const struct profile *p);
/* 0, or the first error met. NULL is allowed. */
int profile_writer_close(struct profile_writer *w);
