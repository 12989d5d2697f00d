// SPDX-License-Identifier: BSD-2-Clause
#include "program/elf/debug_find.h"
#include "program/elf/debug_options.h"
#include "program/elf/debuginfod.h"
#include "program/elf/object.h"
#include "program/elf/object_private.h"
#include "base/sandbox/opener.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEFAULT_ROOT "/usr/lib/debug"

/* What lies in a directory that the user gave, the user means. */
static bool in_debug_dir(const struct debug_options *options, const char *path)
{
	for (size_t i = 0; options && i < options->n_debug_dirs; i++) {
		size_t n = strlen(options->debug_dirs[i]);

		if (n && !strncmp(path, options->debug_dirs[i], n) && path[n] == '/' &&
		    !strstr(path + n, "/../"))
			return true;
	}
	return false;
}

/* Can only root and this user and group have written @file? Build ids and checksums can be forged,
 * and what a debug file says places probes in the object, for all processes that run it. */
static bool is_trusted(int file, uid_t uid, gid_t gid)
{
	struct statx f;

	return statx(file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		     STATX_MODE | STATX_UID | STATX_GID, &f) == 0 &&
	       (f.stx_uid == 0 || f.stx_uid == uid) && !(f.stx_mode & S_IWOTH) &&
	       (!(f.stx_mode & S_IWGRP) || f.stx_gid == 0 || f.stx_gid == gid);
}

static bool is_trusted_for(const struct elf_object *o, int file)
{
	struct statx object;

	return elf_object_look_at(o, &object) == 0 &&
	       is_trusted(file, object.stx_uid, object.stx_gid);
}

/* Only ELF files are passed on: an attacker who controls a decoder sees no others. */
static int open_elf(const char *path, const struct file_rights *as)
{
	_cleanup_opener_ int fd = opener_open(path, as);
	char magic[SELFMAG];

	if (fd < 0)
		return TAKE_FD(fd);
	if (pread(fd, magic, SELFMAG, 0) != SELFMAG || memcmp(magic, ELFMAG, SELFMAG))
		return -ENOEXEC;
	return TAKE_FD(fd);
}

/* From where the invoking user said that debug files are to be taken: the file is that user's, and
 * a cache that others can write to is no better than a directory that they can. */
static int open_from_server(const char *id)
{
	const struct file_rights *as = file_rights_invoker();
	_cleanup_free_ char *path = NULL;
	_cleanup_opener_ int fd = -1;
	int r = debuginfod_find(id, &path);

	if (r < 0)
		return r;
	fd = open_elf(path, as);
	if (fd < 0)
		return TAKE_FD(fd);
	return is_trusted(fd, as->uid, as->gid) ? TAKE_FD(fd) : -EKEYREJECTED;
}

bool elf_object_has_container_debug(const struct elf_object *o)
{
	return o->container_debug;
}

int debug_open_named(const struct elf_object *o, const struct debug_options *options,
		     const char *path)
{
	bool of_container = strncmp(path, "/proc/", strlen("/proc/")) == 0;
	_cleanup_opener_ int fd = -1;

	if (strncmp(path, DEBUGINFOD_SCHEME, strlen(DEBUGINFOD_SCHEME)) == 0)
		return open_from_server(path + strlen(DEBUGINFOD_SCHEME));
	if (of_container && o->without_container_debug)
		return -ENOENT;
	fd = open_elf(path, &o->rights);
	if (fd < 0)
		return TAKE_FD(fd);
	if (of_container)
		((struct elf_object *)(uintptr_t)o)->container_debug = true;
	return in_debug_dir(options, path) || is_trusted_for(o, fd) ? TAKE_FD(fd) : -EKEYREJECTED;
}

/* One search: each place is tried until a file there is the right one. */
struct search {
	const struct elf_object *object;
	const struct debug_file *of; /* the file that names the one that is searched */
	const struct debug_options *options;
	const char *build_id;	       /* the one sought must have it, if it has any */
	const struct debug_link *link; /* the one sought must have its checksum */
	bool split, lines, symbols; /* its sections are .debug_*.dwo; it must have line information,
				       a symbol table */
	struct debug_file *found;
	struct error *why;
};

/* Keeps the first reason: that is the likeliest place. */
static void reason(struct search *s, const struct error *e)
{
	if (s->why && !s->why->text[0])
		*s->why = *e;
}

