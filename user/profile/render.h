/* SPDX-License-Identifier: BSD-2-Clause */
/* Records as bytes of a file, appended to a growing buffer. Internal to the package. */
#pragma once

#include "profile/writer.h"

#include <stdio.h>

struct buffer {
	FILE *out;
	char *data; /* what is in it, after buffer_flush */
	size_t size;
};

void buffer_open(struct buffer *b);
void buffer_flush(struct buffer *b);
void buffer_free(struct buffer *b);

void render_startup(struct buffer *b, enum profile_format format, const struct profile_startup *s);
void render_experiment(struct buffer *b, enum profile_format format,
		       const struct profile_experiment *x);
void render_point(struct buffer *b, enum profile_format format, const struct profile_point *p);
void render_runtime(struct buffer *b, enum profile_format format, const struct profile_runtime *t);
void render_samples(struct buffer *b, enum profile_format format, const struct profile_samples *s);
void render_slopes(struct buffer *b, enum profile_format format, const struct profile_slopes *s);
void render_addresses(struct buffer *b, enum profile_format format,
		      const struct profile_addresses *a); /* nothing in the text form */
