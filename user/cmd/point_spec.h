/* SPDX-License-Identifier: BSD-2-Clause */
/* What a user writes after --progress: POINT := [NAME=]WHERE,
 * WHERE := FUNCTION[+OFFSET] | BINARY:FUNCTION[+OFFSET] | FILE:LINE.
 * The last single ':' separates, "::" never does; NAME is [A-Za-z0-9_.-]+. */
#pragma once

#include <stdint.h>

struct error;

enum point_kind {
	POINT_FUNCTION,        /* function, offset; in the main executable */
	POINT_BINARY_FUNCTION, /* binary, function, offset */
	POINT_FILE_LINE,       /* file, line */
};

struct point_spec {
	enum point_kind kind;
	char *name;      /* what the profile calls it; without NAME= the text of WHERE as it was written */
	char *binary;    /* path or base name of a loaded object; NULL but for POINT_BINARY_FUNCTION */
	char *function;  /* raw or demangled; NULL for POINT_FILE_LINE */
	uint64_t offset; /* bytes from the function's first instruction; 0 if not written */
	char *file;      /* as written: the path or its last components; NULL but for POINT_FILE_LINE */
	uint32_t line;   /* from 1; 0 but for POINT_FILE_LINE */
};

/* -EINVAL: malformed. -EOPNOTSUPP: of the grammar (%return, usdt:, syscall:, tracepoint:, sampled:), but not supported. @e names
 * the text and what is allowed. The contents of *ret are the caller's (point_spec_free). */
int point_spec_parse(const char *text, struct point_spec *ret, struct error *e);
void point_spec_free(struct point_spec *p); /* frees the contents, not @p */
