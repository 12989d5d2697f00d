// SPDX-License-Identifier: BSD-2-Clause
#include "target/quota.h"

#include "base/cleanup.h"
#include "target/process.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_GROUPS 64 /* more are not looked at: what they use up is not seen */
#define MAX_HIERARCHIES 4

struct group {
	char *path;
	double cpus;
	int stat; /* its cpu.stat */
	uint64_t periods, used_up;
};

struct hierarchy {
	int version;
	char *mount, *root; /* which of its directories is mounted there */
};

struct quotas {
	struct hierarchy hierarchies[MAX_HIERARCHIES];
	struct group groups[MAX_GROUPS];
	size_t n_hierarchies, n_groups;
	uint64_t periods, used_up;
};

/* Is @word in the list @words, of which commas end the items? */
static bool listed(const char *words, const char *word)
{
	size_t n = strlen(word);

	for (; *words; words += strcspn(words, ","), words += *words == ',')
		if (strcspn(words, ",\n") == n && strncmp(words, word, n) == 0)
			return true;
	return false;
}

/* A line of /proc/self/mountinfo: id, parent, device, root, mount point, ... - type, source,
 * options. */
static void add_hierarchy(struct quotas *q, const char *line)
{
	_cleanup_free_ char *root = NULL, *mount = NULL, *type = NULL, *options = NULL;
	const char *rest = strstr(line, " - ");
	int version;

	if (!rest || q->n_hierarchies == MAX_HIERARCHIES ||
	    sscanf(line, "%*s %*s %*s %ms %ms", &root, &mount) != 2 ||
	    sscanf(rest, " - %ms %*s %ms", &type, &options) != 2)
		return;
	version = strcmp(type, "cgroup2") == 0				  ? 2
		  : strcmp(type, "cgroup") == 0 && listed(options, "cpu") ? 1
									  : 0;
	if (version)
		q->hierarchies[q->n_hierarchies++] =
			(struct hierarchy){version, TAKE_PTR(mount), TAKE_PTR(root)};
}

struct quotas *quotas_new(void)
{
	struct quotas *q = calloc(1, sizeof(*q));
	_cleanup_fclose_ FILE *f = fopen("/proc/self/mountinfo", "re");
	_cleanup_free_ char *line = NULL;
	size_t capacity = 0;

	while (q && f && getline(&line, &capacity, f) > 0)
		add_hierarchy(q, line);
	return q;
}

void quotas_free(struct quotas *q)
{
	if (!q)
		return;
	for (size_t i = 0; i < q->n_hierarchies; i++) {
		free(q->hierarchies[i].mount);
		free(q->hierarchies[i].root);
	}
	for (size_t i = 0; i < q->n_groups; i++) {
		free(q->groups[i].path);
		(void)close(q->groups[i].stat);
	}
	free(q);
}

char *quota_path(char *line, int version)
{
	char *controllers = strchr(line, ':'),
	     *path = controllers ? strchr(controllers + 1, ':') : NULL;

	if (!path)
		return NULL;
	*path++ = '\0';
	path[strcspn(path, "\n")] = '\0';
	if (version == 2 ? controllers[1] != '\0' : !listed(controllers + 1, "cpu"))
		return NULL;
	return path;
}

double quota_cpus(const char *quota, const char *period)
{
	char *end;
	double most = strtod(quota, &end), every;

	if (end == quota || most <= 0) /* "max", "-1" */
		return 0;
	every = strtod(period ? period : end, &end);
	return every > 0 ? most / every : 0;
}

/* The begin of the file @name in the directory @path; false: there is no such file. */
static bool read_file(const char *path, const char *name, char ret[64])
{
	_cleanup_free_ char *whole = NULL;
	_cleanup_close_ int fd = -1;
	ssize_t n;

	if (asprintf(&whole, "%s/%s", path, name) < 0)
		return false;
	fd = open(whole, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, ret, 63);
	if (n < 0)
		return false;
	ret[n] = '\0';
	return true;
}

