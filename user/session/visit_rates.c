// SPDX-License-Identifier: BSD-2-Clause
#include "session/visit_rates.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/proc.h"
#include "code/map.h"
#include "elf/code.h"
#include "elf/code_place.h"
#include "elf/names.h"
#include "elf/object.h"
#include "elf/usdt.h"
#include "kernel/namespace.h"
#include "kernel/probe.h"
#include "kernel/uprobes.h"
#include "points/points.h"
#include "shared/visit_rates.h"
#include "target/syscalls.h"
#include "visit_rates.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* First a glance, in which even a function of a million calls a second is no burden. */
#define GLANCE_NS (30 * NSEC_PER_MSEC)
#define LOOK_NS (2 * NSEC_PER_SEC)
/* ... of a process that had a CPU meanwhile. One that got none, or does nothing, is looked at all
 * the same after so many. */
#define GLANCE_CPU_NS (5 * NSEC_PER_MSEC)
#define MOST_GLANCES 20

/* System calls that wait for work or move data. */
static const char *const telling_calls[] = {
	"read",	    "write",	       "readv",		 "writev",
	"pread64",  "pwrite64",	       "recvfrom",	 "recvmsg",
	"recvmmsg", "sendto",	       "sendmsg",	 "sendmmsg",
	"sendfile", "accept",	       "accept4",	 "epoll_wait",
	"poll",	    "epoll_pwait",     "ppoll",		 "select",
	"fsync",    "fdatasync",       "openat",	 "connect",
	"msgrcv",   "mq_timedreceive", "io_uring_enter", "copy_file_range",
	"splice",
};

struct site {
	size_t object; /* of the code map */
	uint64_t vaddr, semaphore;
	enum visit_rate_kind kind;
	char *point;
	bool dropped; /* passed too often */
};

struct visit_rates {
	struct code_map *code;
	pid_t pid;
	struct visit_rates_bpf *skel;
	size_t n_cpus;
	struct site *sites;
	size_t n;
	struct point probes;
	struct bpf_link *calls;
	enum { GLANCING, LOOKING, KNOWN } state;
	uint64_t since_ns, due_ns, took_ns, cpu_ns,
		waited_ns; /* the process's CPU time, and its waits for a CPU, at the begin
			    */
	unsigned int glances;
	uint64_t *before, *after; /* counters, VISIT_RATES_SITES + VISIT_RATES_CALLS of them */
	struct visit_rate *found;
	size_t n_found;
};

struct waits {
	pid_t pid;
	uint64_t ns;
};

#define N_COUNTERS (VISIT_RATES_SITES + VISIT_RATES_CALLS)

struct gathering {
	struct visit_rates *v;
	const struct elf_object *elf;
	size_t object;
	struct code_places places;
};

/* Takes @point over. What may be no instruction is left out. */
static void add_site(struct gathering *g, uint64_t vaddr, uint64_t semaphore,
		     enum visit_rate_kind kind, char *point)
{
	struct visit_rates *v = g->v;
	enum code_cost cost = code_cost_at(g->elf, vaddr);

	if (cost == CODE_NOP5)
		vaddr = code_behind_nop(g->elf, vaddr, &cost);
	if (v->n == VISIT_RATES_SITES || cost >= CODE_NOP5 ||
	    code_place_check(&g->places, vaddr, NULL) < 0) {
		free(point);
		return;
	}
	xarray_add(v->sites, v->n,
		   (struct site){.object = g->object,
				 .vaddr = vaddr,
				 .semaphore = semaphore,
				 .kind = kind,
				 .point = point});
}

static int gather_probe(const struct usdt_probe *p, void *arg)
{
	struct gathering *g = arg;
	bool is_main = code_map_is_main(g->v->code, g->object);

	add_site(g, p->vaddr, p->semaphore, VISIT_PROBE,
		 xasprintf("usdt:%s%s%s:%s",
			   is_main ? "" : basename(code_map_path(g->v->code, g->object)),
			   is_main ? "" : ":", p->provider, p->name));
	return 0;
}

