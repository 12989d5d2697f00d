// SPDX-License-Identifier: BSD-2-Clause
#include "experiment/session/internal.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "cozbpf.skel.h"
#include "kernel/probe.h"
#include "kernel/programs.h"
#include "kernel/refusal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Debts below this wait for more: a payment costs a few microseconds itself. */
#define THRESHOLD_NS SHIM_THRESHOLD_NS
/* Unused blocked time kept as credit: a few samples of a millisecond, forgotten within some ten
 * rounds of a few milliseconds. Without it a ping-pong with rounds of 1.5 ms reads 36 for 60; past
 * a knee none is left, and it changes nothing. */
#define UNUSED_WAIT_NS (3 * 1000000LL)
#define UNUSED_WAIT_AGE_NS (50 * 1000000LL)
/* A thread in a payment cannot be preempted on a kernel without preemption: tasks out of scope wait
 * at most this long. */
#define SLICE_NS 1000000ULL

static void configure(struct session *s)
{
	struct abi_config *c = &s->skel->rodata->config;

	*c = s->options.config;
	c->nr_cpus = s->nr_cpus;
	c->has_task_work = feature_usable("task_work", s->options.points.disabled);
	/* Not for uprobes' programs. Who pays is current at any rate. */
	c->has_send_signal_task = c->sync == ABI_SYNC_SCHED &&
				  feature_usable("send_signal_task", s->options.points.disabled);
	c->has_preempt_disable = programs_preempt_disable();
	/* A kernel that does not report system calls knows no such event. */
	(void)bpf_program__set_autoload(
		s->skel->progs.pay_at_call,
		!c->has_task_work && c->sync == ABI_SYNC_SCHED &&
			libbpf_find_vmlinux_btf_id("sys_exit", BPF_TRACE_RAW_TP) > 0);
	c->rq_edges =
		(c->payer == ABI_PAY_HOLD || c->payer == ABI_PAY_SPIN) && c->sync == ABI_SYNC_SCHED;
	c->has_switch = s->sync_switch;
	c->threshold_ns = THRESHOLD_NS;
	c->unused_wait_ns = UNUSED_WAIT_NS;
	c->unused_wait_age_ns = UNUSED_WAIT_AGE_NS;
	c->slice_ns = SLICE_NS;
	c->max_pay_ns = SHIM_MAX_PAY_NS;
	if (!c->inclusive)
		(void)bpf_map__set_max_entries(s->skel->maps.chains, 1); /* 5 MB less */
	c->slopes &= c->sync == ABI_SYNC_SCHED;
	if (!c->slopes)
		(void)bpf_map__set_max_entries(s->skel->maps.queued_vectors, 1);
	c->max_frames = feature_disabled("unwind", s->options.points.disabled) ? 1 : ABI_MAX_FRAMES;
}

int session_check_rights(struct error *e)
{
	const char *lacking = !feature_usable("btf", NULL)     ? "btf"
			      : feature_denied("task_storage") ? "task_storage"
							       : NULL;

	return lacking ? refusal_fail(e, -EPERM, "the BPF programs", feature_refusal(lacking)) : 0;
}

/* Loaded, it would run, but the ledger would have no entries for threads. */
static int refuse_without_storage(struct refusal *why)
{
	if (feature_usable("task_storage", NULL) || feature_denied("task_storage"))
		return 0;
	*why = *feature_refusal("task_storage");
	return -EOPNOTSUPP;
}

static void cleanup_session(struct session **s)
{
	session_close(*s);
}

int session_open_programs(const struct session_options *o, struct session **ret,
			  struct refusal *why, struct error *e)
{
	_cleanup_(cleanup_session) struct session *s = NULL;
	int cpus, r;

	*why = (struct refusal){};
	cpus = libbpf_num_possible_cpus();
	if (cpus < 1)
		return fail(e, -cpus, "cannot tell the number of CPUs: %s", strerror(-cpus));
	if (cpus > ABI_MAX_CPUS)
		return fail(e, E2BIG,
			    "this machine has %d possible CPUs; cozbpf is built for at most %d",
			    cpus, ABI_MAX_CPUS);
	s = xcalloc(1, sizeof(*s));
	s->options = *o;
	stolen_open(s);
	s->quotas = quotas_new();
	if (!s->quotas)
		return fail(e, ENOMEM, "out of memory");
	s->nr_cpus = (unsigned int)cpus;
	s->rate_hz = o->rate_hz ? o->rate_hz : SESSION_RATE_LOW;
	rng_seed(&s->rng, o->seed ^ 0x7065726632);
	s->percpu = xcalloc((size_t)cpus, sizeof(*s->percpu));
	load_log_listen(NULL);
	s->skel = programs_open();
	if (!s->skel)
		return fail(e, errno, "cannot open the BPF programs: %s", strerror(errno));
	sync_configure(s);
	configure(s);
	s->options.points.sample_ns = NSEC_PER_SEC / (o->rate_hz ? o->rate_hz
						      : o->light ? SESSION_RATE_LIGHT
								 : SESSION_RATE_ALONE);
	r = points_open(&s->points, &s->options.points, s->skel, s->nr_cpus, e);
	if (r < 0)
		return r;
	trace_configure(s);
	s->calibrated = calibrate_recall(s);
	(void)bpf_program__set_autoload(s->skel->progs.calibrate_tick, !s->calibrated);
	r = refuse_without_storage(why);
	if (r == 0)
		r = programs_load(s->skel->skeleton, why);
	if (r < 0)
		return refusal_fail(e, r, "the BPF programs", why);
	r = slopes_map(s, e);
	if (r < 0)
		return r;
	r = sync_open(s, e);
	if (r >= 0)
		r = unwind_open(s, e);
	if (r >= 0)
		r = processes_open(s, e);
	if (r >= 0)
		r = trace_open(s, e);
	if (r >= 0)
		*ret = TAKE_PTR(s);
	return r;
}

