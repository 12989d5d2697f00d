// SPDX-License-Identifier: BSD-2-Clause
#include "experiment/runner.h"

#include "base/clock.h"
#include "base/memory.h"
#include "experiment/books.h"
#include "experiment/bursts.h"
#include "experiment/plan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* How often to look for a first sample, or for the object that has the fixed line. */
#define WAIT_NS (20 * NSEC_PER_MSEC)
#define SLOWDOWN_OVER_NS (60 * NSEC_PER_SEC)

#define WAITS_IN_EXPERIMENT 10 /* on average, of a place where threads wait */
#define LEAST_WAITING \
	0.05 /* a kind of wait that takes less of the run is not tried unless it is asked for */
#define MOST_GROWTH 0.8
#define BY_GAIN                                                                          \
	4 /* with slopes, one draw in so many still goes by samples: what hurts has none \
	   */

enum state { WAITING, EXPERIMENT, OVER };

struct runner {
	struct runner_options o;
	const struct backend_ops *ops;
	void *backend;
	runner_sink sink;
	void *sink_arg;
	struct plan plan;
	struct tally *tally;
	struct slopes *slopes; /* NULL: none are measured */
	struct profile_point
		points[ABI_MAX_POINTS]; /* names and kinds; numbers of the last experiment */
	size_t n_points;

	enum state state;
	uint64_t due;	       /* WAITING: not before; EXPERIMENT: its end */
	uint64_t least_length; /* of the next experiment, since one had few visits */
	double visits_per_s;   /* of the point that is visited least, in the first experiment or
				  before this burst; 0: not known */
	uint64_t first_ns; /* when the first sample was looked for, later by all rests since; 0: not
			      yet */
	size_t experiments;

	struct bursts bursts;
	struct backend_totals warm_up; /* when the last one began. time_ns 0: none has */
	size_t bounded;		       /* experiments that went too far */

	/* The experiment under way. */
	uint64_t length, end_due;
	struct backend_totals settled; /* time_ns 0: not yet, or never */
	const char *selected, *function;
	double speedup;
	bool slows;
	struct backend_totals begin;
};

static uint64_t later(uint64_t t, uint64_t ns)
{
	uint64_t sum;

	return __builtin_add_overflow(t, ns, &sum) ? UINT64_MAX : sum;
}

static int take_options(struct runner *r, const struct runner_options *o)
{
	int ret = 0;

	if (o->experiment_ns == 0)
		return -EINVAL;
	r->o = *o;
	if (r->o.max_experiment_ns < o->experiment_ns)
		r->o.max_experiment_ns = o->experiment_ns;
	r->visits_per_s = o->visits_per_s;
	if (o->whole_run)
		return runner_add_point(r, PROFILE_WHOLE_RUN, PROFILE_THROUGHPUT);
	for (size_t i = 0; ret == 0 && i < o->n_points; i++)
		ret = runner_add_point(r, o->point_names[i], o->point_kinds[i]);
	return ret;
}

int runner_new(const struct runner_options *o, const struct backend_ops *ops, void *backend,
	       runner_sink sink, void *sink_arg, struct runner **ret)
{
	struct runner *r = xcalloc(1, sizeof(*r));
	int err;

	r->ops = ops;
	r->backend = backend;
	r->sink = sink;
	r->sink_arg = sink_arg;
	bursts_init(&r->bursts, o->duty, o->most_slowdown, o->zero_share, o->seed ^ 0x64757479);
	r->tally = tally_new(ops, backend);
	err = take_options(r, o);
	if (err >= 0)
		err = plan_init(&r->plan, o->seed, o->fixed_speedup, o->zero_share, o->grid,
				o->n_grid, o->n_slow);
	if (err >= 0 && o->slopes)
		err = slopes_new(ops, backend, o->slopes, sink_arg, r->tally, &o->slopes_time,
				 &r->slopes);
	if (err < 0) {
		runner_free(r);
		return err;
	}
	*ret = r;
	return 0;
}

