// SPDX-License-Identifier: BSD-2-Clause
/* Libraries that the environment has loaded before the C library are for the program that is
 * profiled. In cozbpf they could change what time it is, how long a sleep takes and what a file
 * contains (libfaketime). */
#include "cmd/commands.h"

#include "base/clock.h"
#include "base/log.h"
#include "shared/raw_call.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KEPT "COZBPF_" /* before the names of variables that the program is to have */
#define CLOCK_SLACK_NS NSEC_PER_SEC

/* A variable that has the loader load libraries first, with some in it. */
static bool loads_first(const char *entry)
{
	static const char *const names[] = {"LD_PRELOAD=", "LD_AUDIT="};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(entry, names[i], strlen(names[i])) == 0)
			return entry[strlen(names[i])];
	return false;
}

/* Becomes the same program without such libraries, if there are any. */
static void shed_libraries(char **argv)
{
	char path[PATH_MAX], *kept;
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	bool any = false;

	for (char **e = environ; e && *e; e++) {
		if (!loads_first(*e))
			continue;
		if (n <= 0 || asprintf(&kept, KEPT "%s", *e) < 0)
			return;
		*e = kept;
		any = true;
	}
	if (!any)
		return;
	path[n] = '\0';
	(void)execv(path, argv);
}

static bool is_honest(clockid_t clock)
{
	struct timespec before = {0}, now = {0}, after = {0};

	(void)raw_call(SYS_clock_gettime, clock, &before);
	(void)clock_gettime(clock, &now);
	(void)raw_call(SYS_clock_gettime, clock, &after);
	return timespec_ns(now) + CLOCK_SLACK_NS >= timespec_ns(before) &&
	       timespec_ns(now) <= timespec_ns(after) + CLOCK_SLACK_NS;
}

int environment_shed(char **argv)
{
	Dl_info library = {0};

	shed_libraries(argv);
	/* As they were, at their places: a program can see the order. */
	for (char **e = environ; e && *e; e++)
		if (strncmp(*e, KEPT, strlen(KEPT)) == 0 && loads_first(*e + strlen(KEPT)))
			*e += strlen(KEPT);
	if (is_honest(CLOCK_MONOTONIC) && is_honest(CLOCK_REALTIME))
		return 0;
	(void)dladdr((void *)clock_gettime, &library);
	return log_error("%s, which is loaded into cozbpf, changes its clock: start it without "
			 "that library (LD_PRELOAD, /etc/ld.so.preload)",
			 library.dli_fname ? library.dli_fname : "a library");
}
