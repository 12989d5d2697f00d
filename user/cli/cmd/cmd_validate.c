// SPDX-License-Identifier: BSD-2-Clause
/* `cozbpf validate`: a run whose experiments speed the line up virtually and slow it down really,
 * and what the two say of each other. */
#include "cli/run/report_choice.h"
#include "cli/run/run.h"

#include "analysis/validation.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "base/log.h"
#include "cli/cmd/commands.h"
#include "cli/options/options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Near 0, where the curve is to be continued; and two ways to be slow, twice each, since they are
 * all that the truth rests on. */
static const double speedups[] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.25, 0.25, 0.5, 0.5};
#define N_SPEEDUPS (sizeof(speedups) / sizeof(speedups[0]))
#define N_SLOW 4 /* the last ones */

static int prepare(struct run_options *o, struct error *e)
{
	if (!o->fixed_line)
		return fail(e, EINVAL,
			    "validate: which line? cozbpf validate -l FILE:LINE [OPTION]... [--] "
			    "COMMAND...");
	memcpy(o->grid, speedups, sizeof(speedups));
	o->n_grid = N_SPEEDUPS;
	o->n_slow = N_SLOW;
	return 0;
}

static int sink(void *arg, const struct profile_experiment *x, const struct profile_point *points,
		size_t n_points)
{
	struct run *r = arg;
	struct profile_experiment seen = *x;

	if (x->slowed)
		seen.selected = (char *)VALIDATION_SLOWED;
	/* What the method can be off by is the question here: the intervals are to be those of the
	 * noise alone. */
	seen.period_ns = 0;
	run_keep(&r->profile, &seen, points, n_points);
	return 0;
}

#define DEFAULT_WIDTH 100
#define INDENT 4 /* of lines that go on */

struct told {
	const struct run *run;
	const struct validation *v;
	size_t width;
};

static void put(FILE *out, const struct told *t, const char *before, char *text)
{
	size_t column = strlen(before);

	(void)fputs(before, out);
	utf8_make_printable(text, utf8_locale());
	utf8_wrap(out, text, t->width, column, INDENT);
	(void)fputc('\n', out);
}

static void print_figures(FILE *out, const struct validation *v)
{
	static const char *const titles[] = {"measured", "predicted", "gap"};

	(void)fprintf(out, "  %-10s", "slowed by");
	for (size_t i = 0; i < v->n_levels; i++)
		(void)fprintf(out, "  %16.0f %%", 100 * v->levels[i].slowed);
	(void)fputc('\n', out);
	for (size_t row = 0; row < sizeof(titles) / sizeof(titles[0]); row++) {
		(void)fprintf(out, "  %-10s", titles[row]);
		for (size_t i = 0; i < v->n_levels; i++) {
			const struct validation_level *l = &v->levels[i];
			const double values[] = {l->measured, l->predicted, l->gap};
			const double halves[] = {l->measured_half, l->predicted_half, l->gap_half};

			if (isnan(values[row]) || isnan(halves[row]))
				(void)fprintf(out, "  %18s", "-");
			else
				(void)fprintf(out, "  %9.1f +- %5.1f", 100 * values[row],
					      100 * halves[row]);
		}
		(void)fputc('\n', out);
	}
}

/* The caller's. */
static char *outcome_text(const struct validation *v)
{
	double largest = 0;

	for (size_t i = 0; i < v->n_levels; i++)
		largest = fmax(largest, fabs(v->levels[i].gap));
	switch (v->outcome) {
	case VALIDATION_AGREES:
		return xasprintf("agrees within %.1f points: %s", 100 * largest, v->why);
	case VALIDATION_GAP:
		return xasprintf("GAP of %.1f points: %s", 100 * largest, v->why);
	case VALIDATION_UNDECIDED:
		return v->missing_s > 0 ? xasprintf("undecided: %s, needs about %.0f s more",
						    v->why, ceil(v->missing_s))
					: xasprintf("undecided: %s", v->why);
	default:
		return xasprintf("cannot be compared: %s", v->why);
	}
}

static int print(FILE *out, void *arg)
{
	const struct told *t = arg;
	const struct validation *v = t->v;
	_cleanup_free_ char *outcome = outcome_text(v);
	_cleanup_free_ char *head = xasprintf(
		"Validation of %s, %zu experiment%s: effect on the time per visit in "
		"points, below 0 it takes longer; 95 %% intervals",
		t->run->options.fixed_line, v->experiments, v->experiments == 1 ? "" : "s");

	put(out, t, "", head);
	print_figures(out, v);
	put(out, t, "", outcome);
	return 0;
}

static int report(struct run *r)
{
	struct validation v = validation_make(&r->profile, r->options.seed);
	int width = terminal_width(report_choice_fd(&r->options.report));
	struct told t = {r, &v, width > 0 ? (size_t)width : DEFAULT_WIDTH};
	struct error e = {0};

	if (report_choice_write(&r->options.report, print, &t, &e) < 0)
		return log_error("validate: %s", e.text);
	return v.outcome == VALIDATION_AGREES ? 0 : v.outcome == VALIDATION_GAP ? 1 : 2;
}

int cmd_validate(int argc, char **argv)
{
	static const struct run_purpose validating = {
		.usage = "Usage: cozbpf validate -l FILE:LINE [OPTION]... [--] COMMAND "
			 "[ARGUMENT]...\n"
			 "Check the method on your own program: speed the line up virtually, slow "
			 "it down for real, in turn, and compare what really\n"
			 "happens with the curve's continuation. No profile is written. Exit "
			 "status: 0 they agree within 3 points, 1 they do not, 2 it\n"
			 "cannot be told (the intervals are too wide, or the curve cannot be "
			 "continued below 0).\n",
		.example = "\nExample: does the method know what parse.c:120 is worth?\n"
			   "  cozbpf validate -l parse.c:120 -p requests=finish_request -d 60 -- "
			   "./server --port 8080",
		.prepare = prepare,
		.sink = sink,
		.report = report,
		.slows = true,
		.no_file = true,
	};

	return run_main(argc, argv, &validating);
}
