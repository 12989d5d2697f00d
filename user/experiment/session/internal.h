/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of this package share. */
#pragma once

#include "base/cleanup.h"
#include "experiment/session/session.h"

#include "base/rng.h"
#include "points/points.h"
#include "experiment/session/rate.h"
#include "target/quota.h"

#include <bpf/libbpf.h>
#include <pthread.h>
#include <stdio.h>

struct cozbpf_bpf;
struct refusal;

#define UNWIND_MAX_CHUNKS (ABI_MAX_ROWS / ABI_ROW_CHUNK)

/* An object's rows in the map. */
struct unwind_rows {
	bool added, left_out, kept; /* is it in the map; was there no room for it, or for what came
				       in its stead? */
	unsigned int lo, hi, room;  /* from lo on */
	/* The place for the next table: that of the one before, which nothing has searched since
	 * the modules were swapped. */
	unsigned int spare_lo, spare_room;
};

/* A part of the map of modules. */
struct unwind_part {
	unsigned int first, room;
};

/* An address space's modules: those in force, and the place for the next. */
struct unwind_space {
	struct unwind_part now, spare;
};

struct unwind {
	struct abi_row *chunks[UNWIND_MAX_CHUNKS];
	size_t n_chunks, n_rows;
	struct abi_module *modules; /* the map */
	unsigned int n_pool;	    /* of it given away so far */
	struct unwind_part *free;   /* of spaces that are gone */
	size_t n_free;
	struct unwind_space spaces[ABI_MAX_SPACES]; /* by the code map's index */
	size_t n_surplus_spaces;
	bool moved; /* rows of an object that was there already are elsewhere now */
	struct unwind_rows *objects; /* by the code map's index */
	size_t n_objects;
	size_t n_left_out;
	char *left_out; /* the first one's path */
	size_t n_kept;
	char *kept; /* likewise */
	size_t n_surplus_modules;
	/* The first chunk comes into force while unwind_open's caller does something else. */
	pthread_t inserter;
	bool inserting;
	int rows_fd, first_fd, first_error;
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
	unsigned int nr_cpus;
	struct rng rng;
	unsigned int rate_hz;	 /* in force */
	uint64_t begin_ns;	 /* of the experiment or window under way or just ended */
	struct abi_totals begun; /* what the experiment began with */
	struct backend_totals begun_points; /* likewise, of the points alone */
	bool looked;			    /* an experiment has shown what rate is needed */
	struct sampler *events;
	size_t n_events;
	size_t redraws;
	bool in_step;		    /* see events_in_step */
	uint64_t redraw_ns;	    /* when the next one is due */
	uint64_t cpus_ns;	    /* when to look again which CPUs are online */
	struct ring_buffer *traces; /* --trace-payments, and its file; or NULL */
	FILE *trace;
	struct ring_buffer *clocks;	/* CPUs whose clocks are stopped and should run, or
					   ABI_IDLE_LOOPBACK; NULL: none is ever stopped */
	struct bpf_link *loopback[4];	/* the network softirq and timers; NULL: detached */
	uint64_t loopback_ns;		/* when they were attached, or were of use last */
	uint64_t loopback_raised;	/* softirqs until then */
	unsigned int loopback_rearm_at; /* how many wake-ups attached them again last; 0: they were
					   of use since */
	uint64_t clocks_ns;		/* since when clocks may be stopped */
	bool idle[ABI_MAX_CPUS];
	bool resting;			    /* ... of all CPUs, for longer */
	unsigned int idle_hz[ABI_MAX_CPUS]; /* the rate when they were stopped */
	struct quotas *quotas;		    /* of the processes in scope */
	unsigned int quotas_at;		    /* the process that was looked at last, of many */
	struct bpf_link *polled;    /* requests of io_uring begin; NULL: there is no such event */
	struct bpf_link *links[11]; /* edges, or what --sync pthread has in their stead */
	struct bpf_link *iter;
	struct points points;
	struct bpf_link *loader; /* the probe of the dynamic linker, and what it has told; NULL: not
				    watched */
	struct ring_buffer *loads;
	bool loaded;
	struct unwind *unwind;
	struct abi_place *places;		  /* of slopes, the map; NULL: there are none */
	struct sync *sync;			  /* --sync pthread; else NULL */
	bool sync_switch;			  /* ... and switches are reported, too */
	struct abi_totals *percpu;		  /* room for one copy a CPU */
	uint64_t epoch;				  /* of the experiment under way or just ended */
	uint64_t window;			  /* of slopes, likewise */
	uint64_t window_run_ns, window_ticked_ns; /* when it began */
	uint64_t window_ns;			  /* how long it was */
	double intervals_own, intervals_ns; /* of all that were followed, and what was our own */
	uint64_t run_ns_so_far, ticked_ns_so_far; /* of all windows */
	uint64_t window_waits;			  /* a bit for each entry that is a wait's */
	double window_scale; /* what was executed in it, over what ticks stood for */
	pthread_mutex_t
		*procs_lock;	  /* of many processes' entries, shared with children; else NULL */
	struct ring_buffer *ring; /* of execs, in a scope of many processes */
	pid_t execs[256];
	size_t n_execs;
	size_t n_without_space; /* looks at processes for whose mappings there was no space */
	unsigned char space_idle[ABI_MAX_SPACES]; /* for how many calls of session_maintain nobody
						     has run in each address space */
};

