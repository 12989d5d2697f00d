// SPDX-License-Identifier: BSD-2-Clause
/* cozbpf list: names that --progress, --source and --fixed-line take, one a line. */
#include "cli/cmd/cmd_list.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/proc.h"
#include "cli/cmd/command.h"
#include "cli/cmd/commands.h"
#include "program/decoder/decoder.h"
#include "cli/options/run_option_rows.h"
#include "program/code/map.h"
#include "target/launch.h"
#include "target/process.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct list_options {
	bool help, rates;
	struct option_words sources, binaries;
	struct debug_options lines;
};

static const struct option_row rows[] = {
	{"source", 's', "GLOB",
	 "as for run: matching source files only; !GLOB excludes\n(repeatable)", option_add_glob,
	 offsetof(struct list_options, sources)},
	{"binary", 'b', "GLOB",
	 "as for run: matching executables and libraries only; of a\nprocess, which alone has "
	 "libraries (repeatable)",
	 option_add_glob, offsetof(struct list_options, binaries)},
	{.include = option_source_prefix, .offset = offsetof(struct list_options, lines)},
	{.include = option_debug_dir, .offset = offsetof(struct list_options, lines)},
	{"rates", 0, NULL,
	 "of points of a process: the 20 that suit best, with their rates,\ncounted for some "
	 "seconds "
	 "in it and its children (root)",
	 option_flag, offsetof(struct list_options, rates)},
	{"help", 'h', NULL, "this text", option_flag, offsetof(struct list_options, help)},
	{NULL},
};

static void list_options_free(struct list_options *o)
{
	free(o->sources.all);
	free(o->binaries.all);
	debug_options_free(&o->lines);
}

static const struct cmd_help help = {
	"Usage: cozbpf list lines [OPTION]... COMMAND|PID [GLOB]\n"
	"       cozbpf list functions [OPTION]... COMMAND|PID [GLOB]\n"
	"       cozbpf list points [OPTION]... COMMAND|PID [GLOB]\n"
	"Print the source lines with code, or the functions, that run would try, of the "
	"executable that COMMAND\n"
	"names, or of a running process. Lines with '#' say what would not be tried, and why; a "
	"progress point\n"
	"can be there all the same. GLOB chooses among source files (path or last components), "
	"or among functions.\n"
	"Of points, prints what --progress could count: USDT probes, functions that others can "
	"call, and a line of each loop.\n",
	rows,
	"\nExample: where can a progress point in queue.c be?\n"
	"  cozbpf list lines ./server 'queue.c'",
};

/* The file to read, or the process if no command has that name. */
static int find(const char *name, char **ret_path, pid_t *ret_pid)
{
	_cleanup_free_ char *interpreter = NULL;
	struct error e = {};
	unsigned long pid;
	int r = target_find_executable(name, ret_path, &e);

	*ret_pid = 0;
	if (r == -ENOENT && *name && strspn(name, "0123456789") == strlen(name)) {
		if (process_check_numbers(&e) < 0)
			return log_error("list: %s", e.text);
		errno = 0;
		pid = strtoul(name, NULL, 10);
		if (errno || !pid || pid > INT_MAX || kill((pid_t)pid, 0) < 0)
			if (errno != EPERM)
				return log_error("list: there is no command and no process %s",
						 name);
		*ret_pid = (pid_t)pid;
		*ret_path = xcalloc(1, PROC_PATH);
		proc_path(*ret_path, *ret_pid, "exe");
		return 0;
	}
	if (r < 0)
		return log_error("list: %s", e.text);
	interpreter = target_script_interpreter(*ret_path);
	if (interpreter)
		return log_error("list: %s is a script; list the program that runs it: %s",
				 *ret_path, interpreter);
	return 0;
}

static int list(const struct list_options *o, bool functions, bool points, const char *name,
		const char *glob)
{
	struct code_scope scope = {
		.sources = o->sources.all,
		.n_sources = o->sources.n,
		.binaries = o->binaries.all,
		.n_binaries = o->binaries.n,
		.functions = functions,
		.lenient = true,
		.lines = &o->lines,
	};
	_cleanup_free_ char *path = NULL;
	struct listing l = {.glob = glob, .functions = functions};
	_cleanup_(identity_free) struct identity who = {};
	struct error e = {};
	bool changed;
	pid_t pid;
	int r = find(name, &path, &pid);

	if (r)
		return r;
	if (o->rates && !pid)
		return log_error("list: %s does not run; --rates counts in a process: cozbpf list "
				 "points --rates PID",
				 name);
	r = identity_find(false, &who, &e);
	if (r < 0)
		return log_error("list: %s", e.text);
	identity_open_files(&who);
	if (decoder_start(NULL, &e) < 0 || code_map_open(path, &scope, &l.code, &e) < 0) {
		decoder_stop();
		return log_error("list: %s", e.text);
	}
	if (pid && code_map_refresh(l.code, 0, pid, &changed, &e) < 0)
		r = log_error("list: %s", e.text);
	else
		r = o->rates ? list_rates(&l, pid) : points ? list_points(&l) : list_names(&l, pid);
	if (code_map_warning(l.code))
		(void)log_error("warning: %s", code_map_warning(l.code));
	list_free(&l);
	code_map_close(l.code);
	decoder_stop();
	return r;
}

int cmd_list(int argc, char **argv)
{
	_cleanup_(list_options_free) struct list_options options = {};
	const char *what;
	bool functions, points;
	int first, status = cmd_parse(&help, &options, &options.help, argc, argv, &first);

	if (status >= 0)
		return status;
	if (first >= argc)
		return log_error("list: say what: lines, functions or points");
	what = argv[first++];
	functions = strcmp(what, "functions") == 0;
	points = strcmp(what, "points") == 0;
	if (!functions && !points && strcmp(what, "lines") != 0)
		return log_error("list: '%s' cannot be listed; lines, functions and points can",
				 what);
	if (options.rates && !points)
		return log_error("list: --rates is for points; cozbpf list points --rates PID");
	if (first >= argc)
		return log_error("list: no command; cozbpf list %s COMMAND|PID [GLOB]", what);
	if (argc - first > 2)
		return log_error("list: one pattern at most; quote it, so that the shell leaves it "
				 "alone");
	return list(&options, functions, points, argv[first], argv[first + 1]);
}
