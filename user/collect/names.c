// SPDX-License-Identifier: BSD-2-Clause
/* What the numbers in the tables stand for: images with their paths and build ids, processes with
 * their control groups. */
#include "collect/private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/proc.h"
#include "base/search.h"
#include "collect.skel.h"
#include "program/elf/object.h"
#include "base/sandbox/opener.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

/* Where version 2 is alone, and where it is mounted beside version 1. */
static const char *const cgroup_roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
#define FILEID_KERNFS \
	0xfe /* include/linux/exportfs.h; a handle of this kind is the inode's number */
/* Users can make names of thousands of bytes, and thousands of them. */
#define MOST_PATH 1024
#define MOST_CGROUP 512
/* Whether files are slow, as those of a network that is down, can be a user's doing: opening them
 * takes at most this part of the time, but for a second at once. */
#define LEARNING_PART 10
#define LEARNING_BURST_NS NSEC_PER_SEC

void names_open(struct names *n)
{
	*n = (struct names){.cgroup_fd = -1};
	for (size_t i = 0; n->cgroup_fd < 0 && i < sizeof(cgroup_roots) / sizeof(cgroup_roots[0]);
	     i++) {
		int fd = open(cgroup_roots[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		struct statfs fs;

		n->cgroup_root = cgroup_roots[i];
		if (fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
			n->cgroup_fd = fd;
		else if (fd >= 0)
			(void)close(fd);
	}
}

static void drop_first(struct name_table *t, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < 2; k++)
			free(t->all[i].texts[k]);
	t->n -= n;
	if (t->n)
		memmove(t->all, t->all + n, t->n * sizeof(*t->all));
}

void names_close(struct names *n)
{
	drop_first(&n->images, n->images.n);
	drop_first(&n->who, n->who.n);
	free(n->images.all);
	free(n->who.all);
	if (n->cgroup_fd >= 0)
		(void)close(n->cgroup_fd);
	*n = (struct names){.cgroup_fd = -1};
}

static size_t front(const struct name_table *t, uint32_t id)
{
	return search_front(t->n, i, t->all[i].id < id);
}

struct named *name_find(const struct name_table *t, uint32_t id)
{
	size_t at = front(t, id);

	return at < t->n && t->all[at].id == id ? &t->all[at] : NULL;
}

static void insert(struct name_table *t, struct named made)
{
	size_t at = front(t, made.id);

	xarray_add(t->all, t->n, made);
	memmove(&t->all[at + 1], &t->all[at], (t->n - 1 - at) * sizeof(*t->all));
	t->all[at] = made;
}

/* Takes the strings over. An image that is there gets the better name. */
static void set_image(struct names *n, uint32_t id, const struct collect_file *f, uint32_t owner,
		      char *path, char *build_id)
{
	struct named made = {
		id,
		{path, build_id},
		{COUNTS_FILE, path, build_id, f->device, f->inode, f->changed_ns, owner}};
	struct named *old = name_find(&n->images, id);

	if (!old) {
		insert(&n->images, made);
		return;
	}
	free(old->texts[0]);
	free(old->texts[1]);
	*old = made;
}

/* Is it not looked for again. */
static void know(struct collect_bpf *skel, const struct collect_file *f)
{
	int fd = bpf_map__fd(skel->maps.collect_images);
	struct collect_image i;

	if (bpf_map_lookup_elem(fd, f, &i) < 0)
		return;
	i.known = 1;
	(void)bpf_map_update_elem(fd, f, &i, BPF_EXIST);
}

/* Is the file that was opened the one in which code was found? The process can have another one
 * there by now, to have its own taken for that of others. Overlays and btrfs number files in a way
 * of their own when they are asked; there the owner says it, whom users cannot choose. */
static bool is_that(const struct opened_file *o, const struct collect_file *f)
{
	uint64_t changed_ns =
		(uint64_t)o->st.st_mtim.tv_sec * NSEC_PER_SEC + (uint64_t)o->st.st_mtim.tv_nsec;

	if (changed_ns != f->changed_ns)
		return false;
	if (o->file_system == OVERLAYFS_SUPER_MAGIC || o->file_system == BTRFS_SUPER_MAGIC)
		return o->st.st_uid == f->owner && !o->is_nosuid;
	return o->st.st_ino == f->inode &&
	       o->st.st_dev == makedev(f->device >> 20, f->device & 0xfffff);
}

/* Where set-user-id says nothing, root does not either: any user can have mounted it. */
static uint32_t owner_of(const struct opened_file *o)
{
	return o->is_nosuid && o->st.st_uid == 0 ? COUNTS_NOBODY : o->st.st_uid;
}

/* Of a file that was not opened: a FUSE server says of its files what it likes, and would have
 * other users' part of the database used up. */
static uint32_t owner_unopened(const struct collect_file *f)
{
	return f->is_fuse || f->owner == 0 ? COUNTS_NOBODY : f->owner;
}

/* To follow the link takes CAP_CHECKPOINT_RESTORE, which is more than containers are given. */
static int open_mapped(const struct collect_news *news, const char *link, const char *path,
		       struct opened_file *ret)
{
	char root[PROC_PATH], there[PROC_PATH + PATH_MAX];
	int fd = opener_open_described(link, NULL, ret);

	if (fd != -EPERM && fd != -EACCES)
		return fd;
	proc_path(root, (pid_t)news->pid, "root");
	(void)snprintf(there, sizeof(there), "%s%s", root, path);
	return opener_open_described(there, NULL, ret);
}

static void learn(struct names *n, struct collect_bpf *skel, const struct collect_news *news)
{
	struct opened_file opened;
	char range[48], link[PROC_PATH], *path;
	const char *base;
	int fd;

	(void)snprintf(range, sizeof(range), "map_files/%llx-%llx", news->start, news->end);
	proc_path(link, (pid_t)news->pid, range);
	path = proc_file(link);
	if (!path) /* the process has ended, or has other things mapped there now */
		return;
	base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	fd = strncmp(base, news->name, COLLECT_NAME - 1) == 0
		     ? open_mapped(news, link, path, &opened)
		     : -ENOENT;
	/* What is no file of a disk, or does not answer, has its last name only. */
	if (fd == -ENOEXEC || fd == -ETIMEDOUT)
		know(skel, &news->file);
	if (fd < 0 || !is_that(&opened, &news->file)) {
		opener_close(fd);
		free(path);
		return;
	}
	if (strlen(path) > MOST_PATH)
		memmove(path, base, strlen(base) + 1);
	set_image(n, news->image, &news->file, owner_of(&opened), path,
		  or_out_of_memory(elf_file_build_id(fd)));
	opener_close(fd);
	know(skel, &news->file);
}

void names_learn(struct names *n, struct collect_bpf *skel, const struct collect_news *news)
{
	uint64_t from = clock_monotonic_ns();

	/* What is not learned now is told again. */
	if (n->learned_until_ns > from + LEARNING_PART * LEARNING_BURST_NS)
		return;
	learn(n, skel, news);
	if (n->learned_until_ns < from)
		n->learned_until_ns = from;
	n->learned_until_ns += LEARNING_PART * (clock_monotonic_ns() - from);
}

/* The path below the hierarchy's root, "/" the root itself; "" if it is gone. */
static char *cgroup_path(const struct names *n, uint64_t id)
{
	union {
		struct file_handle handle;
		char bytes[sizeof(struct file_handle) + sizeof(uint64_t)];
	} h = {.handle = {.handle_bytes = sizeof(uint64_t), .handle_type = FILEID_KERNFS}};
	_cleanup_close_ int fd = -1;
	char link[64], path[PATH_MAX];
	ssize_t length;
	size_t root = strlen(n->cgroup_root);

	memcpy(h.handle.f_handle, &id, sizeof(id));
	if (n->cgroup_fd >= 0)
		fd = open_by_handle_at(n->cgroup_fd, &h.handle, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return xstrdup("");
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	path[length > 0 ? length : 0] = '\0';
	if (strncmp(path, n->cgroup_root, root) != 0)
		return xstrdup("");
	/* Of one that lies too deep, the last above it that does not. */
	for (char *end; strlen(path + root) > MOST_CGROUP && (end = strrchr(path + root, '/'));)
		*end = '\0';
	return xstrdup(path[root] ? path + root : "/");
}

void names_complete(struct names *n, struct collect_bpf *skel)
{
	int images = bpf_map__fd(skel->maps.collect_images),
	    whos = bpf_map__fd(skel->maps.collect_whos);
	struct collect_file file = {0}, *last_file = NULL;
	struct collect_process process = {0}, *last_process = NULL;

	while (bpf_map_get_next_key(images, last_file, &file) == 0) {
		struct collect_image i;

		last_file = &file;
		if (bpf_map_lookup_elem(images, &file, &i) == 0 && !name_find(&n->images, i.id))
			set_image(n, i.id, &file, owner_unopened(&file),
				  xstrndup(i.name, sizeof(i.name)), xstrdup(""));
	}
	while (bpf_map_get_next_key(whos, last_process, &process) == 0) {
		uint32_t id;

		last_process = &process;
		if (bpf_map_lookup_elem(whos, &process, &id) == 0 && !name_find(&n->who, id))
			insert(&n->who, (struct named){.id = id,
						       .texts = {xstrndup(process.name,
									  sizeof(process.name)),
								 cgroup_path(n, process.cgroup)}});
	}
}

static void empty(int fd)
{
	union {
		struct collect_file file;
		struct collect_process process;
	} key;

	while (bpf_map_get_next_key(fd, NULL, &key) == 0)
		if (bpf_map_delete_elem(fd, &key) < 0)
			break;
}

/* @next: the number of the next one. */
static void make_room_in(struct name_table *t, uint32_t next, uint32_t most, int fd)
{
	if (next - t->old <= most / 2)
		return;
	drop_first(t, front(t, t->old));
	t->old = next;
	empty(fd);
}

void names_make_room(struct names *n, struct collect_bpf *skel)
{
	make_room_in(&n->images, skel->data->collect_next_image, COLLECT_MAX_IMAGES,
		     bpf_map__fd(skel->maps.collect_images));
	make_room_in(&n->who, skel->data->collect_next_who, COLLECT_MAX_WHO,
		     bpf_map__fd(skel->maps.collect_whos));
}
