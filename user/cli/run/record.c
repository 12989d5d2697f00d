// SPDX-License-Identifier: BSD-2-Clause
/* Where a run's records go: into the file, and into memory for the report at the end. */
#include "cli/run/run.h"

#include "analysis/analysis.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/open_file.h"
#include "program/code/map.h"
#include "experiment/runner.h"
#include "program/elf/object.h"
#include "points/points.h"
#include "profile/addresses.h"
#include "profile/merge.h"
#include "profile/source_text.h"
#include "profile/writer.h"
#include "report/report.h"
#include "base/sandbox/opener.h"
#include "target/launch.h"
#include "target/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define MOST_COMMAND 1024 /* bytes that are kept of what another process says */

static char *join_command(char *const *argv)
{
	char *text = NULL;
	size_t size;
	FILE *f = xopen_memstream(&text, &size);

	for (size_t i = 0; argv[i]; i++)
		(void)fprintf(f, "%s%s", i ? " " : "", argv[i]);
	xclose_memstream(f);
	return text;
}

static const char *payer_name(enum abi_payer payer)
{
	static const char *const names[] = {[ABI_PAY_NONE] = "none",
					    [ABI_PAY_SLEEP] = "sleep",
					    [ABI_PAY_HOLD] = "hold",
					    [ABI_PAY_SPIN] = "spin"};

	return names[payer];
}

/* Where NULL stays NULL. */
static char *copy(const char *s)
{
	return s ? xstrdup(s) : NULL;
}

/* Of attach: what the first process was started with, as it says itself. */
static char *program_of(const struct run *r)
{
	_cleanup_close_ int fd = -1;
	char text[MOST_COMMAND];
	ssize_t n;

	if (r->options.kind != RUN_ATTACH)
		return NULL;
	fd = process_open_file(r->options.scope.pids[0], "cmdline");
	n = fd < 0 ? 0 : read(fd, text, sizeof(text));
	while (n > 0 && !text[n - 1])
		n--;
	for (ssize_t i = 0; i < n; i++)
		text[i] = text[i] ? text[i] : ' ';
	return n > 0 ? xstrndup(text, (size_t)n) : NULL;
}

/* Where one executable is what is profiled. */
static char *build_of(const struct run *r)
{
	const struct elf_object *o = r->wrapper ? NULL : code_map_main(r->code);
	size_t n = 0;

	for (size_t i = 0; i < code_map_count(r->code); i++)
		n += code_map_is_main(r->code, i);
	return copy(o && n == 1 ? elf_object_build_id(o) : NULL);
}

int run_write_startup(struct run *r, struct error *e)
{
	const struct abi_costs *costs = &session_control(r->session)->costs;
	struct utsname u;
	struct profile_startup *s;

	(void)uname(&u);
	s = xcalloc(1, sizeof(*s));
	*s = (struct profile_startup){
		.time = clock_realtime_ns(),
		.version = xstrdup(COZBPF_VERSION),
		.command = join_command(r->options.command),
		.program = program_of(r),
		.build = build_of(r),
		.kernel = xstrdup(u.release),
		.host = xstrdup(u.nodename),
		.cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN),
		.sync = xstrdup(r->options.sync == RUN_SYNC_PTHREAD ? "pthread" : "sched"),
		.pay = xstrdup(payer_name(r->payer)),
		.fallback = r->fallback[0] ? xstrdup(r->fallback) : NULL,
		.shared = copy(r->shared),
		.inject = r->options.kind == RUN_LAUNCH
				  ? NULL
				  : xstrdup(run_inject_name(r->options.scope.inject)),
		.granularity =
			xstrdup(code_map_by_function(r->code) && !r->wrapper ? "function" : "line"),
		.attribution = xstrdup(run_attribution_name(r->options.attribution)),
		.seed = r->options.seed,
		.period_ns = session_period_ns(r->session),
		.pay_overhead_ns = (uint64_t)costs->pay.ns,
		.hit_overhead_ns = (uint64_t)costs->hit.ns,
		.tick_overhead_ns = (uint64_t)costs->tick_ns,
	};
	r->profile.runs = s;
	r->profile.n_runs = 1;
	if (run_may_choose(r))
		return 0;
	r->decided = true;
	run_begin_profile(r);
	/* What the runs before this one have measured is to be reported. */
	if (!r->write_error || (r->repeat && r->repeat->done))
		return 0;
	return fail(e, -r->write_error, "cannot write %s: %s", r->options.output,
		    strerror(-r->write_error));
}

