// SPDX-License-Identifier: BSD-2-Clause
/* Points that are tracepoints of the kernel. Attached as raw tracepoints, which cost least, where
 * those lose none; on other kernels, and events that are no raw tracepoints (those of single system
 * calls, those that a user defined), through perf, by the number that tracefs has for them. */
#include "points/private.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "cozbpf.skel.h"
#include "probe_preempt.skel.h"
#include "kernel/programs.h"
#include "kernel/refusal.h"
#include "kernel/tracefs.h"

#include <bpf/btf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool known_to_btf(const char *name)
{
	struct btf *btf = btf__load_vmlinux_btf();
	char type[256];
	bool known = false;

	if (btf && snprintf(type, sizeof(type), "btf_trace_%s", name) < (int)sizeof(type))
		known = btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF) > 0;
	btf__free(btf);
	return known;
}

int points_check_tracepoint(const char *category, const char *name, struct error *e)
{
	_cleanup_close_ int events = tracefs_open_events();
	char near[256];
	int id;

	if (events < 0) {
		if (known_to_btf(name))
			return 0;
		return fail(e, -events,
			    "%s:%s: the kernel's list of tracepoints cannot be read (%s); run as "
			    "root, in the first user "
			    "namespace, on a kernel with CONFIG_FTRACE",
			    category, name, strerror(-events));
	}
	id = tracefs_event_id(events, category, name);
	if (id >= 0)
		return 0;
	if (id != -ENOENT)
		return fail(
			e, -id,
			"%s:%s: not allowed to look at the kernel's tracepoints (%s); run as root",
			category, name, strerror(-id));
	if (tracefs_similar(events, category, name, near, sizeof(near)) == 0)
		return fail(e, ENOENT, "this kernel has no tracepoint %s:%s; did you mean %s",
			    category, name, near);
	return fail(e, ENOENT,
		    "this kernel has no tracepoint %s:%s; /sys/kernel/tracing/events lists all",
		    category, name);
}

static int load_copy(struct points *ps, size_t index, struct cozbpf_bpf **ret, struct error *e)
{
	struct cozbpf_bpf *copy = programs_open();
	struct refusal why = {};
	struct bpf_program *p;
	struct bpf_map *m, *ours;
	int r = copy ? 0 : -errno;

	if (!copy)
		return fail(e, -r, "cannot open the BPF programs: %s", strerror(-r));
	copy->rodata->config = ps->skel->rodata->config;
	copy->rodata->config.event_point = (unsigned int)index;
	copy->rodata->n_latencies = ps->skel->rodata->n_latencies;
	bpf_object__for_each_program (p, copy->obj)
		(void)bpf_program__set_autoload(p, p == copy->progs.progress_event);
	/* Everything is shared but what says which point it is. */
	bpf_object__for_each_map (m, copy->obj) {
		ours = bpf_object__find_map_by_name(ps->skel->obj, bpf_map__name(m));
		if (r == 0 && m != copy->maps.rodata)
			r = ours ? bpf_map__reuse_fd(m, bpf_map__fd(ours)) : -ENOENT;
	}
	if (r == 0)
		r = programs_load(copy->skeleton, &why);
	if (r < 0) {
		cozbpf_bpf__destroy(copy);
		return refusal_fail(e, r, "the program of a tracepoint", &why);
	}
	*ret = copy;
	return 0;
}

bool tracepoints_preempted(void)
{
	struct probe_preempt_bpf *probe = probe_preempt_bpf__open_and_load();
	bool preempted = false;

	if (probe && probe_preempt_bpf__attach(probe) == 0) {
		(void)syscall(SYS_getppid);
		preempted = probe->bss->preemptible_calls != 0;
	}
	probe_preempt_bpf__destroy(probe);
	return preempted;
}

int tracepoint_open(const char *category, const char *name)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_TRACEPOINT,
		.size = sizeof(attr),
		.sample_period = 1,
		.wakeup_events = 1,
	};
	_cleanup_close_ int events = tracefs_open_events();
	int id = events < 0 ? events : tracefs_event_id(events, category, name), fd;

	if (id < 0)
		return id;
	attr.config = (unsigned int)id;
	/* One CPU's event is enough to have the program run on all. */
	fd = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static struct bpf_link *link_traced(struct points *ps, size_t index, const char *category,
				    const char *name, struct error *e)
{
	int fd = tracepoint_open(category, name), r;
	struct bpf_link *link = NULL;

	if (fd < 0) {
		(void)fail(e, -fd,
			   "cannot open the tracepoint %s:%s: %s; run as root or give CAP_PERFMON",
			   category, name, strerror(-fd));
		return NULL;
	}
	r = programs_attach_perf(ps->skel->progs.progress_traced, fd, index, &link);
	if (r < 0)
		(void)fail(e, -r, "cannot attach to the tracepoint %s:%s: %s", category, name,
			   strerror(-r));
	return link;
}

struct bpf_link *tracepoint_link(struct points *ps, size_t index, const char *category,
				 const char *name, struct cozbpf_bpf **event, struct error *e)
{
	struct bpf_link *link;

	*event = NULL;
	if (ps->traced || !known_to_btf(name))
		return link_traced(ps, index, category, name, e);
	if (load_copy(ps, index, event, e) < 0)
		return NULL;
	link = bpf_program__attach_raw_tracepoint((*event)->progs.progress_event, name);
	if (link)
		return link;
	cozbpf_bpf__destroy(*event);
	*event = NULL;
	return link_traced(ps, index, category, name, e);
}

int points_attach_tracepoint(struct points *ps, size_t point, const char *category,
			     const char *name, struct error *e)
{
	struct point *p = &ps->all[point];
	struct bpf_link *link = tracepoint_link(ps, point, category, name, &p->event, e);

	if (!link)
		return -EINVAL;
	if (p->event || ps->traced)
		p->cost_ns = ps->costs.tracepoint;
	point_keep(p, link);
	return 0;
}
