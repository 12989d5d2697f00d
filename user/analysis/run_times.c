// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/run_times.h"

#include "analysis/stats.h"
#include "base/cleanup.h"
#include "base/memory.h"

#include <math.h>

/* A time is an outlier if its modified Z-score, its distance from the median in units of the median
 * absolute deviation, is above this (Iglewicz and Hoaglin, How to Detect and Handle Outliers,
 * 1993). 1.4826 of these units are a standard deviation; ten of those are the bound of hyperfine.
 */
#define OUTLIER_SCORE (1.4826 * 10)

/* Of each run, how long its experiments paused the program. */
static double *pauses_of(const struct profile *p)
{
	double *pauses = xcalloc(p->n_runs + 1, sizeof(*pauses));

	for (size_t i = 0; i < p->n_experiments; i++)
		if (p->experiments[i].run < p->n_runs)
			pauses[p->experiments[i].run] += (double)p->experiments[i].x.growth;
	return pauses;
}

static void find_outliers(const double *ns, struct analysis_run_times *t)
{
	_cleanup_free_ double *sorted = xmemdup(ns, t->n, sizeof(*ns));
	double median = stats_quantile(sorted, t->n, 0.5), deviation;

	for (size_t i = 0; i < t->n; i++)
		sorted[i] = fabs(ns[i] - median);
	deviation = stats_quantile(sorted, t->n, 0.5);
	for (size_t i = 0; i < t->n; i++)
		t->outliers += fabs(ns[i] - median) > OUTLIER_SCORE * deviation;
	t->first_is_slow = ns[0] - median > OUTLIER_SCORE * deviation;
}

void run_times_of(const struct profile *p, struct analysis_run_times *ret)
{
	_cleanup_free_ double *ns = xcalloc(p->n_runs + 1, sizeof(*ns)), *pauses = pauses_of(p);
	struct analysis_run_times t = {.least_ns = INFINITY};

	for (size_t i = 0; i < p->n_runs; i++) {
		const struct profile_startup *run = &p->runs[i];

		if (!run->run_ns)
			continue;
		ns[t.n] = fmax((double)run->run_ns - pauses[i], 0);
		t.least_ns = fmin(t.least_ns, ns[t.n]);
		t.most_ns = fmax(t.most_ns, ns[t.n]);
		t.mean_ns += ns[t.n++];
		t.user_ns += (double)run->user_ns;
		t.system_ns += (double)run->system_ns;
	}
	*ret = (struct analysis_run_times){0};
	if (!t.n)
		return;
	t.mean_ns /= (double)t.n;
	t.user_ns /= (double)t.n;
	t.system_ns /= (double)t.n;
	t.deviation_ns = stats_deviation(ns, t.n);
	find_outliers(ns, &t);
	*ret = t;
}