static void not_opened(struct search *s, const char *path, int err)
{
	struct error e = {0};

	if (err == -EKEYREJECTED &&
	    strncmp(path, DEBUGINFOD_SCHEME, strlen(DEBUGINFOD_SCHEME)) == 0)
		(void)fail(&e, -err,
			   "%s: the file in your cache is not used, since others than root and you "
			   "can have written it; remove it",
			   path);
	else if (err == -EKEYREJECTED)
		(void)fail(&e, -err,
			   "%s: not used, since others than root and the program's owner can have "
			   "written it; chown or chmod it, or "
			   "give its directory with --debug-dir",
			   path);
	else if (err != -ENOENT && err != -ENOTDIR)
		(void)fail(&e, -err, "%s: cannot open: %s", path, strerror(-err));
	reason(s, &e);
}

/* Negative errno: it is not the one that is searched; @e says why unless it is the file that names
 * that one. */
static int check(const struct search *s, const struct debug_file *f, struct error *e)
{
	uint32_t crc;

	if (s->of && f->inode && f->device == s->of->device && f->inode == s->of->inode)
		return -ENOENT;
	if (s->build_id && (f->build_id ? strcmp(f->build_id, s->build_id) != 0 : !s->link))
		return fail(e, ESTALE, "%s: of another build (its build id is %s, not %s)", f->path,
			    f->build_id ? f->build_id : "missing", s->build_id);
	if (s->link && (!debug_file_crc(f, &crc) || crc != s->link->crc))
		return fail(e, ESTALE,
			    "%s: of another build or damaged (its checksum is not the one in "
			    ".gnu_debuglink)",
			    f->path);
	if (s->lines && !debug_file_has_lines(f))
		return fail(e, ENODATA, "%s: no line information in it", f->path);
	if (s->symbols && !debug_file_has_symbols(f))
		return fail(e, ENODATA, "%s: no symbols in it", f->path);
	return 0;
}

static bool try_path(struct search *s, const char *path)
{
	_cleanup_debug_file_ struct debug_file *f = NULL;
	_cleanup_opener_ int fd = -1;
	struct error e = {0};

	fd = s->object->readers->open_named(s->object, s->options, path);
	if (fd < 0) {
		not_opened(s, path, fd);
		return false;
	}
	if (debug_file_open(path, fd, s->split, &f, &e) < 0 || check(s, f, &e) < 0) {
		reason(s, &e);
		return false;
	}
	s->found = TAKE_PTR(f);
	return true;
}

/* True: found, or the search is over. What is no file of ours is known by a link of a process that
 * has it, as one of a container. That has its debug files, too. */
__attribute__((format(printf, 2, 3))) static bool try(struct search *s, const char *fmt, ...)
{
	_cleanup_free_ char *path = NULL, *there = NULL;
	va_list ap;
	int r, pid;

	va_start(ap, fmt);
	r = vasprintf(&path, fmt, ap);
	va_end(ap);
	if (r < 0) {
		path = NULL;
		return true;
	}
	if (try_path(s, path))
		return true;
	if (*path != '/' || sscanf(elf_object_path(s->object), "/proc/%d/", &pid) != 1)
		return false;
	if (asprintf(&there, "/proc/%d/root%s", pid, path) < 0) {
		there = NULL;
		return true;
	}
	return try_path(s, there);
}

/* The user's directories, then the system's; NULL after the last. */
static const char *root(const struct debug_options *o, size_t i)
{
	size_t n = o ? o->n_debug_dirs : 0;

	return i < n ? o->debug_dirs[i] : i == n ? DEFAULT_ROOT : NULL;
}

static bool by_build_id(struct search *s, const char *id)
{
	if (strlen(id) < 4)
		return false;
	for (size_t i = 0; root(s->options, i); i++)
		if (try(s, "%s/.build-id/%.2s/%s.debug", root(s->options, i), id, id + 2))
			return true;
	/* Whatever a decoder asks for, it is a file by its build id. */
	return debuginfod_wanted() && try(s, DEBUGINFOD_SCHEME "%s", id);
}

/* "/a/b" of "/a/b/c", "." of "c", "" of "/c". */
static char *directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
}

static bool in_directory(struct search *s, const char *dir, const char *name)
{
	if (try(s, "%s/%s", dir, name) || try(s, "%s/.debug/%s", dir, name))
		return true;
	for (size_t i = 0; root(s->options, i); i++)
		if (try(s, "%s/%s/%s", root(s->options, i), dir, name) ||
		    (root(s->options, i + 1) && try(s, "%s/%s", root(s->options, i), name)))
			return true;
	return false;
}

/* Where the file is, and where the name that was given says: distributions link directories, users
 * link programs. */
