/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of this package share. */
#pragma once

#include "base/cleanup.h"
#include "session/session.h"

#include "base/rng.h"
#include "elf/lines.h"
#include "session/rate.h"

#include <bpf/libbpf.h>
#include <pthread.h>
#include <stdio.h>

struct cozbpf_bpf;
struct refusal;

/* A part of a function whose samples count, in the object's own addresses. */
struct sampled_code {
	size_t object;
	struct addr_range range;
};

struct point {
	char *name;
	bool latency;
	/* A probe's index in the map of points, or a pair of the shim's counters. */
	bool probed;
	bool is_sampled;   /* probed: samples count, not visits */
	char *sampled;     /* ... of FILE:LINE; NULL: of functions */
	struct sampled_code *codes;
	size_t n_codes;
	uint64_t cost_ns;  /* of a visit; 0: not known */
	size_t begin, end; /* counters' indexes; the same for throughput */
	bool has_begin, has_end;
	struct bpf_link **links;
	size_t n_links;
	/* A latency point of two probed ones: this is the first, `end` the second's index. */
	unsigned int pair; /* which latency point, and 1; 0: none */
	bool hidden;       /* the second of a pair: no point of the run */
	int *fds; /* links that libbpf knows nothing of */
	size_t n_fds;
	struct cozbpf_bpf *event; /* a tracepoint's own program */
	unsigned int call;	  /* it counts the begins (1) or the ends (2) of a system call; 0: neither */
};

/* What a visit costs: by the instruction, of a return on top of the entry's, of a system call's begin and end and of looking at one that is no
 * visit, of a tracepoint. */
struct point_costs {
	uint64_t site[CODE_COSTS];
	uint64_t at_return, syscall[2], look[2], tracepoint;
};

/* A sampling event of one CPU. */
struct sampler {
	int fd;
	size_t kind; /* which of the CPU's clocks */
	unsigned int cpu;
	uint64_t period; /* ns, but while the CPU's clocks are stopped */
	struct bpf_link *link;
};

struct own_cost {
	bool wanted, counting; /* counting: since begun_ns, as long as fd is open */
	int fd;
	uint64_t begun_ns, last_ns, run_ns_before;
	uint64_t run_ns, over_ns; /* what the programs took, of all CPUs, over this time */
};

struct session {
	struct session_options options;
	struct cozbpf_bpf *skel;
	bool calibrated;
	struct own_cost own_cost;
	int stat_fd; /* /proc/stat, where the hypervisor's share is; -1: not wanted */
	pid_t pid;
	unsigned int nr_cpus;
	struct rng rng;
	unsigned int rate_hz;    /* in force */
	uint64_t begin_ns;       /* of the experiment under way or just ended */
	uint64_t begin_visits[ABI_MAX_POINTS];
	struct rate_seen seen;   /* until then, but for the visits */
	bool looked;             /* an experiment has shown what rate is needed */
	struct sampler *events;
	size_t n_events;
	size_t redraws;
	uint64_t redraw_ns; /* when the next one is due */
	uint64_t cpus_ns;   /* when to look again which CPUs are online */
	struct ring_buffer *traces; /* --trace-payments, and its file; or NULL */
	FILE *trace;
	struct ring_buffer *clocks; /* CPUs whose clocks are stopped and should run, or ABI_IDLE_LOOPBACK; NULL: none is ever stopped */
	struct bpf_link *loopback[4]; /* the network softirq and timers; NULL: detached */
	uint64_t loopback_ns;         /* when they were attached, or were of use last */
	uint64_t loopback_raised;     /* softirqs until then */
	unsigned int loopback_rearm_at; /* how many wake-ups attached them again last; 0: they were of use since */
	uint64_t clocks_ns;         /* since when clocks may be stopped */
	bool idle[ABI_MAX_CPUS];
	unsigned int idle_hz[ABI_MAX_CPUS]; /* the rate when they were stopped */
	struct bpf_link *links[8]; /* edges, iterator */
	size_t n_links;
	struct bpf_link *iter;
	struct point points[ABI_MAX_POINTS];
	size_t n_points;
	bool multi; /* one link can hold many probes */
	bool traced;                  /* points that the kernel reports are attached by perf, where nothing preempts their programs */
	struct bpf_link *syscalls[2]; /* of their begin and their end, once a point asked for it */
	struct point_costs costs;
	struct point measured; /* probes on ourselves, for the costs: to remove them takes long, so they stay */
	struct point slow_probes; /* where each visit of the line can be made longer; none: it is slowed by samples */
	struct abi_totals slow_begin; /* the totals when they came */
	bool taken[SHIM_MAX_COUNTERS]; /* counters of the page that belong to a point */
	const struct shim_page *page;
	struct code_map *code;
	struct bpf_link *loader; /* the probe of the dynamic linker, and what it has told; NULL: not watched */
	struct ring_buffer *loads;
	bool loaded;
	struct unwind *unwind;
	struct sync *sync; /* --sync pthread; else NULL */
	bool sync_switch;  /* ... and switches are reported, too */
	struct abi_totals *percpu; /* room for one copy a CPU */
	struct abi_point *percpu_points;
	struct latencies *latencies; /* NULL: none */
	uint64_t late_begin[ABI_LATE_BUCKETS];
	uint64_t epoch; /* of the experiment under way or just ended */
	pthread_mutex_t *procs_lock; /* of many processes' entries, shared with children; else NULL */
	struct ring_buffer *ring; /* of execs, in a scope of many processes */
	pid_t execs[256];
	size_t n_execs;
	size_t n_without_space; /* looks at processes for whose mappings there was no space */
	unsigned char *space_idle; /* for how many calls of session_maintain nobody has run in each address space */
	size_t n_space_idle;
};

