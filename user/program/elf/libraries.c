// SPDX-License-Identifier: BSD-2-Clause
#include "program/elf/libraries.h"

#include "program/elf/object.h"
#include "program/elf/object_private.h"
#include "base/sandbox/opener.h"

#include "base/cleanup.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LIBRARIES 1024
#define MAX_ENTRIES 65536	/* of a dynamic section */
#define MAX_SYMBOLS (64U << 20) /* bytes of a dynamic symbol table */
#define MAX_DIRECTORIES 256	/* to search for one library ... */
#define MAX_OPENS 4096		/* ... and files that are tried for all of a program's */

static const char usual[] = "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib64:/usr/lib64:/"
			    "usr/local/lib:/lib:/usr/lib";

/* The dynamic section; NULL: there is none. */
static Elf_Data *dynamic_section(const struct elf_object *o, GElf_Shdr *ret)
{
	return elf_object_linked_section(o, SHT_DYNAMIC, MAX_ENTRIES * sizeof(Elf64_Dyn), ret);
}

/* Its entry number @i. False: it ends before that. */
static bool entry_of(Elf_Data *dynamic, int i, GElf_Dyn *ret)
{
	return i < MAX_ENTRIES && gelf_getdyn(dynamic, i, ret) && ret->d_tag != DT_NULL;
}

/* Calls @cb for the text of each entry of the dynamic section with @tag. */
static int each_dynamic(const struct elf_object *o, int64_t tag,
			int (*cb)(const char *text, void *arg), void *arg)
{
	GElf_Shdr h;
	Elf_Data *d = dynamic_section(o, &h);
	GElf_Dyn entry;
	int r = 0;

	for (int i = 0; r == 0 && d && entry_of(d, i, &entry); i++) {
		const char *text =
			entry.d_tag == tag ? elf_strptr(o->elf, h.sh_link, entry.d_un.d_val) : NULL;

		r = text && *text ? cb(text, arg) : 0;
	}
	return r;
}

bool library_is_one(const struct elf_object *o)
{
	bool has_soname = false, is_pie = false;
	GElf_Shdr section;
	Elf_Data *d = dynamic_section(o, &section);
	GElf_Dyn entry;
	GElf_Ehdr h;

	for (int i = 0; d && entry_of(d, i, &entry); i++) {
		has_soname |= entry.d_tag == DT_SONAME;
		is_pie |= entry.d_tag == DT_FLAGS_1 && entry.d_un.d_val & DF_1_PIE;
	}
	return d && gelf_getehdr(o->elf, &h) && h.e_type == ET_DYN && !is_pie &&
	       (has_soname || !elf_object_is_dynamic(o));
}

struct search {
	const struct elf_object *main;
	const char *name;
	char *found;
	size_t directories; /* so far */
	size_t *opens;	    /* that are left */
};

/* A directory of a list, with $ORIGIN as the executable's own. */
static char *expand(const struct search *x, const char *directory, size_t n)
{
	static const char *const origins[] = {"$ORIGIN", "${ORIGIN}"};
	char *path = NULL;

	for (size_t i = 0; i < 2; i++) {
		size_t len = strlen(origins[i]);

		if (n >= len && !strncmp(directory, origins[i], len)) {
			_cleanup_free_ char *own = realpath(elf_object_path(x->main), NULL);
			char *slash = own ? strrchr(own, '/') : NULL;

			if (!slash)
				return NULL;
			*slash = '\0';
			return asprintf(&path, "%s%.*s/%s", own, (int)(n - len), directory + len,
					x->name) < 0
				       ? NULL
				       : path;
		}
	}
	return asprintf(&path, "%.*s/%s", (int)n, directory, x->name) < 0 ? NULL : path;
}