int session_open(const struct session_options *o, struct session **ret, struct error *e)
{
	struct refusal why;

	return session_open_programs(o, ret, &why, e);
}

void session_settle(struct session *s)
{
	(void)unwind_opened(s, NULL);
}

void session_close(struct session *s)
{
	if (!s)
		return;
	if (s->skel && s->skel->bss)
		s->skel->bss->control.epoch =
			(s->skel->bss->control.epoch + 1) & ~1ULL; /* no experiment any more */
	own_cost_end(s);
	stolen_close(s);
	quotas_free(s->quotas);
	events_close(s);
	points_close(&s->points);
	slopes_unmap(s);
	sync_close(s);
	loader_close(s);
	trace_close(s);
	clocks_close(s);
	loopback_close(s);
	(void)bpf_link__destroy(s->polled);
	for (size_t i = 0; i < sizeof(s->links) / sizeof(*s->links); i++)
		(void)bpf_link__destroy(s->links[i]);
	(void)bpf_link__destroy(s->iter);
	processes_close(s);
	unwind_close(s);
	cozbpf_bpf__destroy(s->skel);
	free(s->percpu);
	free(s);
}

void session_calibrate(struct session *s)
{
	uint64_t tick_ns;

	if (!s->calibrated)
		(void)calibrate(s);
	s->calibrated = true;
	tick_ns = (uint64_t)s->skel->bss->control.costs.tick_ns;
	if (!s->options.rate_hz)
		s->rate_hz = s->options.light ? rate_light(tick_ns) : rate_low(tick_ns);
	points_measure_costs(&s->points);
}

int session_slots_fd(const struct session *s)
{
	return bpf_map__fd(s->skel->maps.slots);
}

int session_attach_program(struct bpf_program *prog, struct bpf_link **ret, struct error *e)
{
	*ret = bpf_program__attach(prog);
	return *ret ? 0
		    : fail(e, errno, "cannot attach %s: %s; `cozbpf check` says what is missing",
			   bpf_program__name(prog), strerror(errno));
}

/* A kernel without io_uring has neither event. */
static void attach_polled(struct session *s)
{
	static const char *const events[] = {"io_uring_submit_req", "io_uring_submit_sqe"};

	for (size_t i = 0; i < sizeof(events) / sizeof(*events) && !s->polled; i++)
		s->polled =
			bpf_program__attach_raw_tracepoint(s->skel->progs.edge_polled, events[i]);
}

int session_attach(struct session *s, pid_t pid, struct error *e)
{
	struct bpf_program *progs[] = {
		s->skel->progs.edge_newtask, s->skel->progs.edge_exec,
		s->skel->progs.edge_exit,    s->skel->progs.edge_waking,
		s->skel->progs.edge_switch,  s->skel->progs.sync_exec,
		s->skel->progs.sync_exit,    s->skel->progs.sync_switch,
		s->skel->progs.pay_at_call,  s->skel->progs.edge_queue,
		s->skel->progs.edge_execute,
	};
	int r;

	_Static_assert(sizeof(progs) / sizeof(*progs) == sizeof(s->links) / sizeof(*s->links),
		       "a link for each");
	/* Probes are in files, and so in all processes that map them, but for one process alone.
	 * Its children's would come too late: a child that was just forked would visit points that
	 * do not count yet. The programs look at who visits. */
	s->points.pid = s->options.config.many && !s->options.one_only ? 0 : pid;
	s->skel->bss->control.tgid = s->skel->bss->control.main = (unsigned long long)pid;
	r = s->options.config.many && pid
		    ? session_take(s, pid,
				   ABI_PROC_IN | (s->options.one_only ? 0 : ABI_PROC_FOLLOW), e)
		    : 0;
	/* Those of the way to follow threads that sync_configure has chosen. */
	for (size_t i = 0; r == 0 && i < sizeof(progs) / sizeof(*progs); i++)
		r = bpf_program__autoload(progs[i])
			    ? session_attach_program(progs[i], &s->links[i], e)
			    : 0;
	if (r == 0 && !s->sync) {
		attach_polled(s);
		r = loopback_follow(s, e);
	}
	if (r < 0)
		return r;
	s->iter = bpf_program__attach_iter(s->skel->progs.owed_threads, NULL);
	if (!s->iter)
		return fail(e, errno, "cannot attach the task iterator: %s", strerror(errno));
	r = events_open(s, e);
	return r < 0 ? r : unwind_opened(s, e);
}

int session_set_code(struct session *s, struct code_map *map, struct error *e)
{
	s->points.code = map;
	points_update_sampled(&s->points);
	return unwind_set(s, 0, e);
}

struct points *session_points(struct session *s)
{
	return &s->points;
}

void session_find_counters(struct session *s)
{
	struct abi_control *c = &s->skel->bss->control;
	const struct shim_page *page = s->points.page;

	/* Its launch is the first exec. After a second one the program's image has no shim. */
	if (page && !c->signals_ok && c->execs == 1 &&
	    __atomic_load_n(&page->loaded, __ATOMIC_ACQUIRE)) {
		c->signals_ok = 1;
		if (s->options.config.many)
			processes_allow_signals(s, (pid_t)c->main, &c->execs);
	}
	points_find_counters(&s->points);
}

const struct abi_control *session_control(const struct session *s)
{
	return &s->skel->bss->control;
}

uint64_t session_period_ns(const struct session *s)
{
	return 1000000000ULL / s->rate_hz;
}
