// SPDX-License-Identifier: BSD-2-Clause
#include "cli/cmd/cmd_list.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "base/log.h"
#include "cli/cmd/commands.h"
#include "program/code/map.h"
#include "program/dwarf/lines.h"
#include "program/elf/names.h"
#include "program/elf/object.h"

#define uthash_fatal(msg) out_of_memory()
#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>

#define OUT_OF_SCOPE ": a source out of scope; --source '*' or a pattern for it takes it in"

struct list_word {
	UT_hash_handle hh;
	const char *counted; /* of notes: what there are @times of; NULL: the text is said once */
	size_t times;
	char text[];
};

void list_print_name(const char *name)
{
	_cleanup_free_ char *copy = xstrdup(name);

	/* A name that is read by a program is worth nothing with parts of it replaced, but must
	 * stay one line. */
	utf8_make_printable(copy, utf8_locale() || !isatty(STDOUT_FILENO));
	(void)puts(copy);
}

/* The word, which has come once more. */
static struct list_word *add_word(struct list_word **words, const char *text)
{
	size_t n = strlen(text);
	struct list_word *x;

	HASH_FIND(hh, *words, text, n, x);
	if (!x) {
		x = xcalloc(1, sizeof(*x) + n + 1);
		memcpy(x->text, text, n);
		HASH_ADD_KEYPTR(hh, *words, x->text, n, x);
	}
	x->times++;
	return x;
}

/* To be said once; if it is @counted, with how often it was noted. */
static void note(struct listing *l, const char *counted, const char *text)
{
	add_word(&l->notes, text)->counted = counted;
}

void list_note(struct listing *l, const char *text)
{
	note(l, NULL, text);
}

int list_note_sharers(struct listing *l, const struct elf_object *elf, uint64_t vaddr,
		      bool by_source)
{
	_cleanup_elf_names_ struct elf_names names = {0};
	_cleanup_free_ char *all = NULL, *text = NULL;
	int r = elf_object_sharers(elf, vaddr, by_source, &names);

	if (r < 0 || !names.n)
		return r;
	all = elf_names_join(&names, NULL);
	if (!all)
		return -ENOMEM;
	text = xasprintf(
		"%s share their code, folded or as aliases: --shared-code counts them together",
		all);
	list_note(l, text);
	return 1;
}

bool list_is_new(struct listing *l, const char *name)
{
	return add_word(&l->seen, name)->times == 1;
}

static void free_words(struct list_word **words)
{
	struct list_word *x, *next;

	HASH_ITER (hh, *words, x, next) {
		HASH_DELETE(hh, *words, x);
		free(x);
	}
}

void list_free(struct listing *l)
{
	free_words(&l->notes);
	free_words(&l->seen);
	free(l->nothing);
}

static bool file_wanted(const char *glob, const char *file)
{
	const char *slash = strrchr(file, '/');

	return !glob || line_file_matches(glob, file) || fnmatch(glob, file, 0) == 0 ||
	       (slash && fnmatch(glob, slash + 1, 0) == 0);
}

/* One executable or library. */
struct listed {
	struct listing *l;
	const struct code_listed *o;
	bool headed;
};

/* The main executable's names come first and need no heading. */
static void head(struct listed *x)
{
	if (!x->headed && !x->o->is_main) {
		(void)fputs("# in ", stdout);
		list_print_name(x->o->path);
	}
	x->headed = true;
	x->l->printed++;
}

static int print_line(const char *file, uint32_t line, void *arg)
{
	struct listed *x = arg;
	_cleanup_free_ char *text = NULL;

	if (!file_wanted(x->l->glob, file))
		return 0;
	if (!code_map_has_source(x->l->code, file)) {
		text = xasprintf("%s" OUT_OF_SCOPE, file);
		note(x->l, "line", text);
		return 0;
	}
	head(x);
	text = xasprintf("%s:%u", file, line);
	list_print_name(text);
	return ferror(stdout) ? -EIO : 0;
}

static int print_function(const struct elf_symbol *sym, const char *readable, void *arg)
{
	struct listed *x = arg;
	const char *source;
	int r;

	if (x->l->glob && fnmatch(x->l->glob, readable, 0) != 0 &&
	    fnmatch(x->l->glob, sym->name, 0) != 0)
		return 0;
	source = code_map_source_out_of_scope(x->l->code, x->o, sym->addr);
	if (source) {
		_cleanup_free_ char *text =
			xasprintf("%s%s%s" OUT_OF_SCOPE, x->l->glob ? readable : "",
				  x->l->glob ? ": of " : "", source);

		note(x->l, x->l->glob ? NULL : "function", text);
		return 0;
	}
	if (!list_is_new(x->l, readable))
		return 0;
	head(x);
	list_print_name(readable);
	r = list_note_sharers(x->l, x->o->elf, sym->addr, false);
	return r < 0 ? r : ferror(stdout) ? -EIO : 0;
}

/* Nothing fits the pattern; a source or function out of scope that does is in the notes. */
static char *no_match(const struct listing *l, const struct code_listed *o)
{
	char *text, *name = NULL;
	const char *near[1] = {NULL};

	if (l->functions && l->glob && elf_object_similar_functions(o->elf, l->glob, &name, 1) > 0)
		near[0] = name;
	else if (!l->functions && l->glob)
		(void)line_table_similar_files(o->lines, l->glob, near, 1);
	if (near[0])
		text = xasprintf("no %s of %s matches '%s'; there is %s",
				 l->functions ? "function" : "source file", o->path, l->glob,
				 near[0]);
	else
		text = xasprintf("%s: no %s%s%s", o->path,
				 l->functions ? "function" : "line with code",
				 l->glob ? " matches " : "", l->glob ? l->glob : "");
	free(name);
	return text;
}

static int list_object(const struct code_listed *o, void *arg)
{
	struct listing *l = arg;
	struct listed x = {.l = l, .o = o};
	int r;

	if (o->why && o->is_main)
		l->nothing = xstrdup(o->why);
	if (o->why) {
		/* With a pattern, what cannot be looked into is not what was asked for. */
		if (!l->glob || o->in_scope)
			list_note(l, o->why);
		return 0;
	}
	r = l->functions ? elf_object_each_readable(o->elf, false, print_function, &x)
			 : line_table_each(o->lines, print_line, &x);
	if (r == 0 && l->functions && elf_object_symbol_problem(o->elf))
		list_note(l, elf_object_symbol_problem(o->elf));
	if (r == 0 && !l->printed && !l->notes && o->is_main)
		l->nothing = no_match(l, o);
	return r;
}

int list_end(struct listing *l, const char *nothing)
{
	struct list_word *n, *next;

	HASH_ITER (hh, l->notes, n, next) {
		(void)fputs("# ", stdout);
		if (n->counted)
			(void)printf("%zu %s%s of ", n->times, n->counted, n->times > 1 ? "s" : "");
		list_print_name(n->text);
	}
	if (fflush(stdout) != 0)
		return log_error("list: standard output: %s", strerror(errno));
	return l->printed ? 0 : log_error("list: %s", l->nothing ? l->nothing : nothing);
}

int list_names(struct listing *l, bool process)
{
	int r = code_map_each(l->code, list_object, l);

	if (r < 0)
		return log_error("list: %s", strerror(-r));
	if (!l->printed && !process)
		return log_error("list: %s", l->nothing ? l->nothing
					     : l->notes ? l->notes->text
							: "nothing of it can be tried");
	return list_end(l, "nothing of the process can be tried; standard output says why");
}