void runner_free(struct runner *r)
{
	if (!r)
		return;
	runner_abandon(r);
	tally_free(r->tally);
	slopes_free(r->slopes);
	for (size_t i = 0; i < r->n_points; i++) {
		free(r->points[i].name);
		profile_latency_free(r->points[i].latency);
	}
	plan_free(&r->plan);
	free(r);
}

int runner_add_point(struct runner *r, const char *name, enum profile_point_kind kind)
{
	if (r->n_points >= ABI_MAX_POINTS)
		return -E2BIG;
	r->points[r->n_points++] = (struct profile_point){.kind = kind, .name = xstrdup(name)};
	return 0;
}

/* A user writes "a.c:12" where the samples say "src/a.c:12": the records carry one spelling, unless
 * what was written stands for lines of several files. */
static int select_fixed(struct runner *r, struct abi_interval *intervals, size_t *ret_n,
			struct tally_line **ret)
{
	const char *name = NULL, *function = NULL;
	int err = r->ops->intervals(r->backend, r->o.fixed_line, intervals, ret_n);

	if (err < 0)
		return err;
	for (size_t i = 0; i < *ret_n; i++) {
		const char *other = NULL, *other_function = NULL;

		err = r->ops->name(r->backend, intervals[i].lo, &other, &other_function);
		if (err < 0 && err != -ENOENT && err != -ENODATA)
			return err;
		if (err < 0 || !other || (name && other != name)) {
			name = function = NULL;
			break;
		}
		name = other;
		if (!function)
			function = other_function;
	}
	*ret = tally_line_named(r->tally, name ? name : r->o.fixed_line, function);
	return 0;
}

/* Lines that run and waits are drawn by their time, but lines at least every second time; where
 * slopes are known, mostly by what a line can gain at most instead of by its samples. Not waits
 * that are too long for experiments: a pool without work, an accept loop, a housekeeper. They are
 * tried if they are named. */
static struct tally_line *draw(struct runner *r, uint64_t now)
{
	struct tally_waits w = {
		.kinds = r->o.what ? r->o.what : WAITS_ALL,
		.run_ns = now - r->first_ns,
		.longest_ns = r->o.experiment_ns / WAITS_IN_EXPERIMENT,
		.least_share = r->o.what ? 0 : LEAST_WAITING,
	};
	uint64_t executed, waiting = tally_waiting(r->tally, &w, &executed), recent;
	bool by_gain = r->slopes && plan_sample(&r->plan, BY_GAIN) > 0;

	recent = r->o.what && !(r->o.what & 1) ? 0 : tally_get_sums(r->tally).recent;
	if (recent && waiting &&
	    plan_sample(&r->plan, waiting + (executed > waiting ? executed : waiting)) < waiting)
		recent = 0;
	if (recent)
		return tally_nth_recent(
			r->tally, by_gain,
			plan_sample(&r->plan, by_gain ? tally_gains(r->tally) : recent));
	return waiting ? tally_nth_waiting(r->tally, &w, plan_sample(&r->plan, waiting)) : NULL;
}

/* -ENOENT: no sample in any line that still has code. */
static int select_drawn(struct runner *r, uint64_t now, struct abi_interval *intervals,
			size_t *ret_n, struct tally_line **ret)
{
	for (;;) {
		int err;

		*ret = draw(r, now);
		if (!*ret)
			return -ENOENT;
		err = r->ops->intervals(r->backend, (*ret)->name, intervals, ret_n);
		if (err != -ENOENT)
			return err;
		tally_drop_recent(r->tally, *ret);
	}
}

