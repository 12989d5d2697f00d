// SPDX-License-Identifier: BSD-2-Clause
/* cozbpf export: profiles in formats of other tools. Needs no privilege. */
#include "analysis/analysis.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "cli/cmd/command.h"
#include "cli/cmd/commands.h"
#include "report/export/export.h"
#include "cli/options/run_option_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum form { PPROF, TRACE, N_FORMS };
static const char *const form_names[] = {[PPROF] = "pprof", [TRACE] = "trace", NULL};

struct export_command {
	bool help;
	enum form form; /* N_FORMS: not said */
	const char *output;
	bool is_private; /* so are profiles */
	struct profile *profile;
};

static const struct option_row rows[] = {
	{"to", 0, "FORMAT",
	 "pprof: samples, for go tool pprof\ntrace: experiments over time, for Perfetto",
	 option_choice, offsetof(struct export_command, form), .choices = form_names},
	{"output", 'o', "FILE", "write a new FILE (standard output)", option_set_word,
	 offsetof(struct export_command, output)},
	{"help", 'h', NULL, "this text", option_flag, offsetof(struct export_command, help)},
	{NULL},
};

static const struct cmd_help help = {
	"Usage: cozbpf export --to FORMAT [-o FILE] PROFILE...\n"
	"Write profiles in a format of another tool. Several files are taken as one profile.\n",
	rows,
	"\nExample:\n  cozbpf export --to trace -o trace.json cozbpf.jsonl",
};

/* The slopes of the first point that has some; of others there is no room in a sample. */
static int write_pprof(FILE *out, const struct profile *p)
{
	_cleanup_(analysis_free) struct analysis a = {0};
	_cleanup_free_ struct export_slope *slopes = NULL;
	const struct analysis_point *point = NULL;
	size_t n = 0;

	if (p->n_slopes)
		analyse(p, 0, &a);
	for (size_t i = 0; i < a.n_points && !point; i++)
		point = analysis_has_slopes(&a.points[i]) ? &a.points[i] : NULL;
	if (point) {
		slopes = xcalloc(point->n_lines, sizeof(*slopes));
		for (size_t i = 0; i < point->n_lines; i++)
			if (point->lines[i].slope.effect > 0)
				slopes[n++] = (struct export_slope){point->lines[i].selected,
								    point->lines[i].slope.effect};
	}
	return export_pprof(out, p, slopes, n);
}

static int write_form(FILE *out, void *arg)
{
	const struct export_command *c = arg;

	return c->form == PPROF ? write_pprof(out, c->profile) : export_trace(out, c->profile);
}

static int export(struct export_command *c)
{
	struct replace_file f = cmd_file(c->output, c->is_private);
	struct error e = {0};
	int r;

	if (c->output)
		r = replace_file(&f, write_form, c, &e);
	else
		r = write_form(stdout, c);
	if (r == -ENODATA)
		return log_error("export: the profile has no %s, so there is nothing to write",
				 c->form == PPROF ? "samples"
						  : "experiments that say when they began");
	if (r < 0)
		return c->output ? log_error("export: %s", e.text)
				 : log_error("export: standard output: %s", strerror(-r));
	if (!c->output && (fflush(stdout) || ferror(stdout)))
		return log_error("export: standard output: %s", strerror(errno));
	return 0;
}

int cmd_export(int argc, char **argv)
{
	_cleanup_(profile_free) struct profile p = {0};
	struct export_command c = {.form = N_FORMS, .profile = &p};
	struct error e = {0};
	int first, status = cmd_parse(&help, &c, &c.help, argc, argv, &first);

	if (status >= 0)
		return status;
	if (c.form == N_FORMS)
		return log_error("export: which format? Say --to pprof or --to trace");
	if (first >= argc)
		return log_error("export: which profile? Usage: cozbpf export --to FORMAT [-o "
				 "FILE] PROFILE...");
	if (c.form == PPROF && !c.output && isatty(STDOUT_FILENO))
		return log_error("export: pprof's format is binary and standard output a terminal: "
				 "name a file with -o");
	for (int i = first; i < argc; i++) {
		c.is_private |= replace_file_source_is_private(argv[i]);
		if (profile_read(&p, argv[i], &e) < 0)
			return log_error("export: %s", e.text);
	}
	return export(&c);
}
