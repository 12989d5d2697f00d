/* SPDX-License-Identifier: BSD-2-Clause */
/* For the files of this package. */
#pragma once

#include "collect/collect.h"

#include "base/rng.h"
#include "program/code/kernel_parts.h"
#include "collect/database/counts.h"

#include <sys/utsname.h>

struct bpf_link;
struct collect_bpf;
struct ring_buffer;

/* What a table's entries add up to. */
struct pending {
	uint64_t offset, count;
	uint32_t image, who, event;
};

/* What a number in a table stands for. */
struct named {
	uint32_t id;
	char *texts[2]; /* owned; of an image its path and build id, of a process its name and
			   control group */
	struct counts_image image; /* the rest of it; its texts are those above */
};

/* What the numbers of a table mean, by number. */
struct name_table {
	struct named *all;
	size_t n;
	uint32_t old; /* numbers below are of before the table was emptied since it was full */
};

struct names {
	struct name_table images, who;
	int cgroup_fd; /* of the hierarchy's root; -1: there is none */
	const char *cgroup_root;
	uint64_t learned_until_ns; /* (CLOCK_MONOTONIC) time that learning has used up, by its part
				      of all time */
};

void names_open(struct names *n);
void names_close(struct names *n);
/* Learns the name of an image that a process has mapped. */
void names_learn(struct names *n, struct collect_bpf *skel, const struct collect_news *news);
/* All that have no name yet, by what the kernel's tables say. To be called before a flush. */
void names_complete(struct names *n, struct collect_bpf *skel);
/* NULL: it is not known. */
struct named *name_find(const struct name_table *t, uint32_t id);
/* Empties the kernel's tables once they are nearly full. What was counted before is still named
 * until the next time. */
void names_make_room(struct names *n, struct collect_bpf *skel);

struct attached {
	int fd; /* of the link's event; -1: the CPU is offline, or the event failed */
	struct bpf_link *link;
	unsigned int cpu;
	size_t event;
};

struct collector {
	/* Sampling. */
	struct collect_bpf *skel;
	struct collect_bucket *table;
	size_t table_bytes;
	unsigned int n_cpus;
	double rate_hz;
	struct collect_event events[COLLECT_MAX_EVENTS];
	size_t n_events;
	struct attached *attached; /* n_cpus * n_events */
	size_t n_attached;
	uint64_t *ticks_before; /* by CPU, when it was looked after last */
	struct rng rng;
	void (*say)(const char *text, void *arg);
	void *arg;
	/* Tables of samples. */
	struct names names;
	struct kernel_parts kernel;
	struct ring_buffer *rings; /* new images, and entries that made room for others */
	struct pending *pending;
	size_t n_pending, compact_at;
	struct counts other; /* of images that have no room in the database: not written yet */
	struct collect_totals written;
	char host[sizeof(((struct utsname *)NULL)->nodename)];
};

/* After a failure, too, sampler_close is to be called. */
int sampler_open(struct collector *c, const struct collect_settings *s, struct error *e);
void sampler_close(struct collector *c);
/* Calls @add for each entry of the tables, which are empty afterwards. Sampling goes on meanwhile,
 * in the other tables. */
void sampler_harvest(struct collector *c, void (*add)(void *arg, const struct collect_entry *e),
		     void *arg);
/* Opens the events of CPUs that came online, or whose events count no more. */
void sampler_look_after(struct collector *c);
