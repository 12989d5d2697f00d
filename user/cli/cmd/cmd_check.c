// SPDX-License-Identifier: BSD-2-Clause
/* cozbpf check: what works here, why the rest does not, and what to do about it. */
#include "base/cleanup.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "base/log.h"
#include "cli/cmd/command.h"
#include "cli/cmd/commands.h"
#include "cli/options/run_option_rows.h"
#include "cli/options/run_options.h"
#include "program/decoder/decoder.h"
#include "program/dwarf/lines.h"
#include "program/elf/object.h"
#include "kernel/probe.h"
#include "kernel/refusal.h"
#include "experiment/session/session.h"
#include "target/launch.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM_ROWS 3

struct check_options {
	bool help, verbose;
	enum color_when color;
	const char *disabled;
	struct debug_options lines;
};

#define STATE_AT 18 /* columns before the state, and before what it is for */
#define DETAIL_AT 27
#define DEFAULT_WIDTH 100

static const struct option_row rows[] = {
	{.include = option_color, .offset = offsetof(struct check_options, color)},
	{.include = option_debug_dir, .offset = offsetof(struct check_options, lines)},
	{.include = option_verbose, .offset = offsetof(struct check_options, verbose)},
	{"help", 'h', NULL, "this text", option_flag, offsetof(struct check_options, help)},
	{"disable", 0, "FEATURE[,FEATURE]", NULL, option_set_features,
	 offsetof(struct check_options, disabled)},
	{NULL},
};

static void check_options_free(struct check_options *o)
{
	debug_options_free(&o->lines);
}

static const struct cmd_help help = {
	"Usage: cozbpf check [OPTION]... [COMMAND]\n"
	"Try everything that a run uses, for real, and print what works for this user on this\n"
	"machine; with COMMAND, also whether its executable can be profiled. Exit status 0: a "
	"run\nis possible.\n",
	rows,
	"\nExample:\n  sudo cozbpf check ./server",
};

static const char *state_text(const struct feature *f)
{
	static const char *const texts[][2] = {[FEATURE_OK] = {"ok", "ok"},
					       [FEATURE_DENIED] = {"denied", "DENIED"},
					       [FEATURE_MISSING] = {"missing", "MISSING"}};

	return texts[f->state][f->required];
}

/* Green, red, yellow. */
static const char *state_color(const struct feature *f)
{
	return f->state == FEATURE_OK ? "\033[32m" : f->required ? "\033[31m" : "\033[33m";
}

/* Debug files and interpreters are named by the program: nothing of them may steer the terminal. */
static const char *printable(char *text)
{
	utf8_make_printable(text, utf8_locale() || !isatty(STDOUT_FILENO));
	return text;
}

/* How rows are printed. */
struct look {
	bool color;
	size_t width;
};

static void print_wrapped(const struct look *look, size_t column, size_t indent, char *text)
{
	utf8_wrap(stdout, printable(text), look->width, column, indent);
	(void)putchar('\n');
}

/* Frees @text. */
static void say(const struct look *look, char *text)
{
	print_wrapped(look, 0, 2, text);
	free(text);
}

static void print_row(const struct look *look, const struct feature *f)
{
	_cleanup_free_ char *detail =
		xasprintf("%s%s%s", f->what, *f->detail ? ": " : "", f->detail);
	const char *state = state_text(f);

	(void)printf("%-*s%s%s%s%*s", STATE_AT, f->name, look->color ? state_color(f) : "", state,
		     look->color ? "\033[0m" : "", DETAIL_AT - STATE_AT - (int)strlen(state), "");
	print_wrapped(look, DETAIL_AT, DETAIL_AT, detail);
}

static const char *why_of(const struct feature *f)
{
	return *f->why ? f->why : f->detail;
}

/* Is @f refused for the reason for which @blocker is? NULL: nothing blocks. */
static bool is_blocked_too(const struct feature *f, const struct feature *blocker)
{
	return blocker && f->state != FEATURE_OK && strcmp(why_of(f), why_of(blocker)) == 0;
}

/* The first of the features that lacks what @f lacks, by what is to be done about it. */
static bool is_first_to_need(const struct feature *features, const struct feature *f)
{
	while (features < f &&
	       (features->state == FEATURE_OK || strcmp(features->remedy, f->remedy) != 0))
		features++;
	return features == f;
}

