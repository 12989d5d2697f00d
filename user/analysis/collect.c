// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/collect.h"

#include "analysis/fidelity.h"
#include "analysis/histogram.h"
#include "base/cleanup.h"
#include "base/memory.h"
#include "base/sort.h"

#include <math.h>
#include <string.h>

/* A string to be numbered, and where its number goes. Sorted rather than hashed: the strings are
 * foreign. */
struct name_ref {
	const char *name;
	int kind;
	uint32_t *id;
};

static int by_name(const void *a, const void *b)
{
	const struct name_ref *x = a, *y = b;

	return sort_order(x->kind, y->kind) ?: strcmp(x->name, y->name);
}

/* Numbers equal names equally, in their order; returns how many there are and moves one of each to
 * the front. */
static size_t number_names(struct name_ref *refs, size_t n)
{
	size_t distinct = 0;

	qsort(refs, n, sizeof(*refs), by_name);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || by_name(&refs[i], &refs[distinct - 1]) != 0)
			refs[distinct++] = refs[i];
		*refs[i].id = (uint32_t)(distinct - 1);
	}
	return distinct;
}

static void observe_intervals(const struct profile_experiment *x, const struct profile_point *p,
			      struct observation *o)
{
	struct latency_mean m = latency_mean(p->latency, (double)x->duration);

	o->visits = m.count;
	for (int how = 0; how < N_READINGS; how++) {
		o->num[how] = m.num;
		o->den[how] = m.den;
	}
	o->latency = p->latency;
	o->flight = ((double)p->latency->in_flight_begin + (double)p->latency->in_flight_end) / 2;
	o->length_scale = 1;
	o->work = log((double)x->executed_ns / m.count);
	o->stretch = log((double)x->elapsed / (double)x->duration);
}

/* Of the visits that were timed, as their time per visit is, if they were. */
static void read_work(const struct profile_experiment *x, const struct profile_point *p,
		      struct observation *o)
{
	bool settled = x->settled_duration > 0;
	double executed = (double)(settled ? x->settled_executed_ns : x->executed_ns),
	       elapsed = (double)(settled ? x->settled_elapsed : x->elapsed);
	double visits = (double)(settled ? p->settled_delta : p->delta), passed;

	if (!(visits > 0) || !(elapsed > 0))
		return;
	passed = o->timed ? (double)(p->last_ns - p->first_ns) / (double)(p->timed_visits - 1)
			  : elapsed / visits;
	o->work = log(executed / elapsed * passed);
	o->stretch = log(passed / (o->num[READ_TIMED] / o->den[READ_TIMED]));
}

struct observation observation_read(const struct profile_experiment *x,
				    const struct profile_point *p)
{
	struct observation o = {.work = NAN, .stretch = NAN, .scale = 1};
	double speedup = x->speedup >= 0 && x->speedup <= 1 ? x->speedup : 0;

	o.key = (uint16_t)lround(speedup * 1000);
	if (o.key == 0 && speedup > 0)
		o.key = 1;
	if (p->kind == PROFILE_LATENCY && p->latency) {
		observe_intervals(x, p, &o);
		return o;
	}
	if (p->kind == PROFILE_LATENCY) {
		o.flight = (double)p->difference;
		o.num[READ_WHOLE] = o.num[READ_TIMED] = o.flight * (double)x->duration;
		o.visits = o.den[READ_WHOLE] = o.den[READ_TIMED] = (double)p->departures;
		return o;
	}
	o.visits = (double)p->delta;
	o.flight = 1;
	o.num[READ_WHOLE] = (double)(x->settled_duration ? x->settled_duration : x->duration);
	o.den[READ_WHOLE] = (double)(x->settled_duration ? p->settled_delta : p->delta);
	o.timed = p->timed && p->timed_visits >= 2 && p->effective_ns > 0;
	o.few = p->delta < 2;
	o.plenty = p->delta >= 3;
	o.num[READ_TIMED] = o.timed ? (double)p->effective_ns : o.num[READ_WHOLE];
	o.den[READ_TIMED] = o.timed ? (double)(p->timed_visits - 1) : o.den[READ_WHOLE];
	read_work(x, p, &o);
	return o;
}

