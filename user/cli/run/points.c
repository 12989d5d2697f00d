// SPDX-License-Identifier: BSD-2-Clause

#include "cli/run/run.h"
#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "points/point_find.h"
#include "cli/options/latency_spec.h"
#include "base/suggest.h"
#include "program/code/map.h"
#include "program/elf/libraries.h"
#include "target/syscalls.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How long a program, or what it starts, may take to load a file that a point names before we say
 * that it has not. */
#define NOT_LOADED_NS (1 * NSEC_PER_SEC)
/* Time for the points in each pass of the loop, between which signals are heard. */
#define REFRESH_NS (1 * NSEC_PER_SEC)
/* Time for the points at the start, when signals are not heard yet. */
#define FIRST_NS (60 * NSEC_PER_SEC)

/* Can a library that is not there yet be in scope? */
static bool expects_libraries(const struct run *r)
{
	for (size_t i = 0; i < r->options.binaries.n; i++)
		if (*r->options.binaries.all[i] != '!' &&
		    strcmp(r->options.binaries.all[i], "MAIN"))
			return true;
	return false;
}

/* Visits of code that several functions share are those of all of them. Refused, unless that is
 * what was asked for. */
static int check_shared(const struct run *r, const struct point_spec *p,
			const struct point_sites *sites, struct error *e)
{
	if (!sites->shared || sites->by_address || r->options.shared_code)
		return 0;
	return fail(e, ENOTUNIQ,
		    "-p %s: its code is also that of %s (functions that were folded, or aliases), "
		    "whose visits would count as well; add --shared-code to "
		    "count them together, or name a line that calls it",
		    p->name, sites->shared);
}

/* One that may. */
static void say_shared(struct run *r, struct run_point *x, const struct point_spec *p,
		       const struct point_sites *sites)
{
	_cleanup_free_ char *before = NULL;

	if (!sites->shared || x->shared)
		return;
	x->shared = true;
	before = r->shared;
	r->shared = xasprintf("%s%s%s counts visits of %s as well", before ? before : "",
			      before ? "; " : "", p->name, sites->shared);
	(void)log_error("warning: -p %s: its code is also that of %s: visits of all of them count",
			p->name, sites->shared);
}

static void say_inlined(const struct run *r, struct run_point *x, const struct point_spec *p,
			const struct point_sites *sites)
{
	if (sites->n_inlined && !x->inlined && !r->options.quiet)
		(void)log_error("-p %s: it was inlined; the entries of its %zu cop%s count",
				p->name, sites->n_inlined, sites->n_inlined > 1 ? "ies" : "y");
	x->inlined |= sites->n_inlined > 0;
}

static int try_object(struct run *r, size_t i, const struct point_spec *p, struct error *e)
{
	struct point_sites sites;
	int err = point_find(r->code, i, p, &sites, e);

	if (err == 0)
		err = check_shared(r, p, &sites, e);
	point_sites_free(&sites);
	return err;
}

/* The main executable, or the object that a point names: one that is known, a file, or a library
 * where the dynamic linker will look for it. */
static int check_binary(struct run *r, const struct point_spec *p, struct error *e)
{
	_cleanup_free_ char *path = NULL;
	const struct elf_object *o;
	struct error why = {0};
	int err;

	if (!p->binary)
		return try_object(r, 0, p, e);
	err = code_map_object(r->code, p->binary, &o, NULL, &why);

	if (err == -ENOENT) {
		path = library_find(code_map_main(r->code), p->binary);
		if (path)
			err = code_map_object(r->code, path, &o, NULL, &why);
	}
	/* It may be loaded later, from wherever the program has it. */
	if (err == -ENOENT && !path && strstr(p->binary, ".so") &&
	    library_can_come(code_map_main(r->code)))
		return 0;
	if (err < 0)
		return fail(e, -err, "-p %s: %s", p->name, why.text);
	for (size_t i = 0; err == 0 && i < code_map_count(r->code); i++)
		if (point_may_be_in(r->code, p, i))
			err = try_object(r, i, p, e);
	return err;
}

struct usdt_search {
	struct run *r;
	const struct point_spec *p;
	bool found;
};