static int gather_function(const struct elf_symbol *s, const char *readable, void *arg)
{
	static const char *const of_startup[] = {"main", "_init", "_start", "_fini"};
	_cleanup_elf_names_ struct elf_names sharers = {0};
	int r;

	for (size_t i = 0; i < sizeof(of_startup) / sizeof(of_startup[0]); i++)
		if (strcmp(readable, of_startup[i]) == 0)
			return 0;
	/* What --progress would not take is not proposed. */
	r = s->is_indirect
		    ? 1
		    : elf_object_sharers(((struct gathering *)arg)->elf, s->addr, false, &sharers);
	if (r)
		return r < 0 ? r : 0;
	if (!sharers.n)
		add_site(arg, s->addr, 0, VISIT_FUNCTION, xstrdup(readable));
	return 0;
}

static int gather(struct visit_rates *v)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < code_map_count(v->code); i++) {
		struct gathering g = {.v = v, .elf = code_map_elf(v->code, i, NULL), .object = i};

		if (!g.elf)
			continue;
		g.places.o = g.elf;
		r = usdt_each(g.elf, gather_probe, &g);
		if (r == 0 && i == 0)
			r = elf_object_each_readable(g.elf, true, gather_function, &g);
		code_places_close(&g.places);
	}
	return r;
}

/* The sites of one object, from @from on; *ret_end: where those of the next one begin. */
static int attach_object(struct visit_rates *v, size_t from, size_t *ret_end, struct error *e)
{
	struct code_places places = {.o = code_map_elf(v->code, v->sites[from].object, NULL)};
	_cleanup_free_ struct uprobe *probes = NULL;
	struct uprobes u = {.places = &places, .pid = v->pid};
	size_t end = from;
	int fd;

	while (end < v->n && v->sites[end].object == v->sites[from].object)
		end++;
	*ret_end = end;
	u.all = probes = xcalloc(end - from, sizeof(*probes));
	if (!places.o)
		return fail(e, ENOMEM, "out of memory");
	for (size_t i = from; i < end; i++)
		if (!v->sites[i].dropped)
			probes[u.n++] = (struct uprobe){.vaddr = v->sites[i].vaddr,
							.semaphore = v->sites[i].semaphore,
							.cookie = i,
							.certain = true};
	if (!u.n)
		return 0;
	fd = uprobes_link(&u, v->skel->progs.visit_rates_probe, e);
	if (fd < 0)
		return fd;
	point_keep_fd(&v->probes, fd);
	return 0;
}

static int attach(struct visit_rates *v, struct error *e)
{
	int r = 0;

	if (!uprobes_alone_in(v->pid))
		return 0;
	for (size_t i = 0; r == 0 && i < v->n;)
		r = attach_object(v, i, &i, e);
	return r;
}

static void read_counters(const struct visit_rates *v, uint64_t *ret)
{
	_cleanup_free_ uint64_t *each = xcalloc(v->n_cpus, sizeof(*each));
	int fd = bpf_map__fd(v->skel->maps.visit_rates);

	for (unsigned int i = 0; i < N_COUNTERS; i++) {
		ret[i] = 0;
		/* Those of sites that there are, and of system calls. */
		if ((i >= v->n && i < VISIT_RATES_SITES) || bpf_map_lookup_elem(fd, &i, each) < 0)
			continue;
		for (size_t k = 0; k < v->n_cpus; k++)
			ret[i] += each[k];
	}
}