/* @usual_ns: the length of the run's experiments on average. What is half as long scatters twice as
 * much; its sums are half as large already. */
static struct observation observe(const struct profile_experiment *x, uint64_t settled_period_ns,
				  double usual_ns, const struct profile_point *p)
{
	struct observation o = observation_read(x, p);
	double weight = fidelity_weight(x, settled_period_ns);

	o.sampling_ns = (double)x->period_ns;
	o.duration = (double)x->duration;
	o.elapsed = fidelity_length(x);
	o.passed = (double)(p->kind == PROFILE_LATENCY ? p->departures : p->delta);
	o.selected_ns = (double)x->selected_ns;
	o.foreign = fidelity_share(x->foreign);
	o.weight =
		usual_ns > 0 ? fmax(weight * o.elapsed / usual_ns, FIDELITY_LEAST_WEIGHT) : weight;
	for (int how = 0; how < N_READINGS; how++) {
		o.num[how] *= weight;
		o.den[how] *= weight;
	}
	return o;
}

static int by_place(const void *a, const void *b)
{
	const struct observation *x = a, *y = b;

	return sort_order(x->point, y->point)
		       ?: sort_order(x->line, y->line)
				  ?: sort_order(x->key, y->key)
					     ?: sort_order(x->experiment, y->experiment);
}

static void number_lines(const struct profile *p, struct collection *c)
{
	_cleanup_free_ struct name_ref *refs = xcalloc(p->n_experiments + 1, sizeof(*refs));

	for (size_t i = 0; i < p->n_experiments; i++)
		refs[i] = (struct name_ref){
			p->experiments[i].x.selected ? p->experiments[i].x.selected : "", 0,
			&c->line_of[i]};
	c->n_lines = number_names(refs, p->n_experiments);
	c->lines = xcalloc(c->n_lines + 1, sizeof(*c->lines));
	for (size_t i = 0; i < c->n_lines; i++)
		c->lines[i] = refs[i].name;
}

/* Older profiles have only what a hit costs. It is of the same size: what stops a thread is the
 * interrupt. */
static double tick_ns(const struct profile_startup *run)
{
	return (double)(run->tick_overhead_ns ? run->tick_overhead_ns : run->hit_overhead_ns);
}

/* When each experiment was, in ns: since its run's first one, and a run after the other, farther
 * apart than any is long. Files that do not say when have the number of the experiment instead. The
 * caller's. */
static uint64_t *places_in_time(const struct profile *p)
{
	uint64_t *when = xcalloc(p->n_experiments + 1, sizeof(*when)), first = 0, longest = 0;
	bool known = true;

	for (size_t i = 0; i < p->n_experiments; i++)
		known &= p->experiments[i].x.began != 0;
	for (size_t i = 0; i < p->n_experiments; i++) {
		uint64_t at = known ? p->experiments[i].x.began : i;

		if (i == 0 || p->experiments[i].run != p->experiments[i - 1].run)
			first = at;
		when[i] = at - first;
		if (when[i] > longest)
			longest = when[i];
	}
	for (size_t i = 0; i < p->n_experiments; i++)
		when[i] += 2 * (longest + 1) * p->experiments[i].run;
	return when;
}

static bool same_burst(const struct profile_run_experiment *a,
		       const struct profile_run_experiment *b)
{
	return a->x.burst && a->x.burst == b->x.burst && a->run == b->run;
}

