// SPDX-License-Identifier: BSD-2-Clause
/* The report at the end of a run, with what only the run itself knows. */
#include "run/run.h"

#include "analysis/analysis.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "code/map.h"
#include "points/points.h"
#include "experiment/runner.h"
#include "report/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static size_t silent_points(struct run *r, const char **ret)
{
	struct backend_totals t;
	size_t n = 0;

	if (session_backend.snapshot(r->session, &t) < 0)
		return 0;
	for (size_t i = 0; i < t.n_points; i++)
		if (!t.points[i].visits && !t.points[i].departures)
			ret[n++] = points_shown(session_points(r->session), i)->name;
	return n;
}

int run_print_report(struct run *r)
{
	_cleanup_free_ char *counters = session_counters(r->session);
	const char *silent[ABI_MAX_POINTS], *without = NULL;
	struct runner_status s;
	_cleanup_(analysis_free) struct analysis a = {0};

	if (code_map_warning(r->code))
		(void)log_error("warning: %s", code_map_warning(r->code));
	if (r->options.no_report)
		return 0;
	if (analyse(&r->profile, r->options.seed, &a) < 0)
		return log_error("out of memory for the report; the profile is in %s", r->options.output);
	runner_get_status(r->runner, &s);
	(void)code_map_without_names(r->code, &without);
	struct report_hints h = {
		.silent_points = silent,
		.n_silent_points = silent_points(r, silent),
		.no_debug_info = s.no_debug_info ? without : NULL,
		.by_function = code_map_by_function(r->code),
		.samples_in_scope = s.samples_in_scope,
		.samples_out_of_scope = session_samples_outside(r->session),
		.samples_without_line = s.samples_without_line,
		.run_s = (double)r->profile.runtime_ns / (double)NSEC_PER_SEC,
		.kernel_counters = counters && counters[0] ? counters : NULL,
	};
	if (report_choice_print(&r->options.report, &r->profile, &a, &h) < 0)
		return log_error("out of memory for the report; the profile is in %s", r->options.output);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	(void)log_error("cannot write the report to standard output: %s; `cozbpf report %s` prints it again", strerror(errno), r->options.output);
	clearerr(stdout);
	return EXIT_OURS;
}
