// SPDX-License-Identifier: BSD-2-Clause
/* Of the HTML report: curves and charts as SVG, in whole units of a view box, so that thousands of
 * them stay small. */
#include "report/html.h"

#include "base/cleanup.h"
#include "shared/histogram.h"

#include <math.h>
#include <string.h>

enum {
	WIDTH = 480,
	HEIGHT = 250,
	LEFT = 70,
	RIGHT = 15,
	TOP = 15,
	BOTTOM = 40,
	INNER = WIDTH - LEFT - RIGHT,
	TALL = HEIGHT - TOP - BOTTOM
};

#define LEAST_RANGE 0.05 /* a flat curve's noise is not drawn as mountains */
#define MOST_FALL (-2)	 /* a throughput can fall by more than a plot can show */

static void widen(struct html_scale *s, double low, double high)
{
	if (isfinite(low))
		s->low = fmin(s->low, fmax(low, MOST_FALL));
	if (isfinite(high))
		s->high = fmax(s->high, fmin(high, 1));
}

/* Set by curves and their bands; by what experiments say for themselves only where there is no
 * curve. An outlier stands at the edge. */
struct html_scale html_scale(const struct analysis_point *point)
{
	struct html_scale ret = {0, 0};

	for (size_t i = 0; i < point->n_lines; i++) {
		const struct analysis_line *line = &point->lines[i];
		bool curve = false;

		for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
			struct analysis_change c = analysis_shown(line, k);

			curve |= isfinite(c.effect);
			/* An undecided line's band can be wider than all curves. */
			widen(&ret, line->verdict == VERDICT_UNDECIDED ? c.effect : c.low,
			      line->verdict == VERDICT_UNDECIDED ? c.effect : c.high);
		}
		for (size_t k = 0; !curve && k < line->n_cells; k++)
			widen(&ret, line->cells[k].change.effect, line->cells[k].change.effect);
	}
	if (ret.high - ret.low < LEAST_RANGE) {
		ret.low -= LEAST_RANGE / 2;
		ret.high += LEAST_RANGE / 2;
	}
	return ret;
}

static int x_of(double speedup)
{
	return LEFT + (int)lround(speedup * INNER);
}

static int y_of(const struct html_scale *s, double effect)
{
	double at = (s->high - effect) / (s->high - s->low);

	return TOP + (int)lround(fmin(fmax(at, 0), 1) * TALL);
}

static void put_axes(const struct report *r, const struct html_scale *s)
{
	int zero = y_of(s, 0);

	(void)fprintf(r->out,
		      "<path class=axis d=\"M%d %dV%dH%d\"/><path class=zero d=\"M%d %dH%d\"/>",
		      LEFT, TOP, HEIGHT - BOTTOM, WIDTH - RIGHT, LEFT, zero, WIDTH - RIGHT);
	(void)fprintf(r->out, "<text x=%d y=%d text-anchor=end>%.0f %%</text>", LEFT - 8, TOP + 8,
		      100 * s->high);
	/* The labels of the zero line and of the lower edge must not lie over each other. */
	if (zero - TOP > 30)
		(void)fprintf(r->out, "<text x=%d y=%d text-anchor=end>0</text>", LEFT - 8,
			      zero + 6);
	if (HEIGHT - BOTTOM - zero > 30)
		(void)fprintf(r->out, "<text x=%d y=%d text-anchor=end>%.0f %%</text>", LEFT - 8,
			      HEIGHT - BOTTOM, 100 * s->low);
	for (int percent = 0; percent <= 100; percent += 50)
		(void)fprintf(r->out, "<text x=%d y=%d text-anchor=%s>%d%s</text>",
			      x_of(percent / 100.0), HEIGHT - 12, percent == 100 ? "end" : "middle",
			      percent, percent == 100 ? " % faster" : "");
}

struct place {
	double speedup;
	struct analysis_change at;
};

/* The places between which the fitted curve is straight, as far as it is told; the knee is one of
 * them. */