/* Fills the observations and numbers their points. */
static void number_points(const struct profile *p, struct collection *c)
{
	_cleanup_free_ struct name_ref *refs = xcalloc(c->n_obs + 1, sizeof(*refs));
	_cleanup_free_ uint64_t *settled = fidelity_settled_periods(p);
	_cleanup_free_ double *usual = fidelity_usual_lengths(p);
	_cleanup_free_ uint64_t *when = places_in_time(p);
	size_t at = 0, burst = 0;

	for (size_t i = 0; i < p->n_experiments; i++) {
		const struct profile_run_experiment *x = &p->experiments[i];

		if (i == 0 || !same_burst(x, x - 1))
			burst = i;

		for (size_t j = 0; j < x->n_points; j++, at++) {
			const struct profile_point *point = &x->points[j];

			c->obs[at] = observe(&x->x, settled[x->run], usual[x->run], point);
			c->obs[at].tick_ns = x->run < p->n_runs ? tick_ns(&p->runs[x->run]) : 0;
			c->obs[at].line = c->line_of[i];
			c->obs[at].experiment = (uint32_t)i;
			c->obs[at].burst = (uint32_t)burst;
			c->obs[at].in_burst = x->x.burst != 0;
			c->obs[at].when = when[i];
			refs[at] = (struct name_ref){point->name ? point->name : "",
						     2 * (int)point->kind +
							     (c->obs[at].latency != NULL),
						     &c->obs[at].point};
		}
	}
	c->n_points = number_names(refs, at);
	c->points = xcalloc(c->n_points + 1, sizeof(*c->points));
	for (size_t i = 0; i < c->n_points; i++)
		c->points[i] = (struct collected_point){refs[i].name,
							(enum profile_point_kind)(refs[i].kind / 2),
							refs[i].kind % 2, 0, 0};
}

struct collection collect(const struct profile *p)
{
	struct collection c = {0};

	for (size_t i = 0; i < p->n_experiments; i++)
		c.n_obs += p->experiments[i].n_points;
	c.obs = xcalloc(c.n_obs + 1, sizeof(*c.obs));
	c.line_of = xcalloc(p->n_experiments + 1, sizeof(*c.line_of));
	number_lines(p, &c);
	number_points(p, &c);
	qsort(c.obs, c.n_obs, sizeof(*c.obs), by_place);
	for (size_t i = 0; i < c.n_obs; i++) {
		struct collected_point *point = &c.points[c.obs[i].point];

		if (point->n++ == 0)
			point->first = i;
	}
	return c;
}

unsigned int line_cell_key(uint16_t key, unsigned int step)
{
	return (key + step - 1) / step * step;
}

size_t line_length(const struct observation *obs, size_t n)
{
	size_t i = 1;

	while (i < n && obs[i].line == obs[0].line)
		i++;
	return i;
}

size_t line_cell_length(const struct observation *obs, size_t n, unsigned int step)
{
	size_t i = 1;

	while (i < n && obs[i].line == obs[0].line &&
	       line_cell_key(obs[i].key, step) == line_cell_key(obs[0].key, step))
		i++;
	return i;
}

size_t line_zeros(const struct observation *obs, size_t n)
{
	return n && obs[0].key == 0 ? line_cell_length(obs, n, 1) : 0;
}

double observation_pace(const struct observation *o, bool lengths, enum reading how)
{
	if (lengths)
		return histogram_middle(o->latency, o->duration) + log(o->length_scale);
	return log(o->num[how] / o->den[how]);
}

bool observations_rescale(struct observation *obs, size_t n, scales_finder find, void *arg)
{
	_cleanup_free_ double *scales = xcalloc(n + 1, sizeof(*scales));
	bool lengths = n && obs[0].latency && find(obs, n, true, scales, arg), means;

	for (size_t i = 0; lengths && i < n; i++)
		obs[i].length_scale *= scales[i];
	means = find(obs, n, false, scales, arg);
	for (size_t i = 0; means && i < n; i++) {
		for (int how = 0; how < N_READINGS; how++)
			obs[i].num[how] *= scales[i];
		obs[i].scale *= scales[i];
	}
	return lengths || means;
}

void collection_free(struct collection *c)
{
	free(c->obs);
	free(c->points);
	free(c->lines);
	free(c->line_of);
	*c = (struct collection){0};
}
