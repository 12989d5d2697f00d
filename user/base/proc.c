// SPDX-License-Identifier: BSD-2-Clause
#include "base/proc.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* include/linux/sched.h; in the flags of /proc/PID/stat. */
#define PF_EXITING 0x00000004

/* Reads /proc/TID/stat into @text. Returns what follows the name; NULL: there is no such thread. */
static const char *read_stat(pid_t tid, char *text, size_t room)
{
	_cleanup_close_ int fd = -1;
	char path[PROC_PATH];
	const char *name;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, room - 1);
	if (n < 0)
		return NULL;
	text[n] = '\0';
	/* The name ends at the last parenthesis. */
	name = strrchr(text, ')');
	return name ? name + 1 : NULL;
}

/* True also if there is no such thread. */
static bool has_ended(pid_t tid)
{
	char text[512];
	const char *fields = read_stat(tid, text, sizeof(text));
	unsigned int flags;
	char state;

	return !fields || sscanf(fields, " %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2 ||
	       state == 'Z' || state == 'X' || flags & PF_EXITING;
}

static int number_if_living(pid_t tid, void *arg)
{
	(void)arg;
	return has_ended(tid) ? 0 : tid;
}

pid_t proc_thread(pid_t pid)
{
	char path[PROC_PATH];
	pid_t found;

	if (!has_ended(pid))
		return pid;
	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	found = proc_each_number(path, number_if_living, NULL);
	return found > 0 ? found : pid;
}

void proc_path(char path[PROC_PATH], pid_t pid, const char *name)
{
	(void)snprintf(path, PROC_PATH, "/proc/%d/%s", (int)proc_thread(pid), name);
}

pid_t proc_own_number(pid_t pid)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ char *line = NULL;
	char path[PROC_PATH];
	size_t room = 0;

	proc_path(path, pid, "status");
	f = fopen(path, "re");
	while (f && getline(&line, &room, f) > 0) {
		const char *last = strrchr(line, '\t');

		if (!strncmp(line, "NStgid:", 7) && last && atoi(last + 1) > 0)
			return atoi(last + 1);
	}
	return pid;
}

uint64_t proc_began_ns(pid_t pid)
{
	char text[512];
	const char *fields = read_stat(pid, text, sizeof(text));
	unsigned long long ticks;
	struct timespec boot;

	/* From the state on, the 20th field. */
	if (!fields ||
	    sscanf(fields,
		   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d "
		   "%llu",
		   &ticks) != 1 ||
	    clock_gettime(CLOCK_BOOTTIME, &boot) < 0)
		return 0;
	return clock_realtime_ns() - timespec_ns(boot) +
	       ticks * (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
}

struct numbers {
	pid_t *all;
	size_t n;
};

static void numbers_free(struct numbers *x)
{
	free(x->all);
}

static int read_numbers(const char *path, struct numbers *ret)
{
	DIR *d = opendir(path);
	const struct dirent *x;
	int r = d ? 0 : -errno;

	while (r == 0 && (x = readdir(d))) {
		char *end;
		long number = strtol(x->d_name, &end, 10);

		if (*x->d_name < '1' || *x->d_name > '9' || *end || number > INT_MAX)
			continue;
		r = array_add(ret->all, ret->n, (pid_t)number);
	}
	if (d)
		(void)closedir(d);
	return r;
}

int proc_each_number(const char *path, int (*cb)(pid_t number, void *arg), void *arg)
{
	_cleanup_(numbers_free) struct numbers numbers = {0};
	int r = read_numbers(path, &numbers);

	for (size_t i = 0; r == 0 && i < numbers.n; i++)
		r = cb(numbers.all[i], arg);
	return r;
}

char *proc_file(const char *link)
{
	char path[PATH_MAX];
	ssize_t length = readlink(link, path, sizeof(path) - 1);
	size_t n = length > 0 ? (size_t)length : 0, deleted = strlen(PROC_DELETED);

	if (length < 0)
		return NULL;
	if (n > deleted && memcmp(path + n - deleted, PROC_DELETED, deleted) == 0)
		n -= deleted;
	return strndup(path, n);
}