/* Of an experiment on @line that begins at @now. */
static uint64_t next_length(const struct runner *r, const struct tally_line *line, uint64_t now)
{
	struct plan_pace pace = {.visits_per_s = r->visits_per_s,
				 .elapsed_ns = now - r->first_ns,
				 .in_bursts = bursts_wanted(&r->bursts)};
	uint64_t length = r->o.experiment_ns;

	for (size_t i = 0; i < r->n_points; i++)
		if (r->points[i].kind == PROFILE_LATENCY)
			pace.visits_per_s = 0;
	if (r->o.shortest_ns && now > r->first_ns) {
		pace.samples_per_s = clock_per_second(line->total, now - r->first_ns);
		length = plan_length(r->o.shortest_ns, length, &pace);
	}
	/* A wait is booked at its end. */
	if (line->wait) {
		uint64_t n, waited = tally_waited(r->tally, line, &n),
			    least = n ? WAITS_IN_EXPERIMENT * (waited / n) : 0;

		length = length > least			  ? length
			 : least < r->o.max_experiment_ns ? least
							  : r->o.max_experiment_ns;
	}
	return length > r->least_length ? length : r->least_length;
}

/* The global delay grows with the time that a thread waits at the place: no faster than MOST_GROWTH
 * of the time goes by, or the program would hardly get on. So @speedup, or the largest one below it
 * that makes no more than that. */
static double limited(const struct runner *r, const struct tally_line *line, double speedup,
		      uint64_t now)
{
	double share, most;
	uint64_t n;

	/* However many threads wait for CPUs, what each of them waits is less than the time that
	 * goes by. */
	if (!line->wait || line->wait == WAIT_CPU || now <= r->first_ns || r->o.fixed_speedup >= 0)
		return speedup;
	share = fmin(1, (double)tally_waited(r->tally, line, &n) / (double)(now - r->first_ns));
	most = MOST_GROWTH / share;
	return speedup <= most ? speedup : plan_at_most(&r->plan, most);
}

static int begin_warm_up(struct runner *r, uint64_t now)
{
	r->due = later(now, r->bursts.warm_up_ns);
	return r->ops->snapshot(r->backend, &r->warm_up);
}

static int end_warm_up(struct runner *r)
{
	struct backend_totals end;
	int err = r->ops->snapshot(r->backend, &end);

	if (err < 0)
		return err;
	r->visits_per_s =
		clock_per_second(books_least_visits(r->points, r->n_points, &r->warm_up, &end),
				 end.time_ns - r->warm_up.time_ns);
	/* What one experiment with few visits has asked for need not hold for ever. */
	r->least_length /= 2;
	return 0;
}

/* Begins the next experiment, or leaves the state at WAITING when there is nothing to select yet.
 */
static int try_begin(struct runner *r, uint64_t now)
{
	struct abi_interval intervals[ABI_MAX_INTERVALS];
	struct backend_setup setup = {.intervals = intervals};
	struct tally_line *line;
	int err;

	if (bursts_wanted(&r->bursts) && !r->warm_up.time_ns)
		return begin_warm_up(r, now);
	err = tally_drain(r->tally);
	if (err < 0)
		return err;
	err = r->o.fixed_line ? select_fixed(r, intervals, &setup.n_intervals, &line)
			      : select_drawn(r, now, intervals, &setup.n_intervals, &line);
	if (err == -ENOENT) {
		r->due = later(now, WAIT_NS);
		return 0;
	}
	if (err < 0)
		return err;
	if (bursts_wanted(&r->bursts) && r->bursts.experiments == 0)
		err = end_warm_up(r);
	if (err < 0)
		return err;
	tally_mark_tried(r->tally, line);
	r->selected = line->name;
	r->function = line->function;
	r->speedup = plan_speedup(&r->plan, &line->speedups, &r->slows);
	if (!r->slows)
		r->speedup = limited(r, line, r->speedup, now);
	setup.speedup = r->slows ? 0 : r->speedup;
	setup.slow = r->slows ? r->speedup : 0;
	r->length = r->o.whole_run ? UINT64_MAX : next_length(r, line, now);
	setup.most_growth_ns = (uint64_t)(r->o.most_slowdown * (double)SLOWDOWN_OVER_NS);
	if (r->o.settling_part && !r->o.whole_run)
		setup.settling_ns = r->length / r->o.settling_part;
	err = r->ops->begin(r->backend, &setup);
	if (err < 0)
		return err;
	err = r->ops->snapshot(r->backend, &r->begin);
	if (err < 0) {
		(void)r->ops->end(r->backend);
		return err;
	}
	r->end_due = later(r->begin.time_ns, r->length);
	r->due = setup.settling_ns ? later(r->begin.time_ns, setup.settling_ns) : r->end_due;
	r->settled.time_ns = 0;
	r->state = EXPERIMENT;
	return 0;
}

