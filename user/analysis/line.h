/* SPDX-License-Identifier: BSD-2-Clause */
/* One progress point's lines: baselines, cells with intervals, and the evidence that verdicts are
 * made of. Internal. */
#pragma once

#include "analysis/effect.h"

/* Own 0 % experiments below this are no baseline. */
#define LINE_MIN_OWN_BASELINE 3

/* What all lines of a point share. */
struct point_context {
	struct observation *zeros; /* a copy of those at 0 %, line by line */
	size_t n_zeros;
	struct noise noise[N_READINGS];
	bool timed_pays;    /* see enum reading */
	double speed_share; /* of an effect, that the correction for the machine's speed may be off
			       by */
	double sampling_ns; /* mean time between samples; 0: not known */
	double tick_ns;	    /* mean time that a sample takes */
	unsigned int least_key,
		most_key; /* speedups that any line was tried at, above 0; 0: none */
	/* The 0 % experiments of all lines are one baseline: at 0 % nothing is paused, so which
	 * line was selected makes no difference - unless the program has phases. Lines are drawn
	 * from the samples, so that a line's 0 % experiments fall into the phases in which it runs,
	 * and then only its own are comparable. They are pooled if the lines' 0 % periods show no
	 * sign of differing (a test at the lenient level of 20 %); otherwise a line with at least
	 * three of its own uses these, and one with fewer has no better than the pool. */
	bool pooled;
	double *pool_resampled[N_READINGS]; /* RESAMPLES each, made at the first use */
	struct rng *rng;
};

/* Where a line's observations are. */
struct line_place {
	size_t first, n;
};

/* Quarters of the range of speedups: cells of a fine grid are too thin for a verdict, their quarter
 * is not. */
#define N_QUARTERS 4

struct evidence {
	double chance;	/* p-value of "this line has no effect at any speedup" */
	double sign;	/* of the effect that the p-value speaks of */
	size_t best[2]; /* cells of largest evidence for an effect: below 0, above 0; SIZE_MAX: none
			 */
	size_t best_any;
	struct effect quarters[N_QUARTERS]; /* value NaN: not measured */
	double speedups[N_QUARTERS];	    /* their means */
	struct effect trend;		    /* of the quarters, for each unit of speedup */
	double most_speedup;
};

/* Of a point whose observations are @obs, in place of what @ctx had (zeros at first). */
void point_context_init(struct point_context *ctx, const struct observation *obs, size_t n,
			struct rng *rng);
void point_context_free(struct point_context *ctx);
/* The run's noise floor; see analysis_point. */
double point_placebo(struct point_context *ctx);
/* Do the visits come in bursts, so that averages hang on few experiments? Of a throughput point. */
bool point_has_bursts(const struct point_context *ctx);
/* Which experiments at 0 % the line's effects are relative to: its own or the pool's. */
void line_baseline(const struct point_context *ctx, const struct observation *obs, size_t n,
		   const struct observation **ret, size_t *ret_n);
/* Cells are the distinct speedups, or steps of 2 % if these are too many: the step in thousandths.
 */
unsigned int line_cell_step(const struct observation *obs, size_t n);
/* Adds what is no noise to an interval (fidelity_allowance). Both are 95 % half-widths of
 * independent errors. */
void line_widen(struct analysis_allowance allow, struct analysis_change *c);
void change_scale(struct analysis_change *c, double factor);
/* At just one speedup: do the experiments there say otherwise than the curve, or as surely? */
bool line_cell_speaks(const struct analysis_change *curve, const struct analysis_change *cell);
/* Fills the cells of the line whose observations are @obs and whose part of the run is @presence,
 * and returns its evidence. */
struct evidence line_analyse(struct point_context *ctx, const struct observation *obs, size_t n,
			     struct analysis_presence presence, struct analysis_line *line);
