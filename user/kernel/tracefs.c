// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/tracefs.h"

#include "base/cleanup.h"
#include "program/elf/similar.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

/* A mount that has no place in the tree: it is there as long as its descriptor. */
static int mount_events(void)
{
	_cleanup_close_ int fs = fsopen("tracefs", FSOPEN_CLOEXEC);
	_cleanup_close_ int root = -1;
	int fd;

	if (fs < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	root = fsmount(fs, FSMOUNT_CLOEXEC, 0);
	if (root < 0)
		return -errno;
	fd = openat(root, "events", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int tracefs_open_events(void)
{
	static const char *const places[] = {"/sys/kernel/tracing/events",
					     "/sys/kernel/debug/tracing/events"};

	for (size_t i = 0; i < 2; i++) {
		int fd = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (fd >= 0)
			return fd;
	}
	return mount_events();
}

int tracefs_event_id(int events, const char *category, const char *name)
{
	char path[PATH_MAX], text[16];
	_cleanup_close_ int fd = -1;
	ssize_t n;
	long id;

	if (snprintf(path, sizeof(path), "%s/%s/id", category, name) >= (int)sizeof(path) ||
	    strstr(path, ".."))
		return -ENOENT;
	fd = openat(events, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOTDIR ? -ENOENT : -errno;
	n = read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		return n < 0 ? -errno : -ENOENT;
	text[n] = '\0';
	id = strtol(text, NULL, 10);
	return id > 0 && id <= INT_MAX ? (int)id : -ENOENT;
}

/* The nearest so far. */
struct nearest {
	unsigned int distance;
	char *text;
	size_t size;
};

static DIR *open_directory(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !d)
		(void)close(fd);
	return d;
}

static void look_into(int events, const char *in, const char *category, const char *name,
		      struct nearest *best)
{
	unsigned int far = similar_distance(category, in);
	DIR *d = open_directory(events, in);

	for (struct dirent *x; d && (x = readdir(d));) {
		unsigned int distance = similar_distance(name, x->d_name);

		if (*x->d_name == '.' || x->d_type != DT_DIR || distance == UINT_MAX)
			continue;
		/* The right name elsewhere is nearer than a similar one here. */
		distance = 2 * distance + (far == UINT_MAX || far);
		if (distance >= best->distance)
			continue;
		best->distance = distance;
		(void)snprintf(best->text, best->size, "%s:%s", in, x->d_name);
	}
	if (d)
		(void)closedir(d);
}

int tracefs_similar(int events, const char *category, const char *name, char *ret, size_t size)
{
	struct nearest best = {.distance = UINT_MAX, .text = ret, .size = size};
	DIR *d = open_directory(events, ".");

	for (struct dirent *x; d && (x = readdir(d));)
		if (*x->d_name != '.' && x->d_type == DT_DIR)
			look_into(events, x->d_name, category, name, &best);
	if (d)
		(void)closedir(d);
	return best.distance == UINT_MAX ? -ENOENT : 0;
}
