/* SPDX-License-Identifier: BSD-2-Clause */
/* A curve through the effects of one line: from 0 at 0 %, straight, or straight with one knee.
 * Internal to the package.
 *
 * That is the form that effects have: the time per visit is the longest of several chains of work,
 * each of which gets shorter in proportion to the speedup or not at all, so the effect is made of
 * straight pieces; one knee is what a run can tell apart. Nothing is assumed of signs: slopes may
 * fall, rise or be negative (contention). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fit_point {
	double speedup; /* above 0, at most 1 */
	double effect;
	double weight;	/* above 0: what one point is worth, in visits say */
	uint32_t burst; /* points of one have more in common than others */
};

struct fit {
	double slope; /* of the effect, up to the knee; NaN: nothing to fit */
	double knee;  /* speedup, 0..1; NaN: none */
	double after; /* slope beyond the knee */
	size_t parameters;
};

/* Least squares; @robust: with Huber's weights (Huber, Annals of Mathematical Statistics 35, 1964),
 * so that one disturbed experiment does not bend the curve. Not where points differ since their
 * loads do: the mean of all is asked for then, and what is far from most belongs to it. A knee is
 * taken if the corrected Akaike criterion prefers it (Hurvich and Tsai, Biometrika 76, 1989); it
 * takes six points at three speedups, and no piece is steeper than a line that is all of a visit.
 * Pure; the points stay as they are. */
struct fit fit_curve(const struct fit_point *points, size_t n, bool robust);
/* The same without a knee. */
struct fit fit_straight(const struct fit_point *points, size_t n, bool robust);
double fit_at(const struct fit *f, double speedup);
