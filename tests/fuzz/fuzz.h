/* SPDX-License-Identifier: BSD-2-Clause */
/* A fuzz target: makes inputs, and feeds one to a parser of foreign bytes. A broken promise ends in
 * abort(), as a sanitizer's report does.
 *
 * Each target is built twice: with main.c, which makes inputs from seeds and counts what becomes of
 * them, and, where the compiler is clang and -Dlibfuzzer=true was asked for, as NAME_libfuzzer with
 * libFuzzer, which is led by what an input reaches. */
#pragma once

#include "base/rng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest input of main.c; libFuzzer's are as small as its -max_len. */
#define FUZZ_ROOM (8U << 20)

/* What a target defines. */
extern const unsigned long fuzz_iterations; /* unless told otherwise: seconds, since each run of the
					       tests does so many */
/* Once, before all else. False: its own seeds are not read as they should be; it has said which. */
bool fuzz_begin(void);
void fuzz_end(void);
/* Makes an input: a sound one, mostly with a few changes. At most @room bytes; returns how many.
 * Depends on @r alone. */
size_t fuzz_make(struct rng *r, unsigned char *out, size_t room);
/* libFuzzer's name for it. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What a target may use. */
extern bool fuzz_verbose; /* a single input: somebody wants to see it */
void fuzz_read(void);	  /* this input was not refused: if all are, or none, nothing is tried */
#define fuzz_must(x) ((x) ? (void)0 : fuzz_broken(#x, __FILE__, __LINE__))
_Noreturn void fuzz_broken(const char *promise, const char *file, int line);
/* An open file (memfd) with that content, the same at each call: what was in it is gone. Its path,
 * which is valid until the next call. */
const char *fuzz_file(const void *bytes, size_t n);
