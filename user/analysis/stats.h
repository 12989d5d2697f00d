/* SPDX-License-Identifier: BSD-2-Clause */
/* The small part of statistics that the analysis needs. Internal to the package. */
#pragma once

#include <stddef.h>

/* The 97.5 % quantile of Student's t with @df degrees of freedom (fractions allowed; below 1 counts
 * as 1). */
double stats_t_quantile(double df);
/* Two-sided tail of Student's t: how probable is |T| >= |@t| by chance. */
double stats_t_tail(double t, double df);
/* The 80 % quantile of chi-squared. */
double stats_chi2_80(double df);
/* The standard deviation of which @n numbers are a sample; NaN of fewer than two. */
double stats_deviation(const double *v, size_t n);
/* The @q quantile of @n > 0 numbers, which are reordered. */
double stats_quantile(double *values, size_t n, double q);
/* Benjamini and Hochberg (1995): returns the largest p-value still called a discovery among @n at
 * false discovery rate
 * @rate, or -1 for none. @p is sorted. */
double stats_discovery_limit(double *p, size_t n, double rate);
