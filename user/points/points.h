/* SPDX-License-Identifier: BSD-2-Clause */
/* Progress points, as the kernel counts them: probes on the unchanged program, system calls,
 * tracepoints, samples in a line or a function, and the counters of programs that are instrumented
 * with coz.h. A kind is a file of this package, and a row in run/points.c that says where its
 * places are looked for. */
#pragma once

#include "program/elf/code_returns.h"
#include "kernel/backend.h"
#include "shared/latency.h"
#include "shared/shim_abi.h"

#include "program/dwarf/lines.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bpf_link;
struct bpf_program;
struct code_map;
struct cozbpf_bpf;
struct elf_object;
struct elf_symbol;
struct error;
struct latencies;

/* What points take: their programs are loaded, and their cost is measured, only where they are
 * asked for. */
enum points_needs {
	POINTS_NEED_PROBES = 1,
	POINTS_NEED_SYSCALL_ENTER = 4,
	POINTS_NEED_SYSCALL_LEAVE = 8,
	POINTS_NEED_TRACEPOINTS = 16,
	POINTS_NEED_SAMPLED = 32,
};

struct points_options {
	unsigned int needs; /* enum points_needs */
	size_t latencies;   /* how many pairs there will be (points_pair) */
	bool later; /* one of these may be added while the run goes on; until then it costs nothing
		     */
	uint64_t sample_ns; /* a visit of a sampled point: what one sample stands for at the lowest
			       rate */
	const char *disabled; /* comma list of features to go without, or NULL */
};

/* A place for a probe: an address of an ELF file in its own numbering. */
struct point_site {
	const struct elf_object *object;
	uint64_t vaddr;
	uint64_t semaphore;  /* of a USDT probe: the address of its count; 0: none */
	enum code_cost cost; /* of the instruction */
	const struct code_exit
		*exit; /* visits count where this leaves its function; NULL: all do */
};

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
	bool is_sampled; /* probed: samples count, not visits */
	char *sampled;	 /* ... of FILE:LINE; NULL: of functions */
	struct sampled_code *codes;
	size_t n_codes;
	uint64_t cost_ns; /* of a visit, as measured for such places on this machine before the run;
			     0: next to nothing, or not known */
	size_t begin, end; /* counters' indexes; the same for throughput */
	bool has_begin, has_end;
	struct bpf_link **links;
	size_t n_links;
	/* A latency point of two probed ones: this is the first, `end` the second's index. */
	unsigned int pair; /* which latency point, and 1; 0: none */
	bool hidden;	   /* the second of a pair: no point of the run */
	int *fds;	   /* links that libbpf knows nothing of */
	size_t n_fds;
	struct cozbpf_bpf *event; /* a tracepoint's own program */
	unsigned int
		call; /* it counts the begins (1) or the ends (2) of a system call; 0: neither */
};

/* What a visit costs: by the instruction, of a system call's begin and end and of looking at one
 * that is no visit, of a tracepoint. */
struct point_costs {
	uint64_t site[CODE_COSTS];
	uint64_t syscall[2], look[2], tracepoint;
};

/* All of a session. */
struct points {
	struct points_options options;
	struct cozbpf_bpf *skel; /* the session's */
	unsigned int nr_cpus;
	pid_t pid; /* that probes are put into; 0: all that map the file */
	/* Probes were to be put into one process alone, whose first thread had ended by then: the
	 * kernel cannot tell it from others. Of one whose first thread ends later, new probes are
	 * refused: it must not have them put into others. */
	bool leaderless;
	struct code_map *code;	       /* where sampled code is; NULL: not known yet */
	const struct shim_page *page;  /* that coz.h's counters are in, the caller's; or NULL */
	bool taken[SHIM_MAX_COUNTERS]; /* those that belong to a point */
	struct point all[ABI_MAX_POINTS];
	size_t n;
	bool text_tried;
	struct bpf_link *text; /* watches for programs that end with probes in a copy of their code
				  (kernel/text.h); NULL: this kernel, or this user, cannot have
				  that */
	size_t n_exits;	       /* entries of BPF's table that are in use */
	bool multi;	       /* one link can hold many probes */
	bool traced; /* points that the kernel reports are attached by perf, where nothing preempts
			their programs */
	struct bpf_link *syscalls[2]; /* of their begin and their end, once a point asked for it */
	struct point_costs costs;
	struct point measured; /* probes on ourselves, for the costs: to remove them takes long, so
				  they stay */
	struct abi_point *percpu;    /* room for one copy a CPU */
	struct latencies *latencies; /* NULL: none */
};

