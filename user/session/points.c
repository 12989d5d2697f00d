// SPDX-License-Identifier: BSD-2-Clause
/* Progress points: probes on the unchanged program, and the counters of programs instrumented with coz.h. */
#include "session/internal.h"

#include "base/error.h"
#include "cozbpf.skel.h"
#include "elf/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

int session_extend_point(struct session *s, size_t point, const struct session_site *sites, size_t n_sites, struct error *e)
{
	LIBBPF_OPTS(bpf_uprobe_opts, opts, .bpf_cookie = point);
	struct point *p = &s->points[point];
	struct bpf_link **grown = reallocarray(p->links, p->n_links + n_sites + 1, sizeof(struct bpf_link *));

	if (!grown)
		return fail(e, ENOMEM, "out of memory");
	p->links = grown;
	for (size_t i = 0; i < n_sites; i++) {
		const char *path = elf_object_path(sites[i].object);
		uint64_t offset;
		int r = elf_object_vaddr_to_offset(sites[i].object, sites[i].vaddr, &offset);

		if (r < 0)
			return fail(e, -r, "%s: %s: the address 0x%llx is not in the file", p->name, path,
				    (unsigned long long)sites[i].vaddr);
		p->links[p->n_links] = bpf_program__attach_uprobe_opts(s->skel->progs.progress_visit, s->pid, path, offset, &opts);
		if (!p->links[p->n_links])
			return fail(e, errno, "%s: cannot put a probe at %s+0x%llx: %s", p->name, path, (unsigned long long)offset,
				    strerror(errno));
		p->n_links++;
	}
	return 0;
}

size_t session_point_sites(const struct session *s, size_t i)
{
	return s->points[i].n_links;
}

int session_add_point(struct session *s, const char *name, const struct session_site *sites, size_t n_sites, struct error *e)
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
	return session_extend_point(s, s->n_points++, sites, n_sites, e);
}

void points_close(struct session *s)
{
	for (size_t i = 0; i < s->n_points; i++) {
		for (size_t j = 0; j < s->points[i].n_links; j++)
			(void)bpf_link__destroy(s->points[i].links[j]);
		free(s->points[i].links);
		free(s->points[i].name);
	}
	s->n_points = 0;
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
