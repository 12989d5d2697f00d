// SPDX-License-Identifier: BSD-2-Clause
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

bool fuzz_verbose;

#if defined(__SANITIZE_ADDRESS__)
#define WITH_ADDRESS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WITH_ADDRESS 1
#endif
#endif

#ifdef WITH_ADDRESS
/* Reports end in abort(), so that one handler judges them all. Memory that is given back is kept
 * for long enough to be caught in use, but not for a hundred inputs after: touching new pages all
 * the time is what takes longest otherwise. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "abort_on_error=1:handle_segv=0:handle_abort=0:handle_sigbus=0:handle_sigfpe=0:"
	       "handle_sigill=0:"
	       "allocator_may_return_null=1:max_allocation_size_mb=4096:quarantine_size_mb=4:"
	       "malloc_context_size=8:"
	       "leak_check_at_exit=0:use_sigaltstack=0";
}
#endif

void fuzz_broken(const char *promise, const char *file, int line)
{
	(void)fprintf(stderr, "%s:%d: broken promise: %s\n", file, line, promise);
	abort();
}

const char *fuzz_file(const void *bytes, size_t n)
{
	static char path[64];
	static int fd = -1;

	if (fd < 0) {
		fd = memfd_create("fuzzed", MFD_CLOEXEC);
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	}
	if (fd < 0 || ftruncate(fd, (off_t)n) < 0 || pwrite(fd, bytes, n, 0) != (ssize_t)n)
		abort();
	return path;
}
