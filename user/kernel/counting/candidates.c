// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/counting/candidates_private.h"

#include "base/array.h"
#include "base/clock.h"
#include "base/error.h"
#include "kernel/namespace.h"
#include "kernel/probe.h"
#include "kernel/uprobes.h"
#include "shared/visit_rates.h"
#include "target/syscalls.h"
#include "visit_rates.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#define WINDOWS 20
/* Where nothing is passed at all, so many say it. */
#define SILENT_WINDOWS 10

/* System calls that move data or wait for work. What sends a result or stores it is likelier to be
 * once for each unit of work than what takes something in, and that likelier than what waits. */
static const struct {
	const char *name;
	unsigned int rank;
} telling[] = {
	{"write", 0},	   {"writev", 0},   {"pwrite64", 0},	    {"sendto", 0},
	{"sendmsg", 0},	   {"sendmmsg", 0}, {"sendfile", 0},	    {"copy_file_range", 0},
	{"splice", 0},	   {"fsync", 1},    {"fdatasync", 1},	    {"read", 1},
	{"readv", 1},	   {"pread64", 1},  {"recvfrom", 1},	    {"recvmsg", 1},
	{"recvmmsg", 1},   {"accept", 1},   {"accept4", 1},	    {"msgrcv", 1},
	{"connect", 2},	   {"openat", 2},   {"mq_timedreceive", 1}, {"io_uring_enter", 1},
	{"epoll_wait", 3}, {"poll", 3},	    {"epoll_pwait", 3},	    {"ppoll", 3},
	{"select", 3},
};
#define N_TELLING (sizeof(telling) / sizeof(telling[0]))

static void add_calls(struct candidates *c)
{
	for (size_t i = 0; i < N_TELLING; i++) {
		int number = syscall_number(telling[i].name);

		if (number < 0 || number >= VISIT_RATES_CALLS)
			continue;
		xarray_add(c->points, c->n_points,
			   (struct search_point){
				   .as = {.kind = CANDIDATE_CALL,
					  .rank = telling[i].rank,
					  .point = xasprintf("syscall:%s", telling[i].name)},
				   .call = VISIT_RATES_SITES + (uint32_t)number});
	}
}

static int load(struct candidates *c, struct error *e)
{
	const struct candidates_scope *s = &c->scope;
	int r = 0;

	c->skel = visit_rates_bpf__open();
	if (!c->skel)
		return fail(e, errno, "cannot open the BPF programs that count: %s",
			    strerror(errno));
	c->skel->rodata->visit_rates_process = (unsigned int)s->pid;
	c->skel->rodata->visit_rates_children = s->children;
	(void)bpf_program__set_autoload(c->skel->progs.visit_rates_probe, c->can_probe);
	(void)bpf_program__set_expected_attach_type(c->skel->progs.visit_rates_probe,
						    (enum bpf_attach_type)UPROBE_MULTI);
	if (!s->pid)
		r = bpf_map__reuse_fd(c->skel->maps.visit_rates_procs, s->procs);
	if (r < 0)
		return fail(e, -r, "cannot share the map of processes: %s", strerror(-r));
	r = namespace_find(&c->skel->rodata->own_namespace, e);
	if (r < 0)
		return r;
	if (visit_rates_bpf__load(c->skel) < 0)
		return fail(e, errno, "cannot load the BPF programs that count: %s",
			    strerror(errno));
	c->calls = bpf_program__attach(c->skel->progs.visit_rates_call);
	return c->calls ? 0 : fail(e, errno, "cannot count system calls: %s", strerror(errno));
}

uint64_t search_counter(const struct candidates *c, uint32_t i)
{
	uint64_t sum = 0;

	if (bpf_map_lookup_elem(bpf_map__fd(c->skel->maps.visit_rates), &i, c->each) < 0)
		return 0;
	for (int k = 0; k < c->cpus; k++)
		sum += c->each[k];
	return sum;
}

/* What was passed at sites since the last call; the first call of a look only begins to count. */
static void read_sites(struct candidates *c)
{
	for (size_t k = 0; k < c->n_links; k++)
		for (size_t i = c->links[k].first; i < c->links[k].first + c->links[k].n; i++) {
			struct search_site *s = &c->sites[i];
			uint64_t n = search_counter(c, (uint32_t)i);

			if (c->counts_sites)
				c->points[s->point].passes += n - s->before;
			s->before = n;
		}
}

void search_take_window(struct candidates *c)
{
	uint64_t now = clock_monotonic_ns(), ns = c->since_ns ? now - c->since_ns : 0;

	read_sites(c);
	for (size_t i = 0; i < c->n_points; i++) {
		struct search_point *p = &c->points[i];

		if (p->as.kind == CANDIDATE_CALL) {
			uint64_t n = search_counter(c, p->call);

			p->passes = n - p->before;
			p->before = n;
		}
		if (p->looked_at && (p->as.kind == CANDIDATE_CALL || c->counts_sites))
			choice_add_window(&p->seen, p->passes, ns);
		p->passes = 0;
	}
	c->windows += c->counts_sites && ns;
	/* All probes have to be in. */
	c->counts_sites = c->next == c->to;
	c->since_ns = now;
}