/* points.c. Chooses the programs of @skel, which is not loaded yet, that the options ask for.
 * points_close is due in any case. */
int points_open(struct points *ps, const struct points_options *o, struct cozbpf_bpf *skel,
		unsigned int nr_cpus, struct error *e);
void points_close(struct points *ps); /* not opened: allowed */

/* From now on probes are put into this process alone, whose children are not followed. Else into
 * all that map the file: points_everywhere. */
void points_only_in(struct points *ps, pid_t pid);
bool points_everywhere(const struct points *ps);

/* Adds a throughput point that counts nothing yet; *ret is its index. -EEXIST, -E2BIG. */
int points_add(struct points *ps, const char *name, size_t *ret, struct error *e);
/* What the point counts, in the scope alone; may be called again, for more sites. Probes take
 * effect in what is mapped by then and in what will be. */
int points_attach_sites(struct points *ps, size_t point, const struct point_site *sites, size_t n,
			struct error *e);
int points_attach_syscall(struct points *ps, size_t point, unsigned int number, bool at_return,
			  struct error *e);
int points_attach_tracepoint(struct points *ps, size_t point, const char *category,
			     const char *name, struct error *e);
/* Samples in a line, FILE:LINE, of what is in scope; code of it that appears later is taken in. */
void points_attach_line(struct points *ps, size_t point, const char *line);
/* ... in a function's code, of which these are parts, in object @i of the code map, which need not
 * be in scope: samples there, and where it has called what is neither in scope nor the function's.
 * May be called again, for more. At most ABI_MAX_SAMPLED parts of all points count. */
int points_attach_code(struct points *ps, size_t point, size_t object,
		       const struct elf_symbol *parts, size_t n, struct error *e);
/* Is there such a tracepoint? -ENOENT with what is near, or what keeps us from knowing; nothing is
 * attached. */
int points_check_tracepoint(const char *category, const char *name, struct error *e);
/* Makes two points, by the order in which they were added, one latency point that is called as the
 * first: an interval begins with a visit of
 * @begin and ends with one of @end by the same thread or, with arguments (1..ABI_MAX_ARGUMENT; 0:
 * by thread), where that argument of both functions has the same value. At most
 * points_options.latencies times. */
int points_pair(struct points *ps, size_t begin, unsigned int begin_argument, size_t end,
		unsigned int end_argument, struct error *e);
/* Takes in coz.h's counters that have appeared in the page, which become points. */
void points_find_counters(struct points *ps);

/* Points of the run, in the order of backend_totals.points: how many, and number @i; NULL: there
 * are fewer. */
size_t points_count(const struct points *ps);
const struct point *points_shown(const struct points *ps, size_t i);

/* read.c: what has been counted so far, into ret->points. @epoch: of the experiment that their
 * first and last visits are wanted of. */
int points_read(struct points *ps, uint64_t epoch, struct backend_totals *ret);

/* latency.c. points_latency_begin reads where an experiment begins; points_latency is what was
 * counted since, as the call of backend.h. */
int points_latency_begin(struct points *ps);
int points_latency(struct points *ps, size_t i, struct profile_latency **ret);
/* Around a window of slopes: the first tells BPF how long the intervals of each class are, by the
 * windows before; the second takes in those of this one. Negative errno. */
int points_window_begin(struct points *ps);
int points_window_end(struct points *ps);
/* Of latency point @p: were classes known in the window that was open last? *ret_slow_ns: what 1 %
 * of the intervals exceed, as known now; 0: not known. */
bool points_classed(const struct points *ps, const struct point *p, uint64_t *ret_slow_ns);

/* costs.c: measures what the visits cost that are asked for. After load, before there is a scope.
 */
void points_measure_costs(struct points *ps);
/* sampled.c: tells BPF where the code of sampled points is by now. */
void points_update_sampled(struct points *ps);

/* Detaches the probes and frees the contents. */
void point_free(struct point *p);
/* Keeps a link, or a descriptor that is one, with the point, which then owns it. */
void point_keep(struct point *p, struct bpf_link *link);
void point_keep_fd(struct point *p, int fd);

/* uprobes.c. A probe on each site, kept with @p. */
struct point_probes {
	struct bpf_program *program;
	uint64_t cookie;
	pid_t pid;	  /* 0: in all processes */
	const char *what; /* the point, in @e */
};
int points_attach_probes(struct points *ps, struct point *p, const struct point_probes *u,
			 const struct point_site *sites, size_t n, struct error *e);
