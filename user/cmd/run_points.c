// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/run_points.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "cmd/commands.h"
#include "cmd/point_find.h"
#include "cmd/run.h"
#include "cmd/suggest.h"
#include "code/map.h"
#include "elf/libraries.h"
#include "target/syscalls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Can a library that is not there yet be in scope? */
static bool expects_libraries(const struct run *r)
{
	for (size_t i = 0; i < r->options.n_binaries; i++)
		if (*r->options.binaries[i] != '!' && strcmp(r->options.binaries[i], "MAIN"))
			return true;
	return false;
}

static int try_object(struct run *r, size_t i, const struct point_spec *p, struct error *e)
{
	struct point_sites sites;
	int err = point_find(r->code, i, p, p->exact, "-p", &sites, e);

	point_sites_free(&sites);
	return err;
}

/* The object that a point names: one that is known, a file, or a library where the dynamic linker will look for it. */
static int check_binary(struct run *r, const struct point_spec *p, struct error *e)
{
	_cleanup_free_ char *path = NULL;
	const struct elf_object *o;
	struct error why = {0};
	int err = code_map_object(r->code, p->binary, &o, NULL, &why);

	if (err == -ENOENT) {
		path = library_find(code_map_main(r->code), p->binary);
		if (path)
			err = code_map_object(r->code, path, &o, NULL, &why);
	}
	/* It may be loaded later, from wherever the program has it. */
	if (err == -ENOENT && !path && strstr(p->binary, ".so") && library_can_come(code_map_main(r->code)))
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
	for (size_t i = n < code_map_count(x->r->code) ? n : 0; i < code_map_count(x->r->code); i++) {
		if (try_object(x->r, i, x->p, NULL) == 0)
			x->found = true;
		else
			code_map_let_go(x->r->code, i);
	}
	return 0;
}

/* A probe that nobody said where to look for: in the program, or in a library that it is linked with. */
static int check_usdt(struct run *r, const struct point_spec *p, struct error *e)
{
	struct usdt_search x = {.r = r, .p = p};
	struct error why = {0};
	int err = try_object(r, 0, p, &why);

	if (err == -ENOENT && library_each_needed(code_map_main(r->code), try_library, &x) < 0)
		return fail(e, ENOMEM, "out of memory");
	return err < 0 && !x.found ? fail(e, -err, "%s", why.text) : 0;
}

static int check_line(struct run *r, const struct point_spec *p, struct error *e)
{
	struct error why = {0};
	int err = try_object(r, 0, p, &why);

	if (p->kind == POINT_SAMPLED_LINE && code_map_by_function(r->code))
		return fail(e, EOPNOTSUPP, "-p %s: nothing is known of lines here; use --granularity line, a function (-p sampled:FUNCTION), or a probe: -p %s:%u",
			    p->name, p->file, p->line);
	if (p->kind == POINT_SAMPLED_LINE && err == 0 && !code_map_in_scope(r->code, 0))
		return fail(e, ENODATA, "-p %s: samples are counted in scope alone, and --binary leaves out %s; add --binary MAIN", p->name,
			    r->path);
	/* A source of a library's. */
	if ((err == -ENXIO || err == -ENODATA) && expects_libraries(r))
		return 0;
	return err < 0 ? fail(e, -err, "%s", why.text) : 0;
}

static int check_syscall(const struct point_spec *p, struct error *e)
{
	const char *near = suggest(p->event, syscall_names());

	if (syscall_number(p->event) < 0)
		return fail(e, ENOENT, "-p %s: there is no system call %s%s%s; a newer one can be given by its number", p->name, p->event,
			    near ? "; did you mean " : "", near ? near : "");
	if (p->at_return && (!strcmp(p->event, "exit") || !strcmp(p->event, "exit_group")))
		return fail(e, EINVAL, "-p %s: %s never returns; use syscall:%s", p->name, p->event, p->event);
	return 0;
}

static int check_tracepoint(const struct point_spec *p, struct error *e)
{
	struct error why = {0};
	int err = session_check_tracepoint(p->provider, p->event, &why);

	return err < 0 ? fail(e, -err, "-p %s: %s", p->name, why.text) : 0;
}

static int check_point(struct run *r, const struct point_spec *p, struct error *e)
{
	switch (p->kind) {
	case POINT_SYSCALL:
		return check_syscall(p, e);
	case POINT_TRACEPOINT:
		return check_tracepoint(p, e);
	case POINT_FILE_LINE:
	case POINT_SAMPLED_LINE:
		return check_line(r, p, e);
	case POINT_FUNCTION:
		return try_object(r, 0, p, e);
	case POINT_BINARY_FUNCTION:
		return check_binary(r, p, e);
	case POINT_SAMPLED_FUNCTION:
		return p->binary ? check_binary(r, p, e) : try_object(r, 0, p, e);
	case POINT_USDT:
		return p->binary ? check_binary(r, p, e) : check_usdt(r, p, e);
	}
	return fail(e, EINVAL, "-p %s: a kind of point that nothing is known of", p->name);
}

static bool has_sites(const struct point_spec *p)
{
	return p->kind != POINT_SYSCALL && p->kind != POINT_TRACEPOINT && p->kind != POINT_SAMPLED_LINE;
}

/* May points be in executables that are not known yet? */
static bool points_may_come(const struct run *r)
{
	return r->wrapper || r->options.kind != RUN_LAUNCH;
}

