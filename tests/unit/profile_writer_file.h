/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile in a directory of its own, and another file beside it. */
#pragma once

#include "profile/writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char directory[] = "/tmp/cozbpf-writer-XXXXXX";
static char path[64], other[64];

static inline int make_directory(void **state)
{
	(void)state;
	if (!mkdtemp(directory))
		return -1;
	(void)snprintf(path, sizeof(path), "%s/profile", directory);
	(void)snprintf(other, sizeof(other), "%s/other", directory);
	return 0;
}

static inline int remove_directory(void **state)
{
	(void)state;
	return rmdir(directory);
}

static inline int remove_files(void **state)
{
	(void)state;
	(void)unlink(path);
	(void)unlink(other);
	return 0;
}

static inline int open_writer(struct profile_writer **w, struct error *e)
{
	return profile_writer_open(path, (uid_t)-1, (gid_t)-1, w, e);
}

static inline void put_file(const char *text)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static inline char *get_file(void)
{
	static char text[16384];
	FILE *f = fopen(path, "r");
	size_t n;

	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	(void)fclose(f);
	return text;
}
