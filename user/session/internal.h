/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of this package share. */
#pragma once

#include "session/session.h"

#include "base/rng.h"

#include <bpf/libbpf.h>
#include <stdio.h>

struct cozbpf_bpf;

struct point {
	char *name;
	bool latency;
	/* A probe's index in the map of points, or a pair of the shim's counters. */
	bool probed;
	size_t begin, end; /* counters' indexes; the same for throughput */
	bool has_begin, has_end;
	struct bpf_link **links;
	size_t n_links;
	/* A latency point of two probed ones: this is the first, `end` the second's index. */
	unsigned int pair; /* which latency point, and 1; 0: none */
	bool hidden;       /* the second of a pair: no point of the run */
};

/* A sampling event of one CPU. */
struct sampler {
	int fd;
	size_t kind; /* which of the CPU's clocks */
	unsigned int cpu;
	struct bpf_link *link;
};

struct session {
	struct session_options options;
	struct cozbpf_bpf *skel;
	bool calibrated;
	pid_t pid;
	unsigned int nr_cpus;
	struct rng rng;
	unsigned int events_per_cpu;
	unsigned int rate_hz;    /* in force */
	uint64_t begin_ns;       /* of the experiment under way or just ended */
	uint64_t begin_visits[ABI_MAX_POINTS];
	struct sampler *events;
	size_t n_events;
	size_t redraws;
	struct bpf_link *links[8]; /* edges, iterator */
	size_t n_links;
	struct bpf_link *iter;
	struct point points[ABI_MAX_POINTS];
	size_t n_points;
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
	struct ring_buffer *ring; /* of execs, in a scope of many processes */
	pid_t execs[256];
	size_t n_execs;
	size_t n_without_space; /* looks at processes for whose mappings there was no space */
	unsigned char *space_idle; /* for how many calls of session_tidy nobody has run in each address space */
	size_t n_space_idle;
};

/* events.c */
unsigned int events_per_cpu(unsigned int nr_cpus);
int events_open(struct session *s, struct error *e);
void events_close(struct session *s);
/* Has the rate follow the program's rounds, unless it was chosen: @visits of its busiest point in @ns. */
void events_adapt(struct session *s, uint64_t visits, uint64_t ns);
/* Can the rate still change? */
bool events_adaptable(const struct session *s);
/* Draws a new period for one event of each CPU and starts it afresh. */
void events_redraw(struct session *s);

/* points.c */
void points_close(struct session *s);
/* Number @i of those that are points of the run, in the order of backend_totals.points; NULL: there are fewer. */
const struct point *session_shown_point(const struct session *s, size_t i);

/* latency.c. latency_configure before the programs are loaded; latency_begin reads where an experiment begins. */
int latency_configure(struct session *s, struct error *e);
void latency_close(struct session *s);
int latency_begin(struct session *s);
int latency_measured(void *b, size_t index, struct backend_latency *ret);

/* loader.c */
void loader_close(struct session *s);
/* processes.c */
int processes_open(struct session *s, struct error *e);
void processes_close(struct session *s); /* not opened: allowed */
/* @pid has a handler of the payment signal, unless *@execs moves meanwhile; its children inherit that. */
void processes_allow_signals(struct session *s, pid_t pid, const volatile unsigned long long *execs);
/* The controller itself, while it calibrates. */
void processes_calibrate(struct session *s, bool begins);

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
 * and the mappings of @space, whenever they have changed. unwind_complain says what could not be taken in, one a line. */
int unwind_open(struct session *s, struct error *e);
int unwind_opened(struct session *s, struct error *e);
void unwind_close(struct session *s); /* not opened: allowed */
int unwind_set(struct session *s, size_t space, struct error *e);
/* No process runs in @space any more, and none has for a while. */
void unwind_drop(struct session *s, size_t space);
void unwind_complain(const struct session *s, FILE *f);

/* calibration.c: measures what payments and hits cost beside what BPF can see, tells BPF, and keeps it for later runs. Some 0.2 s. */
int calibrate(struct session *s);
/* Has an earlier run found it out? Then BPF is told; before the programs are loaded. */
bool calibrate_recall(struct session *s);

/* calibrate.c: the measuring, on two CPUs or twice the same. 1: the figures are good for other runs, too; 0: several attempts differ, these
 * are the least; else a negative errno. */
struct calibration;
int calibrate_measure(struct session *s, const int cpu[2], struct calibration *ret);