/* session.c: session_open; where the kernel refuses the programs *why says why, else why->why is
 * "".
 */
int session_open_programs(const struct session_options *o, struct session **ret,
			  struct refusal *why, struct error *e);
/* Attaches a tracepoint's program. */
int session_attach_program(struct bpf_program *prog, struct bpf_link **ret, struct error *e);

/* calibration.c. Gives BPF what an earlier run has found payments and samples to cost beside what
 * BPF can see. False: no run has. To be called before the programs are loaded. */
bool calibrate_recall(struct session *s);
/* Measures it, tells BPF, and keeps it for later runs. Takes half a second. 0 or a negative errno:
 * without it payments are a little less exact. */
int calibrate(struct session *s);
/* measure.c: the measuring, on two CPUs or twice the same. 1: the figures are good for other runs,
 * too; 0: no two attempts agree, these are the lowest; else a negative errno. */
int calibrate_measure(struct session *s, const int cpu[2], struct abi_costs *ret);

/* events.c */
int events_open(struct session *s, struct error *e);
void events_close(struct session *s);
/* Has the rate be what the program needs by what an experiment has shown, unless it was chosen. */
void events_adapt(struct session *s, const struct rate_seen *x);
/* Can the rate still change? */
bool events_adaptable(const struct session *s);
/* Draws a new period for one event of each CPU and starts it afresh. @now: CLOCK_MONOTONIC, ns. */
void events_redraw(struct session *s, uint64_t now);
/* Have the clocks of all CPUs tick together, or each by itself. */
void events_in_step(struct session *s, bool in_step);
/* Has all clocks, which are stopped, go at random distances. */
void events_set_going(struct session *s);
/* Gives one clock a new random period, and starts it afresh. */
void events_draw(struct session *s, struct sampler *v);

/* A list as the kernel writes it, "0-3,8", into @n flags. */
void cpus_parse(const char *list, bool *set, size_t n);
/* Has exactly the CPUs of the list have clocks. */
void cpus_follow(struct session *s, const char *online);

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
/* Stops them all, or has them go again: between experiments that are far from each other. Waits are
 * not sampled either. */
int clocks_rest(void *session, bool rests);

/* CPU time, in ns, that a hypervisor took from this machine's CPUs since boot; 0: none, or not
 * known. */
void stolen_open(struct session *s);
uint64_t stolen_ns(const struct session *s);
void stolen_close(struct session *s);
/* Looks for quotas of the processes in scope: of many, at some of them each time. */
void quotas_follow(struct session *s);
/* Around the time between experiments; not wanted: nothing happens. */
void own_cost_begin(struct session *s);
void own_cost_end(struct session *s);

/* loopback.c: has those network packets told apart that a thread in scope sends to its own machine.
 * Not with --sync pthread. */
int loopback_follow(struct session *s, struct error *e);
void loopback_close(struct session *s); /* not followed: allowed */
/* Detaches the events if nothing needs them. Between experiments. */
void loopback_maintain(struct session *s);

/* loader.c */
void loader_close(struct session *s);
/* processes.c */
int processes_open(struct session *s, struct error *e);
void processes_close(struct session *s); /* not opened: allowed */
/* @pid has a handler of the payment signal, unless *@execs moves meanwhile; its children inherit
 * that. */
void processes_allow_signals(struct session *s, pid_t pid,
			     const volatile unsigned long long *execs);
/* The controller itself, while it calibrates. */
void processes_calibrate(struct session *s, bool begins);

/* slopes.c: after load; and the calls of experiment/backend.h. */
int slopes_map(struct session *s, struct error *e);
void slopes_unmap(struct session *s); /* not opened: allowed */
int session_slopes_begin(void *session, const struct abi_place *places, size_t n,
			 uint64_t since_ns);
int session_slopes_follow(void *session, const struct abi_place *places, size_t n);
int session_slopes_end(void *session);
int session_slopes(void *session, size_t point, unsigned int class, struct backend_slopes *ret);

/* sync.c: before and after load; tells the shim whether an experiment runs. */
void sync_configure(struct session *s);
int sync_open(struct session *s, struct error *e);
void sync_close(struct session *s); /* not opened: allowed */
void sync_active(struct session *s, bool active);

/* unwind.c. After load unwind_open begins, and unwind_opened ends what takes the kernel a while.
 * unwind_set hands over the tables of s->code, and the mappings of @space, whenever they have
 * changed. unwind_log_errors says what could not be taken in, one a line. */
int unwind_open(struct session *s, struct error *e);
int unwind_opened(struct session *s, struct error *e);
void unwind_close(struct session *s); /* not opened: allowed */
int unwind_set(struct session *s, size_t space, struct error *e);
/* No process runs in @space any more, and none has for a while. */
void unwind_drop(struct session *s, size_t space);
void unwind_log_errors(const struct session *s, FILE *f);

/* unwind_rows.c. After load; the first chunk is begun with (unwind_opened ends that). A failure
 * leaves what unwind_rows_close frees. */
int unwind_rows_open(struct session *s, struct error *e);
void unwind_rows_close(struct session *s);
/* Takes the rows out of the code map's objects whose tables are new. */
int unwind_add_rows(struct session *s, struct error *e);