/* session.c: session_open, for the programs' sake alone. On failure *why says why, or why->why is "" and @e says it. */
int session_try(const struct session_options *o, struct refusal *why, struct error *e);

/* events.c */
int events_open(struct session *s, struct error *e);
void events_close(struct session *s);
/* Has the rate be what the program needs by what an experiment has shown, unless it was chosen. */
void events_adapt(struct session *s, const struct rate_seen *x);
/* Can the rate still change? */
bool events_adaptable(const struct session *s);
/* Draws a new period for one event of each CPU and starts it afresh. @now: CLOCK_MONOTONIC, ns. */
void events_redraw(struct session *s, uint64_t now);
/* Gives one clock a new random period, and starts it afresh. */
void events_draw(struct session *s, struct sampler *v);

/* Two clocks of a CPU, which is online: 0, else a negative errno. */
int events_open_cpu(struct session *s, unsigned int cpu, struct error *e);
void events_close_cpu(struct session *s, unsigned int cpu);
bool events_have(const struct session *s, unsigned int cpu);

/* cpus.c: a list as the kernel writes it, "0-3,8", into @n flags. */
void cpus_parse(const char *list, bool *set, size_t n);
/* Has exactly the CPUs of the list have clocks. */
void cpus_follow(struct session *s, const char *online);
/* The same by what the kernel says, once a second. */
void cpus_look(struct session *s, uint64_t now);

/* clocks.c */
void trace_configure(struct session *s); /* before the load */
int trace_open(struct session *s, struct error *e);
void trace_drain(struct session *s); /* not asked for: allowed */
void trace_close(struct session *s);
void clocks_close(struct session *s); /* not opened: allowed */
/* Are this CPU's clocks stopped? */
bool clocks_idle(const struct session *s, unsigned int cpu);
/* Looks which may. Between experiments. */
void clocks_maintain(struct session *s);

/* stolen.c: CPU time, in ns, that a hypervisor took from this machine's CPUs since boot; 0: none, or not known. */
void stolen_open(struct session *s);
uint64_t stolen_ns(const struct session *s);
void stolen_close(struct session *s);
/* own_cost.c: around the time between experiments; not wanted: nothing happens. */
void own_cost_begin(struct session *s);
void own_cost_end(struct session *s);

/* loopback.c: has those network packets told apart that a thread in scope sends to its own machine. Not with --sync pthread. */
int loopback_follow(struct session *s, struct error *e);
void loopback_close(struct session *s); /* not followed: allowed */
/* Detaches the events if nothing needs them. Between experiments. */
void loopback_maintain(struct session *s);

/* points.c */
void points_close(struct session *s);
/* Number @i of those that are points of the run, in the order of backend_totals.points; NULL: there are fewer. */
const struct point *session_shown_point(const struct session *s, size_t i);

/* latency.c. latency_configure before the programs are loaded; latency_begin reads where an experiment begins. */
int latency_configure(struct session *s, struct error *e);
void latency_close(struct session *s);
int latency_begin(struct session *s);
int latency_measured(void *b, size_t index, struct backend_latency *ret);
/* Detaches the probes and frees the contents. */
void point_free(struct point *p);
/* Keeps a link, or a descriptor that is one, with the point, which then owns it; where that fails it is closed. -ENOMEM. */
int point_keep(struct point *p, struct bpf_link *link);
int point_keep_fd(struct point *p, int fd);

