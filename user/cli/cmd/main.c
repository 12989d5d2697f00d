// SPDX-License-Identifier: BSD-2-Clause
#include "base/clock.h"
#include "base/log.h"
#include "cli/cmd/commands.h"
#include "base/sandbox/opener.h"
#include "base/suggest.h"
#include "target/identity.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *arguments, *summary;
} commands[] = {
	{"run", cmd_run, "[OPTION]... [--] COMMAND...", "run a program and profile it"},
	{"attach", cmd_attach, "PID[,PID...] [OPTION]...", "profile processes that run already"},
	{"system", cmd_system,
	 "--cgroup PATH | --uid USER | --comm GLOB | --exe PATH | --pid-tree PID",
	 "profile all processes that something holds of (root)"},
	{"report", cmd_report, "[OPTION]... [FILE]...", "print what profiles say"},
	{"diff", cmd_diff, "[OPTION]... BEFORE AFTER",
	 "say what a change was worth, and whether a prediction came true"},
	{"merge", cmd_merge, "-o FILE PROFILE...",
	 "put the runs of several profiles into one file"},
	{"export", cmd_export, "--to pprof|trace [-o FILE] PROFILE...",
	 "write profiles in formats of other tools"},
	{"collect", cmd_collect, "[OPTION]...",
	 "sample the machine, always, and count in a database (root)"},
	{"top", cmd_top, "[OPTION]...", "show where the time goes, by such a database"},
	{"annotate", cmd_annotate, "[OPTION]... FUNCTION|FILE:LINE",
	 "show the instructions of a function, and what they may wait for"},
	{"db", cmd_db, "info|merge|compact|export [OPTION]...", "look after such databases"},
	{"validate", cmd_validate, "-l FILE:LINE [OPTION]... [--] COMMAND...",
	 "compare predictions for a line with the line really slowed"},
	{"check", cmd_check, "[COMMAND]",
	 "say what works on this machine, and how to fix the rest"},
	{"list", cmd_list, "lines|functions|points COMMAND|PID [GLOB]",
	 "print names for --progress and --fixed-line"},
};
#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static void overview(FILE *out)
{
	(void)fputs(
		"cozbpf, a causal profiler: what would the program gain if a line ran faster?\n\n",
		out);
	for (size_t i = 0; i < N_COMMANDS; i++)
		(void)fprintf(out, "  cozbpf %-9s%s\n                %s\n", commands[i].name,
			      commands[i].arguments, commands[i].summary);
	(void)fputs("\ncozbpf help COMMAND says more about one of them. Example:\n"
		    "  cozbpf run -p finish_request -d 60 -- ./server\n",
		    out);
}

static bool is(const char *word, const char *a, const char *b)
{
	return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

/* A standard descriptor that is closed would be the number of the next file that we open: the
 * report would go into the profile. The other way round than it is used, so that using it fails,
 * and the program finds it closed as without us. */
static void occupy_standard(void)
{
	static const int flags[] = {
		[STDIN_FILENO] = O_WRONLY, [STDOUT_FILENO] = O_RDONLY, [STDERR_FILENO] = O_RDONLY};

	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", flags[fd] | O_CLOEXEC) != fd)
			_exit(EXIT_OURS);
}

/* libbpf reads the kernel's types, some megabytes, for each object that it loads. What malloc gives
 * back in between has to be made anew each time, page by page, which takes longer than the reading.
 */
static void keep_memory(void)
{
	(void)mallopt(M_MMAP_THRESHOLD, 32 << 20);
	(void)mallopt(M_TRIM_THRESHOLD, 128 << 20);
	(void)mallopt(M_ARENA_MAX, 1);
}

static int dispatch(int argc, char **argv)
{
	const char *names[N_COMMANDS + 1] = {}, *near;
	static char asked[] = "--help";

	if (argc < 2) {
		overview(stderr);
		return EXIT_OURS;
	}
	if (strcmp(argv[1], "help") == 0 && argc > 2) {
		argv[1] = argv[2];
		argv[2] = asked;
		argc = 3;
	}
	for (size_t i = 0; i < N_COMMANDS; i++) {
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
		names[i] = commands[i].name;
	}
	if (is(argv[1], "--help", "-h") || strcmp(argv[1], "help") == 0) {
		overview(stdout);
		return 0;
	}
	if (is(argv[1], "--version", "-V")) {
		(void)puts("cozbpf " COZBPF_VERSION "\n"
			   "BPF programs for x86-64, Linux 6.1 and later; delays by hold, sleep "
			   "and spin; waits by sched and pthread\n"
			   "debug information: DWARF 2 to 5, split, packed (dwp), compressed, dwz, "
			   "mini debug information, debuginfod\n"
			   "built with " COZBPF_LIBRARIES);
		return 0;
	}
	near = suggest(argv[1], names);
	if (argv[1][0] == '-')
		return log_error("unknown option '%s'; --help lists the commands", argv[1]);
	if (near)
		return log_error("unknown command '%s'; did you mean %s?", argv[1], near);
	return log_error("unknown command '%s'; --help lists the commands", argv[1]);
}

int main(int argc, char **argv)
{
	int status;

	occupy_standard();
	if (environment_shed(argv) != 0)
		return EXIT_OURS;
	clock_find_namespace();
	keep_memory();
	identity_find_invoker();
	(void)setlocale(LC_CTYPE, ""); /* UTF-8 or ASCII; numbers keep their point */
	status = dispatch(argc, argv);
	errno = EIO;
	if (status != EXIT_OURS && (fflush(stdout) || ferror(stdout)))
		status = log_error("cannot write to standard output: %s", strerror(errno));
	opener_leave(status);
}
