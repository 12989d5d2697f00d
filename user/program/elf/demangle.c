// SPDX-License-Identifier: BSD-2-Clause
#include "program/elf/demangle.h"
#include "program/elf/object.h"
#include "program/elf/readers.h"

#include "base/cleanup.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
/* Debian and Arch have it in a directory, Fedora among the other headers. */
#if __has_include(<libiberty/demangle.h>)
#include <libiberty/demangle.h>
#else
#include <demangle.h>
#endif

/* Substitutions let a short name stand for gigabytes of text, and the library has no bound on its
 * output. It holds no memory while it calls back (everything is on its stack), so leaving it by
 * longjmp from the callback is safe. */
struct output {
	jmp_buf stop;
	size_t n;
	char text[DEMANGLE_MAX_READABLE];
};

static void append(const char *s, size_t n, void *arg)
{
	struct output *o = arg;

	if (n >= sizeof(o->text) - o->n)
		longjmp(o->stop, 1);
	memcpy(o->text + o->n, s, n);
	o->n += n;
}

bool demangle_is_mangled(const char *name)
{
	return !strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2) || !strncmp(name, "___Z", 4);
}

bool demangle_is_rust(const char *name)
{
	size_t n = strlen(name);

	if (!strncmp(name, "_R", 2))
		return true;
	return n > 24 && !strncmp(name, "_ZN", 3) && !memcmp(name + n - 20, "17h", 3) &&
	       name[n - 1] == 'E' && strspn(name + n - 17, "0123456789abcdef") == 16;
}

char *demangle_here(const char *name, bool arguments, bool result)
{
	int options = DMGL_ANSI | (arguments ? DMGL_PARAMS : 0) | (result ? 0 : DMGL_RET_DROP);
	_cleanup_free_ struct output *o = malloc(sizeof(*o));

	if (!o)
		return NULL;
	o->n = 0;
	if (!setjmp(o->stop)) {
		/* Rust first: its older scheme is also valid C++, with a hash at the end. */
		int ok = rust_demangle_callback(name, options, append, o);

		if (!ok) {
			o->n = 0;
			ok = cplus_demangle_v3_callback(name, options, append, o);
		}
		if (ok && o->n)
			return strndup(o->text, o->n);
	}
	return NULL;
}

void demangle_list_here(const char *const *list, size_t n, bool arguments, bool result, char **ret)
{
	for (size_t i = 0; i < n; i++)
		ret[i] = demangle_here(list[i], arguments, result);
}

static bool is_wanted(const char *name)
{
	return demangle_is_mangled(name) && strnlen(name, DEMANGLE_MAX_NAME) < DEMANGLE_MAX_NAME;
}

static void make_readable(const char *const *names, size_t n, bool arguments, bool result,
			  char **ret)
{
	const char *wanted[DEMANGLE_BATCH];
	char *readable[DEMANGLE_BATCH] = {NULL};
	size_t n_wanted = 0, at = 0;

	for (size_t i = 0; i < n; i++)
		if (is_wanted(names[i]))
			wanted[n_wanted++] = names[i];
	if (n_wanted)
		elf_readers_current()->names(wanted, n_wanted, arguments, result, readable);
	for (size_t i = 0; i < n; i++)
		ret[i] = is_wanted(names[i]) ? readable[at++] : NULL;
}

char *demangle_as(const char *name, bool arguments, bool result)
{
	char *r;

	make_readable(&name, 1, arguments, result, &r);
	return r;
}

int demangle_add(struct demangle_batch *b, const char *name, const void *item)
{
	b->names[b->n] = name;
	b->items[b->n++] = item;
	return b->n < DEMANGLE_BATCH ? 0 : demangle_end(b);
}

int demangle_end(struct demangle_batch *b)
{
	char *readable[DEMANGLE_BATCH];
	int r = 0;

	make_readable(b->names, b->n, b->arguments, b->result, readable);
	for (size_t i = 0; i < b->n; i++) {
		if (r == 0)
			r = b->take(b->items[i], readable[i], b->arg);
		free(readable[i]);
	}
	b->n = 0;
	return r;
}

char *elf_demangle(const char *name)
{
	char *r = demangle_as(name, true, true);

	return r ? r : strdup(name);
}