/* A window of slopes if it is the turn of one, else an experiment. */
static int begin_next(struct runner *r, uint64_t now)
{
	int err = 0;

	if (!r->first_ns)
		r->first_ns = now;
	if (r->slopes)
		err = slopes_step(r->slopes, r->points, r->n_points, now, &r->due);
	return err ? err : try_begin(r, now);
}

/* Too few visits say little about the experiment they are of, but it is kept: to drop it would
 * favour the outcomes with many. Only the next ones change. Without a point there is nothing that
 * more time could bring. */
static void lengthen(struct runner *r)
{
	for (size_t i = 0; i < r->n_points; i++)
		if (books_visits(&r->points[i]) >= r->o.min_visits)
			return;
	if (r->n_points == 0)
		return;
	r->least_length =
		r->length <= r->o.max_experiment_ns / 2 ? r->length * 2 : r->o.max_experiment_ns;
}

static int rest(struct runner *r, uint64_t now)
{
	uint64_t ns = bursts_rest(&r->bursts, now);

	if (!ns)
		return 0;
	r->due = later(now, ns);
	return r->ops->rest ? r->ops->rest(r->backend, true) : 0;
}

static int rest_ends(struct runner *r, uint64_t now)
{
	int err = r->ops->rest ? r->ops->rest(r->backend, false) : 0;

	r->first_ns += bursts_end_rest(&r->bursts, now);
	return err < 0 ? err : begin_warm_up(r, now);
}

/* Closes the experiment, at @end_ns if that is earlier than now, and hands it on if it lasted
 * @least_ns. */
static int finish_experiment(struct runner *r, uint64_t end_ns, uint64_t least_ns)
{
	struct profile_experiment x = {
		.selected = (char *)r->selected,
		.function = (char *)r->function,
		.speedup = r->speedup,
		.slowed = r->slows,
		.burst = bursts_wanted(&r->bursts) ? r->bursts.n + 1 : 0,
	};
	struct backend_totals end;
	int err;

	/* No payment after the books' last reading: so end() first, and the clock of the reading is
	 * the experiment's end. */
	r->state = OVER;
	r->selected = r->function = NULL;
	err = r->ops->end(r->backend);
	if (err >= 0)
		err = r->ops->snapshot(r->backend, &end);
	if (err >= 0)
		err = r->ops->owed(r->backend, &x);
	if (err < 0)
		return err;
	books_experiment(&r->begin, &end, end_ns, &x);
	if (r->settled.time_ns)
		books_settled(&r->settled, &end, end_ns, &x);
	for (size_t i = 0; i < r->n_points; i++) {
		books_point(&r->begin, &end, i, &r->points[i]);
		if (x.settled_elapsed)
			books_settled_point(&r->settled, &end, i, &r->points[i]);
		err = books_latency(r->ops, r->backend, i, &r->points[i]);
		if (err < 0)
			return err;
	}
	if (r->o.whole_run)
		r->points[0].delta = 1;
	if (x.elapsed < least_ns)
		return 0;
	/* From there on nobody was paused any more. */
	r->bounded += end.bounded;
	err = end.bounded ? 0 : r->sink(r->sink_arg, &x, r->points, r->n_points);
	if (err < 0)
		return err;
	if (!end.bounded && r->experiments++ == 0 && !r->visits_per_s)
		r->visits_per_s = clock_per_second(
			books_least_visits(r->points, r->n_points, &r->begin, &end), x.elapsed);
	lengthen(r);
	r->due = later(end.time_ns, plan_cool_off(r->o.cool_off_ns, r->length, r->o.experiment_ns));
	r->state = WAITING;
	if (bursts_wanted(&r->bursts) && bursts_add(&r->bursts, x.elapsed, x.growth))
		return rest(r, end.time_ns);
	return 0;
}

