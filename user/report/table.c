// SPDX-License-Identifier: BSD-2-Clause
/* One progress point's table of lines. */
#include "report/text.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/waits.h"

#include <libsmartcols/libsmartcols.h>
#include <math.h>
#include <string.h>

/* What lines without any effect are read as at most, and a bit more. */
#define SMALL_SLOPE 0.02
/* A slope and experiments contradict each other if their intervals are farther apart than either
 * can be off by its method. */
#define CONTRADICTION 0.1
#define ENOUGH 5 /* experiments, to say something of a line */

enum column {
	LINE,
	FUNCTION,
	SHARE,
	SLOPE,
	AT_25,
	AT_50,
	AT_75,
	AT_100,
	VERDICT,
	EXPERIMENTS,
	N_COLUMNS
};

/* In a narrow table, what others say as well leaves first. */
static const struct {
	const char *title;
	enum text_column_kind kind;
	unsigned int leaves;
} columns[N_COLUMNS] = {
	[LINE] = {"line", TEXT_NAME, 0},	[FUNCTION] = {"function", TEXT_NAME, 5},
	[SHARE] = {"share", TEXT_NUMBER, 2},	[SLOPE] = {"slope", TEXT_NUMBER, 1},
	[AT_25] = {"25 %", TEXT_NUMBER, 6},	[AT_50] = {"50 %", TEXT_NUMBER, 4},
	[AT_75] = {"75 %", TEXT_NUMBER, 7},	[AT_100] = {"100 %", TEXT_NUMBER, 3},
	[VERDICT] = {"verdict", TEXT_WORDS, 0}, [EXPERIMENTS] = {"exp.", TEXT_NUMBER, 8},
};

static const char *const verdict_colors[] = {
	[VERDICT_HELPS] = "green",
	[VERDICT_HURTS] = "red",
	[VERDICT_UNDECIDED] = "yellow",
};

/* The verdict at small speedups, while experiments have none. NULL: the slope is not sure. */
static const char *small_verdict(const struct analysis_line *line)
{
	if (line->verdict != VERDICT_UNDECIDED || line->undecided != UNDECIDED_OPEN ||
	    line->experiments >= ENOUGH)
		return NULL;
	return line->slope.low > SMALL_SLOPE	? verdict_names[VERDICT_HELPS]
	       : line->slope.high < SMALL_SLOPE ? verdict_names[VERDICT_NO_EFFECT]
						: NULL;
}

struct words text_verdict(const struct analysis_line *line, bool spins)
{
	const char *small = small_verdict(line);
	struct words w;

	if (small || !line->experiments)
		return text_words("%s%s", small ? small : "not tried", small ? " (small)" : "");
	if (line->undecided != UNDECIDED_OPEN)
		w = text_words("%s", undecided_words[line->undecided].verdict);
	else if (line->verdict != VERDICT_UNDECIDED || !(line->missing_s > 0))
		w = text_words("%s", verdict_names[line->verdict]);
	else
		w = text_words("undecided (%s)", text_time_left(line->missing_s).text);
	/* The star is a mark that a warning explains. */
	return text_words("%s%s%s", w.text, spins ? " (spins)" : "",
			  line->foreign > ANALYSIS_FOREIGN_FLAG &&
					  line->undecided != UNDECIDED_DISTURBED
				  ? " *"
				  : "");
}

/* What there is to say: where nothing was tried, nothing of the columns behind the slope. */
static bool has_column(const struct analysis_point *point, size_t column, bool functions)
{
	switch (column) {
	case FUNCTION:
		return functions;
	case SLOPE:
		return analysis_has_slopes(point);
	default:
		return column < SLOPE || !analysis_slopes_only(point);
	}
}

/* Is the line itself called after its function, or a wait in it? */
static bool is_its_function(const struct analysis_line *line)
{
	size_t n = strlen(line->selected);

	(void)wait_of(line->selected, &n);
	return line->function && strlen(line->function) == n &&
	       memcmp(line->function, line->selected, n) == 0;
}