static size_t places_of(const struct analysis_line *line,
			struct place ret[ANALYSIS_CURVE_POINTS + 1])
{
	const struct analysis_curve *c = &line->curve;
	bool knee = c->knee <= c->run_most + 0.05; /* NaN: no */
	size_t n = 0;

	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
		struct analysis_change at = analysis_shown(line, k);

		if (!isfinite(at.effect))
			continue;
		if (knee && c->knee <= analysis_curve_speedups[k])
			ret[n++] = (struct place){
				c->knee, analysis_around(c->knee_effect, (at.high - at.low) / 2)};
		knee = knee && c->knee > analysis_curve_speedups[k];
		ret[n++] = (struct place){analysis_curve_speedups[k], at};
	}
	return n;
}

/* From 0 on, with its band: there along the upper ends, back along the lower ones. */
static void put_fit(const struct report *r, const struct html_scale *s,
		    const struct analysis_line *line)
{
	struct place places[ANALYSIS_CURVE_POINTS + 1];
	size_t n = places_of(line, places);

	(void)fprintf(r->out, "<path class=band d=\"M%d %d", x_of(0), y_of(s, 0));
	for (size_t i = 0; i < n; i++)
		if (isfinite(places[i].at.high))
			(void)fprintf(r->out, "L%d %d", x_of(places[i].speedup),
				      y_of(s, places[i].at.high));
	for (size_t i = n; i--;)
		if (isfinite(places[i].at.low))
			(void)fprintf(r->out, "L%d %d", x_of(places[i].speedup),
				      y_of(s, places[i].at.low));
	(void)fprintf(r->out, "Z\"/><path class=curve d=\"M%d %d", x_of(0), y_of(s, 0));
	for (size_t i = 0; i < n; i++)
		(void)fprintf(r->out, "L%d %d", x_of(places[i].speedup),
			      y_of(s, places[i].at.effect));
	(void)fputs("\"/>", r->out);
	for (size_t i = 0; i < n; i++)
		if (places[i].speedup == line->curve.knee)
			(void)fprintf(r->out, "<path class=knee d=\"M%d %dV%d\"/>",
				      x_of(line->curve.knee), TOP, HEIGHT - BOTTOM);
}

/* One path for all intervals and one for all dots. */
static void put_marks(const struct report *r, const struct html_scale *s,
		      const struct analysis_line *line)
{
	(void)fputs("<path class=whisker d=\"", r->out);
	for (size_t i = 0; i < line->n_cells; i++) {
		const struct analysis_cell *c = &line->cells[i];

		if (c->speedup > 0 && isfinite(c->change.low) && isfinite(c->change.high))
			(void)fprintf(r->out, "M%d %dV%d", x_of(c->speedup),
				      y_of(s, c->change.high), y_of(s, c->change.low));
	}
	(void)fputs("\"/><path class=dots d=\"", r->out);
	for (size_t i = 0; i < line->n_cells; i++)
		if (line->cells[i].speedup > 0 && isfinite(line->cells[i].change.effect))
			(void)fprintf(r->out, "M%d %dh0", x_of(line->cells[i].speedup),
				      y_of(s, line->cells[i].change.effect));
	(void)fputs("\"/>", r->out);
}

static void put_label(const struct report *r, const struct analysis_line *line)
{
	bool some = false;

	(void)fputs(" aria-label=\"", r->out);
	for (size_t k = 0; k < ANALYSIS_CURVE_POINTS; k++) {
		struct analysis_change c = analysis_shown(line, k);

		if (!isfinite(c.effect))
			continue;
		(void)fprintf(r->out, "%s%.0f %% faster: %.1f %%", some ? ", " : "",
			      100 * analysis_curve_speedups[k], 100 * c.effect);
		if (isfinite(c.low) && isfinite(c.high))
			(void)fprintf(r->out, " [%.1f, %.1f]", 100 * c.low, 100 * c.high);
		some = true;
	}
	(void)fprintf(r->out, "%s\"", some ? "" : "nothing measured");
}