int candidates_begin(const struct candidates_scope *s, struct candidates **ret, struct error *e)
{
	struct candidates *c = xcalloc(1, sizeof(*c));
	int r;

	c->scope = *s;
	c->can_probe = s->code && feature_usable("uprobe_multi", s->disabled) &&
		       (!s->probed || uprobes_alone_in(s->probed));
	c->cpus = libbpf_num_possible_cpus();
	r = c->cpus < 1
		    ? fail(e, -c->cpus, "cannot tell the number of CPUs: %s", strerror(-c->cpus))
		    : load(c, e);
	if (r < 0) {
		candidates_end(c);
		return r;
	}
	c->each = xcalloc((size_t)c->cpus, sizeof(*c->each));
	add_calls(c);
	c->begun_ns = clock_monotonic_ns();
	if (c->can_probe && search_add_probes(c) < 0) {
		candidates_end(c);
		return fail(e, ENOMEM, "out of memory");
	}
	if (c->n_sites)
		search_measure_costs(c);
	search_look(c, 0, c->n_sites);
	search_take_window(c);
	*ret = c;
	return 0;
}

static bool is_silent(const struct candidates *c)
{
	for (size_t i = 0; i < c->n_points; i++)
		if (c->points[i].seen.passes)
			return false;
	return true;
}

/* Of a look: windows, one after the other. 1: it is over. */
static int look(struct candidates *c, uint64_t now, uint64_t *ret_next)
{
	int r = search_look_step(c, now, ret_next);

	if (r < 0)
		return r;
	if (now >= c->since_ns + SEARCH_WINDOW_NS || (c->next == c->to && !c->counts_sites))
		search_take_window(c);
	clock_sooner(ret_next, c->since_ns + SEARCH_WINDOW_NS);
	if (c->windows < WINDOWS && !(c->windows >= SILENT_WINDOWS && is_silent(c)))
		return 0;
	search_look_end(c, now);
	return 1;
}

static bool goes_on(struct candidates *c)
{
	const struct candidate *all;
	size_t n = candidates_found(c, &all);

	return c->can_probe && (c->scope.all || !n || !choice_serves(&all[0]));
}

static void end(struct candidates *c)
{
	c->state = SEARCH_OVER;
	(void)bpf_link__destroy(c->calls);
	c->calls = NULL;
}

int candidates_step(struct candidates *c, uint64_t now, uint64_t *ret_next, struct error *e)
{
	size_t to;
	int r = 0;

	*ret_next = UINT64_MAX;
	switch (c->state) {
	case SEARCH_CALLS:
		r = look(c, now, ret_next);
		if (r <= 0)
			break;
		if (!goes_on(c)) {
			end(c);
			break;
		}
		search_measure_costs(c);
		r = search_add_functions(c);
		search_glance(c, now);
		c->state = SEARCH_GLANCE;
		*ret_next = now;
		break;
	case SEARCH_GLANCE:
		r = search_glance_step(c, now, ret_next, &to);
		if (r <= 0)
			break;
		if (to == c->n_probes) {
			end(c);
			break;
		}
		search_look(c, c->n_probes, to);
		c->state = SEARCH_FUNCTIONS;
		*ret_next = now;
		break;
	case SEARCH_FUNCTIONS:
		r = look(c, now, ret_next);
		if (r == 1)
			end(c);
		break;
	case SEARCH_OVER:
		break;
	}
	if (r < 0)
		return fail(e, -r, "cannot count what is passed: %s", strerror(-r));
	return c->state == SEARCH_OVER;
}

size_t candidates_found(struct candidates *c, const struct candidate **ret)
{
	bool enough = c->state != SEARCH_CALLS || c->windows >= SEARCH_LEAST_WINDOWS;
	size_t n = 0;

	free(c->found);
	c->found = xcalloc(c->n_points, sizeof(*c->found));
	for (size_t i = 0; enough && i < c->n_points; i++) {
		choice_judge(&c->points[i].as, &c->points[i].seen);
		if (c->points[i].as.passes)
			c->found[n++] = c->points[i].as;
	}
	choice_sort(c->found, n);
	*ret = c->found;
	return n;
}

size_t candidates_functions(const struct candidates *c, size_t *ret_counted)
{
	*ret_counted = c->n_glanced;
	return c->n_functions;
}

void candidates_end(struct candidates *c)
{
	if (!c)
		return;
	(void)bpf_link__destroy(c->calls);
	if (c->skel && c->skel->bss)
		search_unlink(c);
	closers_wait(&c->closers);
	visit_rates_bpf__destroy(c->skel);
	for (size_t i = 0; i < c->n_points; i++)
		free(c->points[i].as.point);
	for (size_t i = 0; i < c->n_places; i++)
		code_places_close(&c->places[i]);
	free(c->points);
	free(c->sites);
	free(c->places);
	free(c->each);
	free(c->found);
	free(c);
}
