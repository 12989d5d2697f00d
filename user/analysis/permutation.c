// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/permutation.h"

#include "analysis/stats.h"
#include "base/cleanup.h"
#include "base/memory.h"

#include <math.h>

#define ASSIGNMENTS 1999
/* So many that look like an effect are enough to know that the p-value is large (Besag and
 * Clifford, Biometrika 78, 1991). */
#define ENOUGH 25
/* Experiments above 0 % beyond this are summed by Student's t alone: bounded work, and with bounded
 * scores there is no difference. */
#define MAX_PERMUTED 1000
/* Of the experiments at 0 %, at most so many for each above 0 %, evenly: the rest would make the
 * mean at 0 % hardly surer. */
#define MOST_BASE 32
/* Scores end this many standard deviations from the median: one experiment cannot outweigh the
 * others. */
#define MOST_SCORE 3.0
#define MAD_TO_SD 1.4826 /* of a normal distribution */
/* How many experiments the scatter of all is worth against a part's own, as in analysis/effect.c.
 */
#define SCATTER_WEIGHT 4

/* What an effect can look like over the speedups: a straight line, a step after 0 %, and either
 * half alone. */
enum shape { STRAIGHT, STEP, LOWER, UPPER, N_SHAPES };

/* One experiment: the log of its rate of visits as a score, and its weight. */
struct item {
	double score, weight;
};

struct sums {
	double w, y, yy; /* weights; times the score; times its square */
};

static void sums_add(struct sums *s, const struct item *x)
{
	s->w += x->weight;
	s->y += x->weight * x->score;
	s->yy += x->weight * x->score * x->score;
}

struct test {
	struct item *items;	    /* those above 0 % first */
	double (*shapes)[N_SHAPES]; /* of each speedup above 0 % */
	size_t n, n_base;
	struct sums all;
};

static double scatter(double sum, size_t n, double pooled)
{
	return (fmax(sum, 0) + SCATTER_WEIGHT * pooled) / ((double)n - 1 + SCATTER_WEIGHT);
}

/* The largest of the shapes' t: slopes through the mean at 0 %, over their standard errors. Only
 * what is above 0 % is summed up, the rest follows. */
static double strongest(const struct test *t)
{
	struct {
		struct sums part;
		double c, cc, cy;
		size_t n;
	} of[N_SHAPES] = {0};
	struct sums zeros = t->all;
	double pooled = fmax(t->all.yy - t->all.y * t->all.y / t->all.w, 0) /
			(double)(t->n + t->n_base - 1),
	       best = -INFINITY;
	double mean, zero_scatter;

	for (size_t i = 0; i < t->n; i++)
		for (int k = 0; k < N_SHAPES; k++) {
			double c = t->shapes[i][k], w = t->items[i].weight;

			if (c == 0)
				continue;
			sums_add(&of[k].part, &t->items[i]);
			of[k].c += w * c;
			of[k].cc += w * c * c;
			of[k].cy += w * c * t->items[i].score;
			of[k].n++;
		}
	zeros.w -= of[STEP].part.w;
	zeros.y -= of[STEP].part.y;
	zeros.yy -= of[STEP].part.yy;
	mean = zeros.y / zeros.w;
	zero_scatter = scatter(zeros.yy - zeros.y * mean, t->n_base, pooled);
	for (int k = 0; k < N_SHAPES; k++) {
		const struct sums *p = &of[k].part;
		double up = of[k].cy - mean * of[k].c, own, error;

		if (!of[k].n)
			continue;
		own = scatter(p->yy - 2 * mean * p->y + mean * mean * p->w - up * up / of[k].cc,
			      of[k].n, pooled);
		error = sqrt(own * of[k].cc + zero_scatter * of[k].c * of[k].c / zeros.w);
		if (error > 0)
			best = fmax(best, up / error);
	}
	return best;
}

/* The next random assignment: those above 0 % are drawn from all. */
static void assign(struct test *t, struct rng *rng)
{
	for (size_t i = 0; i < t->n; i++) {
		size_t j = i + rng_below(rng, t->n + t->n_base - i);
		struct item x = t->items[i];

		t->items[i] = t->items[j];
		t->items[j] = x;
	}
}

