// SPDX-License-Identifier: BSD-2-Clause
#include "report/shares.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/sort.h"
#include "base/utf8.h"
#include "report/html.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <string.h>

/* A clock's sum is a time. */
static bool is_time(const struct shares *s)
{
	return s->event && (strcmp(s->event, "cpu-clock") == 0 || strcmp(s->event, "cycles") == 0);
}

static double part(const struct shares *s, const struct share *x)
{
	return s->amount > 0 ? x->amount / s->amount : 0;
}

static struct words amount_text(const struct shares *s, double amount)
{
	return is_time(s) ? text_duration(amount) : text_words("%.4g", amount);
}

/* What was counted, as one sentence. The caller's. */
static char *head_words(const struct shares_table *t)
{
	struct words from = text_time(t->s->from_s), to = text_time(t->s->to_s),
		     sum = amount_text(t->s, t->s->amount);
	double busy = (double)t->s->samples / (double)(t->s->samples + t->s->idle);

	if (!t->s->samples)
		return xasprintf("%s has no samples that fit.", t->database);
	/* An epoch is longer than what was sampled in it, which the idle samples say as well. */
	if (is_time(t->s) && t->s->idle)
		return xasprintf(
			"%llu sample%s of busy CPUs (%s): %s of the %s of CPU time that were "
			"sampled, %s to %s UTC; CPUs were idle for %.1f %% of that.",
			(unsigned long long)t->s->samples, plural(t->s->samples),
			t->s->event ? t->s->event : "", sum.text,
			text_duration(t->s->amount / busy).text, from.text, to.text,
			100 * (1 - busy));
	if (is_time(t->s))
		return xasprintf("%llu sample%s of busy CPUs (%s), %s of CPU time, %s to %s UTC.",
				 (unsigned long long)t->s->samples, plural(t->s->samples),
				 t->s->event ? t->s->event : "", sum.text, from.text, to.text);
	return xasprintf("%llu sample%s of %s, which stand for %s of them, %s to %s UTC.",
			 (unsigned long long)t->s->samples, plural(t->s->samples),
			 t->s->event ? t->s->event : "", sum.text, from.text, to.text);
}

static size_t shown(const struct shares_table *t)
{
	return t->top && t->top < t->s->n ? t->top : t->s->n;
}

static bool has_image(const struct shares_table *t)
{
	return t->by == SHARES_FUNCTION || t->by == SHARES_LINE;
}

static struct words share_text(const struct report *r, const struct shares *s,
			       const struct share *x)
{
	return text_words("%.1f %s%.1f %%", 100 * part(s, x), r->utf8 ? "\u00b1" : "+-",
			  100 * shares_half_width(x->samples, s->samples));
}

/* Empty where there is none. */
static struct words slope_text(const struct report *r, const struct shares_table *t, size_t i)
{
	struct analysis_change x = t->slopes ? t->slopes[i] : ANALYSIS_UNKNOWN;

	if (isfinite(x.high))
		return text_words("%.1f %s%.1f", 100 * x.effect, r->utf8 ? "\u00b1" : "+-",
				  50 * (x.high - x.low));
	return isfinite(x.effect) ? text_words("%.1f", 100 * x.effect) : (struct words){""};
}

static void add_row(const struct report *r, struct text_table *tb, const struct shares_table *t,
		    size_t i)
{
	const struct share *x = &t->s->all[i];
	struct libscols_line *row = text_row(tb);
	_cleanup_free_ char *name = text_clean(r, x->name), *image = text_clean(r, x->image);
	size_t column = 0;

	text_cell(row, column++, share_text(r, t->s, x).text);
	if (t->slopes)
		text_cell(row, column++, slope_text(r, t, i).text);
	text_cell(row, column++, amount_text(t->s, x->amount).text);
	text_cell(row, column++, name);
	if (has_image(t))
		text_cell(row, column, image);
}

