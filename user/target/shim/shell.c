// SPDX-License-Identifier: BSD-2-Clause
/* system and popen start a shell inside libc, with the environment as it is. What they do beside
 * that (signals, cancellation, streams) is best left to them: so the shell is given another line,
 * one that puts the library into its environment and becomes the shell that the program asked for.
 * The descriptors are open meanwhile, once for all threads that are in here, and hidden from
 * children of other kinds (exec.c). */
#include "handover.h"

#include <alloca.h>
#include <fcntl.h>
#include <paths.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_LINE                                                                             \
	16384 /* of the program's: its copy is on the stack, four times as long if it is all \
		 quotation marks */

/* Threads that use the descriptors, times 2; odd: they are being opened or closed. One that is
 * cancelled in system never leaves: then they stay open, for the next ones. */
static unsigned int users;
static int first = -1;

int shell_open(void)
{
	return __atomic_load_n(&users, __ATOMIC_ACQUIRE) ? __atomic_load_n(&first, __ATOMIC_RELAXED)
							 : -1;
}

void shell_hide(bool hidden)
{
	int from = shell_open();

	for (int i = 0; i < SHIM_FDS; i++)
		if (handover_has(from, i))
			(void)raw_call(SYS_fcntl, from + i, F_SETFD, hidden ? FD_CLOEXEC : 0);
}

static void leave(void)
{
	unsigned int n = __atomic_load_n(&users, __ATOMIC_ACQUIRE);
	int from = __atomic_load_n(&first, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(&users, &n, n == 2 ? 1 : n - 2, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_ACQUIRE))
		continue;
	if (n == 2) {
		__atomic_store_n(&first, -1, __ATOMIC_RELAXED);
		handover_remove(from);
		__atomic_store_n(&users, 0, __ATOMIC_RELEASE);
	}
}

/* The first descriptor, or -1: then it has to go without the library. */
static int enter(void)
{
	unsigned int n = __atomic_load_n(&users, __ATOMIC_ACQUIRE);
	int fds[SHIM_FDS], placed = -1;

	for (;;) {
		if (n & 1)
			return -1;
		if (__atomic_compare_exchange_n(&users, &n, n ? n + 2 : 1, false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
			break;
	}
	if (n) {
		placed = __atomic_load_n(&first, __ATOMIC_RELAXED);
		if (handover_has(placed, 0) && handover_has(placed, 1) && handover_has(placed, 2))
			return placed;
		leave();
		return -1;
	}
	if (handover_ask(fds)) {
		placed = handover_place(fds, true);
		handover_close(fds, SHIM_FDS);
	}
	__atomic_store_n(&first, placed, __ATOMIC_RELAXED);
	__atomic_store_n(&users, placed < 0 ? 0 : 2, __ATOMIC_RELEASE);
	return placed;
}

/* @text in quotation marks; where it ends. */
static char *quoted(char *to, const char *text)
{
	*to++ = '\'';
	for (; *text; text++) {
		if (*text == '\'') {
			memcpy(to, "'\\'", 3);
			to += 3;
		}
		*to++ = *text;
	}
	*to++ = '\'';
	return to;
}

/* Bytes that the other line takes; 0: the line has to stay as it is. A line that begins with a sign
 * may be an option, by the shell's age. */
static size_t room_for(const char *line, struct shim_environment *e)
{
	size_t n = strnlen(line, MAX_LINE);

	return n == MAX_LINE || *line == '-' || *line == '+' || !handover_loads(_PATH_BSHELL, e)
		       ? 0
		       : 4 * (n + shim_preload_room(e)) + 128;
}

static void write_line(char *to, const char *line, const struct shim_environment *e, int from)
{
	static const char set[] = "LD_PRELOAD=",
			  export[] = ";export LD_PRELOAD;exec " _PATH_BSHELL " -c ", name[] = " sh";
	char *entry = alloca(shim_preload_room(e));

	shim_preload(e, from, entry);
	memcpy(to, set, sizeof(set) - 1);
	to = quoted(to + sizeof(set) - 1, entry + sizeof(set) - 1);
	memcpy(to, export, sizeof(export) - 1);
	to = quoted(to + sizeof(export) - 1, line);
	memcpy(to, name, sizeof(name)); /* what the shell calls itself in its messages */
}

/* What to run: @line, or within the block that this opens a line with the library. */
#define WITH_LIBRARY(line, result, call)                                             \
	do {                                                                         \
		struct shim_environment e;                                           \
		int from = -1;                                                       \
		char *other = NULL;                                                  \
		size_t room = 0;                                                     \
                                                                                     \
		if (environ && __atomic_load_n(&shim_page, __ATOMIC_ACQUIRE) &&      \
		    handover_survey(environ, &e) && (room = room_for(line, &e)) > 0) \
			from = enter();                                              \
		if (from >= 0) {                                                     \
			other = alloca(room);                                        \
			write_line(other, line, &e, from);                           \
		}                                                                    \
		result = call(other ? other : line);                                 \
		if (from >= 0)                                                       \
			leave();                                                     \
	} while (0)

EXPORT int system(const char *line)
{
	int (*real)(const char *) = (int (*)(const char *))next_function("system");
	int status;

	if (!real || !line) {
		errno = real ? errno : ENOSYS;
		return real ? real(line) : -1;
	}
	WITH_LIBRARY(line, status, real);
	return status;
}

EXPORT FILE *popen(const char *line, const char *type)
{
	FILE *(*real)(const char *, const char *) =
		(FILE * (*)(const char *, const char *)) next_function("popen");
	FILE *stream;

	if (!real) {
		errno = ENOSYS;
		return NULL;
	}
#define OPEN(line) real(line, type)
	WITH_LIBRARY(line, stream, OPEN);
#undef OPEN
	return stream;
}
