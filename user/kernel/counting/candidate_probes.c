// SPDX-License-Identifier: BSD-2-Clause
/* Probes of the search for a point: on few places at a time, and for no more of the processes' time
 * than SLOWDOWN. What a hit takes is measured; a place that takes too much loses its probe at once.
 */
#include "kernel/counting/candidates_private.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "program/elf/object.h"
#include "kernel/costs.h"
#include "kernel/uprobes.h"
#include "shared/visit_rates.h"
#include "visit_rates.skel.h"

#include <string.h>
#include <unistd.h>

#define SLOWDOWN 0.02
/* What may be spent in advance. */
#define BURST_NS (1 * NSEC_PER_MSEC)
/* Of the time that it takes to put probes in, processes lose a part: threads that map memory, or
 * execute what is written to, wait. */
#define LINKING_PART 4
/* A probe that takes one part of so many of the time slows down what it counts. */
#define SLOWED 20
#define POLL_NS (2 * NSEC_PER_MSEC)
#define GLANCE_SITES 64
#define GLANCE_NS (50 * NSEC_PER_MSEC)
#define GLANCES_NS (6 * NSEC_PER_SEC) /* of all */
#define LONG_GLANCES_NS (12 * NSEC_PER_SEC)
/* Whatever probes took, the program had one part of so many of the time. */
#define OWN_PART 20
/* Sites in one link: of those that are passed, few, since they go together; of those that were not
 * passed at all so far, many. */
#define FEW 8
#define MANY 256
/* Used if a hit cannot be measured. */
#define USUAL_COST_NS 2000

static uint64_t all_hits(const struct candidates *c)
{
	return __atomic_load_n(&c->skel->bss->visit_rates_hits, __ATOMIC_RELAXED);
}

/* When what was spent will be no more than it may be. */
static uint64_t even_at(const struct candidates *c)
{
	return c->begun_ns + (uint64_t)((double)c->spent_ns / SLOWDOWN);
}

static int attach_self(const struct elf_object *self, const uint64_t vaddrs[COSTS_PLACES],
		       void *arg)
{
	_cleanup_(code_places_close) struct code_places places = {.o = self};
	struct uprobe probes[COSTS_PLACES];
	const struct uprobes u = {
		.places = &places, .pid = getpid(), .all = probes, .n = COSTS_PLACES};
	struct candidates *c = arg;
	int fd;

	for (size_t i = 0; i < COSTS_PLACES; i++)
		probes[i] = (struct uprobe){.vaddr = vaddrs[i], .cookie = VISIT_RATES_SITES - 1};
	fd = uprobes_link(&u, c->skel->progs.visit_rates_probe, NULL);
	c->cost_fd = fd;
	return fd;
}

void search_measure_costs(struct candidates *c)
{
	if (c->probe_ns[0])
		return;
	c->cost_fd = -1;
	costs_of_probes(attach_self, c, c->probe_ns);
	if (c->cost_fd >= 0)
		closers_close(&c->closers, c->cost_fd);
	for (size_t i = 0; i < COSTS_PLACES; i++)
		if (!c->probe_ns[i])
			c->probe_ns[i] = USUAL_COST_NS;
}

/* Puts probes on sites of one object. What cannot have one goes without. */
static void link_object(struct candidates *c, size_t first, size_t n)
{
	_cleanup_free_ struct uprobe *probes = xcalloc(n, sizeof(*probes));
	struct uprobes u = {.places = search_places(c, c->sites[first].object),
			    .pid = c->scope.probed,
			    .all = probes};
	int fd;

	for (size_t i = first; i < first + n; i++) {
		struct search_site *s = &c->sites[i];

		if (s->refused || c->points[s->point].off)
			continue;
		if (s->cost_ns > c->dearest_ns)
			c->dearest_ns = s->cost_ns;
		probes[u.n++] = (struct uprobe){
			.vaddr = s->vaddr,
			.semaphore = s->semaphore,
			.cookie = (uint64_t)c->skel->bss->visit_rates_window << 32 | i,
			.certain = true};
	}
	if (!u.n)
		return;
	fd = uprobes_link(&u, c->skel->progs.visit_rates_probe, NULL);
	for (size_t i = first; fd < 0 && i < first + n; i++)
		c->sites[i].refused = true;
	if (fd >= 0)
		xarray_add(c->links, c->n_links,
			   (struct search_link){fd, clock_monotonic_ns(), first, n});
}