void shares_print(FILE *out, const struct shares_table *t)
{
	struct report r = report_text(out, NULL, NULL, NULL, t->width);
	_cleanup_free_ char *head = head_words(t);
	struct text_table tb = text_table(&r);

	paragraph(&r, 0, "%s", head);
	if (t->slopes)
		paragraph(&r, 0,
			  "Slope: with a slope of 50 each per cent by which it gets faster takes "
			  "0.5 %% off the time from one visit of '%s' to the next, at first.",
			  t->point);
	text_column(&tb, "share", TEXT_NUMBER, 0);
	if (t->slopes)
		text_column(&tb, "slope", TEXT_NUMBER, 0);
	text_column(&tb, is_time(t->s) ? "time" : "events", TEXT_NUMBER, 1);
	text_column(&tb, shares_by_names[t->by], TEXT_NAME, 0);
	if (has_image(t))
		text_column(&tb, "image", TEXT_NAME, 2);
	for (size_t i = 0; i < shown(t); i++)
		add_row(&r, &tb, t, i);
	text_table_end(&tb);
	if (shown(t) < t->s->n)
		(void)fprintf(out, "... and %zu more (--top 0 shows all)\n", t->s->n - shown(t));
	for (size_t i = 0; i < t->s->n_unread; i++)
		paragraph(&r, 2, "- No names of %s", t->s->unread[i]);
}

int shares_html(FILE *out, const struct shares_table *t)
{
	struct notes notes = {0};
	struct report r = report_make(out, NULL, NULL, NULL, &notes);
	_cleanup_free_ char *head = head_words(t);

	html_begin(&r, "Samples");
	html_put(&r,
		 "<header>\n<h1>Where the time goes, by "
		 "%s</h1>\n</header>\n<main>\n<section>\n<p class=answer>%s",
		 shares_by_names[t->by], head);
	(void)fprintf(
		out,
		"\n<div class=scroll><table class=lines><caption>Shares of all samples, with "
		"95 %% intervals</caption>\n<thead><tr><th scope=col "
		"class=n>#<th scope=col>%s<th scope=col>image<th scope=col class=n>share%s<th "
		"scope=col class=n>%s</thead>\n<tbody>\n",
		shares_by_names[t->by], t->slopes ? "<th scope=col class=n>slope" : "",
		is_time(t->s) ? "seconds" : "events");
	for (size_t i = 0; i < shown(t); i++) {
		const struct share *x = &t->s->all[i];

		(void)fprintf(out, "<tr><td class=n>%zu<td class=name>", i + 1);
		html_put(&r, "%s<td class=name>%s<td class=n>%s", x->name, x->image,
			 share_text(&r, t->s, x).text);
		if (t->slopes)
			html_put(&r, "<td class=n>%s", slope_text(&r, t, i).text);
		(void)fprintf(out, "<td class=n>%.4g\n",
			      is_time(t->s) ? x->amount / 1e9 : x->amount);
	}
	(void)fputs("</tbody></table></div>\n", out);
	for (size_t i = 0; i < t->s->n_unread; i++)
		note(&r, NOTE_PLAIN, "No names of %s", t->s->unread[i]);
	html_notes(&r);
	(void)fputs("</section>\n</main>\n", out);
	html_end(&r);
	return fflush(out) ? -errno : 0;
}

static void add_share(struct json_object *list, const struct shares_table *t, size_t i)
{
	const struct share *x = &t->s->all[i];
	struct json_object *row = json_append_new(list);

	json_add_string(row, shares_by_names[t->by], x->name);
	if (has_image(t))
		json_add_string(row, "image", x->image);
	json_add_number(row, "share", part(t->s, x));
	json_add_number(row, "half_width", shares_half_width(x->samples, t->s->samples));
	json_add_number(row, "samples", (double)x->samples);
	json_add_number(row, "amount", x->amount);
	if (!t->slopes)
		return;
	json_add_number(row, "slope", t->slopes[i].effect);
	json_add_number(row, "slope_low", t->slopes[i].low);
	json_add_number(row, "slope_high", t->slopes[i].high);
}