void html_curve(const struct report *r, const struct html_scale *scale,
		const struct analysis_line *line)
{
	(void)fprintf(r->out,
		      "<svg class=plot viewBox=\"0 0 %d %d\" role=img data-left=%d data-width=%d",
		      WIDTH, HEIGHT, LEFT, INNER);
	put_label(r, line);
	(void)fputc('>', r->out);
	put_axes(r, scale);
	put_fit(r, scale, line);
	put_marks(r, scale, line);
	(void)fputs("</svg>\n", r->out);
}

static double bucket_ns(uint32_t bucket)
{
	return (double)histogram_low(bucket) + (double)histogram_width(bucket) / 2;
}

static double visits_of(const struct profile_point *x)
{
	return x->kind == PROFILE_LATENCY ? (double)x->departures : (double)x->delta;
}

#define MAX_STEPS 200

/* A chart: a mean for each of @n steps from the left to the right. */
struct steps {
	size_t n;
	double sum[MAX_STEPS], of[MAX_STEPS];
};

static double most_of(const struct steps *s)
{
	double most = 0;

	for (size_t i = 0; i < s->n; i++)
		if (s->of[i] > 0)
			most = fmax(most, s->sum[i] / s->of[i]);
	return most;
}

/* As a line that is as high as the chart where it is @most. It goes on straight over steps of which
 * nothing is known. */
static void put_steps(const struct report *r, const char *class, const struct steps *s, double most)
{
	bool down = false;

	(void)fprintf(r->out, "<path class=%s d=\"", class);
	for (size_t i = 0; i < s->n; i++) {
		if (!(s->of[i] > 0))
			continue;
		(void)fprintf(
			r->out, "%s%d %d", down ? "L" : "M", LEFT + (int)(i * INNER / (s->n - 1)),
			HEIGHT - BOTTOM - (int)lround(fmin(s->sum[i] / s->of[i] / most, 1) * TALL));
		down = true;
	}
	(void)fputs("\"/>", r->out);
}

static void put_chart_axes(const struct report *r, const char *top, const char *from,
			   const char *to)
{
	(void)fprintf(r->out,
		      "<path class=axis d=\"M%d %dV%dH%d\"/><text x=%d y=%d>%s</text><text x=%d "
		      "y=%d>%s</text><text x=%d y=%d text-anchor=end>%s</text>",
		      LEFT, TOP, HEIGHT - BOTTOM, WIDTH - RIGHT, LEFT + 8, TOP + 12, top, LEFT,
		      HEIGHT - 12, from, WIDTH - RIGHT, HEIGHT - 12, to);
}

/* The run's experiments from @first to @last, by when they began. False: too few to draw. */
static bool run_span(const struct profile *p, size_t run, double *first, double *last)
{
	*first = INFINITY;
	*last = 0;
	for (size_t i = 0; i < p->n_experiments; i++)
		if (p->experiments[i].run == run && p->experiments[i].x.began) {
			*first = fmin(*first, (double)p->experiments[i].x.began);
			*last = fmax(*last, (double)p->experiments[i].x.began);
		}
	return *last > *first;
}

void html_rate(const struct report *r, const struct analysis_point *point)
{
	const struct profile *p = r->p;
	size_t run = p->n_runs ? p->n_runs - 1 : 0;
	double first, last, most;
	struct steps s = {.n = MAX_STEPS};
	struct words top;

	if (!run_span(p, run, &first, &last))
		return;
	for (size_t i = 0; i < p->n_experiments; i++) {
		const struct profile_run_experiment *x = &p->experiments[i];
		const struct profile_point *seen = analysis_point_in(x, point);
		size_t at;

		if (x->run != run || !x->x.began || !seen || !x->x.elapsed)
			continue;
		at = (size_t)((double)(s.n - 1) * ((double)x->x.began - first) / (last - first));
		s.sum[at] += visits_of(seen);
		s.of[at] += (double)x->x.elapsed / 1e9;
	}
	most = most_of(&s);
	if (!(most > 0))
		return;
	top = text_words("%.4g", most);
	(void)fprintf(r->out,
		      "<details><summary>Visits per second over time</summary>\n<svg class=chart "
		      "viewBox=\"0 0 %d %d\" role=img aria-label=\"Visits per "
		      "second in experiments: at most %s\">",
		      WIDTH, HEIGHT, top.text);
	put_chart_axes(r, top.text, "0", text_duration(last - first).text);
	put_steps(r, "curve", &s, most);
	(void)fputs("</svg>\n<p class=dim>Of the last run, pauses included: a higher speedup "
		    "pauses more, so the rate scatters by design.\n</details>\n",
		    r->out);
}

