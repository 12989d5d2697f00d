// SPDX-License-Identifier: BSD-2-Clause
#include "target/cgroup.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define MAX_DEPTH 32
#define MAX_PIDS (1 << 20)

struct cgroup {
	char *path;
	int fd;	     /* of the directory */
	pid_t *pids; /* ascending */
	size_t n;
};

static bool is_cgroup(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 &&
	       (fs.f_type == CGROUP2_SUPER_MAGIC || fs.f_type == CGROUP_SUPER_MAGIC);
}

/* Opens @path if it is a group. */
static int open_group(const char *path)
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || !is_cgroup(fd))
		return -1;
	return TAKE_FD(fd);
}

/* Calls @cb with the mount point of each hierarchy until it returns a descriptor. */
static int each_hierarchy(int (*cb)(const char *mount, const char *path, char **ret),
			  const char *path, char **ret)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/mounts", "re");
	const struct mntent *m;
	int fd = -1;

	while (fd < 0 && f && (m = getmntent(f)))
		if (strcmp(m->mnt_type, "cgroup2") == 0 || strcmp(m->mnt_type, "cgroup") == 0)
			fd = cb(m->mnt_dir, path, ret);
	return fd;
}

static int open_below(const char *mount, const char *path, char **ret)
{
	char *full;
	int fd;

	if (asprintf(&full, "%s/%s", mount, path + strspn(path, "/")) < 0)
		return -1;
	fd = open_group(full);
	if (fd >= 0)
		*ret = full;
	else
		free(full);
	return fd;
}

/* How many letters two names have in common from the start. */
static size_t common(const char *a, const char *b)
{
	size_t n = 0;

	while (a[n] && a[n] == b[n])
		n++;
	return n;
}

/* The longest beginning of @path that exists below @mount, and in it the group whose name is most
 * like the next part. */
static int nearest_below(const char *mount, const char *path, char **ret)
{
	_cleanup_free_ char *copy = strdup(path + strspn(path, "/")), *at = strdup(mount);
	char *part = copy ? strtok(copy, "/") : NULL;
	_cleanup_free_ char *best = NULL;
	size_t best_common = 0;
	struct dirent *x;
	DIR *d;

	for (; at && part; part = strtok(NULL, "/")) {
		char *next;

		if (asprintf(&next, "%s/%s", at, part) < 0)
			return -1;
		if (access(next, F_OK) < 0) {
			free(next);
			break;
		}
		free(at);
		at = next;
	}
	d = at ? opendir(at) : NULL;
	while (d && part && (x = readdir(d))) {
		if (x->d_type != DT_DIR || *x->d_name == '.' ||
		    common(x->d_name, part) <= best_common)
			continue;
		best_common = common(x->d_name, part);
		free(best);
		best = strdup(x->d_name);
	}
	if (d)
		(void)closedir(d);
	if (!best || asprintf(ret, "%s/%s", at, best) < 0)
		*ret = NULL;
	return *ret ? 0 : -1;
}

int cgroup_open(const char *path, struct cgroup **ret, struct error *e)
{
	_cleanup_free_ char *full = NULL, *near = NULL;
	_cleanup_free_ struct cgroup *g = NULL;
	_cleanup_close_ int fd = *path == '/' || *path == '.' ? open_group(path) : -1;

	if (fd >= 0)
		full = strdup(path);
	else
		fd = each_hierarchy(open_below, path, &full);
	if (fd < 0) {
		const char *in_mount = strncmp(path, "/sys/fs/cgroup/", 15) == 0 ? path + 15 : path;

		(void)each_hierarchy(nearest_below, in_mount, &near);
		if (access(path, F_OK) == 0)
			return fail(
				e, EINVAL,
				"--cgroup %s: this is no control group; they are in /sys/fs/cgroup",
				path);
		return fail(e, ENOENT, "--cgroup %s: there is no such control group%s%s", path,
			    near ? "; near is " : "", near ? near : "");
	}
	g = calloc(1, sizeof(*g));
	if (!g || !full)
		return fail(e, ENOMEM, "out of memory");
	*g = (struct cgroup){.path = TAKE_PTR(full), .fd = TAKE_FD(fd)};
	*ret = TAKE_PTR(g);
	return 0;
}

void cgroup_free(struct cgroup *g)
{
	if (!g)
		return;
	(void)close(g->fd);
	free(g->path);
	free(g->pids);
	free(g);
}

/* Adds those of one group; a group that is removed meanwhile has none. */
static int add_pids(struct cgroup *g, int dir)
{
	int fd = openat(dir, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	_cleanup_fclose_ FILE *f = fd >= 0 ? fdopen(fd, "re") : NULL;
	int pid;

	if (!f && fd >= 0)
		(void)close(fd);
	while (f && fscanf(f, "%d", &pid) == 1) {
		if (pid <= 0) /* of another pid namespace */
			continue;
		if (g->n == MAX_PIDS)
			return -E2BIG;
		if (array_add(g->pids, g->n, pid) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* @dir is closed. */
static int add_tree(struct cgroup *g, int dir, int depth)
{
	int r = add_pids(g, dir);
	const struct dirent *x;
	DIR *d = fdopendir(dir);

	if (!d) {
		(void)close(dir);
		return -ENOMEM;
	}
	while (r == 0 && depth < MAX_DEPTH && (x = readdir(d))) {
		int child;

		if (x->d_type != DT_DIR || *x->d_name == '.')
			continue;
		child = openat(dir, x->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
		if (child >= 0)
			r = add_tree(g, child, depth + 1);
	}
	(void)closedir(d);
	return r;
}

static int ascending(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

int cgroup_refresh(struct cgroup *g, struct error *e)
{
	int dir = open(g->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;
	struct stat was, is;

	/* One of the same name that came later is another group. */
	if (dir < 0 || fstat(dir, &is) < 0 || fstat(g->fd, &was) < 0 || is.st_ino != was.st_ino ||
	    is.st_dev != was.st_dev) {
		if (dir >= 0)
			(void)close(dir);
		return fail(e, ENOENT, "the control group %s was removed", g->path);
	}
	g->n = 0;
	r = add_tree(g, dir, 0);
	if (r < 0)
		return fail(e, -r, "cannot read who is in %s: %s", g->path, strerror(-r));
	if (g->n)
		qsort(g->pids, g->n, sizeof(*g->pids), ascending);
	return 0;
}

bool cgroup_has(const struct cgroup *g, pid_t pid)
{
	return g->n && bsearch(&pid, g->pids, g->n, sizeof(*g->pids), ascending);
}

size_t cgroup_size(const struct cgroup *g)
{
	return g->n;
}
