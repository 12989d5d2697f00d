/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose fault a crash or a hang is. One whose innermost frame among this program and the libraries
 * below is a library's cannot be mended here: in use such code runs in a decoder, whose end is a
 * warning. Any other is a failure. */
#pragma once

#include "fuzz.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static inline bool crash_is_library(void *const *frames, int n)
{
	static const char *const libraries[] = {"libdwarf", "libelf", "libdeflate", "liblzma",
						"libZydis"};
	Dl_info own, at;

	(void)dladdr((void *)(uintptr_t)&fuzz_broken, &own);
	for (int i = 0; i < n; i++) {
		if (!dladdr(frames[i], &at) || !at.dli_fname)
			continue;
		for (size_t k = 0; k < sizeof(libraries) / sizeof(libraries[0]); k++)
			if (strstr(at.dli_fname, libraries[k]))
				return true;
		if (at.dli_fbase == own.dli_fbase)
			return false;
	}
	return false;
}

/* On a stack of its own, since it may be the stack that has run out. */
static inline void catch_crashes(const int *signals, size_t n, void (*handler)(int))
{
	static unsigned char room[1 << 18];
	stack_t stack = {.ss_sp = room, .ss_size = sizeof(room)};
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK | SA_NODEFER};
	void *warm[4];

	(void)backtrace(warm, 4); /* loads its library now, not in the handler */
	(void)sigaltstack(&stack, NULL);
	for (size_t i = 0; i < n; i++)
		(void)sigaction(signals[i], &action, NULL);
}