static int load(struct visit_rates *v, struct error *e)
{
	int r;

	v->skel = visit_rates_bpf__open();
	if (!v->skel)
		return fail(e, errno, "cannot open the BPF programs that count: %s",
			    strerror(errno));
	v->skel->rodata->visit_rates_process = (unsigned int)v->pid;
	(void)bpf_program__set_expected_attach_type(v->skel->progs.visit_rates_probe,
						    (enum bpf_attach_type)UPROBE_MULTI);
	r = namespace_find(&v->skel->rodata->own_namespace, e);
	if (r < 0)
		return r;
	if (visit_rates_bpf__load(v->skel) < 0)
		return fail(e, errno, "cannot load the BPF programs that count: %s",
			    strerror(errno));
	v->calls = bpf_program__attach(v->skel->progs.visit_rates_call);
	return v->calls ? 0 : fail(e, errno, "cannot count system calls: %s", strerror(errno));
}

static int add_wait(pid_t tid, void *arg)
{
	struct waits *w = arg;
	char path[PROC_PATH];
	_cleanup_fclose_ FILE *f = NULL;
	unsigned long long ns;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/schedstat", (int)w->pid, (int)tid);
	f = fopen(path, "re");
	if (f && fscanf(f, "%*u %llu", &ns) == 1)
		w->ns += ns;
	return 0;
}

/* How long the threads of the process have waited for a CPU, all of them together. 0 where the
 * kernel does not say. */
static uint64_t waited_ns(pid_t pid)
{
	struct waits w = {.pid = pid};
	char path[PROC_PATH];

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	(void)proc_each_number(path, add_wait, &w);
	return w.ns;
}

int visit_rates_begin(struct code_map *code, pid_t pid, const char *disabled,
		      struct visit_rates **ret, struct error *e)
{
	struct visit_rates *v;
	int r, cpus = libbpf_num_possible_cpus();

	if (!feature_usable("uprobe_multi", disabled))
		return fail(e, ENOTSUP,
			    "to count at many places at once takes links of many probes (Linux "
			    "6.6), and root");
	if (cpus < 1)
		return fail(e, -cpus, "cannot tell the number of CPUs: %s", strerror(-cpus));
	v = xcalloc(1, sizeof(*v));
	v->code = code;
	v->pid = pid;
	v->n_cpus = (size_t)cpus;
	v->before = xcalloc(N_COUNTERS, sizeof(*v->before));
	v->after = xcalloc(N_COUNTERS, sizeof(*v->after));
	r = gather(v);
	if (r < 0)
		r = fail(e, -r, "cannot collect what to count: %s", strerror(-r));
	if (r == 0)
		r = load(v, e);
	if (r == 0)
		r = attach(v, e);
	if (r < 0) {
		visit_rates_end(v);
		return r;
	}
	/* What was passed while the probes were put in counts for nothing. */
	read_counters(v, v->before);
	v->since_ns = clock_monotonic_ns();
	v->cpu_ns = clock_process_ns(v->pid);
	v->waited_ns = waited_ns(v->pid);
	v->due_ns = v->since_ns + GLANCE_NS;
	*ret = v;
	return 0;
}

/* What was passed too often goes, with all probes where it is one. Of a process that had to wait
 * for a CPU, what it would have passed without. */
static int look_again(struct visit_rates *v, uint64_t now, uint64_t cpu_ns)
{
	double s = (double)(now - v->since_ns) / (double)NSEC_PER_SEC,
	       waited = (double)waited_ns(v->pid) - (double)v->waited_ns,
	       more = cpu_ns && waited > 0 ? 1 + waited / (double)cpu_ns : 1;
	bool some = false;
	int r = 0;

	read_counters(v, v->after);
	for (size_t i = 0; i < v->n; i++)
		if ((double)(v->after[i] - v->before[i]) * more > VISIT_RATES_MOST * s)
			some = v->sites[i].dropped = true;
	if (some) {
		point_free(&v->probes);
		r = attach(v, NULL);
	}
	read_counters(v, v->before);
	return r;
}