/* One-sided p-value of "no effect upwards". */
static double chance_of(struct test *t, struct rng *rng)
{
	double found = strongest(t), tail;
	size_t as_strong = 0, tried = 0;

	if (!(found > 0))
		return 1;
	/* Pitman (1937): over all assignments, t is distributed much like Student's. Of many
	 * shapes, the strongest: Bonferroni. */
	tail = fmin(1, N_SHAPES * stats_t_tail(found, (double)(t->n + t->n_base - 2)) / 2);
	if (t->n > MAX_PERMUTED)
		return tail;
	while (tried < ASSIGNMENTS && as_strong < ENOUGH) {
		assign(t, rng);
		/* What is equal may differ by the order of its sum. */
		as_strong += strongest(t) >= found * (1 - 1e-9);
		tried++;
	}
	if (as_strong == 0)
		return fmin(tail, 1 / (double)(tried + 1));
	return (double)(as_strong + 1) / (double)(tried + 1);
}

/* The log of the rate: -infinity without a visit, 0 where it cannot be told. */
static double log_rate(const struct observation *o, enum reading how)
{
	double rate = o->den[how] / o->num[how];

	return rate >= 0 ? log(rate) : NAN;
}

/* Scores: logs around their median, with their ends cut. False if all are the same. */
static bool make_scores(struct item *items, size_t n, double *scratch)
{
	double median, sd;
	size_t known = 0;

	for (size_t i = 0; i < n; i++)
		if (!isnan(items[i].score))
			scratch[known++] = items[i].score;
	if (known < 2)
		return false;
	median = stats_quantile(scratch, known, 0.5);
	if (!isfinite(median))
		return false;
	for (size_t i = 0; i < known; i++)
		scratch[i] = fabs(scratch[i] - median);
	sd = MAD_TO_SD * stats_quantile(scratch, known, 0.5);
	/* More than half are one number: what is not is told from it by its sign. */
	if (!(sd > 0) || !isfinite(sd))
		sd = 1e-9;
	for (size_t i = 0; i < n; i++) {
		double d = (items[i].score - median) / sd;

		items[i].score = isnan(d) ? 0 : fmax(-MOST_SCORE, fmin(MOST_SCORE, d));
	}
	return true;
}

static bool fill(struct test *t, const struct observation *obs, const struct observation *base,
		 size_t of_base, enum reading how, double shift, double *scratch)
{
	size_t n = t->n + t->n_base;

	for (size_t i = 0; i < n; i++) {
		const struct observation *o =
			i < t->n ? &obs[i] : &base[(i - t->n) * of_base / t->n_base];

		t->items[i] = (struct item){log_rate(o, how) + (i < t->n ? shift : 0), o->weight};
	}
	if (!make_scores(t->items, n, scratch))
		return false;
	t->all = (struct sums){0};
	for (size_t i = 0; i < n; i++)
		sums_add(&t->all, &t->items[i]);
	return true;
}

struct permutation permutation_test(const struct observation *obs, size_t n,
				    const struct observation *base, size_t n_base, enum reading how,
				    double allowance, struct rng rng)
{
	size_t of_base = n_base;
	_cleanup_free_ struct item *items = xcalloc(n + n_base + 1, sizeof(*items));
	_cleanup_free_ double *scratch = xcalloc(n + n_base + 1, sizeof(*scratch));
	_cleanup_free_ double(*shapes)[N_SHAPES] = xcalloc(n + 1, sizeof(*shapes));
	struct test t = {items, shapes, n, 0, {0}};
	struct permutation ret = {NAN, 0};

	if (!n || !n_base || n + n_base < 3)
		return ret;
	t.n_base = n_base = n_base / MOST_BASE < n ? n_base : MOST_BASE * n;
	for (size_t i = 0; i < n; i++) {
		double s = obs[i].key / 1000.0;

		shapes[i][STRAIGHT] = s;
		shapes[i][STEP] = 1;
		shapes[i][s <= 0.5 ? LOWER : UPPER] = 1;
	}
	ret.chance = 1;
	/* Each direction by itself, with the method's own error taken off: what is left must be an
	 * effect. */
	for (int sign = 1; sign >= -1; sign -= 2) {
		double chance;

		if (!fill(&t, obs, base, of_base, how, -sign * allowance, scratch))
			continue;
		for (size_t i = 0; i < n + n_base; i++)
			items[i].score *= sign;
		t.all.y *= sign;
		chance = fmin(1, 2 * chance_of(&t, &rng));
		if (chance < ret.chance)
			ret = (struct permutation){chance, sign};
	}
	return ret;
}