static struct json_object *shares_object(const struct shares_table *t)
{
	struct json_object *o = json_new(), *list = json_add_array(o, "rows");

	json_add_string(o, "event", t->s->event);
	json_add_number(o, "samples", (double)t->s->samples);
	json_add_number(o, "idle", (double)t->s->idle);
	json_add_number(o, "amount", t->s->amount);
	json_add_number(o, "from", (double)t->s->from_s);
	json_add_number(o, "to", (double)t->s->to_s);
	if (t->point)
		json_add_string(o, "point", t->point);
	for (size_t i = 0; i < shown(t); i++)
		add_share(list, t, i);
	return o;
}

void shares_json(FILE *out, const struct shares_table *t)
{
	struct json_object *o = json_new();

	json_add(o, "shares", shares_object(t));
	json_print(out, o, 0);
}

/* An empty cell is not known. */
static void put_slope(FILE *out, const struct analysis_change *x)
{
	const double cells[] = {x->effect, x->low, x->high};

	for (size_t i = 0; i < sizeof(cells) / sizeof(*cells); i++)
		if (isfinite(cells[i]))
			(void)fprintf(out, ",%.6f", cells[i]);
		else
			(void)fputc(',', out);
}

void shares_csv(FILE *out, const struct shares_table *t)
{
	struct report r = report_make(out, NULL, NULL, NULL, NULL);

	(void)fprintf(out, "%s,image,share,half_width,samples,amount%s\n", shares_by_names[t->by],
		      t->slopes ? ",slope,slope_low,slope_high" : "");
	for (size_t i = 0; i < shown(t); i++) {
		const struct share *x = &t->s->all[i];

		text_csv(&r, x->name);
		(void)fputc(',', out);
		text_csv(&r, x->image);
		(void)fprintf(out, ",%.6f,%.6f,%llu,%.9g", part(t->s, x),
			      shares_half_width(x->samples, t->s->samples),
			      (unsigned long long)x->samples, x->amount);
		if (t->slopes)
			put_slope(out, &t->slopes[i]);
		(void)fputc('\n', out);
	}
}

/* A row of both tables; one of them may be NULL. */
struct pair {
	const struct share *before, *after;
	double was, is, half; /* of the difference; half is 95 % for this row alone */
	bool differs;
};

static int by_name(const void *a, const void *b)
{
	const struct share *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name) ?: strcmp((*x)->image, (*y)->image);
}

static int by_difference(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	double dx = fabs(x->is - x->was), dy = fabs(y->is - y->was);

	return sort_order(y->differs, x->differs) ?: sort_order(dy, dx);
}

/* The quantile of a normal distribution that @n rows taken together exceed in one of 20 cases: by
 * an approximation of its tail that is right to 0.0005 (Abramowitz and Stegun, Handbook of
 * Mathematical Functions, 26.2.23). */