static void add_line(const struct report *r, struct text_table *tb, bool functions,
		     const struct analysis_point *point, const struct analysis_line *line)
{
	_cleanup_free_ char *name = text_line_name(r, line->selected, SIZE_MAX),
			    *function = text_clean(r, is_its_function(line) ? ""
						      : line->function	    ? line->function
									    : "-");
	struct words words[N_COLUMNS];
	struct libscols_line *row = text_row(tb);
	size_t at = 0;

	words[SHARE] = text_share(line->share);
	words[SLOPE] = text_effect(r, line->slope);
	for (size_t i = 0; i < ANALYSIS_CURVE_POINTS; i++)
		words[AT_25 + i] = text_effect(r, analysis_shown(line, i));
	words[VERDICT] = text_verdict(line, point->speed.spins);
	words[EXPERIMENTS] = text_words("%zu", line->experiments);
	for (size_t i = 0; i < N_COLUMNS; i++) {
		if (!has_column(point, i, functions))
			continue;
		if (i == VERDICT && r->color && verdict_colors[line->verdict])
			(void)scols_cell_set_color(scols_line_get_cell(row, at),
						   verdict_colors[line->verdict]);
		text_cell(row, at++, i == LINE ? name : i == FUNCTION ? function : words[i].text);
	}
}

static bool says_something(const struct analysis_line *line)
{
	return line->experiments >= ENOUGH || line->slope.low > 0;
}

const struct analysis_line **shown_lines(const struct report *r, const struct analysis_point *point,
					 size_t *ret_n)
{
	const struct analysis_line **ret = xcalloc(point->n_lines + 1, sizeof(*ret));
	bool every = true;

	for (size_t i = 0; i < point->n_lines && !r->all; i++)
		every = every && !says_something(&point->lines[i]);
	*ret_n = 0;
	for (size_t i = 0; i < point->n_lines && *ret_n < r->top; i++)
		if (every || says_something(&point->lines[i]))
			ret[(*ret_n)++] = &point->lines[i];
	return ret;
}

/* The most that making the line faster may be worth, as far as that is known: the upper end of its
 * slope, else of its effects, else what an ordinary profiler would say. */
static double most_of(const struct analysis_line *line)
{
	double most = isfinite(line->slope.high) ? line->slope.high : line->slope.effect;

	for (size_t k = 0; !isfinite(line->slope.high) && k < ANALYSIS_CURVE_POINTS; k++)
		most = fmax(most, analysis_shown(line, k).high); /* a NaN loses against a number */
	return isnan(most) ? line->share : most;
}

/* One line on all lines that are not among the @n that are shown. */
static void print_rest(const struct report *r, const struct analysis_point *point,
		       const struct analysis_line *const *shown, size_t n)
{
	size_t rest = point->n_lines - n, next = 0;
	struct words words = {""};
	double most = NAN;

	for (size_t i = 0; i < point->n_lines; i++)
		if (next < n && shown[next] == &point->lines[i])
			next++;
		else
			most = fmax(most, most_of(&point->lines[i]));
	if (isfinite(most))
		words = text_words(": none above %.1f %%", fmax(100 * most, 0));
	if (rest)
		paragraph(r, 0, "%zu further place%s%s (--all shows %s).", rest,
			  rest == 1 ? "" : "s", words.text, rest == 1 ? "it" : "them");
}

void table_print(const struct report *r, const struct analysis_point *point)
{
	struct text_table tb = text_table(r);
	bool functions = false;
	size_t n;
	_cleanup_free_ const struct analysis_line **lines = shown_lines(r, point, &n);

	for (size_t i = 0; i < n; i++)
		functions = functions || (lines[i]->function && !is_its_function(lines[i]));
	for (size_t i = 0; i < N_COLUMNS; i++)
		if (has_column(point, i, functions))
			text_column(&tb, columns[i].title, columns[i].kind, columns[i].leaves);
	for (size_t i = 0; i < n; i++)
		add_line(r, &tb, functions, point, lines[i]);
	text_table_end(&tb);
	print_rest(r, point, lines, n);
}

const char *choice_of(const struct report *r, const struct analysis_point *point)
{
	for (size_t i = 0; i < r->p->n_runs; i++) {
		const struct profile_startup *s = &r->p->runs[i];

		if (s->chosen && strcmp(s->chosen, point->name) == 0)
			return s->choice ? s->choice : s->chosen;
	}
	return NULL;
}

static void note_choice(const struct report *r, const struct analysis_point *point)
{
	const char *words = choice_of(r, point);

	if (words)
		note(r, NOTE_PLAIN,
		     "No point was given: counting %s. -p counts another one instead.", words);
}