int visit_rates_step(struct visit_rates *v, uint64_t now, uint64_t *ret_next, struct error *e)
{
	int r = 0;

	if (v->state == KNOWN)
		return 1;
	*ret_next = v->due_ns;
	if (now < v->due_ns)
		return 0;
	if (v->state == GLANCING) {
		uint64_t cpu_ns = clock_process_ns(v->pid) - v->cpu_ns;

		if (cpu_ns < GLANCE_CPU_NS && ++v->glances < MOST_GLANCES) {
			*ret_next = v->due_ns = now + GLANCE_NS;
			return 0;
		}
		r = look_again(v, now, cpu_ns);
		v->since_ns = clock_monotonic_ns();
		*ret_next = v->due_ns = v->since_ns + LOOK_NS;
		v->state = LOOKING;
	} else {
		read_counters(v, v->after);
		v->took_ns = clock_monotonic_ns() - v->since_ns;
		point_free(&v->probes);
		(void)bpf_link__destroy(v->calls);
		v->calls = NULL;
		v->state = KNOWN;
	}
	if (r < 0)
		return fail(e, -r, "cannot count what process %d passes: %s", (int)v->pid,
			    strerror(-r));
	return v->state == KNOWN;
}

static int by_kind_and_rate(const void *a, const void *b)
{
	const struct visit_rate *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->per_s > y->per_s ? -1 : x->per_s < y->per_s;
}

/* A place of a point that has several, as inlined probes have, adds to the one that is there. */
static void add_found(struct visit_rates *v, enum visit_rate_kind kind, const char *point,
		      uint64_t visits)
{
	double per_s =
		(double)visits * (double)NSEC_PER_SEC / (double)(v->took_ns ? v->took_ns : 1);

	for (size_t i = 0; i < v->n_found; i++)
		if (v->found[i].kind == kind && strcmp(v->found[i].point, point) == 0) {
			v->found[i].per_s += per_s;
			return;
		}
	if (!visits)
		return;
	xarray_add(v->found, v->n_found, (struct visit_rate){kind, xstrdup(point), per_s});
}

static void forget(struct visit_rates *v)
{
	for (size_t i = 0; i < v->n_found; i++)
		free(v->found[i].point);
	free(v->found);
	v->found = NULL;
	v->n_found = 0;
}

size_t visit_rates_found(struct visit_rates *v, size_t most, const struct visit_rate **ret)
{
	size_t used = 0, of_kind = 0;

	forget(v);
	for (size_t i = 0; v->state == KNOWN && i < v->n; i++)
		if (!v->sites[i].dropped)
			add_found(v, v->sites[i].kind, v->sites[i].point,
				  v->after[i] - v->before[i]);
	for (size_t i = 0;
	     v->state == KNOWN && i < sizeof(telling_calls) / sizeof(telling_calls[0]); i++) {
		int number = syscall_number(telling_calls[i]);
		char point[64];

		(void)snprintf(point, sizeof(point), "syscall:%s", telling_calls[i]);
		if (number >= 0 && number < VISIT_RATES_CALLS)
			add_found(v, VISIT_CALL, point,
				  v->after[VISIT_RATES_SITES + number] -
					  v->before[VISIT_RATES_SITES + number]);
	}
	if (v->n_found)
		qsort(v->found, v->n_found, sizeof(*v->found), by_kind_and_rate);
	for (size_t i = 0; i < v->n_found; i++) {
		struct visit_rate f = v->found[i];

		of_kind = used && v->found[used - 1].kind == f.kind ? of_kind : 0;
		if (f.per_s < VISIT_RATES_LEAST || f.per_s > VISIT_RATES_MOST || of_kind == most) {
			free(f.point);
			continue;
		}
		of_kind++;
		v->found[used++] = f;
	}
	v->n_found = used;
	*ret = v->found;
	return used;
}

void visit_rates_end(struct visit_rates *v)
{
	if (!v)
		return;
	point_free(&v->probes);
	(void)bpf_link__destroy(v->calls);
	visit_rates_bpf__destroy(v->skel);
	for (size_t i = 0; i < v->n; i++)
		free(v->sites[i].point);
	free(v->sites);
	forget(v);
	free(v->before);
	free(v->after);
	free(v);
}