static double cpus_of(const char *path, int version)
{
	char quota[64], period[64];

	if (version == 2)
		return read_file(path, "cpu.max", quota) ? quota_cpus(quota, NULL) : 0;
	return read_file(path, "cpu.cfs_quota_us", quota) &&
			       read_file(path, "cpu.cfs_period_us", period)
		       ? quota_cpus(quota, period)
		       : 0;
}

/* What has come since the last time. */
static void read_group(struct group *g, uint64_t *periods, uint64_t *used_up)
{
	uint64_t before_periods = g->periods, before_used_up = g->used_up;
	char text[1024];
	ssize_t n = pread(g->stat, text, sizeof(text) - 1, 0);

	if (n <= 0) /* the group was removed */
		return;
	text[n] = '\0';
	g->periods = process_field(text, "nr_periods ", 10);
	g->used_up = process_field(text, "nr_throttled ", 10);
	*periods += g->periods > before_periods ? g->periods - before_periods : 0;
	*used_up += g->used_up > before_used_up ? g->used_up - before_used_up : 0;
}

static void add_group(struct quotas *q, const char *path, int version)
{
	struct group *g = &q->groups[q->n_groups];
	_cleanup_free_ char *stat = NULL;
	uint64_t before[2] = {0};
	double cpus;

	for (size_t i = 0; i < q->n_groups; i++)
		if (strcmp(q->groups[i].path, path) == 0)
			return;
	cpus = q->n_groups < MAX_GROUPS ? cpus_of(path, version) : 0;
	if (cpus == 0 || asprintf(&stat, "%s/cpu.stat", path) < 0)
		return;
	*g = (struct group){
		.path = strdup(path), .cpus = cpus, .stat = open(stat, O_RDONLY | O_CLOEXEC)};
	if (!g->path || g->stat < 0) {
		free(g->path);
		if (g->stat >= 0)
			(void)close(g->stat);
		return;
	}
	read_group(g, &before[0], &before[1]);
	q->n_groups++;
}

/* The group that /proc/PID/cgroup calls @path, and all above it as far as they are mounted. */
static void look_up(struct quotas *q, const struct hierarchy *h, const char *path)
{
	size_t root = strcmp(h->root, "/") == 0 ? 0 : strlen(h->root), mount = strlen(h->mount);
	char whole[PATH_MAX];
	char *slash;

	/* Of "/ab", "/a" is no directory above; of "/..", nothing is mounted there. */
	if (strncmp(path, h->root, root) != 0 || (path[root] && path[root] != '/') ||
	    strncmp(path + root, "/..", 3) == 0)
		return;
	if (snprintf(whole, sizeof(whole), "%s%s", h->mount, path + root) >= (int)sizeof(whole))
		return;
	while (strlen(whole) > mount) {
		add_group(q, whole, h->version);
		slash = strrchr(whole, '/');
		if (!slash)
			return;
		*slash = '\0';
	}
	add_group(q, whole, h->version);
}

void quotas_look(struct quotas *q, pid_t pid)
{
	_cleanup_free_ char *line = NULL;
	_cleanup_fclose_ FILE *f = NULL;
	size_t capacity = 0;
	char name[64];

	(void)snprintf(name, sizeof(name), "/proc/%d/cgroup", pid);
	f = fopen(name, "re");
	while (f && getline(&line, &capacity, f) > 0)
		for (size_t i = 0; i < q->n_hierarchies; i++) {
			_cleanup_free_ char *copy = strdup(line);
			const char *path =
				copy ? quota_path(copy, q->hierarchies[i].version) : NULL;

			if (path)
				look_up(q, &q->hierarchies[i], path);
		}
}

void quotas_read(struct quotas *q, uint64_t *ret_periods, uint64_t *ret_used_up)
{
	for (size_t i = 0; i < q->n_groups; i++)
		read_group(&q->groups[i], &q->periods, &q->used_up);
	*ret_periods = q->periods;
	*ret_used_up = q->used_up;
}

double quotas_smallest(const struct quotas *q, const char **ret_path)
{
	const struct group *least = NULL;

	for (size_t i = 0; i < q->n_groups; i++)
		if (!least || q->groups[i].cpus < least->cpus)
			least = &q->groups[i];
	*ret_path = least ? least->path : NULL;
	return least ? least->cpus : 0;
}
