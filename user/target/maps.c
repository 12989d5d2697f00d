// SPDX-License-Identifier: BSD-2-Clause
#include "target/maps.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/open_file.h"
#include "base/proc.h"
#include "base/sandbox/opener.h"
#include "target/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* The target chooses its paths: bound what we keep of them. */
#define MAX_PATHS_BYTES (32U * 1024 * 1024)
/* A path of PATH_MAX bytes, each of them a newline that the kernel prints as four characters. */
#define MAX_LINE (4 * PATH_MAX + 256)

struct reader {
	struct map_list list;
	size_t path_bytes;
	/* The last mapping of a file, and up to where it and copies behind it go. */
	struct map_entry near;
	uint64_t near_end;
};

/* A field of digits of @base that ends in @end; one of decimal digits may end with the line. */
static bool take_number(const char **p, const char *limit, unsigned int base, char end,
			uint64_t *ret)
{
	static const char digits[] = "0123456789abcdef";
	const char *start = *p, *digit;
	uint64_t v = 0;

	for (; *p < limit && (digit = memchr(digits, **p, base)); (*p)++)
		if (__builtin_mul_overflow(v, base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(digit - digits), &v))
			return false;
	*ret = v;
	if (*p == start || *p == limit)
		return *p > start && base == 10;
	return *(*p)++ == end;
}

static bool take_hex(const char **p, const char *limit, char end, uint64_t *ret)
{
	return take_number(p, limit, 16, end, ret);
}

/* The kernel escapes a newline as \012, and nothing else, not even the backslash. */
static char *copy_path(const char *p, const char *limit)
{
	char *path = malloc((size_t)(limit - p) + 1), *out = path;

	if (!path)
		return NULL;
	while (p < limit) {
		if (limit - p >= 4 && memcmp(p, "\\012", 4) == 0) {
			*out++ = '\n';
			p += 4;
		} else {
			*out++ = *p++;
		}
	}
	*out = '\0';
	return path;
}

/* What a line tells of. */
enum line_kind {
	LINE_OTHER, /* also nonsense */
	LINE_CODE,  /* an executable mapping of a file */
	LINE_FILE,  /* another mapping of a file */
	LINE_COPY,  /* executable, but of no file */
	LINE_DATA,  /* of no file, and to be written */
};

static bool begins(const char *p, const char *limit, const char *with)
{
	size_t n = strlen(with);

	return (size_t)(limit - p) >= n && memcmp(p, with, n) == 0;
}

/* The path is left in the line. */
static enum line_kind parse_line(const char *p, const char *limit, struct map_entry *m,
				 const char **ret_path)
{
	uint64_t major, minor;
	const char *perms;

	if (!take_hex(&p, limit, '-', &m->start) || !take_hex(&p, limit, ' ', &m->end) ||
	    m->start >= m->end)
		return LINE_OTHER;
	perms = p;
	if (limit - p < 5 || p[4] != ' ')
		return LINE_OTHER;
	p += 5;
	if (!take_hex(&p, limit, ' ', &m->offset) || !take_hex(&p, limit, ':', &major) ||
	    !take_hex(&p, limit, ' ', &minor) || !take_number(&p, limit, 10, ' ', &m->inode))
		return LINE_OTHER;
	while (p < limit && *p == ' ')
		p++;
	if (perms[2] == 'x' && m->inode == 0 && (p == limit || begins(p, limit, "[anon:")))
		return LINE_COPY;
	if (perms[1] == 'w' && m->inode == 0 &&
	    (p == limit || begins(p, limit, "[anon:") || begins(p, limit, "[heap]")))
		return LINE_DATA;
	/* Offset plus length is computed by everybody who translates an address. */
	if (m->inode == 0 || p == limit || *p != '/' || memchr(p, '\0', (size_t)(limit - p)) ||
	    major > UINT_MAX || minor > UINT_MAX || m->offset + (m->end - m->start) < m->offset)
		return LINE_OTHER;
	m->device = makedev((unsigned int)major, (unsigned int)minor);
	*ret_path = p;
	return perms[2] == 'x' ? LINE_CODE : LINE_FILE;
}

static int keep_near(struct reader *r, const struct map_entry *m, const char *path,
		     const char *limit)
{
	free(r->near.path);
	r->near = *m;
	r->near.path = copy_path(path, limit);
	r->near_end = m->end;
	return r->near.path ? 0 : -ENOMEM;
}

static int add_copy(struct reader *r, const struct map_entry *m)
{
	struct map_list *l = &r->list;
	struct map_copy c = {.start = m->start, .end = m->end, .near = r->near};

	if (!r->near.path || m->start != r->near_end || l->n_copies == MAP_COPIES_MAX)
		return 0;
	if (array_room(l->copies, l->n_copies) < 0)
		return -ENOMEM;
	c.near.path = strdup(r->near.path);
	if (!c.near.path)
		return -ENOMEM;
	r->near_end = m->end;
	l->copies[l->n_copies++] = c;
	return 0;
}