/* What to do about those that are not there, each remedy once; that of @blocker stands below. */
static void print_remedies(const struct look *look, const struct feature *features, size_t n,
			   const struct feature *blocker)
{
	for (size_t i = 0; i < n; i++) {
		const struct feature *f = &features[i];
		_cleanup_free_ char *text = NULL;
		size_t size;
		FILE *out;

		if (f->state == FEATURE_OK || !*f->remedy || !is_first_to_need(features, f) ||
		    (blocker && strcmp(f->remedy, blocker->remedy) == 0))
			continue;
		out = xopen_memstream(&text, &size);
		for (size_t k = i; k < n; k++)
			if (features[k].state != FEATURE_OK &&
			    strcmp(features[k].remedy, f->remedy) == 0)
				(void)fprintf(out, "%s%s", k == i ? "" : ", ", features[k].name);
		(void)fprintf(out, ": %s", f->remedy);
		xclose_memstream(out);
		print_wrapped(look, 0, 2, text);
	}
}

/* All but what is refused for the reason of @blocker (or NULL). Returns how many rows that is. */
static size_t print_table(const struct look *look, const struct feature *features, size_t n,
			  const struct feature *blocker)
{
	size_t rows_shown = 0;

	(void)printf("%-*s%-*s%s\n", STATE_AT, "FEATURE", DETAIL_AT - STATE_AT, "STATE",
		     "FOR, AND WHY NOT");
	for (size_t i = 0; i < n; i++) {
		if (is_blocked_too(&features[i], blocker))
			continue;
		print_row(look, &features[i]);
		rows_shown++;
	}
	print_remedies(look, features, n, blocker);
	return rows_shown;
}

/* What a run could make of the executable at @path, or of the script's interpreter. *ret has room
 * for PROGRAM_ROWS. */
static int probe_program(const char *path, const char *interpreter,
			 const struct debug_options *options, struct feature *ret, struct error *e)
{
	_cleanup_elf_object_ struct elf_object *o = NULL;
	_cleanup_(identity_free) struct identity who = {};
	struct line_table *lines = NULL;
	struct error no_lines = {};
	int r = identity_find(false, &who, e);

	if (r < 0)
		return r;
	identity_open_files(&who);
	r = decoder_start(NULL, e);
	if (r == 0)
		r = interpreter ? elf_object_open_named(NULL, interpreter, &o, e)
				: elf_object_open(path, &o, e);
	if (r < 0)
		return r;
	ret[0] = (struct feature){.name = "dynamic",
				  .what = "the preloaded shim (sleep, spin, coz.h points)"};
	ret[1] = (struct feature){.name = "symbols", .what = "points and lines by function"};
	ret[2] = (struct feature){.name = "line information", .what = "lines, points by FILE:LINE"};
	if (!elf_object_is_dynamic(o)) {
		ret[0].state = FEATURE_MISSING;
		(void)snprintf(
			ret[0].detail, sizeof(ret[0].detail),
			"a static executable takes none; a signal handler is put into it instead");
		(void)snprintf(ret[0].remedy, sizeof(ret[0].remedy),
			       "link it dynamically for coz.h points");
	}
	if (!elf_object_has_symbols(o)) {
		ret[1].state = FEATURE_MISSING;
		(void)snprintf(ret[1].detail, sizeof(ret[1].detail), "it was stripped%s",
			       elf_object_has_functions(o)
				       ? ": functions are called after their place in the file"
				       : "");
		(void)snprintf(ret[1].remedy, sizeof(ret[1].remedy),
			       "link without -s, do not strip");
	}
	if (line_table_open(o, options, &lines, &no_lines) < 0) {
		ret[2].state = FEATURE_MISSING;
		(void)snprintf(ret[2].detail, sizeof(ret[2].detail), "%.200s", no_lines.text);
		(void)snprintf(ret[2].remedy, sizeof(ret[2].remedy),
			       "build with -g, or cozbpf run --granularity function");
	} else if (line_table_warning(lines)) {
		(void)snprintf(ret[2].detail, sizeof(ret[2].detail), "%.200s",
			       line_table_warning(lines));
	} else if (strcmp(line_table_debug_path(lines), elf_object_path(o)) != 0) {
		(void)snprintf(ret[2].detail, sizeof(ret[2].detail), "in %.200s",
			       line_table_debug_path(lines));
	}
	line_table_close(lines);
	return 0;
}

/* The first feature that a run needs and cannot have. */
static const struct feature *find_blocker(const struct feature *features, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (features[i].required && features[i].state != FEATURE_OK)
			return &features[i];
	return NULL;
}