static int try_library(const struct elf_object *library, void *arg)
{
	struct usdt_search *x = arg;
	size_t n = code_map_count(x->r->code);
	const struct elf_object *o;

	if (code_map_object(x->r->code, elf_object_path(library), &o, NULL, NULL) < 0)
		return 0;
	/* One that was there already is asked again, which does no harm. */
	for (size_t i = n < code_map_count(x->r->code) ? n : 0; i < code_map_count(x->r->code);
	     i++) {
		if (try_object(x->r, i, x->p, NULL) == 0)
			x->found = true;
		else
			code_map_let_go(x->r->code, i);
	}
	return 0;
}

/* A probe that nobody said where to look for: in the program, or in a library that it is linked
 * with. */
static int check_usdt(struct run *r, const struct point_spec *p, struct error *e)
{
	struct usdt_search x = {.r = r, .p = p};
	struct error why = {0};
	int err;

	if (p->binary)
		return check_binary(r, p, e);
	err = try_object(r, 0, p, &why);
	if (err == -ENOENT && library_each_needed(code_map_main(r->code), try_library, &x) < 0)
		return fail(e, ENOMEM, "out of memory");
	return err < 0 && !x.found ? fail(e, -err, "%s", why.text) : 0;
}

static int check_line(struct run *r, const struct point_spec *p, struct error *e)
{
	struct error why = {0};
	int err = try_object(r, 0, p, &why);

	if (p->kind == POINT_SAMPLED_LINE &&
	    (r->options.granularity == RUN_BY_FUNCTION ||
	     (code_map_by_function(r->code) && !expects_libraries(r))))
		return fail(e, EOPNOTSUPP,
			    "-p %s: nothing is known of lines here; use --granularity line, a "
			    "function (-p sampled:FUNCTION), or a probe: -p %s:%u",
			    p->name, p->file, p->line);
	if (p->kind == POINT_SAMPLED_LINE && err == 0 && !code_map_in_scope(r->code, 0))
		return fail(e, ENODATA,
			    "-p %s: samples are counted in scope alone, and --binary leaves out "
			    "%s; add --binary MAIN",
			    p->name, r->path);
	/* A source of a library's. */
	if ((err == -ENXIO || err == -ENODATA) && expects_libraries(r))
		return 0;
	return err < 0 ? fail(e, -err, "%s", why.text) : 0;
}

static int check_syscall(struct run *r, const struct point_spec *p, struct error *e)
{
	const char *near = suggest(p->event, syscall_names());

	(void)r;
	if (syscall_number(p->event) < 0)
		return fail(e, ENOENT,
			    "-p %s: there is no system call %s%s%s; a newer one can be given by "
			    "its number",
			    p->name, p->event, near ? "; did you mean " : "", near ? near : "");
	if (p->at_return && (!strcmp(p->event, "exit") || !strcmp(p->event, "exit_group")))
		return fail(e, EINVAL, "-p %s: %s never returns; use syscall:%s", p->name, p->event,
			    p->event);
	return 0;
}

static int check_tracepoint(struct run *r, const struct point_spec *p, struct error *e)
{
	struct error why = {0};
	int err = points_check_tracepoint(p->provider, p->event, &why);

	(void)r;
	return err < 0 ? fail(e, -err, "-p %s: %s", p->name, why.text) : 0;
}

/* One of the kernel, or of samples in a line: it is all there at once. */
static int add_syscall(struct run *r, size_t point, const struct point_spec *p, struct error *e)
{
	return points_attach_syscall(session_points(r->session), point,
				     (unsigned int)syscall_number(p->event), p->at_return, e);
}

static int add_tracepoint(struct run *r, size_t point, const struct point_spec *p, struct error *e)
{
	return points_attach_tracepoint(session_points(r->session), point, p->provider, p->event,
					e);
}

static int add_sampled_line(struct run *r, size_t point, const struct point_spec *p,
			    struct error *e)
{
	_cleanup_free_ char *line = xasprintf("%s:%u", p->file, p->line);

	(void)e;
	points_attach_line(session_points(r->session), point, line);
	return 0;
}