static int add_made(struct map_list *l, const struct map_entry *m)
{
	struct map_made *last = l->n_made ? &l->made[l->n_made - 1] : NULL;

	if (last && m->start < last->end)
		return 0;
	if (last && m->start == last->end) {
		last->end = m->end;
		return 0;
	}
	return l->n_made == MAP_MADE_MAX
		       ? 0
		       : array_add(l->made, l->n_made, (struct map_made){m->start, m->end});
}

static void add_parts(struct map_list *l, const struct map_entry *m)
{
	for (uint64_t at = m->start & ~(MAP_PART - 1); at < m->end; at += MAP_PART)
		if (l->n_parts < MAP_PARTS_MAX && (!l->n_parts || l->parts[l->n_parts - 1] < at))
			l->parts[l->n_parts++] = at;
}

/* Memory that has an inode, but is of no file system that programs are on. */
static bool is_memory(const char *path, const char *limit)
{
	static const char *const names[] = {"/memfd:", "/anon_hugepage", "/dev/zero"};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (begins(path, limit, names[i]))
			return true;
	return false;
}

/* Memory files that hold no executable: .NET has its code in one, to write it at another address,
 * and PHP in memory that all of its processes share. */
static bool is_compilers(const char *path, const char *limit)
{
	return begins(path, limit, "/memfd:doublemapper") || begins(path, limit, "/dev/zero");
}

/* Adds the line's mapping if it is one; -ENOMEM is the only failure. */
static int add_line(struct reader *r, const char *line, size_t size)
{
	struct map_list *l = &r->list;
	const char *path, *limit = line + size;
	struct map_entry m = {0};
	enum line_kind kind = size > MAX_LINE ? LINE_OTHER : parse_line(line, limit, &m, &path);
	bool made;

	if (kind == LINE_DATA)
		add_parts(l, &m);
	if (kind == LINE_OTHER || kind == LINE_DATA ||
	    (l->n > 0 && m.start < l->entries[l->n - 1].end))
		return 0;
	made = kind == LINE_COPY || (kind == LINE_CODE && is_compilers(path, limit));
	if (made && add_made(l, &m) < 0)
		return -ENOMEM;
	if (kind == LINE_COPY || (kind == LINE_CODE && m.start == r->near_end &&
				  m.inode != r->near.inode && is_memory(path, limit)))
		return add_copy(r, &m);
	if (made)
		return 0;
	if ((size_t)(limit - path) > strlen(PROC_DELETED) &&
	    memcmp(limit - strlen(PROC_DELETED), PROC_DELETED, strlen(PROC_DELETED)) == 0)
		limit -= strlen(PROC_DELETED);
	if (keep_near(r, &m, path, limit) < 0)
		return -ENOMEM;
	if (kind == LINE_FILE || l->n >= MAP_LIST_MAX ||
	    r->path_bytes + (size_t)(limit - path) > MAX_PATHS_BYTES)
		return 0;
	if (array_room(l->entries, l->n) < 0)
		return -ENOMEM;
	m.path = copy_path(path, limit);
	if (!m.path)
		return -ENOMEM;
	r->path_bytes += (size_t)(limit - path);
	l->entries[l->n++] = m;
	return 0;
}

int map_list_parse(FILE *f, struct map_list *ret)
{
	_cleanup_free_ char *line = NULL;
	struct reader r = {0};
	size_t capacity = 0;
	int err = 0;
	ssize_t n;

	do {
		errno = 0;
		n = getline(&line, &capacity, f);
		if (n > 0)
			err = add_line(&r, line, (size_t)(n - (line[n - 1] == '\n')));
		else if (ferror(f))
			err = errno ? -errno : -EIO;
	} while (err == 0 && n > 0);
	free(r.near.path);
	if (err < 0)
		map_list_free(&r.list);
	else
		*ret = r.list;
	return err;
}

int map_list_read(pid_t pid, struct map_list *ret, struct error *e)
{
	_cleanup_fclose_ FILE *f = NULL;
	char path[PROC_PATH];
	int err;

	proc_path(path, pid, "maps");
	f = fopen(path, "re");
	err = f ? map_list_parse(f, ret) : errno == ENOENT ? -ESRCH : -errno;
	if (err == 0)
		return 0;
	if (err == -ENOMEM)
		return fail(e, ENOMEM, "out of memory");
	if (err == -ESRCH)
		return fail(e, ESRCH, "process %d does not exist", (int)pid);
	return fail(e, -err, "cannot read %s: %s", path, strerror(-err));
}

void map_list_free(struct map_list *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->n; i++)
		free(l->entries[i].path);
	for (size_t i = 0; i < l->n_copies; i++)
		free(l->copies[i].near.path);
	free(l->entries);
	free(l->copies);
	free(l->made);
	*l = (struct map_list){0};
}

