/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the program `calls` share. */
#pragma once

#include "helper.h"

#include <semaphore.h>
#include <stdbool.h>

/* In one piece, also from several threads. */
#define SAY(...)                          \
	do {                              \
		char say_[256];           \
		int n_ = snprintf(say_, sizeof(say_), __VA_ARGS__); \
                                          \
		printf("%.*s\n", n_, say_); \
	} while (0)

/* A call and its result. */
#define CALL(call) SAY("%s: %d", #call, call)

/* calls_locks.c */
void locks_of_all_kinds(void);
void conditions(void);
void cancellation(void);

/* calls_early.c, a library: how many of its calls succeeded in its constructor. */
int early_calls(void);
