// SPDX-License-Identifier: BSD-2-Clause
/* What is known of a latency point beside the effects on its mean: counts, percentiles and what
 * lines do to them. */
#include "report/text.h"

#include "base/cleanup.h"

#include <math.h>

/* A median of fewer distances between samples than this is blurred. */
#define BLURRED 8

/* The mean's effects are in the table of lines. */
static const enum latency_statistic told[] = {LATENCY_P50, LATENCY_P90, LATENCY_P99, LATENCY_P999,
					      LATENCY_LITTLE};
#define N_TOLD (sizeof(told) / sizeof(told[0]))

static const char *words(enum latency_statistic s)
{
	return s == LATENCY_LITTLE ? "mean, by Little's law" : latency_statistic_name(s);
}

void latency_head_notes(const struct report *r, const struct analysis_intervals *in)
{
	struct words little =
		in->little ? text_duration(in->ns[LATENCY_LITTLE]) : text_words("not told");

	note(r, NOTE_PLAIN,
	     "At 0 %%: mean %s (by Little's law %s), p50 %s, p90 %s, p99 %s, p99.9 %s.",
	     text_duration(in->ns[LATENCY_MEAN]).text, little.text,
	     text_duration(in->ns[LATENCY_P50]).text, text_duration(in->ns[LATENCY_P90]).text,
	     text_duration(in->ns[LATENCY_P99]).text, text_duration(in->ns[LATENCY_P999]).text);
	note(r, NOTE_DETAIL,
	     "In flight: %s. Not timed: %.0f begun before the experiment, %.0f ends without a "
	     "begin, %.0f begins without an end, %.0f lost (too many "
	     "in flight).",
	     text_words(isfinite(in->in_flight) ? "%.1f" : "-", in->in_flight).text, in->crossed,
	     in->unmatched, in->unended, in->lost);
	if (in->ns[LATENCY_P50] < BLURRED * in->distance_ns)
		note(r, NOTE_PLAIN,
		     "Samples are %s apart, and the speedup's share of that is what an interval is "
		     "off by: of latencies this short the mean is "
		     "right, percentiles are blurred. --rate takes more samples.",
		     text_duration(in->distance_ns).text);
}

static void add_row(const struct report *r, struct text_table *tb, const struct analysis_line *line,
		    size_t i)
{
	struct libscols_line *row = text_row(tb);

	if (i == 0)
		text_line_cell(r, row, line->selected);
	text_cell(row, 1, words(told[i]));
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++)
		text_change_cell(r, row, 2 + k, line->latency->at[told[i]][k]);
}

/* Is there a speedup at which the tail could not be told, though the median could? */
static bool lacks_tail(const struct analysis_line *const *lines, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; lines[i]->latency && k < ANALYSIS_CURVE_POINTS; k++)
			if (isfinite(lines[i]->latency->at[LATENCY_P50][k].low) &&
			    !isfinite(lines[i]->latency->at[LATENCY_P999][k].low))
				return true;
	return false;
}

static bool lacks_little(const struct analysis_line *const *lines, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (lines[i]->latency && !lines[i]->latency->little)
			return true;
	return false;
}

void latency_print_lines(const struct report *r, const struct analysis_point *point)
{
	struct text_table tb = text_table(r);
	size_t n;
	_cleanup_free_ const struct analysis_line **lines = shown_lines(r, point, &n);

	text_column(&tb, "line", TEXT_NAME, 0);
	text_column(&tb, "of the latency", TEXT_WORDS, 0);
	text_column(&tb, "25 %", TEXT_NUMBER, 3);
	text_column(&tb, "50 %", TEXT_NUMBER, 1);
	text_column(&tb, "75 %", TEXT_NUMBER, 4);
	text_column(&tb, "100 %", TEXT_NUMBER, 2);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; lines[i]->latency && k < N_TOLD; k++)
			if (told[k] != LATENCY_LITTLE || lines[i]->latency->little)
				add_row(r, &tb, lines[i], k);
	text_table_end(&tb);
}

void latency_notes(const struct report *r, const struct analysis_point *point)
{
	size_t n;
	_cleanup_free_ const struct analysis_line **lines = shown_lines(r, point, &n);

	if (lacks_little(lines, n))
		note(r, NOTE_DETAIL,
		     "The mean by Little's law is not told where it is more than 10 %% away from "
		     "the timed mean: it takes how many requests are "
		     "under way, which is read at the two ends of each experiment only. More "
		     "experiments give more readings.");
	if (lacks_tail(lines, n))
		note(r, NOTE_DETAIL,
		     "A percentile is told where some intervals of each speedup lie beyond it: for "
		     "p99.9 that takes thousands. Fewer speedups "
		     "(--speedups 0,50) or a longer run give more of each.");
}