/* 1: the search is over. */
static int search_list(const char *list, void *arg)
{
	struct search *x = arg;

	for (const char *from = list; *from;) {
		size_t n = 0;
		char *path;
		int fd;

		while (n < PATH_MAX && from[n] && from[n] != ':')
			n++;
		if (n == PATH_MAX || x->directories++ == MAX_DIRECTORIES || !*x->opens)
			return 1;
		--*x->opens;
		path = n ? expand(x, from, n) : NULL;
		fd = path ? opener_open(path, &x->main->rights) : -1;
		if (fd >= 0) {
			opener_close(fd);
			x->found = path;
			return 1;
		}
		free(path);
		/* It would not answer for the next library either. */
		if (fd == -ETIMEDOUT)
			*x->opens = 0;
		from += n + (from[n] == ':');
	}
	return 0;
}

static char *find(const struct elf_object *main, const char *name, size_t *opens)
{
	struct search x = {.main = main, .name = name, .opens = opens};
	const char *environment = getenv("LD_LIBRARY_PATH");

	if (strchr(name, '/'))
		return NULL;
	if (each_dynamic(main, DT_RPATH, search_list, &x) == 0 &&
	    !(environment && search_list(environment, &x)) &&
	    each_dynamic(main, DT_RUNPATH, search_list, &x) == 0)
		(void)search_list(usual, &x);
	return x.found;
}

char *library_find(const struct elf_object *main, const char *name)
{
	size_t opens = MAX_OPENS;

	return find(main, name, &opens);
}

struct names {
	char *all[MAX_LIBRARIES];
	size_t n;
	size_t n_entries; /* that were read */
};

static int add_name(const char *name, void *arg)
{
	struct names *x = arg;

	/* Of all files together: each entry is compared with all names. */
	if (x->n_entries == MAX_ENTRIES)
		return 1;
	x->n_entries++;
	if (strnlen(name, NAME_MAX + 1) > NAME_MAX) /* no file has it */
		return 0;
	for (size_t i = 0; i < x->n; i++)
		if (!strcmp(x->all[i], name))
			return 0;
	if (x->n == MAX_LIBRARIES)
		return 0;
	x->all[x->n] = strdup(name);
	return x->all[x->n++] ? 0 : -ENOMEM;
}

int library_each_needed(const struct elf_object *main,
			int (*cb)(const struct elf_object *library, void *arg), void *arg)
{
	struct names *x = calloc(1, sizeof(*x));
	size_t opens = MAX_OPENS;
	int r = x ? each_dynamic(main, DT_NEEDED, add_name, x) : -ENOMEM;

	/* The list grows as it is walked. */
	r = r < 0 ? r : 0;
	for (size_t i = 0; r == 0 && i < x->n; i++) {
		_cleanup_free_ char *path = find(main, x->all[i], &opens);
		_cleanup_elf_object_ struct elf_object *library = NULL;

		if (!path || elf_object_open_named(main, path, &library, NULL) < 0)
			continue;
		r = each_dynamic(library, DT_NEEDED, add_name, x);
		if (r >= 0)
			r = cb(library, arg);
	}
	for (size_t i = 0; x && i < x->n; i++)
		free(x->all[i]);
	free(x);
	return r;
}

/* Does the file call a function that loads libraries? */
static int imports_dlopen(const struct elf_object *o, void *arg)
{
	GElf_Shdr h;
	Elf_Data *d = elf_object_linked_section(o, SHT_DYNSYM, MAX_SYMBOLS, &h);
	GElf_Sym sym;

	(void)arg;
	for (int i = 0; d && gelf_getsym(d, i, &sym); i++) {
		const char *name = sym.st_shndx == SHN_UNDEF
					   ? elf_strptr(o->elf, h.sh_link, sym.st_name)
					   : NULL;

		if (name && (!strcmp(name, "dlopen") || !strcmp(name, "dlmopen")))
			return 1;
	}
	return 0;
}

bool library_can_come(const struct elf_object *main)
{
	return imports_dlopen(main, NULL) || library_each_needed(main, imports_dlopen, NULL) == 1;
}