/* One with places in objects, which may come later: in object @i these. */
static int attach_sites(struct run *r, size_t point, const struct point_spec *p, size_t i,
			const struct point_sites *sites, struct error *e)
{
	struct points *points = session_points(r->session);
	int err = points_attach_sites(points, point, sites->all, sites->n, e);

	/* Who runs the executable is mostly in scope; a library is everybody's. */
	if (err == 0 && points_everywhere(points) &&
	    (!code_map_is_main(r->code, i) || points->leaderless))
		(void)log_error(
			"warning: -p %s slows down all processes that map %s, in scope or "
			"not; %s",
			p->name, code_map_path(r->code, i),
			points->leaderless
				? "a process whose first thread has ended cannot have it "
				  "to itself"
				: "one process alone, with --follow exec, has it to itself");
	return err;
}

static int attach_code(struct run *r, size_t point, const struct point_spec *p, size_t i,
		       const struct point_sites *sites, struct error *e)
{
	(void)p;
	return points_attach_code(session_points(r->session), point, i, sites->code, sites->n_code,
				  e);
}

/* A new kind of point is a row here, and a file in points/. */
static const struct {
	unsigned int needs, needs_at_return; /* enum points_needs; the second with "%return" */
	int (*check)(struct run *r, const struct point_spec *p, struct error *e);
	/* One of them: */
	int (*add)(struct run *r, size_t point, const struct point_spec *p, struct error *e);
	int (*attach)(struct run *r, size_t point, const struct point_spec *p, size_t i,
		      const struct point_sites *sites, struct error *e);
} kinds[] = {
	[POINT_SYSCALL] = {POINTS_NEED_SYSCALL_ENTER, POINTS_NEED_SYSCALL_LEAVE, check_syscall,
			   .add = add_syscall},
	[POINT_TRACEPOINT] = {POINTS_NEED_TRACEPOINTS, POINTS_NEED_TRACEPOINTS, check_tracepoint,
			      .add = add_tracepoint},
	[POINT_SAMPLED_LINE] = {POINTS_NEED_SAMPLED, POINTS_NEED_SAMPLED, check_line,
				.add = add_sampled_line},
	[POINT_SAMPLED_FUNCTION] = {POINTS_NEED_SAMPLED, POINTS_NEED_SAMPLED, check_binary,
				    .attach = attach_code},
	[POINT_FILE_LINE] = {POINTS_NEED_PROBES, POINTS_NEED_PROBES, check_line,
			     .attach = attach_sites},
	[POINT_FUNCTION] = {POINTS_NEED_PROBES, POINTS_NEED_PROBES, check_binary,
			    .attach = attach_sites},
	[POINT_BINARY_FUNCTION] = {POINTS_NEED_PROBES, POINTS_NEED_PROBES, check_binary,
				   .attach = attach_sites},
	[POINT_USDT] = {POINTS_NEED_PROBES, POINTS_NEED_PROBES, check_usdt, .attach = attach_sites},
};

static bool has_sites(const struct point_spec *p)
{
	return kinds[p->kind].attach;
}

int run_check_points(struct run *r, struct error *e)
{
	/* May points be in executables that are not known yet? */
	bool may_come = r->wrapper || r->options.kind != RUN_LAUNCH;
	int err = 0;

	for (size_t i = 0; err == 0 && i < r->options.n_points; i++) {
		const struct point_spec *p = &r->options.points[i];

		if (!may_come || p->kind == POINT_SYSCALL || p->kind == POINT_TRACEPOINT)
			err = kinds[p->kind].check(r, p, e);
	}
	return err;
}

unsigned int run_points_needs(const struct run *r)
{
	unsigned int needs = 0;

	for (size_t i = 0; i < r->options.n_points; i++) {
		const struct point_spec *p = &r->options.points[i];

		needs |= p->at_return ? kinds[p->kind].needs_at_return : kinds[p->kind].needs;
	}
	return run_may_choose(r) ? needs | POINTS_NEED_SYSCALL_ENTER | POINTS_NEED_PROBES : needs;
}