#define LATENCY_STEPS 60
#define WANTED_SPEEDUP 0.5

/* The latencies of a point in a line's experiments at @speedup, or in all experiments at 0 %, on a
 * logarithmic scale. */
static void add_latencies(const struct report *r, const struct analysis_point *point,
			  const char *line, double speedup, double low, double high,
			  struct steps *ret)
{
	double all = 0;

	for (size_t i = 0; i < r->p->n_experiments; i++) {
		const struct profile_run_experiment *x = &r->p->experiments[i];
		const struct profile_point *seen = analysis_point_in(x, point);

		if (!seen || !seen->latency || fabs(x->x.speedup - speedup) > 0.0005 ||
		    (speedup > 0 && strcmp(x->x.selected, line) != 0))
			continue;
		for (size_t b = 0; b < seen->latency->n_buckets; b++) {
			double at = (log(bucket_ns(seen->latency->buckets[b].bucket)) - low) /
				    (high - low);

			if (at >= 0 && at <= 1)
				ret->sum[(size_t)(at * (double)(ret->n - 1))] +=
					(double)seen->latency->buckets[b].count;
			all += (double)seen->latency->buckets[b].count;
		}
	}
	for (size_t i = 0; i < ret->n; i++)
		ret->of[i] = all;
}

/* The speedup of the line's experiments that is nearest to the one wanted; 0: none. */
static double speedup_shown(const struct analysis_latency *l)
{
	double best = 0;

	for (size_t i = 0; i < l->n_cells; i++)
		if (l->cells[i].intervals > 0 &&
		    (best == 0 ||
		     fabs(l->cells[i].speedup - WANTED_SPEEDUP) < fabs(best - WANTED_SPEEDUP)))
			best = l->cells[i].speedup;
	return best;
}

void html_latencies(const struct report *r, const struct analysis_point *point,
		    const struct analysis_line *line)
{
	double speedup = line->latency && point->intervals ? speedup_shown(line->latency) : 0, low,
	       high, most;
	struct steps before = {.n = LATENCY_STEPS}, after = {.n = LATENCY_STEPS};
	struct words from, to;

	if (!(speedup > 0) || !(point->intervals->ns[LATENCY_P50] > 0))
		return;
	/* From a quarter of the median to well beyond the longest percentile that is known. */
	low = log(point->intervals->ns[LATENCY_P50] / 4);
	high = log(1.5 *
		   fmax(fmax(point->intervals->ns[LATENCY_P99], point->intervals->ns[LATENCY_P999]),
			2 * point->intervals->ns[LATENCY_P50]));
	add_latencies(r, point, line->selected, 0, low, high, &before);
	add_latencies(r, point, line->selected, speedup, low, high, &after);
	most = fmax(most_of(&before), most_of(&after));
	if (!(most > 0))
		return;
	from = text_duration(exp(low));
	to = text_duration(exp(high));
	(void)fprintf(
		r->out,
		"<p>Latencies at 0 %% (dashed) and if the line runs %.0f %% faster\n<svg "
		"class=chart viewBox=\"0 0 %d %d\" role=img "
		"aria-label=\"Histogram of latencies, from %s to %s, on a logarithmic scale\">",
		100 * speedup, WIDTH, HEIGHT, from.text, to.text);
	put_chart_axes(r, "how many", from.text, to.text);
	put_steps(r, "other", &before, most);
	put_steps(r, "curve", &after, most);
	(void)fputs("</svg>\n", r->out);
}