void run_begin_profile(struct run *r)
{
	if (r->writer && !r->write_error)
		r->write_error = profile_write_startup(r->writer, &r->profile.runs[0]);
}

void run_keep(struct profile *p, const struct profile_experiment *x,
	      const struct profile_point *points, size_t n_points)
{
	struct profile_run_experiment kept = {.x = *x,
					      .points = xmemdup(points, n_points, sizeof(*points)),
					      .n_points = n_points};

	kept.x.selected = copy(x->selected);
	kept.x.function = copy(x->function);
	for (size_t i = 0; i < n_points; i++) {
		kept.points[i].name = copy(points[i].name);
		kept.points[i].latency = profile_latency_copy(points[i].latency);
	}
	xarray_add(p->experiments, p->n_experiments, kept);
}

int run_sink(void *arg, const struct profile_experiment *x, const struct profile_point *points,
	     size_t n_points)
{
	struct run *r = arg;

	/* Threads were held in it that sleep from the next experiment on. Its effect would make the
	 * report refuse the whole line. */
	if (run_inject_came(r, x))
		return 0;
	run_stop_if_experiment(r, points, n_points);
	/* A full disk costs the file's rest, not the report: what is kept in memory is all of the
	 * run. */
	if (!r->write_error && r->injection.mode != RUN_INJECT_TRIAL)
		r->write_error = profile_write_experiment(r->writer, x, points, n_points);
	run_keep(&r->profile, x, points, n_points);
	return 0;
}

int run_slopes_sink(void *arg, const struct profile_slopes *s)
{
	struct run *r = arg;
	struct profile_slopes kept = *s;

	kept.point = copy(s->point);
	kept.class = copy(s->class);
	kept.places = copy(s->places);
	xarray_add(r->profile.slopes, r->profile.n_slopes, kept);
	if (!r->write_error)
		r->write_error = profile_write_slopes(r->writer, s);
	return 0;
}

void run_keep_trial(struct run *r, bool keep)
{
	struct profile *p = &r->profile,
		       dropped = {.experiments = p->experiments, .n_experiments = p->n_experiments};

	for (size_t i = 0; keep && !r->write_error && i < p->n_experiments; i++)
		r->write_error = profile_write_experiment(r->writer, &p->experiments[i].x,
							  p->experiments[i].points,
							  p->experiments[i].n_points);
	if (keep)
		return;
	p->experiments = NULL;
	p->n_experiments = r->looked_at = 0;
	r->certainty = (struct certainty){.missing_s = __builtin_nan("")};
	profile_free(&dropped);
}

void run_close_profile(struct run *r)
{
	int err = profile_writer_close(r->writer);

	r->writer = NULL;
	if (!r->write_error)
		r->write_error = err;
}

bool run_say_write_error(struct run *r)
{
	if (r->write_error && !r->said_write_error) {
		(void)log_error("cannot write %s: %s; it has the run up to here, the report at the "
				"end has all of it",
				r->options.output, strerror(-r->write_error));
		r->said_write_error = true;
	}
	return r->write_error != 0;
}

/* In which the program was stopped, or nothing was sampled: what runs only in a part of the run is
 * told by how much of it was sampled. */
static uint64_t left_out_ns(const struct run *r)
{
	struct runner_status status = {0};

	if (r->runner)
		runner_get_status(r->runner, &status);
	return r->stops.ns + status.rested_ns;
}