static double bound(size_t n)
{
	double t = sqrt(-2 * log(0.025 / (double)(n ? n : 1)));

	return t - (2.515517 + t * (0.802853 + t * 0.010328)) /
			   (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
}

static void judge(struct pair *p, const struct shares *before, const struct shares *after, double z)
{
	double n = (double)before->samples, m = (double)after->samples, was, is;

	p->was = p->before ? part(before, p->before) : 0;
	p->is = p->after ? part(after, p->after) : 0;
	/* With half a sample more, of rows that one side has not. */
	was = ((p->before ? (double)p->before->samples : 0) + 0.5) / (n + 1);
	is = ((p->after ? (double)p->after->samples : 0) + 0.5) / (m + 1);
	p->half = sqrt(was * (1 - was) / (n + 1) + is * (1 - is) / (m + 1));
	p->differs = fabs(p->is - p->was) > z * p->half;
	p->half *= 1.96;
}

static const struct share **sorted(const struct shares *s)
{
	const struct share **all = xcalloc(s->n, sizeof(*all));

	for (size_t i = 0; i < s->n; i++)
		all[i] = &s->all[i];
	sort_array(all, s->n, by_name);
	return all;
}

/* The caller's. */
static struct pair *make_pairs(const struct shares *before, const struct shares *after,
			       size_t *ret_n)
{
	_cleanup_free_ const struct share **x = sorted(before), **y = sorted(after);
	struct pair *all = xcalloc(before->n + after->n, sizeof(*all));
	size_t n = 0, i = 0, j = 0;

	while (i < before->n || j < after->n) {
		int order = i == before->n ? 1 : j == after->n ? -1 : by_name(&x[i], &y[j]);

		all[n++] = (struct pair){.before = order <= 0 ? x[i] : NULL,
					 .after = order >= 0 ? y[j] : NULL};
		i += order <= 0;
		j += order >= 0;
	}
	for (size_t k = 0; k < n; k++)
		judge(&all[k], before, after, bound(n));
	sort_array(all, n, by_difference);
	*ret_n = n;
	return all;
}

static const struct share *either(const struct pair *p)
{
	return p->after ? p->after : p->before;
}

static void add_pair(const struct report *r, struct text_table *tb, const struct shares_table *t,
		     const struct pair *p)
{
	struct libscols_line *row = text_row(tb);
	_cleanup_free_ char *name = text_clean(r, either(p)->name),
			    *image = text_clean(r, either(p)->image);

	text_cell(row, 0, text_share(p->was).text);
	text_cell(row, 1, text_share(p->is).text);
	text_change_cell(r, row, 2, analysis_around(p->is - p->was, p->half));
	text_cell(row, 3, p->differs ? "differs" : "no sure difference");
	text_cell(row, 4, name);
	if (has_image(t))
		text_cell(row, 5, image);
}

void shares_print_diff(FILE *out, const struct shares_table *before,
		       const struct shares_table *after)
{
	struct report r = report_text(out, NULL, NULL, NULL, after->width);
	_cleanup_free_ char *was = head_words(before), *is = head_words(after);
	struct text_table tb = text_table(&r);
	size_t n;
	_cleanup_free_ struct pair *all = make_pairs(before->s, after->s, &n);

	paragraph(&r, 0, "Before: %s", was);
	paragraph(&r, 0, "After: %s", is);
	text_column(&tb, "before", TEXT_NUMBER, 2);
	text_column(&tb, "after", TEXT_NUMBER, 1);
	text_column(&tb, "difference", TEXT_NUMBER, 0);
	text_column(&tb, "verdict", TEXT_WORDS, 0);
	text_column(&tb, shares_by_names[after->by], TEXT_NAME, 0);
	if (has_image(after))
		text_column(&tb, "image", TEXT_NAME, 3);
	for (size_t i = 0; i < n && (!after->top || i < after->top); i++)
		add_pair(&r, &tb, after, &all[i]);
	text_table_end(&tb);
}

void shares_json_diff(FILE *out, const struct shares_table *before,
		      const struct shares_table *after)
{
	struct json_object *o = json_new(), *list;
	size_t n;
	_cleanup_free_ struct pair *all = make_pairs(before->s, after->s, &n);

	json_add(o, "before", shares_object(before));
	json_add(o, "after", shares_object(after));
	list = json_add_array(o, "differences");
	for (size_t i = 0; i < n && (!after->top || i < after->top); i++) {
		struct json_object *row = json_append_new(list);

		json_add_string(row, shares_by_names[after->by], either(&all[i])->name);
		json_add_string(row, "image", either(&all[i])->image);
		json_add_number(row, "before", all[i].was);
		json_add_number(row, "after", all[i].is);
		json_add_number(row, "half_width", all[i].half);
		json_add_bool(row, "differs", all[i].differs);
	}
	json_print(out, o, 0);
}
