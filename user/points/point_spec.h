/* SPDX-License-Identifier: BSD-2-Clause */
/* What a user writes after --progress: POINT := [NAME=]WHERE,
 * WHERE := FUNCTION[+OFFSET] | BINARY:FUNCTION[+OFFSET] | [BINARY:]FUNCTION%return | FILE:LINE |
 * usdt:[BINARY:]PROVIDER:NAME | syscall:NAME[%return] | tracepoint:CATEGORY:NAME |
 * sampled:FILE:LINE | sampled:[BINARY:]FUNCTION. The last single ':' separates, "::" never does;
 * NAME is [A-Za-z0-9_.-]+. What begins with one of the four words is what the word says. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct error;

enum point_kind {
	POINT_FUNCTION,		/* function, offset, at_return; in the main executable */
	POINT_BINARY_FUNCTION,	/* binary, function, offset, at_return */
	POINT_FILE_LINE,	/* file, line */
	POINT_USDT,		/* binary or NULL for any, provider, event */
	POINT_SYSCALL,		/* event, at_return */
	POINT_TRACEPOINT,	/* provider, event */
	POINT_SAMPLED_LINE,	/* file, line */
	POINT_SAMPLED_FUNCTION, /* function; binary or NULL for the main executable */
};

struct point_spec {
	enum point_kind kind;
	char *name; /* what the profile calls it; without NAME= the text of WHERE as it was written
		     */
	char *binary;	 /* path or base name of an object */
	char *function;	 /* raw or demangled */
	uint64_t offset; /* bytes from the function's first instruction; 0 if not written */
	bool at_return;	 /* when it returns, not when it is entered; never with an offset */
	bool exact; /* at its first instruction and no other, however cheap: registers are read */
	char *file; /* as written: the path or its last components */
	uint32_t line;	/* from 1; 0 for the others */
	char *provider; /* of a USDT probe; a tracepoint's category */
	char *event;	/* the name of a USDT probe, a tracepoint, a system call */
};

/* -EINVAL: malformed; @e names the text and what is allowed. The contents of *ret are the caller's
 * (point_spec_free). */
int point_spec_parse(const char *text, struct point_spec *ret, struct error *e);
void point_spec_free(struct point_spec *p); /* frees the contents, not @p */
