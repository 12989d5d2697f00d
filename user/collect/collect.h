/* SPDX-License-Identifier: BSD-2-Clause */
/* Continuous sampling of a machine or a control group into a database of counts, after DCPI
 * (Anderson et al., Continuous Profiling: Where Have All the Cycles Gone?, TOCS 1997). */
#pragma once

#include "shared/collect.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct collector;
struct database;
struct error;

/* One of the things that are sampled: every so many ns of a clock, or of events. */
struct collect_event {
	const char *name; /* static */
	uint32_t type;	  /* as of perf_event_attr */
	uint64_t config;
	bool clock;	/* counts ns */
	uint64_t every; /* on average */
};

/* NAME or NAME=EVERY. -EINVAL: unknown, or not so often. */
int collect_event_parse(const char *text, struct collect_event *ret, struct error *e);
/* Hardware cycles where there is a PMU, else the clock: @rate_hz times a second. */
struct collect_event collect_event_default(double rate_hz);

struct collect_settings {
	double rate_hz;					     /* of the first event, for each CPU */
	struct collect_event events[COLLECT_MAX_EVENTS - 1]; /* further ones */
	size_t n_events;
	const char *cgroup; /* a directory; NULL: the whole machine */
	bool verbose;
};

/* Loads and starts what samples. -EPERM and others, with @e. @say: as database_say. */
int collector_open(const struct collect_settings *s, void (*say)(const char *text, void *arg),
		   void *arg, struct collector **ret, struct error *e);
void collector_close(struct collector *c); /* NULL is allowed */
/* To wait for: when it can be read, collector_serve is due. */
int collector_fd(const struct collector *c);
/* Finds the paths of images that were seen for the first time, and takes counts that made room for
 * others. */
void collector_serve(struct collector *c);
/* Draws new distances of samples; at most collector_redraw_ns apart. */
void collector_redraw(struct collector *c);
uint64_t collector_redraw_ns(const struct collector *c);
/* Samples no more: what was counted until then is all that the next flush takes. */
void collector_stop(struct collector *c);
/* Takes what was counted since the last time, and adds it to @d, all of it in the epoch of @now_s
 * (since 1970). What cannot be written stays and comes the next time; *ret_kept: so many counts
 * did. 0, or a negative errno of the database. */
int collector_flush(struct collector *c, struct database *d, uint64_t now_s, size_t *ret_kept,
		    struct error *e);
/* Gives up what could not be written; how many samples that were. */
uint64_t collector_forget(struct collector *c);

/* Since the begin. */
struct collect_totals {
	uint64_t ticks, hits, evicted, lost, unknown, outside;
};
struct collect_totals collector_totals(const struct collector *c);