int run_check_points(struct run *r, struct error *e)
{
	int err = 0;

	for (size_t i = 0; err == 0 && i < r->options.n_points; i++) {
		const struct point_spec *p = &r->options.points[i];

		if (!points_may_come(r) || p->kind == POINT_SYSCALL || p->kind == POINT_TRACEPOINT)
			err = check_point(r, p, e);
	}
	return err;
}

unsigned int run_points_needs(const struct run *r)
{
	unsigned int needs = 0;

	for (size_t i = 0; i < r->options.n_points; i++) {
		const struct point_spec *p = &r->options.points[i];

		if (p->kind == POINT_SYSCALL)
			needs |= p->at_return ? SESSION_NEEDS_SYSCALL_LEAVE : SESSION_NEEDS_SYSCALL_ENTER;
		else if (p->kind == POINT_TRACEPOINT)
			needs |= SESSION_NEEDS_TRACEPOINTS;
		else if (p->kind == POINT_SAMPLED_LINE || p->kind == POINT_SAMPLED_FUNCTION)
			needs |= SESSION_NEEDS_SAMPLED;
		else
			needs |= SESSION_NEEDS_PROBES | (p->at_return ? SESSION_NEEDS_RETURNS : 0);
	}
	return needs;
}

/* An object that was asked for by name must have the point; others need not. */
static int attach_to_object(struct run *r, struct run_point *x, const struct point_spec *p, size_t i, struct error *e)
{
	struct point_sites sites;
	int err;

	if (!point_may_be_in(r->code, p, i))
		return 0;
	err = point_find(r->code, i, p, p->exact, "-p", &sites, e);
	if (err < 0) {
		code_map_let_go(r->code, i);
		x->seen |= p->binary != NULL;
		return p->binary || err == -ENOMEM ? err : 0;
	}
	if (p->kind == POINT_SAMPLED_FUNCTION)
		err = session_attach_sampled_code(r->session, x->index, i, sites.code, sites.n_code, e);
	else
		err = session_attach_sites(r->session, x->index, p->at_return, sites.all, sites.n, e);
	x->found |= err == 0;
	point_sites_free(&sites);
	return err;
}

/* Attaches the point to the objects that are new since the last time. */
static int attach_to_new(struct run *r, struct run_point *x, const struct point_spec *p, struct error *e)
{
	int err = 0;

	for (; x->next < code_map_count(r->code); x->next++) {
		struct error why = {0};
		int one = attach_to_object(r, x, p, x->next, &why);

		if (one < 0 && err == 0) {
			err = one;
			*e = why;
		}
	}
	return err;
}

static int add_point(struct run *r, struct run_point *x, const struct point_spec *p, struct error *e)
{
	_cleanup_free_ char *line = NULL;
	int err = session_new_point(r->session, p->name, &x->index, e);

	if (err < 0)
		return err;
	switch (p->kind) {
	case POINT_SYSCALL:
		return session_attach_syscall(r->session, x->index, (unsigned int)syscall_number(p->event), p->at_return, e);
	case POINT_TRACEPOINT:
		return session_attach_tracepoint(r->session, x->index, p->provider, p->event, e);
	case POINT_SAMPLED_LINE:
		if (asprintf(&line, "%s:%u", p->file, p->line) < 0)
			return fail(e, ENOMEM, "out of memory");
		return session_attach_sampled(r->session, x->index, line, e);
	default:
		return attach_to_new(r, x, p, e);
	}
}

int run_add_points(struct run *r, struct error *e)
{
	int err = 0;

	r->points = calloc(r->options.n_points + 1, sizeof(*r->points));
	if (!r->points)
		return fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; err == 0 && i < r->options.n_points; i++)
		err = add_point(r, &r->points[i], &r->options.points[i], e);
	return err < 0 ? err : run_pair_points(r, e);
}

int run_require_points(struct run *r, struct error *e)
{
	int err = 0;

	for (size_t i = 0; err == 0 && i < r->options.n_points; i++)
		if (has_sites(&r->options.points[i]) && !r->points[i].found)
			err = check_point(r, &r->options.points[i], e);
	return err;
}

void run_refresh_points(struct run *r)
{
	for (size_t i = 0; r->points && i < r->options.n_points; i++) {
		struct error e = {0};

		if (has_sites(&r->options.points[i]) && attach_to_new(r, &r->points[i], &r->options.points[i], &e) < 0) {
			run_reword(r, &e);
			(void)log_error("warning: %s", e.text);
		}
	}
}

void run_missing_points(const struct run *r)
{
	for (size_t i = 0; r->points && i < r->options.n_points; i++) {
		const struct point_spec *p = &r->options.points[i];
		struct error e = {0};

		if (!has_sites(p) || r->points[i].found || r->points[i].seen)
			continue;
		if (r->wrapper)
			(void)fail(&e, ENOENT, "-p %s: no program that was started has it", p->name);
		else if (p->binary)
			(void)fail(&e, ENOENT, "-p %s: no %s was loaded", p->name, p->binary);
		else
			(void)fail(&e, ENOENT, "-p %s: nothing that was loaded and is in scope has %s:%u", p->name, p->file ? p->file : "it",
				   p->line);
		run_reword(r, &e);
		(void)log_error("warning: %s", e.text);
	}
}
