// SPDX-License-Identifier: BSD-2-Clause
#include "analysis/stats.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>

double stats_t_quantile(double df)
{
	static const struct {
		double df, t;
	} table[] = {
		{1, 12.706}, {2, 4.303},  {3, 3.182},  {4, 2.776},  {5, 2.571},	 {6, 2.447},
		{8, 2.306},  {10, 2.228}, {15, 2.131}, {20, 2.086}, {30, 2.042}, {60, 2.000},
	};
	const size_t n = sizeof(table) / sizeof(table[0]);
	const double at_infinity = 1.960;

	if (!(df > 1))
		return table[0].t;
	/* Between entries t is close to linear in 1/df. */
	for (size_t i = 1; i < n; i++)
		if (df <= table[i].df) {
			double a = 1 / table[i - 1].df, b = 1 / table[i].df;

			return table[i].t + (table[i - 1].t - table[i].t) * (1 / df - b) / (a - b);
		}
	return at_infinity + (table[n - 1].t - at_infinity) * table[n - 1].df / df;
}

double stats_deviation(const double *v, size_t n)
{
	double mean = 0, sum = 0;

	for (size_t i = 0; i < n; i++)
		mean += v[i] / (double)n;
	for (size_t i = 0; i < n; i++)
		sum += (v[i] - mean) * (v[i] - mean);
	return n > 1 ? sqrt(sum / (double)(n - 1)) : NAN;
}

double stats_t_tail(double t, double df)
{
	double z;

	if (isnan(t))
		return NAN;
	if (isinf(t))
		return 0;
	if (!(df > 1))
		return 1 - 2 / M_PI * atan(fabs(t)); /* Cauchy */
	/* Wallace (1959): the normal deviate with the same tail, good to some per cent of the tail
	 * from two degrees on. */
	z = (8 * df + 1) / (8 * df + 3) * sqrt(df * log1p(t * t / df));
	return erfc(z / M_SQRT2);
}

double stats_chi2_80(double df)
{
	/* Wilson and Hilferty (1931); 0.8416 is the normal 80 % quantile. */
	double c = 1 - 2 / (9 * df) + 0.8416 * sqrt(2 / (9 * df));

	return df * c * c * c;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Hoare's FIND (Communications of the ACM 4, 1961): values[k] becomes what it is in their order;
 * none before it is greater, none behind it less. Resampling asks for so many medians that sorting
 * was three fifths of an analysis. */
static void find_kth(double *values, size_t n, size_t k)
{
	ptrdiff_t first = 0, last = (ptrdiff_t)n - 1, at = (ptrdiff_t)k;

	while (first < last) {
		double pivot = values[at];
		ptrdiff_t i = first, j = last;

		while (i <= j) {
			double value;

			while (values[i] < pivot)
				i++;
			while (values[j] > pivot)
				j--;
			if (i > j)
				break;
			value = values[i];
			values[i++] = values[j];
			values[j--] = value;
		}
		if (j < at)
			first = i;
		if (i > at)
			last = j;
	}
}

double stats_quantile(double *values, size_t n, double q)
{
	double at = q * (double)(n - 1), low = floor(at), next = INFINITY;
	size_t i = (size_t)low;

	find_kth(values, n, i);
	if (i + 1 >= n)
		return values[i];
	for (size_t k = i + 1; k < n; k++)
		next = fmin(next, values[k]);
	return values[i] + (next - values[i]) * (at - low);
}

double stats_discovery_limit(double *p, size_t n, double rate)
{
	double limit = -1;

	qsort(p, n, sizeof(*p), by_value);
	for (size_t i = 0; i < n; i++)
		if (p[i] <= rate * (double)(i + 1) / (double)n)
			limit = p[i];
	return limit;
}