/* Puts probes on the next sites, at most @most of them. -ENOMEM */
static int link_next(struct candidates *c, size_t most)
{
	size_t first = c->next, end = first + most < c->to ? first + most : c->to;
	uint64_t begin;
	int r = 0;

	for (size_t i = first; r == 0 && i < end; i++) {
		c->sites[i].before = search_counter(c, (uint32_t)i);
		r = search_check_site(c, &c->sites[i]);
	}
	begin = clock_monotonic_ns();
	for (size_t i = first, next; r == 0 && i < end; i = next) {
		for (next = i + 1; next < end && c->sites[next].object == c->sites[i].object;)
			next++;
		link_object(c, i, next - i);
	}
	c->spent_ns += (clock_monotonic_ns() - begin) / LINKING_PART;
	c->next = end;
	return r;
}

/* Hits from now on are those of what gets probes from now on. */
static void open_probes(struct candidates *c, size_t from, size_t to)
{
	c->skel->bss->visit_rates_window++;
	c->next = from;
	c->to = to;
	c->dearest_ns = 0;
	c->hits_before = all_hits(c);
	c->hits_at = clock_monotonic_ns();
}

void search_unlink(struct candidates *c)
{
	/* Those of links that are not closed yet do not count. */
	c->skel->bss->visit_rates_window++;
	for (size_t i = 0; i < c->n_links; i++)
		closers_close(&c->closers, c->links[i].fd);
	free(c->links);
	c->links = NULL;
	c->n_links = 0;
}

/* Has everything that was hit since the last call paid for. */
static void spend(struct candidates *c, uint64_t now)
{
	uint64_t hits = all_hits(c);

	c->spent_ns += (hits - c->hits_before) * c->dearest_ns;
	c->hits_before = hits;
	c->hits_at = now;
}

void search_look(struct candidates *c, size_t from, size_t to)
{
	open_probes(c, from, to);
	for (size_t i = 0; i < c->n_points; i++)
		c->points[i].looked_at = c->points[i].as.kind == CANDIDATE_CALL;
	for (size_t i = from; i < to; i++)
		c->points[c->sites[i].point].looked_at = true;
	c->counts_sites = false;
	c->windows = 0;
}

void search_look_end(struct candidates *c, uint64_t now)
{
	spend(c, now);
	search_unlink(c);
}

/* Since the window began, or the probe is there. */
static uint64_t passed(const struct candidates *c, size_t site)
{
	return search_counter(c, (uint32_t)site) - c->sites[site].before;
}

/* No more probes there: what was seen is all that is known. */
static void leave(struct search_point *p, uint64_t hits, uint64_t ns, bool at_least)
{
	choice_add_window(&p->seen, hits, ns);
	p->off = true;
	p->as.at_least = at_least;
}

/* Does the site take too much of a time in which the program had @own_ns for itself? Of many that
 * are hot, each is hit seldom, since it waits for the probes of the others. */
static bool is_hot(const struct search_site *s, uint64_t hits, uint64_t all, uint64_t own_ns)
{
	return s->cost_ns && hits > all / (2 * GLANCE_SITES) &&
	       clock_per_second(hits, own_ns) > choice_bearable(CANDIDATE_FUNCTION);
}

/* Of @took, what probes that took @cost have left to the program. */
static uint64_t own_time(uint64_t took, uint64_t cost)
{
	return cost < took - took / OWN_PART ? took - cost : took / OWN_PART + 1;
}

/* The probes took too much: takes those away that were hit most. The rates of their sites
 * are those up to now, where enough was seen: a program that waits for a CPU passes little
 * meanwhile. */
static void cut(struct candidates *c, uint64_t now)
{
	uint64_t all = 0, most = 0, most_of = 0, took, own, cost = 0;
	struct search_link *l, old;

	for (size_t k = 0; k < c->n_links; k++)
		for (size_t i = c->links[k].first; i < c->links[k].first + c->links[k].n; i++) {
			uint64_t hits = passed(c, i);

			all += hits;
			cost += hits * c->sites[i].cost_ns;
			most_of = hits > most ? k : most_of;
			most = hits > most ? hits : most;
		}
	if (!most)
		return;
	l = &c->links[most_of];
	took = now - (c->counts_sites && c->since_ns > l->since_ns ? c->since_ns : l->since_ns);
	own = own_time(took, cost);
	for (size_t i = l->first; i < l->first + l->n; i++) {
		struct search_site *s = &c->sites[i];
		struct search_point *p = &c->points[s->point];

		if (!p->looked_at || (passed(c, i) < most && !is_hot(s, passed(c, i), all, own)))
			continue;
		leave(p, passed(c, i), own,
		      cost > took / SLOWED || p->seen.n < SEARCH_LEAST_WINDOWS);
		p->looked_at = false;
	}
	old = *l;
	*l = c->links[--c->n_links];
	closers_close(&c->closers, old.fd);
	link_object(c, old.first, old.n);
}