static bool is_inode(const struct statx *x, const struct map_entry *m)
{
	return x->stx_ino == m->inode && makedev(x->stx_dev_major, x->stx_dev_minor) == m->device;
}

/* Is it the mapped file's name, perhaps since deleted? */
static bool is_called(const char *name, const struct map_entry *m)
{
	size_t length = strlen(m->path);

	return strncmp(name, m->path, length) == 0 &&
	       (!name[length] || strcmp(name + length, PROC_DELETED) == 0);
}

bool map_entry_is_file(const struct map_entry *m, const struct statx *state, const char *name)
{
	return is_inode(state, m) || (state->stx_dev_major == 0 && name && is_called(name, m));
}

/* Does the kernel's @link lead to the mapped file? Where stat has no device of a disk's, mappings
 * can have other numbers. errno says why it cannot be followed. */
static bool leads_to(const char *link, const struct map_entry *m)
{
	struct statx x;

	return file_look_at(link, &x) == 0 && S_ISREG(x.stx_mode) &&
	       (is_inode(&x, m) || !x.stx_dev_major);
}

static void range_link(char link[PROC_PATH], pid_t pid, const struct map_entry *m)
{
	char range[48];

	(void)snprintf(range, sizeof(range), "map_files/%llx-%llx", (unsigned long long)m->start,
		       (unsigned long long)m->end);
	proc_path(link, pid, range);
}

/* The kernel's link to the mapped file itself, unless the mapping was replaced since we read the
 * list. *ret_may: such links can be followed. */
static char *through_map_files(pid_t pid, const struct map_entry *m, bool *ret_may)
{
	char link[PROC_PATH];
	bool leads;

	range_link(link, pid, m);
	errno = 0;
	leads = leads_to(link, m);
	*ret_may = errno != EPERM && errno != EACCES;
	return leads ? strdup(link) : NULL;
}

int map_entry_look_at(pid_t pid, const struct map_entry *m, struct statx *ret)
{
	_cleanup_close_ int fd = -1;
	char link[PROC_PATH];

	range_link(link, pid, m);
	fd = open(link, O_PATH | O_CLOEXEC);
	if (fd < 0) /* the directory is its user's alone */
		return errno == EACCES ? -EPERM : -errno;
	return file_look_at_open(fd, ret) < 0 ? -ENODATA : 0;
}

/* Opens the path in our own mount namespace, without links, to look at. Looked up in the kernel's
 * caches alone, where a file that is mapped is: no file system is asked. */
static int open_cached(const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_CACHED | RESOLVE_NO_SYMLINKS};
	int fd = -1;

	/* -EAGAIN as well while others mount anything, which any user can do all the time. */
	for (int i = 0; i < 50; i++) {
		fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
		if (fd >= 0 || errno != EAGAIN)
			break;
	}
	return fd;
}

bool map_entry_leads_here(const struct map_entry *m, const struct file_life *life)
{
	_cleanup_close_ int fd = open_cached(m->path);
	struct statx x;

	if (fd < 0 || file_look_at_open(fd, &x) < 0)
		return false;
	return life->device ? file_life_is_at(life, &x) : is_inode(&x, m);
}

int map_entry_open_path(pid_t pid, const struct map_entry *m, char **ret, struct error *e)
{
	/* The second form is for a file whose name really ends like that. */
	static const char *const suffixes[] = {"", PROC_DELETED};
	bool exists = false, may;
	char *path = through_map_files(pid, m, &may);

	if (path) {
		*ret = path;
		return 0;
	}
	if (may)
		return fail(e, ESTALE, "%s is no longer mapped by process %d", m->path, (int)pid);
	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		struct opened_file file;
		int fd;

		if (asprintf(&path, "/proc/%d/root%s%s", (int)proc_thread(pid), m->path,
			     suffixes[i]) < 0)
			return fail(e, ENOMEM, "out of memory");
		/* The opener walks the path: a file system that a user has mounted on it may never
		 * answer. */
		fd = opener_open_described(path, NULL, &file);
		exists |= fd >= 0;
		opener_close(fd);
		/* Of overlays (before Linux 6.8) and btrfs, maps names a device that no file system
		 * is on when it is asked: their own have no major number. Why it cannot be opened,
		 * who opens it says. */
		if (fd >= 0 ? file.st.st_ino == m->inode &&
				      (major(file.st.st_dev) == 0 || file.st.st_dev == m->device)
			    : fd != -ENOENT && fd != -ENOTDIR) {
			*ret = path;
			return 0;
		}
		free(path);
	}
	if (exists)
		return fail(e, ESTALE,
			    "%s is not the file that process %d has mapped: it was replaced",
			    m->path, (int)pid);
	return fail(e, ENOENT, "%s, mapped by process %d, cannot be found", m->path, (int)pid);
}