static void take_time(struct run *r)
{
	uint64_t end = r->end_ns ? r->end_ns : clock_monotonic_ns(), left_out = left_out_ns(r);

	r->profile.runtime_ns = end > r->start_ns + left_out ? end - r->start_ns - left_out : 0;
}

void run_take_machine(struct run *r, struct profile_runtime *ret)
{
	take_time(r);
	*ret = (struct profile_runtime){.time = r->profile.runtime_ns};
	/* Where it was stopped, nobody knows how long it would have taken. */
	if (r->target && r->end_ns > r->start_ns && !r->stops.ns &&
	    target_succeeded(r->target, &ret->user_ns, &ret->system_ns))
		ret->run_ns = r->end_ns - r->start_ns;
	profile_run_ended(r->profile.runs, ret);
	run_machine_end(r, ret);
	r->profile.machine = (struct profile_machine){0};
	profile_machine_add_run(&r->profile.machine, ret);
}

void run_take_samples(struct run *r)
{
	_cleanup_free_ struct profile_samples *samples = NULL;
	size_t n = 0;

	tally_list(runner_tally(r->runner), &samples, &n);
	profile_set_samples(&r->profile, samples, n);
	take_time(r);
}

/* What all of @places are in. */
static void add_places(struct run *r, size_t object, const struct profile_place *places, size_t n)
{
	const struct elf_object *elf = n ? code_map_elf(r->code, object, NULL) : NULL;
	struct profile_addresses of = {0};
	struct statx st;

	if (!elf || elf_object_look_at(elf, &st) < 0)
		return;
	of.path = (char *)(uintptr_t)code_map_path(r->code, object);
	of.build = (char *)(uintptr_t)elf_object_build_id(elf);
	of.inode = st.stx_ino;
	of.changed_ns = (uint64_t)st.stx_mtime.tv_sec * 1000000000 + (uint64_t)st.stx_mtime.tv_nsec;
	profile_addresses_add(&r->profile, &of, places, n);
}

/* By instruction: those of one file come one after another. */
static void take_addresses(struct run *r)
{
	_cleanup_free_ struct backend_sample *all = NULL;
	_cleanup_free_ struct profile_place *places = NULL;
	size_t n = 0, used = 0, object = 0, next;

	tally_places(runner_tally(r->runner), &all, &n);
	profile_clear_addresses(&r->profile);
	places = xcalloc(n, sizeof(*places));
	for (size_t i = 0; i < n; i++) {
		uint64_t offset;

		if (code_map_file_place(r->code, all[i].addr, &next, &offset) < 0)
			continue;
		if (next != object) {
			add_places(r, object, places, used);
			object = next;
			used = 0;
		}
		places[used++] = (struct profile_place){offset, all[i].count};
	}
	add_places(r, object, places, used);
}

void run_write_log(struct run *r)
{
	struct abi_totals totals = {0};
	struct runner_status status;
	struct profile_runtime t;

	(void)session_totals(r->session, &totals);
	run_take_samples(r);
	take_addresses(r);
	run_take_elsewhere(r);
	if (r->injection.mode == RUN_INJECT_TRIAL)
		run_keep_trial(r, true);
	runner_get_status(r->runner, &status);
	run_take_machine(r, &t);
	t.samples = r->profile.sampled = status.sums.samples - status.sums.without_line;
	t.unattributed = r->profile.unattributed =
		status.sums.without_line + totals.samples_outside;
	t.too_deep = r->profile.too_deep = totals.samples_too_deep;
	t.cut_short = r->profile.cut_short = totals.samples_cut;
	/* It is not worth the profile. */
	if (r->options.report.with_source)
		profile_take_sources(&r->profile, opener_open, file_rights_reader());
	if (r->writer && !r->write_error)
		r->write_error = profile_write_log(r->writer, &t, &r->profile);
}