/* The next line is drawn from the samples from here on. Those of the experiment do not count: while
 * threads are stopped they have fewer than their share, so a line just selected would be drawn more
 * often than the others. */
static int start_samples(struct runner *r)
{
	int err;

	/* At a duty cycle a line that is seldom sampled is to have its turn in the course of days:
	 * all that was sampled before experiments counts. */
	if (bursts_wanted(&r->bursts))
		return tally_drain_apart(r->tally);
	err = tally_drain(r->tally);
	tally_forget_recent(r->tally);
	return err;
}

int runner_step(struct runner *r, uint64_t now, uint64_t *ret_next)
{
	int err = 0;

	if (r->state != OVER && now >= r->due) {
		if (r->state == EXPERIMENT && now < r->end_due) {
			err = r->ops->snapshot(r->backend, &r->settled);
			r->due = r->end_due;
		} else if (r->state == EXPERIMENT) {
			err = finish_experiment(r, UINT64_MAX, 0);
			if (err >= 0)
				err = start_samples(r);
		} else if (r->bursts.resting) {
			err = rest_ends(r, now);
		} else {
			err = begin_next(r, now);
		}
	}
	if (err < 0) {
		r->state = OVER;
		return err;
	}
	*ret_next = r->state == OVER ? UINT64_MAX : r->due;
	return 0;
}

int runner_look(struct runner *r)
{
	return r->state == OVER ? 0 : tally_drain(r->tally);
}

int runner_finish(struct runner *r, uint64_t end_ns)
{
	int err = 0, drained;

	if (r->state == OVER)
		return 0;
	if (r->state == EXPERIMENT)
		err = finish_experiment(r, end_ns, r->o.whole_run ? 0 : r->length / 10);
	else if (r->slopes)
		err = slopes_close(r->slopes, r->points, r->n_points, end_ns);
	(void)bursts_end_rest(&r->bursts, end_ns);
	r->state = OVER;
	drained = tally_drain(r->tally); /* for the log */
	return err < 0 ? err : drained;
}

void runner_abandon(struct runner *r)
{
	slopes_drop(r->slopes);
	if (r->state == EXPERIMENT)
		(void)r->ops->end(r->backend);
	r->state = OVER;
}

bool runner_drop(struct runner *r, uint64_t now)
{
	slopes_drop(r->slopes);
	if (r->state != EXPERIMENT)
		return false;
	(void)r->ops->end(r->backend);
	r->selected = r->function = NULL;
	r->state = r->o.whole_run ? OVER : WAITING;
	r->due = later(now, r->o.cool_off_ns);
	(void)start_samples(r);
	return true;
}

void runner_get_status(const struct runner *r, struct runner_status *ret)
{
	*ret = (struct runner_status){
		.experiments = r->experiments,
		.bounded = r->bounded,
		.rested_ns = r->bursts.rested_ns,
		.sums = tally_get_sums(r->tally),
		.visits_per_s = r->visits_per_s,
	};
	if (r->state == EXPERIMENT) {
		ret->selected = r->selected;
		ret->speedup = r->speedup;
		ret->slows = r->slows;
	}
}

struct tally *runner_tally(const struct runner *r)
{
	return r->tally;
}