static bool by_directories(struct search *s, const struct elf_object *o, const char *name)
{
	_cleanup_free_ char *real = elf_object_real_path(o);
	_cleanup_free_ char *as_given = directory_of(elf_object_path(o));
	_cleanup_free_ char *as_is = real ? directory_of(real) : NULL;

	if (as_is && in_directory(s, as_is, name))
		return true;
	return as_given && (!as_is || strcmp(as_is, as_given) != 0) &&
	       in_directory(s, as_given, name);
}

int debug_find_separate(const struct elf_object *o, const struct debug_file *self,
			const struct debug_options *options, bool lines, struct debug_file **ret,
			struct error *why)
{
	struct search s = {.object = o,
			   .of = self,
			   .options = options,
			   .lines = lines,
			   .symbols = !lines,
			   .why = why};

	s.build_id = self->build_id ? self->build_id : elf_object_build_id(o);
	if (s.build_id && by_build_id(&s, s.build_id))
		goto end;
	if (self->debuglink.name && !strchr(self->debuglink.name, '/')) {
		s.link = &self->debuglink;
		(void)by_directories(&s, o, self->debuglink.name);
	}
end:
	if (!s.found)
		return -ENOENT;
	*ret = s.found;
	return 0;
}

bool debug_find_alternate(const struct elf_object *o, struct debug_file *f,
			  const struct debug_options *options, struct error *why)
{
	struct search s = {.object = o,
			   .of = f,
			   .options = options,
			   .build_id = f->altlink.build_id,
			   .why = why};
	const char *name = f->altlink.name;
	_cleanup_free_ char *real = file_path(f->fd);
	_cleanup_free_ char *dir = directory_of(real ? real : f->path);

	if (!name || f->alternate)
		return true;
	if (*name == '/' ? try(&s, "%s", name) : dir && try(&s, "%s/%s", dir, name))
		goto end;
	for (size_t i = 0; root(options, i); i++)
		if (try(&s, "%s/%s", root(options, i), name) ||
		    try(&s, "%s/.dwz/%s", root(options, i), basename(name)))
			goto end;
	(void)by_build_id(&s, s.build_id);
end:
	if (!s.found && why && !why->text[0])
		(void)fail(why, ENOENT,
			   "%s: its alternate debug file %s is missing; install it, or give its "
			   "directory with --debug-dir",
			   f->path, name);
	f->alternate = s.found;
	return s.found;
}

struct debug_file *debug_find_split(const struct elf_object *o, const struct debug_options *options,
				    const char *comp_dir, const char *name, struct error *why)
{
	struct search s = {.object = o, .options = options, .split = true, .why = why};
	const char *dir = *name == '/' || !comp_dir ? "" : comp_dir, *slash = *dir ? "/" : "";
	_cleanup_free_ char *real = elf_object_real_path(o);
	_cleanup_free_ char *beside = real ? directory_of(real) : NULL;

	if (*name == '/' || *dir == '/') {
		if (try(&s, "%s%s%s", dir, slash, name))
			return s.found;
		for (size_t i = 0; root(options, i); i++)
			if (try(&s, "%s/%s%s%s", root(options, i), dir, slash, name))
				return s.found;
	}
	/* A build that hides where it was (-fdebug-prefix-map), or that was moved. */
	if (beside && ((*name != '/' && try(&s, "%s/%s", beside, name)) ||
		       try(&s, "%s/%s", beside, basename(name))))
		return s.found;
	for (size_t i = 0; options && i < options->n_debug_dirs; i++)
		if ((*name != '/' && try(&s, "%s/%s", options->debug_dirs[i], name)) ||
		    try(&s, "%s/%s", options->debug_dirs[i], basename(name)))
			return s.found;
	return NULL;
}

struct debug_file *debug_find_package(const struct elf_object *o, const struct debug_file *f,
				      const struct debug_options *options, struct error *why)
{
	struct search s = {.object = o, .options = options, .split = true, .why = why};
	const char *paths[] = {elf_object_path(o), f->path};

	for (size_t i = 0; i < 2; i++) {
		_cleanup_free_ char *real = i ? file_path(f->fd) : elf_object_real_path(o);

		if (try(&s, "%s.dwp", paths[i]) || (real && try(&s, "%s.dwp", real)))
			return s.found;
		for (size_t k = 0; real && root(options, k); k++)
			if (try(&s, "%s%s.dwp", root(options, k), real) ||
			    try(&s, "%s/%s.dwp", root(options, k), basename(real)))
				return s.found;
	}
	return NULL;
}
