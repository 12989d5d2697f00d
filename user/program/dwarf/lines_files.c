// SPDX-License-Identifier: BSD-2-Clause
#include "program/dwarf/lines_private.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* Longer is no path. */
#define MAX_NAME 4096
/* Of all names together. In a hostile file a few bytes each can stand for long ones. */
#define MAX_NAMES (256 << 20)

/* Writes the parts of @path that stay behind @buf's: no empty ones, no ".", and ".." takes one
 * away. Returns the new length, or SIZE_MAX when it does not fit. */
static size_t append_parts(char *buf, size_t n, const char *path, bool absolute)
{
	while (*path) {
		size_t len = strcspn(path, "/");

		if (len == 2 && !memcmp(path, "..", 2) && (n || absolute) &&
		    !(n >= 2 && !memcmp(buf + n - 2, "..", 2) && (n == 2 || buf[n - 3] == '/'))) {
			while (n && buf[n - 1] != '/')
				n--;
			if (n)
				n--;
		} else if (len && !(len == 1 && *path == '.')) {
			if (n + len + 2 > MAX_NAME)
				return SIZE_MAX;
			if (n || absolute)
				buf[n++] = '/';
			memcpy(buf + n, path, len);
			n += len;
		}
		path += len;
		path += strspn(path, "/");
	}
	return n;
}

/* Appends @path, or starts again with it where it is absolute. */
static size_t append(char *buf, size_t n, const char *path, bool *absolute)
{
	if (!path || n == SIZE_MAX)
		return n;
	if (*path == '/') {
		*absolute = true;
		n = 0;
	}
	return append_parts(buf, n, path, *absolute);
}

/* An absolute, normalised name if @comp_dir is absolute (which it is unless a build rewrote it).
 * Only the text counts: the sources need not be on this machine. */
static size_t normalise(char *buf, const char *comp_dir, const char *dir, const char *name)
{
	bool absolute = false;
	size_t n = append(buf, 0, comp_dir, &absolute);

	n = append(buf, n, dir, &absolute);
	n = append(buf, n, name, &absolute);
	if (n != SIZE_MAX)
		buf[n] = 0;
	return n;
}

/* Is @name in the directory (or the file) @old of @len bytes? Returns what is left of it; "." has
 * all relative names in it. */
static const char *inside(const char *name, const char *old, size_t len)
{
	while (len > 1 && old[len - 1] == '/')
		len--;
	if (len == 1 && *old == '.')
		return *name == '/' ? NULL : name;
	if (strncmp(name, old, len) || (name[len] && name[len] != '/' && old[len - 1] != '/'))
		return NULL;
	return name + len;
}

/* The name by the first of the user's prefixes that fits. */
static size_t replace_prefix(const struct debug_options *o, char *buf, size_t n)
{
	char copy[MAX_NAME];

	for (size_t i = 0; i < o->n_prefixes; i++) {
		const char *old = o->prefixes[i], *equals = strchr(old, '='), *rest;

		rest = equals && equals > old ? inside(buf, old, (size_t)(equals - old)) : NULL;
		if (!rest)
			continue;
		rest += strspn(rest, "/");
		memcpy(copy, rest, strlen(rest) + 1);
		return normalise(buf, equals + 1, NULL, copy);
	}
	return n;
}

char *debug_options_rename(const struct debug_options *o, const char *name)
{
	char buf[MAX_NAME];
	size_t n = strlen(name);

	if (n >= sizeof(buf))
		return strdup(name);
	memcpy(buf, name, n + 1);
	n = replace_prefix(o, buf, n);
	return strdup(n && n != SIZE_MAX ? buf : name);
}

struct line_file *line_file_add(struct line_table *t, const char *name, size_t n)
{
	struct line_file *f;

	if (t->n_files == MAX_FILES || t->names_size + n > MAX_NAMES ||
	    array_room(t->files, t->n_files) < 0)
		return NULL;
	f = calloc(1, sizeof(*f) + n + 1);
	if (!f)
		return NULL;
	memcpy(f->name, name, n);
	f->id = (uint32_t)t->n_files;
	t->files[t->n_files++] = f;
	t->names_size += n;
	return f;
}

uint32_t line_file_intern(struct line_table *t, const char *comp_dir, const char *dir,
			  const char *name)
{
	char buf[MAX_NAME];
	size_t n = normalise(buf, comp_dir, dir, name);
	struct line_file *f;

	if (n != SIZE_MAX && n)
		n = replace_prefix(&t->options, buf, n);
	if (n == SIZE_MAX || !n)
		return NO_FILE;
	HASH_FIND(hh, t->by_name, buf, n, f);
	if (f)
		return f->id;
	f = line_file_add(t, buf, n);
	if (!f)
		return NO_FILE;
	HASH_ADD_KEYPTR(hh, t->by_name, f->name, n, f);
	return f->hh.tbl ? f->id : NO_FILE;
}

bool line_file_matches(const char *written, const char *file)
{
	size_t nw, nf;

	while (!strncmp(written, "./", 2))
		written += 2 + strspn(written + 2, "/");
	nw = strlen(written);
	nf = strlen(file);
	if (!nw || nw > nf || strcmp(file + nf - nw, written))
		return false;
	return nw == nf || (*written != '/' && file[nf - nw - 1] == '/');
}