/* An object that was asked for by name must have the point; others need not. */
static int attach_to_object(struct run *r, struct run_point *x, const struct point_spec *p,
			    size_t i, struct error *e)
{
	struct point_sites sites;
	int err;

	err = point_find(r->code, i, p, &sites, e);
	if (err < 0) {
		code_map_let_go(r->code, i);
		x->seen |= p->binary != NULL;
		return p->binary || err == -ENOMEM || err == -ENOTUNIQ ? err : 0;
	}
	err = check_shared(r, p, &sites, e);
	if (err == 0) {
		say_shared(r, x, p, &sites);
		say_inlined(r, x, p, &sites);
		err = kinds[p->kind].attach(r, x->index, p, i, &sites, e);
	}
	x->found |= err == 0;
	point_sites_free(&sites);
	return err;
}

/* Attaches the point to the objects that are new since the last time; an executable may have been
 * known as a file that is mapped before. @until: time of
 * the monotonic clock from which on the rest is left to the next call. */
static int attach_to_new(struct run *r, struct run_point *x, const struct point_spec *p,
			 uint64_t until, struct error *e)
{
	size_t version = code_map_version(r->code);
	int err = 0;

	if (x->version == version)
		return 0;
	for (size_t i = 0; i < code_map_count(r->code); i++) {
		struct error why = {0};
		int one;

		if (i == x->n_tried)
			xarray_add(x->tried, x->n_tried, false);
		if (x->tried[i] || !point_may_be_in(r->code, p, i))
			continue;
		if (clock_monotonic_ns() > until)
			return err;
		x->tried[i] = true;
		one = attach_to_object(r, x, p, i, &why);
		if (one < 0 && err == 0) {
			err = one;
			*e = why;
		}
	}
	x->version = version;
	return err;
}

/* A line whose samples count is found as they come: what can be known of it now. */
static int say_shared_line(struct run *r, struct run_point *x, const struct point_spec *p,
			   struct error *e)
{
	int err = 0;

	for (size_t i = 0; err == 0 && i < code_map_count(r->code); i++) {
		struct point_sites sites;

		if (!point_may_be_in(r->code, p, i))
			continue;
		err = point_find(r->code, i, p, &sites, e);
		if (err == 0)
			err = check_shared(r, p, &sites, e);
		if (err == 0)
			say_shared(r, x, p, &sites);
		point_sites_free(&sites);
		err = err == -ENOTUNIQ || err == -ENOMEM ? err : 0;
	}
	return err;
}

static int add_point(struct run *r, struct run_point *x, const struct point_spec *p, uint64_t until,
		     struct error *e)
{
	int err = points_add(session_points(r->session), p->name, &x->index, e);

	if (err == 0 && p->kind == POINT_SAMPLED_LINE)
		err = say_shared_line(r, x, p, e);
	if (err < 0)
		return err;
	return kinds[p->kind].add ? kinds[p->kind].add(r, x->index, p, e)
				  : attach_to_new(r, x, p, until, e);
}

/* A latency point is two points like any other, which the session then makes one. */
static int pair_points(struct run *r, struct error *e)
{
	int err = 0;

	for (size_t i = 0; i < r->options.n_latencies && err == 0; i++) {
		const struct run_latency *l = &r->options.latencies[i];

		err = points_pair(session_points(r->session), l->begin, l->arguments[0],
				  l->begin + 1, l->arguments[1], e);
	}
	return err;
}

int run_add_points(struct run *r, struct error *e)
{
	uint64_t until = clock_monotonic_ns() + FIRST_NS;
	int err = 0;

	r->points = xcalloc(r->options.n_points, sizeof(*r->points));
	if (run_is_whole(r) && r->repeat->n_lines) {
		size_t end;

		err = points_add(session_points(r->session), PROFILE_WHOLE_RUN, &end, e);
		if (err == 0)
			session_slopes_end_point(r->session, end);
	}
	for (size_t i = 0; err == 0 && i < r->options.n_points; i++)
		err = add_point(r, &r->points[i], &r->options.points[i], until, e);
	return err < 0 ? err : pair_points(r, e);
}

void run_free_points(struct run *r)
{
	for (size_t i = 0; r->points && i < r->options.n_points; i++)
		free(r->points[i].tried);
	free(r->points);
	r->points = NULL;
}