/* One row more, where all else is there: what reads files of debug information has to be able to
 * give up all rights. */
static void add_decoder_row(struct feature **features, size_t *n)
{
	struct feature *f;
	struct error e = {};

	*features = xreallocarray(*features, *n + 1, sizeof(*f));
	f = &(*features)[(*n)++];
	*f = (struct feature){.name = "decoder",
			      .what = "symbols and lines, read by a process without rights",
			      .required = true,
			      .state = FEATURE_OK};
	if (decoder_start(NULL, &e) < 0) {
		const char *remedy = strstr(e.text, "; ");

		f->state = FEATURE_DENIED;
		(void)snprintf(f->detail, sizeof(f->detail), "%.*s",
			       remedy ? (int)(remedy - e.text) : (int)strlen(e.text), e.text);
		(void)snprintf(f->remedy, sizeof(f->remedy), "%s", remedy ? remedy + 2 : "");
	}
	decoder_stop();
}

/* The answer in a sentence, and if one thing gives all that lacks, that; its exit status. */
static int conclude(const struct look *look, const struct feature *features, size_t n,
		    const struct feature *blocker)
{
	bool one_reason = true;
	char *text = NULL;
	size_t size;
	FILE *f;

	if (!blocker) {
		(void)puts("A run is possible.");
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		if (features[i].required && features[i].state != FEATURE_OK)
			one_reason = one_reason && is_blocked_too(&features[i], blocker);
	if (one_reason) {
		say(look, xasprintf("A run is not possible: %s.", why_of(blocker)));
		say(look, xstrdup(blocker->remedy));
		return EXIT_OURS;
	}
	f = xopen_memstream(&text, &size);
	for (size_t i = 0; i < n; i++)
		if (features[i].required && features[i].state != FEATURE_OK)
			(void)fprintf(f, "%s%s",
				      &features[i] == blocker ? "A run is not possible without: "
							      : ", ",
				      features[i].name);
	xclose_memstream(f);
	say(look, text);
	return EXIT_OURS;
}

int cmd_check(int argc, char **argv)
{
	_cleanup_free_ struct feature *features = NULL;
	_cleanup_free_ char *path = NULL, *interpreter = NULL;
	const struct feature *blocker;
	struct feature program[PROGRAM_ROWS];
	_cleanup_(check_options_free) struct check_options options = {};
	struct error e = {};
	struct look look;
	size_t n = 0, shown;
	int first, r = cmd_parse(&help, &options, &options.help, argc, argv, &first);

	if (r >= 0)
		return r;
	if (argc - first > 1)
		return log_error("check: one command at most");
	if (argc - first == 1) {
		const char *command = argv[first];

		r = target_find_executable(command, &path, &e);
		if (r == -ENOENT && *command && strspn(command, "0123456789") == strlen(command))
			return log_error("check: '%s' looks like a process id; only executables "
					 "can be checked",
					 command);
		if (r < 0)
			return log_error("check: %s", e.text);
		interpreter = target_script_interpreter(path);
		r = probe_program(path, interpreter, &options.lines, program, &e);
		decoder_stop();
		if (r < 0)
			return log_error("check: %s", e.text);
	}
	if (options.verbose)
		load_log_verbose();
	features = session_probe(options.disabled, &n);
	if (!find_blocker(features, n))
		add_decoder_row(&features, &n);
	look = (struct look){color_wanted(options.color, STDOUT_FILENO),
			     (size_t)terminal_width(STDOUT_FILENO)};
	if (look.width < 2 * DETAIL_AT)
		look.width = look.width ? 2 * DETAIL_AT : DEFAULT_WIDTH;
	blocker = find_blocker(features, n);
	shown = print_table(&look, features, n, options.verbose ? NULL : blocker);
	if (shown < n)
		say(&look, xasprintf("%zu feature%s refused for one reason, which follows; "
				     "--verbose lists them.",
				     n - shown, n - shown == 1 ? " is" : "s are"));
	if (path) {
		(void)fail(&e, 0, "%s%s%s", path, interpreter ? ", a script run by " : "",
			   interpreter ? interpreter : "");
		(void)printf("\n%s\n", printable(e.text));
		(void)print_table(&look, program, PROGRAM_ROWS, NULL);
	}
	r = conclude(&look, features, n, blocker);
	if (fflush(stdout) != 0)
		return log_error("check: standard output: %s", strerror(errno));
	return r;
}
