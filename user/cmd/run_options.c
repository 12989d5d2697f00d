// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/run_options.h"

#include "base/clock.h"
#include "base/error.h"
#include "cmd/run_option_rows.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define DEFAULT_EXPERIMENT_MS 500
#define DEFAULT_COOL_OFF_MS 10
#define DEFAULT_STEP_PERCENT 5
/* The top ones are what emulators and tracing tools take, the bottom ones what programs number theirs from. */
#define DEFAULT_SIGNAL (SIGRTMAX - 4)

bool color_wanted(enum color_when when, int fd)
{
	const char *term = getenv("TERM"), *no_color = getenv("NO_COLOR");

	if (when != COLOR_AUTO)
		return when == COLOR_ALWAYS;
	/* no-color.org: present and not empty, whatever its value. */
	if ((no_color && *no_color) || (term && strcmp(term, "dumb") == 0))
		return false;
	return isatty(fd) == 1;
}

void run_options_help(FILE *out)
{
	(void)fputs("Usage: cozbpf run [OPTION]... [--] COMMAND [ARGUMENT]...\n"
		    "Run COMMAND, try what faster lines would do, and report it.\n\n",
		    out);
	options_help(out, run_option_rows, n_run_option_rows);
	(void)fputs("\nExample: how does each line of ./server bear on finished requests?\n"
		    "  cozbpf run -p requests=finish_request -d 60 -- ./server --port 8080\n",
		    out);
}

/* "FILE:LINE"? */
static bool is_file_line(const char *text)
{
	const char *colon = strrchr(text, ':');

	return colon && colon > text && colon[1] && strspn(colon + 1, "0123456789") == strlen(colon + 1);
}

static int check(const struct run_options *o, struct error *e)
{
	if (o->fixed_line && o->granularity != RUN_BY_FUNCTION && !is_file_line(o->fixed_line))
		return fail(e, EINVAL, "--fixed-line '%s': allowed is FILE:LINE, with --granularity function a function",
			    o->fixed_line);
	if (!o->command[0])
		return fail(e, EINVAL, "no command to run; cozbpf run [OPTION]... [--] COMMAND [ARGUMENT]...");
	if (!*o->command[0])
		return fail(e, EINVAL, "the command to run is an empty word");
	return 0;
}

int run_options_parse(int argc, char **argv, struct run_options *ret, struct error *e)
{
	struct run_options o = {
		.output = RUN_DEFAULT_OUTPUT,
		.format = PROFILE_JSON,
		.fixed_speedup = -1,
		.zero_share = 1.0 / 3,
		.experiment_ns = DEFAULT_EXPERIMENT_MS * NSEC_PER_MSEC,
		.cool_off_ns = DEFAULT_COOL_OFF_MS * NSEC_PER_MSEC,
		.signo = DEFAULT_SIGNAL,
	};
	int first = argc, r;

	for (int percent = DEFAULT_STEP_PERCENT; percent <= 100; percent += DEFAULT_STEP_PERCENT)
		o.grid[o.n_grid++] = percent / 100.0;
	r = options_parse(run_option_rows, n_run_option_rows, &o, argc, argv, &first, e);
	o.command = argv + first;
	if (r == 0 && !o.help)
		r = check(&o, e);
	if (r < 0) {
		run_options_free(&o);
		return r;
	}
	if (o.fixed_line && o.granularity == RUN_BY_EITHER)
		o.granularity = RUN_BY_LINE;
	if (o.n_grid == 0 && o.fixed_speedup < 0)
		o.fixed_speedup = 0; /* --speedups 0 */
	*ret = o;
	return 0;
}

void run_options_free(struct run_options *o)
{
	for (size_t i = 0; i < o->n_points; i++)
		point_spec_free(&o->points[i]);
	free(o->points);
	free(o->latencies);
	free(o->sources);
	free(o->binaries);
	line_options_free(&o->lines);
	*o = (struct run_options){};
}

int terminal_width(int fd)
{
	struct winsize w;

	return ioctl(fd, TIOCGWINSZ, &w) == 0 ? w.ws_col : 0;
}
