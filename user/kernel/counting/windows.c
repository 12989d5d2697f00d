// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/counting/private.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "program/elf/object.h"
#include "kernel/namespace.h"
#include "kernel/probe.h"
#include "kernel/uprobes.h"
#include "shared/visit_rates.h"
#include "visit_rates.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Time between two looks at the CPU time of the process. A window ends after so many times the CPU
 * time that it wants. */
#define LOOK_NS (2 * NSEC_PER_MSEC)
#define PATIENCE 10

struct windows {
	struct closers closers;
	uint32_t window; /* the number of the last one, from 1 on; 0: none counts */
	struct visit_rates_bpf *skel;
	pid_t pid;
	struct code_places code;
	int cpus;
	uint64_t *before; /* counters, VISIT_RATES_SITES of them */
	uint64_t *each;	  /* one counter, of each CPU */
};

static int gone(const struct windows *w, struct error *e)
{
	return fail(e, ESRCH, "process %d ended while it was counted", (int)w->pid);
}

static int load(struct windows *w, struct error *e)
{
	int r;

	w->skel = visit_rates_bpf__open();
	if (!w->skel)
		return fail(e, errno, "cannot open the BPF program that counts: %s",
			    strerror(errno));
	w->skel->rodata->visit_rates_process = (unsigned int)w->pid;
	(void)bpf_program__set_autoload(w->skel->progs.visit_rates_call, false);
	(void)bpf_program__set_expected_attach_type(w->skel->progs.visit_rates_probe,
						    (enum bpf_attach_type)UPROBE_MULTI);
	r = namespace_find(&w->skel->rodata->own_namespace, e);
	if (r < 0)
		return r;
	if (visit_rates_bpf__load(w->skel) < 0)
		return fail(e, errno, "cannot load the BPF program that counts: %s",
			    strerror(errno));
	return 0;
}

int windows_open(pid_t pid, const struct elf_object *o, struct windows **ret, struct error *e)
{
	struct windows *w;
	int r;

	if (!feature_usable("uprobe_multi", NULL))
		return fail(e, ENOTSUP,
			    "to count at many places at once takes links of many probes (Linux "
			    "6.6), and root");
	w = xcalloc(1, sizeof(*w));
	w->pid = pid;
	w->cpus = libbpf_num_possible_cpus();
	w->code.o = o;
	w->before = xcalloc(VISIT_RATES_SITES, sizeof(*w->before));
	w->each = w->cpus > 0 ? xcalloc((size_t)w->cpus, sizeof(*w->each)) : NULL;
	r = w->each ? load(w, e) : fail(e, ENOMEM, "out of memory");
	if (r == 0 && !uprobes_alone_in(pid))
		r = fail(
			e, ENOTSUP,
			"the first thread of process %d has ended: probes could not be put into it "
			"alone, and would slow down all processes that run the same files",
			(int)pid);
	if (r == 0 && !clock_process_ns(pid))
		r = fail(e, ESRCH, "there is no process %d", (int)pid);
	if (r < 0) {
		windows_close(w);
		return r;
	}
	*ret = w;
	return 0;
}

void windows_close(struct windows *w)
{
	if (!w)
		return;
	closers_wait(&w->closers);
	visit_rates_bpf__destroy(w->skel);
	free(w->before);
	free(w->each);
	free(w);
}

static uint64_t counter(const struct windows *w, uint32_t id)
{
	uint64_t sum = 0;

	if (bpf_map_lookup_elem(bpf_map__fd(w->skel->maps.visit_rates), &id, w->each) < 0)
		return w->before[id];
	for (int k = 0; k < w->cpus; k++)
		sum += w->each[k];
	return sum;
}

static bool some_hits(const struct windows *w, const struct window_place *places, size_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (places[i].wanted && counter(w, i) != w->before[i])
			return true;
	return false;
}

/* What was counted since the last call. */
static void read_hits(const struct windows *w, const struct window_place *places, size_t n,
		      uint64_t *hits)
{
	for (uint32_t i = 0; i < n; i++) {
		uint64_t now = places[i].wanted ? counter(w, i) : w->before[i];

		hits[i] = now - w->before[i];
		w->before[i] = now;
	}
}

/* A descriptor that holds the probes, or a negative errno; -ENOENT: none is wanted. */
static int attach(struct windows *w, const struct window_place *places, size_t n, struct error *e)
{
	_cleanup_free_ struct uprobe *probes = xcalloc(n + 1, sizeof(*probes));
	struct uprobes u = {.places = &w->code, .pid = w->pid, .all = probes};

	for (size_t i = 0; i < n; i++)
		if (places[i].wanted)
			probes[u.n++] = (struct uprobe){.vaddr = places[i].vaddr,
							.cookie = (uint64_t)w->window << 32 | i,
							.certain = true};
	return u.n == 0 ? -ENOENT : uprobes_link(&u, w->skel->progs.visit_rates_probe, e);
}

/* Waits until the process has used @cpu_s of CPU time, or, if @while_hit is there, until a first
 * look finds no hit at those of these places that are wanted. -ESRCH: it ended. */
static int wait_for(const struct windows *w, double cpu_s, const struct window_place *while_hit,
		    size_t n, double *ret_cpu_s)
{
	const struct timespec look = {.tv_nsec = LOOK_NS};
	const uint64_t since = clock_monotonic_ns(), from = clock_process_ns(w->pid);
	const double wanted = cpu_s * (double)NSEC_PER_SEC;
	uint64_t now = from;

	while (now && (double)(now - from) < wanted &&
	       (double)(clock_monotonic_ns() - since) < PATIENCE * wanted) {
		(void)nanosleep(&look, NULL);
		now = clock_process_ns(w->pid);
		if (now > from && while_hit) {
			if (!some_hits(w, while_hit, n))
				break;
			while_hit = NULL;
		}
	}
	*ret_cpu_s = now > from ? (double)(now - from) / (double)NSEC_PER_SEC : 0;
	return now ? 0 : -ESRCH;
}

int windows_count(struct windows *w, const struct window_place *places, size_t n, double cpu_s,
		  bool look, uint64_t *hits, double *ret_cpu_s, struct error *e)
{
	int fd, r;

	/* Probes of the last window that are not gone yet slow the program down. Where the CPU time
	 * counts, they have to be gone. */
	if (!look)
		closers_wait(&w->closers);
	w->window++;
	fd = attach(w, places, n, e);
	if (fd == -ESRCH)
		return gone(w, e);
	if (fd < 0 && fd != -ENOENT)
		return fd;
	w->skel->bss->visit_rates_window = w->window;
	r = wait_for(w, cpu_s, look ? places : NULL, n, ret_cpu_s);
	w->skel->bss->visit_rates_window = 0;
	if (fd >= 0)
		closers_close(&w->closers, fd);
	read_hits(w, places, n, hits);
	return r < 0 ? gone(w, e) : 0;
}
