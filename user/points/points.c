// SPDX-License-Identifier: BSD-2-Clause
/* Progress points: probes on the unchanged program, and the counters of programs instrumented with
 * coz.h. */
#include "points/private.h"

#include "base/array.h"
#include "base/error.h"
#include "cozbpf.skel.h"
#include "kernel/probe.h"
#include "kernel/uprobes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What only some points take is loaded for those. */
static void choose_programs(struct points *ps)
{
	const unsigned int reported =
		POINTS_NEED_SYSCALL_ENTER | POINTS_NEED_SYSCALL_LEAVE | POINTS_NEED_TRACEPOINTS;
	unsigned int needs = ps->options.needs;

	ps->traced = needs & reported && tracepoints_preempted();
	ps->multi =
		needs & POINTS_NEED_PROBES && feature_usable("uprobe_multi", ps->options.disabled);
	if (ps->multi)
		(void)bpf_program__set_expected_attach_type(ps->skel->progs.progress_visit,
							    (enum bpf_attach_type)UPROBE_MULTI);
	(void)bpf_program__set_autoload(ps->skel->progs.progress_enter,
					needs & POINTS_NEED_SYSCALL_ENTER && !ps->traced);
	(void)bpf_program__set_autoload(ps->skel->progs.progress_leave,
					needs & POINTS_NEED_SYSCALL_LEAVE && !ps->traced);
	(void)bpf_program__set_autoload(ps->skel->progs.progress_enter_traced,
					needs & POINTS_NEED_SYSCALL_ENTER && ps->traced);
	(void)bpf_program__set_autoload(ps->skel->progs.progress_leave_traced,
					needs & POINTS_NEED_SYSCALL_LEAVE && ps->traced);
	(void)bpf_program__set_autoload(ps->skel->progs.progress_traced,
					needs & POINTS_NEED_TRACEPOINTS);
}

int points_open(struct points *ps, const struct points_options *o, struct cozbpf_bpf *skel,
		unsigned int nr_cpus, struct error *e)
{
	*ps = (struct points){
		.options = *o,
		.skel = skel,
		.nr_cpus = nr_cpus,
	};
	ps->percpu = xcalloc(nr_cpus, sizeof(*ps->percpu));
	skel->rodata->config.has_sampled = (o->needs & POINTS_NEED_SAMPLED) != 0;
	choose_programs(ps);
	return latency_configure(ps, e);
}

void points_only_in(struct points *ps, pid_t pid)
{
	ps->pid = pid;
	ps->leaderless = pid && !uprobes_alone_in(pid);
}

bool points_everywhere(const struct points *ps)
{
	return ps->pid == 0 || ps->leaderless;
}

static struct point *new_point(struct points *ps, const char *name)
{
	struct point *p;

	if (ps->n == ABI_MAX_POINTS)
		return NULL;
	p = &ps->all[ps->n];
	memset(p, 0, sizeof(*p));
	p->name = xstrdup(name);
	return p;
}

int points_add(struct points *ps, const char *name, size_t *ret, struct error *e)
{
	struct point *p;

	for (size_t i = 0; i < ps->n; i++)
		if (strcmp(ps->all[i].name, name) == 0)
			return fail(e, EEXIST,
				    "two progress points are called \"%s\"; name one of them: -p "
				    "NAME=WHERE",
				    name);
	p = new_point(ps, name);
	if (!p)
		return fail(e, E2BIG, "too many progress points; at most %d", ABI_MAX_POINTS);
	p->probed = true;
	*ret = ps->n++;
	return 0;
}

/* What a visit takes at the one of these sites that costs most, in ns: which will be visited most
 * is not known. */
static uint64_t cost_of_sites(const struct points *ps, const struct point_site *sites, size_t n)
{
	uint64_t most = 0;

	for (size_t i = 0; i < n; i++)
		if (ps->costs.site[sites[i].cost] > most)
			most = ps->costs.site[sites[i].cost];
	return most;
}

int points_attach_sites(struct points *ps, size_t point, const struct point_site *sites, size_t n,
			struct error *e)
{
	uint64_t cost = cost_of_sites(ps, sites, n);
	struct point *p = &ps->all[point];
	struct point_probes u =
		points_probes_of(ps, point, points_everywhere(ps) ? 0 : ps->pid, p->name);

	if (n && cost > p->cost_ns)
		p->cost_ns = cost;
	return points_attach_probes(ps, p, &u, sites, n, e);
}

void point_keep(struct point *p, struct bpf_link *link)
{
	xarray_add(p->links, p->n_links, link);
}

void point_keep_fd(struct point *p, int fd)
{
	xarray_add(p->fds, p->n_fds, fd);
}

void point_free(struct point *p)
{
	for (size_t i = 0; i < p->n_links; i++)
		(void)bpf_link__destroy(p->links[i]);
	for (size_t i = 0; i < p->n_fds; i++)
		(void)close(p->fds[i]);
	cozbpf_bpf__destroy(p->event);
	free(p->links);
	free(p->fds);
	free(p->sampled);
	free(p->codes);
	free(p->name);
	*p = (struct point){0};
}

void points_close(struct points *ps)
{
	for (size_t i = 0; i < ps->n; i++)
		point_free(&ps->all[i]);
	ps->n = 0;
	point_free(&ps->measured);
	(void)bpf_link__destroy(ps->text); /* after the probes */
	ps->text = NULL;
	for (size_t i = 0; i < 2; i++)
		(void)bpf_link__destroy(ps->syscalls[i]);
	latency_close(ps);
	free(ps->percpu);
}

static struct point *find_counted(struct points *ps, const char *name, bool latency)
{
	for (size_t i = 0; i < ps->n; i++)
		if (!ps->all[i].probed && ps->all[i].latency == latency &&
		    strcmp(ps->all[i].name, name) == 0)
			return &ps->all[i];
	return NULL;
}

/* One counter of the page. The program can write the page at any time: what is read is copied and
 * bounded first. */
static void take_counter(struct points *ps, size_t i, unsigned int type)
{
	char text[sizeof(ps->page->counters[i].name)];
	bool latency = type != SHIM_COUNTER_THROUGHPUT;
	struct point *p;

	memcpy(text, ps->page->counters[i].name, sizeof(text));
	text[sizeof(text) - 1] = '\0';
	p = find_counted(ps, text, latency);
	if (!p) {
		p = new_point(ps, text);
		if (!p)
			return;
		p->latency = latency;
		ps->n++;
	}
	if (type == SHIM_COUNTER_END) {
		p->end = i;
		p->has_end = true;
	} else {
		p->begin = i;
		p->has_begin = true;
	}
}

void points_find_counters(struct points *ps)
{
	/* An entry is there once its type is; one that a thread has only begun to claim is looked
	 * at again next time. */
	for (size_t i = 0; ps->page && i < SHIM_MAX_COUNTERS; i++) {
		unsigned int type = __atomic_load_n(&ps->page->counters[i].type, __ATOMIC_ACQUIRE);

		if (ps->taken[i] || type < SHIM_COUNTER_THROUGHPUT || type > SHIM_COUNTER_END)
			continue;
		ps->taken[i] = true;
		take_counter(ps, i, type);
	}
}

const struct point *points_shown(const struct points *ps, size_t i)
{
	for (size_t j = 0; j < ps->n; j++)
		if (!ps->all[j].hidden && i-- == 0)
			return &ps->all[j];
	return NULL;
}

size_t points_count(const struct points *ps)
{
	size_t n = 0;

	for (size_t i = 0; i < ps->n; i++)
		n += !ps->all[i].hidden;
	return n;
}