int search_look_step(struct candidates *c, uint64_t now, uint64_t *ret_next)
{
	uint64_t hits = all_hits(c) - c->hits_before;

	if (hits * c->dearest_ns > BURST_NS + (uint64_t)(SLOWDOWN * (double)(now - c->hits_at))) {
		cut(c, now);
		spend(c, now);
	}
	if (c->n_links)
		clock_sooner(ret_next, now + POLL_NS);
	if (c->next == c->to)
		return 0;
	if (now < even_at(c)) {
		clock_sooner(ret_next, even_at(c));
		return 0;
	}
	clock_sooner(ret_next, now);
	return link_next(c, c->sites[c->next].glance || c->next < c->n_probes ? FEW : MANY);
}

void search_glance(struct candidates *c, uint64_t now)
{
	c->glance_ns = 0;
	c->glances_end_ns = now + (c->scope.all ? LONG_GLANCES_NS : GLANCES_NS);
	c->next = c->n_probes;
}

static int begin_glance(struct candidates *c)
{
	size_t first = c->next,
	       to = first + GLANCE_SITES < c->n_sites ? first + GLANCE_SITES : c->n_sites;
	int r;

	open_probes(c, first, to);
	c->glanced = first;
	r = link_next(c, GLANCE_SITES);
	c->glance_ns = c->n_links ? clock_monotonic_ns() : 0;
	return r;
}

/* @over: it took too much, and is over before its time. What is hit most loses its probe for good,
 * and the others are looked at once more. */
static void end_glance(struct candidates *c, uint64_t now, bool over)
{
	uint64_t took = now - c->glance_ns, own, all = 0, most = 0, cost = 0;

	search_unlink(c);
	c->glance_ns = 0;
	for (size_t i = c->glanced; i < c->next; i++) {
		struct search_site *s = &c->sites[i];

		s->glance = passed(c, i);
		cost += s->glance * s->cost_ns;
		all += s->glance;
		most = s->glance > most ? s->glance : most;
	}
	c->spent_ns += cost;
	own = own_time(took, cost);
	for (size_t i = c->glanced; i < c->next; i++) {
		struct search_site *s = &c->sites[i];
		struct search_point *p = &c->points[s->point];

		if (p->off || s->refused ||
		    !(is_hot(s, s->glance, all, own) || (over && s->glance == most)))
			continue;
		leave(p, s->glance, own, true);
	}
	if (over && took < GLANCE_NS / 2)
		c->next = c->glanced;
}

static int worth(const struct candidates *c, const struct search_site *s)
{
	if (s->refused || c->points[s->point].off)
		return 2;
	return s->glance ? 0 : 1;
}

/* Puts those first that were hit, then those that were not, then those that are not looked at
 * again. Returns how many the first two are. */
static size_t sort_glanced(struct candidates *c)
{
	struct search_site *sorted = xcalloc(c->next - c->n_probes, sizeof(*sorted));
	size_t n = 0, ends[3];

	for (int class = 0; class < 3; class ++) {
		for (size_t i = c->n_probes; i < c->next; i++)
			if (worth(c, &c->sites[i]) == class)
				sorted[n++] = c->sites[i];
		ends[class] = n;
	}
	memcpy(c->sites + c->n_probes, sorted, n * sizeof(*sorted));
	free(sorted);
	return c->n_probes + ends[1];
}

int search_glance_step(struct candidates *c, uint64_t now, uint64_t *ret_next, size_t *ret_to)
{
	uint64_t end = c->glance_ns + GLANCE_NS, cost;
	bool over;

	if (!c->glance_ns && (c->next == c->n_sites || now >= c->glances_end_ns)) {
		c->n_glanced = c->next - c->n_probes;
		*ret_to = sort_glanced(c);
		return 1;
	}
	if (!c->glance_ns && now < even_at(c)) {
		clock_sooner(ret_next, even_at(c));
		return 0;
	}
	if (!c->glance_ns) {
		clock_sooner(ret_next, now + POLL_NS);
		return begin_glance(c);
	}
	cost = (all_hits(c) - c->hits_before) * c->dearest_ns;
	over = cost > BURST_NS + (uint64_t)(SLOWDOWN * (double)GLANCE_NS);
	if (!over && now < end) {
		clock_sooner(ret_next, now + POLL_NS);
		return 0;
	}
	end_glance(c, now, over);
	clock_sooner(ret_next, now);
	return 0;
}
