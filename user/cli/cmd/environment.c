// SPDX-License-Identifier: BSD-2-Clause
/* Libraries that the environment has loaded before the C library are for the program that is
 * profiled. In cozbpf they could change what time it is, how long a sleep takes and what a file
 * contains (libfaketime). */
#include "cli/cmd/commands.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "shared/raw_call.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KEPT "COZBPF_" /* before the names of variables that the program is to have */
/* Names the process that wrote such variables for itself; to execute a program keeps the number. */
#define KEPT_BY KEPT "KEPT_BY="
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

/* Becomes the same program without such libraries, if there are any. What runs is executed, not
 * what has its path by now. */
static void shed_libraries(char **argv)
{
	int self = open("/proc/self/exe", O_PATH | O_CLOEXEC);
	char *by, **with;
	size_t n = 0, kept = 0;
	bool any = false;

	if (self < 0)
		return;
	while (environ && environ[n])
		n++;
	with = xcalloc(n + 2, sizeof(*with));
	by = xasprintf(KEPT_BY "%d", (int)getpid());
	for (size_t i = 0; i < n; i++) {
		char *entry = environ[i];

		if (strncmp(entry, KEPT, strlen(KEPT)) == 0 && loads_first(entry + strlen(KEPT)))
			continue; /* not ours, and would be taken for it */
		if (loads_first(entry)) {
			entry = xasprintf(KEPT "%s", environ[i]);
			any = true;
		}
		with[kept++] = entry;
	}
	with[kept] = by;
	if (any)
		(void)syscall(SYS_execveat, self, "", argv, with, AT_EMPTY_PATH);
	(void)close(self);
	free(by);
	free((void *)with);
}

/* Did this process write the variables that begin with KEPT? Takes the word of that away. */
static bool kept_some(void)
{
	char by[sizeof(KEPT_BY) + 16];
	bool is = false;

	(void)snprintf(by, sizeof(by), KEPT_BY "%d", (int)getpid());
	for (char **e = environ; e && *e;) {
		if (strncmp(*e, KEPT_BY, strlen(KEPT_BY)) != 0) {
			e++;
			continue;
		}
		is = is || strcmp(*e, by) == 0;
		for (char **next = e; *next; next++)
			next[0] = next[1];
	}
	return is;
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
	bool kept;

	shed_libraries(argv);
	kept = kept_some();
	/* Of what is executed by its descriptor, this is the descriptor's number. */
	if (kept)
		(void)prctl(PR_SET_NAME, program_invocation_short_name);
	/* As they were, at their places: a program can see the order. */
	for (char **e = environ; kept && e && *e; e++)
		if (strncmp(*e, KEPT, strlen(KEPT)) == 0 && loads_first(*e + strlen(KEPT)))
			*e += strlen(KEPT);
	if (is_honest(CLOCK_MONOTONIC) && is_honest(CLOCK_REALTIME))
		return 0;
	(void)dladdr((void *)clock_gettime, &library);
	return log_error("%s, which is loaded into cozbpf, changes its clock: start it without "
			 "that library (LD_PRELOAD, /etc/ld.so.preload)",
			 library.dli_fname ? library.dli_fname : "a library");
}
