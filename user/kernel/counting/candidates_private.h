/* SPDX-License-Identifier: BSD-2-Clause */
/* What the search for a point is made of. Internal to the package. */
#pragma once

#include "kernel/counting/candidates.h"
#include "kernel/counting/private.h"

struct visit_rates_bpf;

#define SEARCH_WINDOW_NS (100 * NSEC_PER_MSEC)
#define SEARCH_LEAST_WINDOWS 5 /* before them nothing is told */

/* A candidate, and what was seen of it. */
struct search_point {
	struct candidate as;
	struct choice_windows seen;
	uint32_t call;	 /* its number */
	bool looked_at;	 /* in the windows that are open */
	bool off;	 /* it is passed too often: no more probes there */
	uint64_t before; /* a call's counter */
	uint64_t passes; /* since the window began */
};

/* A place of one, which may have a probe. */
struct search_site {
	size_t point;
	size_t object; /* of the code map */
	uint64_t vaddr, semaphore, size;
	uint64_t cost_ns;      /* of a hit */
	uint64_t before;       /* its counter, which has the site's index */
	uint64_t glance;       /* hits in its first window */
	bool checked, refused; /* no probe may stand there, or it is worth none */
};

/* Probes that are in place: one link. */
struct search_link {
	int fd;
	uint64_t since_ns;
	size_t first, n; /* sites */
};

struct candidates {
	struct candidates_scope scope;
	enum { SEARCH_CALLS, SEARCH_GLANCE, SEARCH_FUNCTIONS, SEARCH_OVER } state;
	struct visit_rates_bpf *skel;
	struct bpf_link *calls;
	int cpus;
	uint64_t *each; /* one counter, of each CPU */
	bool can_probe;
	uint64_t probe_ns[CODE_COSTS];
	int cost_fd; /* probes on ourselves, by which these are measured */

	struct search_point *points;
	size_t n_points;
	struct search_site *sites; /* USDT probes, then functions */
	size_t n_sites, n_probes;
	size_t n_functions, n_glanced; /* that could have been sites; that were looked at */
	struct code_places *places;    /* of each object of the map */
	size_t n_places;

	uint64_t since_ns; /* of the window that is open */
	unsigned int windows;
	bool counts_sites; /* in that window */
	size_t to;	   /* the sites up to here get probes */
	size_t next;	   /* the first one that has none yet */
	struct search_link *links;
	size_t n_links;
	struct closers closers;

	/* What the search has cost the processes, by its begin. */
	uint64_t begun_ns, spent_ns;
	uint64_t hits_before, hits_at;	    /* all probes' hits, and when that was */
	uint64_t dearest_ns;		    /* of a hit at what has probes */
	uint64_t glance_ns, glances_end_ns; /* when the one that is open began, 0: none is; and when
					       there is no other */
	size_t glanced;			    /* the first site of that */

	struct candidate *found;
};

/* candidates.c */
uint64_t search_counter(const struct candidates *c, uint32_t i);
/* Ends a window and begins the next one; the first call only begins one. Probes may have been put
 * in since the step began, so it looks at the clock itself. */
void search_take_window(struct candidates *c);

/* candidate_sites.c: adds the places of USDT probes, then those of functions, largest first.
 * -ENOMEM.
 */
int search_add_probes(struct candidates *c);
int search_add_functions(struct candidates *c);
/* May a probe stand there, and is it worth one? Sets its cost. -ENOMEM. */
int search_check_site(struct candidates *c, struct search_site *s);
struct code_places *search_places(struct candidates *c, size_t object);

/* candidate_probes.c. What hits cost, measured the first time, with probes: not without need, since
 * the kernel takes its time to remove them. */
void search_measure_costs(struct candidates *c);
/* Has sites from @from to @to, and system calls, looked at in windows from now on: puts probes on
 * them, a few at a time, and takes them off again where they cost too much; *ret_next is lowered to
 * when to come again. -ENOMEM. */
void search_look(struct candidates *c, size_t from, size_t to);
int search_look_step(struct candidates *c, uint64_t now, uint64_t *ret_next);
void search_look_end(struct candidates *c, uint64_t now);
/* Takes all probes away. */
void search_unlink(struct candidates *c);
/* Has the sites behind the probes looked at for a moment each, a few at a time. 1: it is over, and
 * those that are worth a longer look stand before the others, up to *ret_to; -ENOMEM. */
void search_glance(struct candidates *c, uint64_t now);
int search_glance_step(struct candidates *c, uint64_t now, uint64_t *ret_next, size_t *ret_to);
