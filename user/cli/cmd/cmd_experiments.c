// SPDX-License-Identifier: BSD-2-Clause
/* The experiments and slopes of `cozbpf collect` in a database, of one build. */
#include "cli/cmd/cmd_database.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/log.h"
#include "profile/merge.h"
#include "profile/same.h"

#include <errno.h>
#include <string.h>

/* What was profiled: a build id, or where that is not known a command. */
struct build {
	char *name; /* owned */
	uint64_t newest_ns;
	size_t experiments, windows;
};

struct builds {
	struct build *all;
	size_t n;
	const char *wanted;
	const char *command; /* that asks for them; NULL: what is left out is not told */
	struct profile *into;
	char *first; /* owned: the first file that was taken */
	struct error *e;
};

static const char *build_of(const struct profile *p)
{
	const struct profile_startup *s = p->n_runs ? &p->runs[0] : NULL;

	return s && s->build ? s->build : s && s->command ? s->command : "";
}

static int read_one(const struct builds *b, int fd, const char *path, struct profile *ret)
{
	struct error why = {0};
	int r = profile_read_fd(ret, fd, path, &why);

	/* One that a crash has left without a record. */
	if (r < 0 && r != -ENOMEM && b->command)
		(void)log_error("%s: %s: left out", b->command, why.text);
	return r;
}

static int note_build(int fd, const char *path, void *arg)
{
	_cleanup_(profile_free) struct profile p = {0};
	struct builds *b = arg;
	struct build *x = NULL;
	int r = read_one(b, fd, path, &p);

	if (r < 0 || !p.n_runs)
		return r == -ENOMEM ? fail(b->e, ENOMEM, "out of memory") : 0;
	for (size_t i = 0; i < b->n; i++)
		if (strcmp(b->all[i].name, build_of(&p)) == 0)
			x = &b->all[i];
	if (!x) {
		xarray_add(b->all, b->n, (struct build){.name = xstrdup(build_of(&p))});
		x = &b->all[b->n - 1];
	}
	x->experiments += p.n_experiments;
	x->windows += p.n_slopes;
	if (p.runs[0].time > x->newest_ns)
		x->newest_ns = p.runs[0].time;
	return 0;
}

static int take_one(int fd, const char *path, void *arg)
{
	_cleanup_(profile_free) struct profile p = {0};
	struct builds *b = arg;
	struct error why = {0};
	int r = read_one(b, fd, path, &p);

	if (r < 0 || !p.n_runs || strcmp(build_of(&p), b->wanted) != 0)
		return r == -ENOMEM ? fail(b->e, ENOMEM, "out of memory") : 0;
	if (b->first && profile_check_same(b->into, b->first, &p, path, &why) < 0) {
		if (b->command)
			(void)log_error("%s: %s: left out", b->command, why.text);
		return 0;
	}
	if (b->into->kept + p.kept > profile_most_kept)
		return fail(b->e, E2BIG,
			    "what was measured of build '%s' in that time takes more than %zu MiB: "
			    "choose a shorter one",
			    b->wanted, profile_most_kept >> 20);
	if (!b->first)
		b->first = xstrdup(path);
	profile_append(b->into, &p);
	return 0;
}

/* The one that was asked for, else the one that ran last. */
static int choose(struct builds *b, const char *path, const char *build)
{
	const struct build *best = NULL;

	for (size_t i = 0; i < b->n; i++)
		if (build ? strncmp(b->all[i].name, build, strlen(build)) == 0
			  : !best || b->all[i].newest_ns > best->newest_ns)
			best = &b->all[i];
	if (!best)
		return build ? fail(b->e, ENOENT,
				    "'%s' has no experiments or slopes of build '%s' in that time",
				    path, build)
			     : fail(b->e, ENOENT,
				    "'%s' has no experiments or slopes of that time; 'cozbpf "
				    "collect -p POINT' measures slopes",
				    path);
	b->wanted = best->name;
	for (size_t i = 0; !build && b->command && i < b->n; i++)
		if (&b->all[i] != best)
			(void)log_error("%s: %zu experiments and %zu records of slopes of another "
					"build are left out: --build-id %.12s shows them",
					b->command, b->all[i].experiments, b->all[i].windows,
					b->all[i].name);
	return 0;
}

int cmd_experiments(const char *command, const char *path, uint64_t from_s, uint64_t to_s,
		    const char *build, struct profile *ret, struct error *e)
{
	struct builds b = {.command = command, .into = ret, .e = e};
	struct database *d = NULL;
	int r = database_open(path, command ? cmd_left_out : NULL, (void *)(uintptr_t)command, &d,
			      e);

	if (r == 0)
		r = database_each_profile(d, from_s, to_s, note_build, &b, e);
	if (r == 0)
		r = choose(&b, path, build);
	if (r == 0)
		r = database_each_profile(d, from_s, to_s, take_one, &b, e);
	profile_add_up_samples(ret);
	database_close(d);
	for (size_t i = 0; i < b.n; i++)
		free(b.all[i].name);
	free(b.all);
	free(b.first);
	return r;
}
