// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/cmd_list.h"

#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/log.h"
#include "cmd/commands.h"
#include "code/map.h"
#include "dwarf/lines.h"
#include "elf/names.h"
#include "elf/object.h"

#define HASH_NONFATAL_OOM 1
#include <errno.h>
#include <fnmatch.h>
#include <stdarg.h>
#include <string.h>
#include <unistd.h>
#include <uthash.h>

struct list_word {
	UT_hash_handle hh;
	const char *counted; /* of notes: what there are @times of; NULL: the text is said once */
	size_t times;
	char text[];
};

void list_print_name(const char *name)
{
	_cleanup_free_ char *copy = strdup(name);

	if (!copy)
		return;
	/* A name that is read by a program is worth nothing with parts of it replaced, but must
	 * stay one line. */
	utf8_make_printable(copy, utf8_locale() || !isatty(STDOUT_FILENO));
	(void)fputs(copy, stdout);
}

/* The word, which has come once more; NULL: no memory. */
static struct list_word *add_word(struct list_word **words, const char *text)
{
	size_t n = strlen(text);
	struct list_word *x;

	HASH_FIND(hh, *words, text, n, x);
	if (!x) {
		x = calloc(1, sizeof(*x) + n + 1);
		if (!x)
			return NULL;
		memcpy(x->text, text, n);
		HASH_ADD_KEYPTR(hh, *words, x->text, n, x);
		if (!x->hh.tbl) {
			free(x);
			return NULL;
		}
	}
	x->times++;
	return x;
}

/* To be said once; if it is @counted, with how often it was noted. */
static int note(struct listing *l, const char *counted, const char *text)
{
	struct list_word *x = add_word(&l->notes, text);

	if (!x)
		return -ENOMEM;
	x->counted = counted;
	return 0;
}

int list_note(struct listing *l, const char *text)
{
	return note(l, NULL, text);
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
	if (!all ||
	    asprintf(
		    &text,
		    "%s share their code, folded or as aliases: --shared-code counts them together",
		    all) < 0)
		text = NULL;
	r = text ? list_note(l, text) : -ENOMEM;
	return r < 0 ? r : 1;
}

int list_is_new(struct listing *l, const char *name)
{
	const struct list_word *x = add_word(&l->seen, name);

	return x ? x->times == 1 : -ENOMEM;
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
		(void)putchar('\n');
	}
	x->headed = true;
	x->l->printed++;
}

static int print_line(const char *file, uint32_t line, void *arg)
{
	struct listed *x = arg;

	if (!file_wanted(x->l->glob, file))
		return 0;
	if (!code_map_has_source(x->l->code, file)) {
		_cleanup_free_ char *text = NULL;

		if (asprintf(&text,
			     "%s: a source out of scope; --source '*' or a pattern for it takes it "
			     "in",
			     file) < 0)
			text = NULL;
		return text ? note(x->l, "line", text) : -ENOMEM;
	}
	head(x);
	list_print_name(file);
	(void)printf(":%u\n", line);
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
		_cleanup_free_ char *text = NULL;

		if (asprintf(&text,
			     "%s%s%s: a source out of scope; --source '*' or a pattern for it "
			     "takes it in",
			     x->l->glob ? readable : "", x->l->glob ? ": of " : "", source) < 0)
			text = NULL;
		return text ? note(x->l, x->l->glob ? NULL : "function", text) : -ENOMEM;
	}
	r = list_is_new(x->l, readable);
	if (r <= 0)
		return r;
	head(x);
	list_print_name(readable);
	(void)putchar('\n');
	r = list_note_sharers(x->l, x->o->elf, sym->addr, false);
	return r < 0 ? r : ferror(stdout) ? -EIO : 0;
}

/* Nothing fits the pattern; a source or function out of scope that does is in the notes. */
static char *no_match(const struct listing *l, const struct code_listed *o)
{
	char *text = NULL, *name = NULL;
	const char *near[1] = {NULL};
	int n;

	if (l->functions && l->glob && elf_object_similar_functions(o->elf, l->glob, &name, 1) > 0)
		near[0] = name;
	else if (!l->functions && l->glob)
		(void)line_table_similar_files(o->lines, l->glob, near, 1);
	if (near[0])
		n = asprintf(&text, "no %s of %s matches '%s'; there is %s",
			     l->functions ? "function" : "source file", o->path, l->glob, near[0]);
	else
		n = asprintf(&text, "%s: no %s%s%s", o->path,
			     l->functions ? "function" : "line with code",
			     l->glob ? " matches " : "", l->glob ? l->glob : "");
	free(name);
	return n < 0 ? NULL : text;
}

static int list_object(const struct code_listed *o, void *arg)
{
	struct listing *l = arg;
	struct listed x = {.l = l, .o = o};
	int r;

	/* With a pattern, what cannot be looked into is not what was asked for. */
	if (o->why && o->is_main)
		l->nothing = strdup(o->why);
	if (o->why)
		return l->glob && !o->in_scope ? 0 : note(l, NULL, o->why);
	r = l->functions ? elf_object_each_readable(o->elf, false, print_function, &x)
			 : line_table_each(o->lines, print_line, &x);
	if (r == 0 && l->functions && elf_object_symbol_problem(o->elf))
		r = note(l, NULL, elf_object_symbol_problem(o->elf));
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
		(void)putchar('\n');
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
							: "out of memory");
	return list_end(l, "nothing of the process can be tried; standard output says why");
}
