// SPDX-License-Identifier: BSD-2-Clause
/* Progress points: probes on the unchanged program, and the counters of programs instrumented with coz.h. */
#include "session/internal.h"

#include "base/array.h"
#include "base/error.h"
#include "cozbpf.skel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct point *new_point(struct session *s, const char *name)
{
	struct point *p;

	if (s->n_points == ABI_MAX_POINTS)
		return NULL;
	p = &s->points[s->n_points];
	memset(p, 0, sizeof(*p));
	p->name = strdup(name);
	return p->name ? p : NULL;
}

int session_new_point(struct session *s, const char *name, size_t *ret, struct error *e)
{
	struct point *p;

	for (size_t i = 0; i < s->n_points; i++)
		if (strcmp(s->points[i].name, name) == 0)
			return fail(e, EEXIST, "two progress points are called \"%s\"; name one of them: -p NAME=WHERE", name);
	p = new_point(s, name);
	if (!p)
		return fail(e, E2BIG, "too many progress points; at most %d", ABI_MAX_POINTS);
	p->probed = true;
	p->has_begin = true;
	*ret = s->n_points++;
	return 0;
}

int session_attach_sites(struct session *s, size_t point, bool at_return, const struct session_site *sites, size_t n, struct error *e)
{
	struct point *p = &s->points[point];
	struct uprobes u;

	for (size_t i = 0; i < n; i++) {
		uint64_t cost = s->costs.site[sites[i].cost] + (at_return ? s->costs.at_return : 0);

		/* Which of several sites will be visited most is not known. */
		if (cost > p->cost_ns)
			p->cost_ns = cost;
	}
	u = uprobes_of_point(s, point, s->pid, at_return, p->name);
	return uprobes_attach(s, p, &u, sites, n, e);
}

int point_keep(struct point *p, struct bpf_link *link)
{
	if (array_room(p->links, p->n_links) < 0) {
		(void)bpf_link__destroy(link);
		return -ENOMEM;
	}
	p->links[p->n_links++] = link;
	return 0;
}

int point_keep_fd(struct point *p, int fd)
{
	if (array_room(p->fds, p->n_fds) < 0) {
		(void)close(fd);
		return -ENOMEM;
	}
	p->fds[p->n_fds++] = fd;
	return 0;
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

void points_close(struct session *s)
{
	for (size_t i = 0; i < s->n_points; i++)
		point_free(&s->points[i]);
	s->n_points = 0;
	point_free(&s->measured);
	point_free(&s->slow_probes);
	for (size_t i = 0; i < 2; i++)
		(void)bpf_link__destroy(s->syscalls[i]);
}

void session_set_page(struct session *s, const struct shim_page *page)
{
	s->page = page;
}

static struct point *find_counted(struct session *s, const char *name, bool latency)
{
	for (size_t i = 0; i < s->n_points; i++)
		if (!s->points[i].probed && s->points[i].latency == latency && strcmp(s->points[i].name, name) == 0)
			return &s->points[i];
	return NULL;
}

/* One counter of the page. The program can write the page at any time: what is read is copied and bounded first. */
static void take_counter(struct session *s, size_t i, unsigned int type)
{
	char text[sizeof(s->page->counters[i].name)];
	bool latency = type != SHIM_COUNTER_THROUGHPUT;
	struct point *p;

	memcpy(text, s->page->counters[i].name, sizeof(text));
	text[sizeof(text) - 1] = '\0';
	p = find_counted(s, text, latency);
	if (!p) {
		p = new_point(s, text);
		if (!p)
			return;
		p->latency = latency;
		s->n_points++;
	}
	if (type == SHIM_COUNTER_END) {
		p->end = i;
		p->has_end = true;
	} else {
		p->begin = i;
		p->has_begin = true;
	}
}

size_t session_find_counters(struct session *s)
{
	struct abi_control *c = &s->skel->bss->control;

	/* Its launch is the first exec. After a second one the program's image has no shim. */
	if (s->page && !c->signals_ok && c->execs == 1 && __atomic_load_n(&s->page->loaded, __ATOMIC_ACQUIRE)) {
		c->signals_ok = 1;
		if (s->options.many)
			processes_allow_signals(s, (pid_t)c->main, &c->execs);
	}

	/* An entry is there once its type is; one that a thread has only begun to claim is looked at again next time. */
	for (size_t i = 0; s->page && i < SHIM_MAX_COUNTERS; i++) {
		unsigned int type = __atomic_load_n(&s->page->counters[i].type, __ATOMIC_ACQUIRE);

		if (s->taken[i] || type < SHIM_COUNTER_THROUGHPUT || type > SHIM_COUNTER_END)
			continue;
		s->taken[i] = true;
		take_counter(s, i, type);
	}
	return session_points(s);
}

const struct point *session_shown_point(const struct session *s, size_t i)
{
	for (size_t j = 0; j < s->n_points; j++)
		if (!s->points[j].hidden && i-- == 0)
			return &s->points[j];
	return NULL;
}

size_t session_points(const struct session *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_points; i++)
		n += !s->points[i].hidden;
	return n;
}

const char *session_point_name(const struct session *s, size_t i)
{
	return session_shown_point(s, i)->name;
}

bool session_point_is_latency(const struct session *s, size_t i)
{
	return session_shown_point(s, i)->latency;
}

uint64_t session_point_cost(const struct session *s, size_t i)
{
	return session_shown_point(s, i)->cost_ns;
}
