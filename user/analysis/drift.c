// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/drift.h"

#include "analysis/line.h"
#include "base/cleanup.h"
#include "base/memory.h"
#include "base/search.h"

#include <math.h>
#include <stdbool.h>

/* Fewer experiments at 0 % cannot tell drift from noise. */
#define MIN_ZEROS 8
/* Local paces are noisier than the mean: they must predict this much better to be worth it. The
 * prediction errors of a run without drift come out this much apart by chance in one of some fifty.
 */
#define WORTH 2.0

struct zero {
	uint32_t line;
	uint64_t when;
	double pace;   /* log of the period, or of the middle intervals' length */
	double weight; /* the experiment's: where other programs ran, a pace is theirs */
	double usual;  /* the pace by the baseline that the line has without drift, without this
			  zero; NaN: nothing to tell it by */
	/* Sums over the zeros before it: paces, from the first one's on, times weights; and
	 * weights. Differences of sums lose digits. */
	long double paces_before, weights_before;
};

static int by_time(const void *a, const void *b)
{
	const struct zero *x = a, *y = b;

	return (x->when > y->when) - (x->when < y->when);
}

/* Adds up what is before each, with all of it at the end. */
static void add_up(struct zero *z, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		z[i + 1].paces_before =
			z[i].paces_before + ((long double)z[i].pace - z[0].pace) * z[i].weight;
		z[i + 1].weights_before = z[i].weights_before + z[i].weight;
	}
}

/* How many of the @k zeros nearest to @experiment are before @at; the others are from @after on. Of
 * two as near it is the earlier. */
static size_t nearest_before(const struct zero *z, size_t n, size_t at, size_t after, uint64_t when,
			     size_t k)
{
	size_t low = k > n - after ? k - (n - after) : 0, high = k < at ? k : at;

	/* Is one more from before nearer than the last that would come from behind in its place? */
	return low + search_front(high - low, i,
				  when - z[at - 1 - (low + i)].when <=
					  z[after + k - 1 - (low + i)].when - when);
}

/* The mean pace of the @k zeros nearest to @experiment, without itself; @at: where it is or would
 * be among them. */
static double local_pace(const struct zero *z, size_t n, size_t at, uint64_t when, size_t k)
{
	size_t after = at < n && z[at].when == when ? at + 1 : at;
	size_t before = nearest_before(z, n, at, after, when, k);
	const struct zero *first = &z[at - before], *end = &z[after + k - before];

	return z[0].pace + (double)((z[at].paces_before - first->paces_before + end->paces_before -
				     z[after].paces_before) /
				    (z[at].weights_before - first->weights_before +
				     end->weights_before - z[after].weights_before));
}

/* Mean squared error of predicting each zero from the @k others that are nearest; 0: from its
 * line's baseline. */
static double prediction_error(const struct zero *z, size_t n, size_t k)
{
	double sum = 0, weight = 0;

	for (size_t i = 0; i < n; i++) {
		double e = z[i].pace - (k ? local_pace(z, n, i, z[i].when, k) : z[i].usual);

		sum += e * e * z[i].weight;
		weight += z[i].weight;
	}
	return sum / weight;
}

/* The mean pace of all @n but each itself, as its usual one. */
static void fill_usual(struct zero *z, size_t n)
{
	double paces = 0, weights = 0;

	for (size_t i = 0; i < n; i++) {
		paces += (z[i].pace - z[0].pace) * z[i].weight;
		weights += z[i].weight;
	}
	for (size_t i = 0; i < n; i++)
		z[i].usual = z[0].pace + (paces - (z[i].pace - z[0].pace) * z[i].weight) /
						 (weights - z[i].weight);
}

/* Fills @z with the zeros in the order of time, and behind them one that has the sums. Returns how
 * many they are: none where one had no visit, since that has no pace, and leaving it out would
 * favour the others. @pooled: their lines have one baseline. */
static size_t find_zeros(const struct observation *obs, size_t n, bool lengths, bool pooled,
			 struct zero *z)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++) {
		double pace;

		if (obs[i].key != 0)
			continue;
		pace = observation_pace(&obs[i], lengths, READ_WHOLE);
		if (!isfinite(pace))
			return 0;
		z[found++] = (struct zero){.line = obs[i].line,
					   .when = obs[i].when,
					   .pace = pace,
					   .weight = obs[i].weight};
	}
	fill_usual(z, found);
	for (size_t i = 0, len; i < found && !pooled; i += len) {
		for (len = 1; i + len < found && z[i + len].line == z[i].line;)
			len++;
		if (len >= LINE_MIN_OWN_BASELINE)
			fill_usual(z + i, len);
	}
	qsort(z, found, sizeof(*z), by_time);
	add_up(z, found);
	return found;
}

/* How many neighbours predict best, of @fewest or more; 0: none do better than the baseline. */
static size_t choose_window(const struct zero *z, size_t n, size_t fewest)
{
	double usual = prediction_error(z, n, 0), least = usual;
	size_t best = 0;

	for (size_t k = fewest; k <= n / 2; k *= 2) {
		double e = prediction_error(z, n, k);

		if (e < least) {
			least = e;
			best = k;
		}
	}
	return best && usual > least * (1 + WORTH / sqrt((double)n)) ? best : 0;
}

static bool find_scales(const struct observation *obs, size_t n, bool lengths, double *scales,
			void *arg)
{
	_cleanup_free_ struct zero *z = xcalloc(n + 1, sizeof(*z));
	size_t n_zeros = find_zeros(obs, n, lengths, *(const bool *)arg, z), k;
	double mean;

	/* A burst has two zeros, which have only each other. */
	k = n_zeros < MIN_ZEROS ? 0 : choose_window(z, n_zeros, obs[0].in_burst ? 1 : 2);
	if (!k)
		return false;
	mean = z[0].pace + (double)(z[n_zeros].paces_before / z[n_zeros].weights_before);
	for (size_t i = 0; i < n; i++) {
		uint64_t x = obs[i].when;

		scales[i] = exp(mean - local_pace(z, n_zeros,
						  search_front(n_zeros, j, z[j].when < x), x, k));
	}
	return true;
}

bool drift_remove(struct observation *obs, size_t n, bool pooled)
{
	return observations_rescale(obs, n, find_scales, &pooled);
}