/* Which lines run in some phases of the program only. */
static void note_phases(const struct report *r, const struct analysis_point *point,
			const struct analysis_line *const *lines, size_t n)
{
	size_t told = 0;

	for (size_t i = 0; i < n; i++) {
		const struct analysis_line *line = lines[i];
		double share = line->allow.presence.share;
		_cleanup_free_ char *name = text_line_name(r, line->selected, text_name_room(r));

		if (share == 1)
			continue;
		told++;
		if (share < 1)
			note(r, NOTE_DETAIL,
			     "%s runs during %.*f %% of the time: its effects are those on the "
			     "whole run.",
			     name, share < 0.1 ? 1 : 0, 100 * share);
		else
			note(r, NOTE_DETAIL,
			     "%s ran %.1f times as much in the whole run as in its experiments: "
			     "its effects are those on the whole run.",
			     name, share);
	}
	if (told && point->intervals)
		note(r, NOTE_DETAIL,
		     "Percentiles are not told of %s: those of the whole run do not follow from "
		     "those of a part of it.",
		     told > 1 ? "these lines" : "that line");
}

static void note_slopes(const struct report *r, const struct analysis_point *point,
			const struct analysis_line *const *lines, size_t n)
{
	bool small = false;

	for (size_t i = 0; i < n; i++) {
		const struct analysis_line *line = lines[i];
		const struct analysis_curve *c = &line->curve;
		_cleanup_free_ char *name = text_line_name(r, line->selected, text_name_room(r));
		/* Before a knee that is below the speedups that were tried it may be as steep as
		 * the slope says. */
		double less = isnan(c->knee) ? line->slope.low - c->slope.high : -INFINITY,
		       apart = fmax(less, c->slope.low - line->slope.high);

		small |= small_verdict(line) != NULL;
		if (isfinite(apart) && apart > CONTRADICTION)
			note(r, NOTE_WARNING,
			     "%s: its slope is %.1f %%, but experiments say %.1f %%. Threads that "
			     "wait by spinning, or for an event that is not seen, make slopes "
			     "wrong; see cozbpf-method(7).",
			     name, 100 * line->slope.effect, 100 * c->slope.effect);
	}
	if (small && !analysis_slopes_only(point))
		note(r, NOTE_PLAIN,
		     "(small): at small speedups, which is what the slope says. How far that goes, "
		     "experiments have not decided.");
}

/* Explains rows that are waits, each kind of explanation once. */
static void note_waits(const struct report *r, const struct analysis_line *const *lines, size_t n)
{
	unsigned int outside = WAIT_NONE;
	bool cpu = false;

	for (size_t i = 0; i < n; i++) {
		if (lines[i]->wait == WAIT_CPU)
			cpu = true;
		else if (lines[i]->wait && !outside)
			outside = lines[i]->wait;
	}
	if (outside)
		note(r, NOTE_PLAIN,
		     "[%s] and the like: threads wait there for something outside of the program; "
		     "the share is of the run's time.%s",
		     wait_name(outside),
		     r->verbose ? " The effect is that of shorter waits. Of a wait for the next "
				  "request it says only what requests that came sooner would be "
				  "worth. Waits that another thread of the program ends have no "
				  "row: look at the lines of that thread."
				: "");
	if (cpu)
		note(r, NOTE_PLAIN,
		     "[cpu]: threads are ready to run and wait for a CPU; the share is of the "
		     "run's time.%s",
		     r->verbose ? " The effect at 100 % is that of a CPU for each of them." : "");
}

void table_notes(const struct report *r, const struct analysis_point *point)
{
	size_t n;
	_cleanup_free_ const struct analysis_line **lines = shown_lines(r, point, &n);

	note_choice(r, point);
	note_slopes(r, point, lines, n);
	note_waits(r, lines, n);
	note_phases(r, point, lines, n);
	elsewhere_notes(r, point);
	if (point->speed.spins)
		note(r, NOTE_WARNING,
		     "threads spin here; effects may read low. What a visit executes follows the "
		     "pauses, so threads execute while they wait for each "
		     "other, and no event says that they wait. The shorter their rounds are, the "
		     "more that matters: see cozbpf-method(7).");
}