/* Is it in what is known by now? */
static int check_known(struct run *r, const struct point_spec *p, struct error *e)
{
	int err = -ENOENT;

	if (!has_sites(p))
		return kinds[p->kind].check(r, p, e);
	for (size_t i = 0; err < 0 && i < code_map_count(r->code); i++)
		if (point_may_be_in(r->code, p, i))
			err = try_object(r, i, p, e);
	return err;
}

int run_add_point(struct run *r, const char *text, struct error *e)
{
	int err = point_spec_parse(text, &r->chosen, e);

	if (err == 0)
		err = check_known(r, &r->chosen, e);
	if (err == 0) {
		run_free_points(r);
		r->options.points = &r->chosen;
		r->options.n_points = 1;
		err = run_add_points(r, e);
	}
	if (err == 0)
		return 0;
	run_free_points(r);
	r->options.n_points = 0;
	point_spec_free(&r->chosen);
	return err;
}

int run_require_points(struct run *r, struct error *e)
{
	int err = 0;

	/* One that was not tried everywhere for want of time is found later, or missed at the end.
	 */
	for (size_t i = 0; err == 0 && i < r->options.n_points; i++)
		if (has_sites(&r->options.points[i]) && !r->points[i].found &&
		    r->points[i].version == code_map_version(r->code))
			err = kinds[r->options.points[i].kind].check(r, &r->options.points[i], e);
	return err;
}

void run_refresh_points(struct run *r, bool all)
{
	uint64_t until = clock_monotonic_ns() + (all ? FIRST_NS : REFRESH_NS);

	for (size_t i = 0; r->points && i < r->options.n_points; i++) {
		struct error e = {0};

		if (has_sites(&r->options.points[i]) &&
		    attach_to_new(r, &r->points[i], &r->options.points[i], until, &e) < 0) {
			run_reword(r, &e);
			(void)log_error("warning: %s", e.text);
		}
	}
}

/* A file of the name that a point gives, but another one: its path, or NULL. */
static const char *namesake(const struct run *r, const struct point_spec *p)
{
	const char *base = strrchr(p->binary, '/');

	for (size_t i = 0; base && i < code_map_count(r->code); i++)
		if (code_map_is_called(r->code, i, base + 1))
			return code_map_path(r->code, i);
	return NULL;
}

/* @when: "yet", or "". */
static void say_not_loaded(const struct run *r, const struct point_spec *p, const char *when)
{
	const char *other = namesake(r, p);
	struct error e = {0};

	(void)fail(&e, ENOENT, "-p %s: no process in scope has loaded %s%s%s%s", p->name, p->binary,
		   when, other ? "; what is loaded is " : "", other ? other : "");
	run_reword(r, &e);
	(void)log_error("warning: %s", e.text);
}

void run_say_not_loaded(struct run *r, uint64_t now)
{
	if (r->said_not_loaded || now < r->start_ns + NOT_LOADED_NS)
		return;
	r->said_not_loaded = true;
	for (size_t i = 0; r->points && i < r->options.n_points; i++)
		if (r->options.points[i].binary && !r->points[i].found && !r->points[i].seen)
			say_not_loaded(r, &r->options.points[i], " yet");
}

void run_missing_points(const struct run *r)
{
	for (size_t i = 0; r->points && i < r->options.n_points; i++) {
		const struct point_spec *p = &r->options.points[i];
		struct error e = {0};

		if (!has_sites(p) || r->points[i].found || r->points[i].seen)
			continue;
		if (p->binary) {
			say_not_loaded(r, p, "");
			continue;
		}
		if (r->wrapper)
			(void)fail(&e, ENOENT, "-p %s: no program that was started has it",
				   p->name);
		else
			(void)fail(&e, ENOENT,
				   "-p %s: nothing that was loaded and is in scope has %s:%u",
				   p->name, p->file ? p->file : "it", p->line);
		run_reword(r, &e);
		(void)log_error("warning: %s", e.text);
	}
}

void run_reword(const struct run *r, struct error *e)
{
	const struct run_options *o = &r->options;

	for (size_t i = 0; i < o->n_latencies; i++)
		latency_reword(o->points[o->latencies[i].begin].name, e);
}