/* uprobes.c. What @o was opened as may be another file by now, or nothing in our own mount namespace: the descriptor is the file. */
#define UPROBE_PATH 32
void uprobe_path(const struct elf_object *o, char path[UPROBE_PATH]);
/* A probe on each site, kept with @p. */
struct uprobes {
	struct bpf_program *one, *multi; /* the program, and the same loaded for links that hold many probes */
	uint64_t cookie;
	pid_t pid; /* -1: in all processes */
	bool at_return;
	const char *what; /* the point, in @e */
};
int uprobes_attach(struct session *s, struct point *p, const struct uprobes *u, const struct session_site *sites, size_t n, struct error *e);
/* Those that count visits for map entry @index. */
struct uprobes uprobes_of_point(const struct session *s, size_t index, pid_t pid, bool at_return, const char *what);

/* slowing.c: where the experiment @epoch is to slow the line by @share (0..1) and probes are there to do it, leaves it to them. */
void slowing_begin(struct session *s, double share, uint64_t epoch);

/* syscalls.c: has the kernel report the begin (0) or the end (1) of system calls. */
/* Can a thread be preempted in a tracepoint's program? Then visits of others are lost. Attaches one to all system calls for a moment. */
bool tracepoints_preempted(void);
/* A tracepoint by perf, which is to call a program on all CPUs: a descriptor, or -errno. */
int tracepoint_open(const char *category, const char *name);
int syscalls_trace(struct session *s, unsigned int end, struct error *e);
/* What looking at the system calls that are no visits has cost, in ns for each visit of such points. */
uint64_t syscalls_looks(const struct session *s, unsigned int end, uint64_t visits);

/* tracepoints.c: has a tracepoint count as a visit of point @index; NULL on failure. *event is a copy of the program that is attached, or NULL if it
 * is the session's; bpf_link__destroy, then cozbpf_bpf__destroy. */
struct bpf_link *tracepoint_link(struct session *s, size_t index, const char *category, const char *name, struct cozbpf_bpf **event,
				 struct error *e);

/* sampled.c: tells BPF where the code of sampled points is by now. */
void sampled_update(struct session *s);
/* Nanoseconds of a sampled visit. */
uint64_t sampled_unit(const struct session *s);

/* point_costs.c: measures what the visits cost that are asked for. After load, before there is a scope. */
void point_costs_measure(struct session *s);

/* loader.c */
void loader_close(struct session *s);
/* processes.c */
int processes_open(struct session *s, struct error *e);
void processes_close(struct session *s); /* not opened: allowed */
/* @pid has a handler of the payment signal, unless *@execs moves meanwhile; its children inherit that. */
void processes_allow_signals(struct session *s, pid_t pid, const volatile unsigned long long *execs);
/* The controller itself, while it calibrates. */
void processes_calibrate(struct session *s, bool begins);

/* totals.c: a system call that reads a map, while others run. As long as it lasts the kernel calls no program by perf on its CPU, neither a clock's
 * nor a tracepoint's. A kernel that preempts itself could leave it at that for a time slice; so it is one that other threads do not preempt.
 *	_map_call_ bool raised = map_call_begin(); */
#define _map_call_ _cleanup_(map_call_end) __attribute__((unused))
bool map_call_begin(void);
void map_call_end(const bool *raised);

/* totals.c */
int totals_read(struct session *s, struct abi_totals *ret);

/* sync.c: before and after load; tells the shim whether an experiment runs. */
void sync_configure(struct session *s);
int sync_open(struct session *s, struct error *e);
void sync_close(struct session *s); /* not opened: allowed */
void sync_active(struct session *s, bool active);
/* Attaches what the scheduler must still say: of exec and exit, and of switches where it can. */
int sync_attach(struct session *s, struct error *e);

/* unwind.c. After load unwind_open begins, and unwind_opened ends what takes the kernel a while. unwind_set hands over the tables of s->code,
 * and the mappings of @space, whenever they have changed. unwind_log_errors says what could not be taken in, one a line. */
int unwind_open(struct session *s, struct error *e);
int unwind_opened(struct session *s, struct error *e);
void unwind_close(struct session *s); /* not opened: allowed */
int unwind_set(struct session *s, size_t space, struct error *e);
/* No process runs in @space any more, and none has for a while. */
void unwind_drop(struct session *s, size_t space);
void unwind_log_errors(const struct session *s, FILE *f);

/* calibration.c: measures what payments and hits cost beside what BPF can see, tells BPF, and keeps it for later runs. Half a second. */
int calibrate(struct session *s);
/* Has an earlier run found it out? Then BPF is told; before the programs are loaded. */
bool calibrate_recall(struct session *s);

/* calibrate.c: the measuring, on two CPUs or twice the same. 1: the figures are good for other runs, too; 0: no two attempts
 * agree, these are the lowest; else a negative errno. */
struct calibration;
int calibrate_measure(struct session *s, const int cpu[2], struct calibration *ret);
