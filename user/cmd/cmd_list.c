// SPDX-License-Identifier: BSD-2-Clause
/* cozbpf list: names that --progress, --source and --fixed-line take, one a line. */
#include "base/cleanup.h"
#include "base/error.h"
#include "cmd/commands.h"
#include "cmd/options.h"
#include "elf/lines.h"
#include "elf/object.h"
#include "target/launch.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>

struct list_options {
	bool help;
};

struct listing {
	const char *glob; /* NULL: all */
	size_t printed;
	char *last; /* the name printed before: several symbols may read the same once demangled */
};

static const struct option_row rows[] = {
	{"help", 'h', NULL, "this text", option_flag, offsetof(struct list_options, help)},
};

static void help(void)
{
	(void)puts("Usage: cozbpf list lines COMMAND [GLOB]\n"
		   "       cozbpf list functions COMMAND [GLOB]\n"
		   "Print the source lines with code, or the functions, of the executable that COMMAND names.\n"
		   "GLOB chooses among source files (path or last components), or among functions.\n");
	options_help(stdout, rows, 1);
	(void)puts("\nExample: where can a progress point in queue.c be?\n"
		   "  cozbpf list lines ./server 'queue.c'");
}

/* Names come from the file: nothing in them may reach the terminal as a control character. */
static void print_name(const char *name)
{
	for (const char *c = name; *c; c++)
		(void)putchar((unsigned char)*c < 0x20 || *c == 0x7f ? '?' : *c);
}

static bool file_wanted(const char *glob, const char *file)
{
	const char *slash = strrchr(file, '/');

	return !glob || line_file_matches(glob, file) || fnmatch(glob, file, 0) == 0 ||
	       (slash && fnmatch(glob, slash + 1, 0) == 0);
}

static int print_line(const char *file, uint32_t line, void *arg)
{
	struct listing *l = arg;

	if (!file_wanted(l->glob, file))
		return 0;
	print_name(file);
	(void)printf(":%u\n", line);
	l->printed++;
	return ferror(stdout) ? -EIO : 0;
}

static int print_function(const struct elf_symbol *sym, void *arg)
{
	struct listing *l = arg;
	_cleanup_free_ char *readable = elf_demangle(sym->function);

	if (!readable)
		return -ENOMEM;
	if (l->glob && fnmatch(l->glob, readable, 0) != 0 && fnmatch(l->glob, sym->name, 0) != 0)
		return 0;
	l->printed++;
	if (l->last && strcmp(l->last, readable) == 0)
		return 0;
	print_name(readable);
	(void)putchar('\n');
	free(l->last);
	l->last = TAKE_PTR(readable);
	return ferror(stdout) ? -EIO : 0;
}

static int list_lines(const struct elf_object *o, struct listing *l)
{
	struct line_table *t = NULL;
	const char *near[3];
	struct error e = {};
	int r = line_table_open(o, &t, &e);

	if (r < 0)
		return complain("%s", e.text);
	r = line_table_each(t, print_line, l);
	if (r < 0)
		r = complain("%s: %s", elf_object_path(o), strerror(-r));
	else if (l->printed == 0 && l->glob && line_table_similar_files(t, l->glob, near, 3) > 0)
		r = complain("no source file of %s matches '%s'; there is %s", elf_object_path(o), l->glob, near[0]);
	else if (l->printed == 0)
		r = complain("%s: no line with code%s%s", elf_object_path(o), l->glob ? " matches " : "", l->glob ? l->glob : "");
	line_table_close(t);
	return r;
}

static int list_functions(const struct elf_object *o, struct listing *l)
{
	char *near[1] = {};
	int r;

	if (!elf_object_has_symbols(o))
		return complain("%s has no symbols: it was stripped; list an executable that was not", elf_object_path(o));
	r = elf_object_each_function(o, print_function, l);
	if (r < 0)
		r = complain("%s: %s", elf_object_path(o), strerror(-r));
	else if (l->printed == 0 && l->glob && elf_object_similar_functions(o, l->glob, near, 1) > 0)
		r = complain("no function of %s matches '%s'; there is %s", elf_object_path(o), l->glob, near[0]);
	else if (l->printed == 0)
		r = complain("%s: no function%s%s", elf_object_path(o), l->glob ? " matches " : "", l->glob ? l->glob : "");
	free(near[0]);
	free(l->last);
	l->last = NULL;
	return r;
}

int cmd_list(int argc, char **argv)
{
	_cleanup_elf_object_ struct elf_object *o = NULL;
	_cleanup_free_ char *path = NULL, *interpreter = NULL;
	struct list_options options = {};
	struct listing l = {};
	struct error e = {};
	bool functions;
	int first, r;

	if (options_parse(rows, 1, &options, argc, argv, &first, &e) < 0)
		return complain("list: %s", e.text);
	if (options.help) {
		help();
		return 0;
	}
	argv += first;
	argc -= first;
	if (argc < 1)
		return complain("list: say what: lines or functions");
	functions = strcmp(argv[0], "functions") == 0;
	if (strcmp(argv[0], "points") == 0)
		return complain("list: points cannot be listed; lines and functions can");
	if (!functions && strcmp(argv[0], "lines") != 0)
		return complain("list: '%s' cannot be listed; lines and functions can", argv[0]);
	if (argc < 2)
		return complain("list: no command; cozbpf list %s COMMAND [GLOB]", argv[0]);
	if (argc > 3)
		return complain("list: one pattern at most; quote it, so that the shell leaves it alone");
	l.glob = argv[2];

	r = target_find_executable(argv[1], &path, &e);
	if (r == -ENOENT && *argv[1] && strspn(argv[1], "0123456789") == strlen(argv[1]))
		return complain("list: '%s' looks like a process id; only executables can be listed", argv[1]);
	if (r < 0)
		return complain("list: %s", e.text);
	interpreter = target_script_interpreter(path);
	if (interpreter)
		return complain("list: %s is a script; list the program that runs it: %s", path, interpreter);
	if (elf_object_open(path, &o, &e) < 0)
		return complain("list: %s", e.text);
	r = functions ? list_functions(o, &l) : list_lines(o, &l);
	if (r == 0 && fflush(stdout) != 0)
		r = complain("list: standard output: %s", strerror(errno));
	return r;
}
