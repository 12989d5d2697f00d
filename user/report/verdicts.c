// SPDX-License-Identifier: BSD-2-Clause
/* What is said of rows that have no verdict yet, or cannot have one, and what to do about it. */
#include "report/text.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/waits.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#define TOLD_LINES 3

bool any_verdict(const struct analysis *a, enum verdict v, enum undecided why)
{
	for (size_t i = 0; i < a->n_points; i++)
		for (size_t j = 0; a->points[i].visits && j < a->points[i].n_lines; j++)
			if (a->points[i].lines[j].experiments &&
			    a->points[i].lines[j].verdict == v &&
			    a->points[i].lines[j].undecided == why)
				return true;
	return false;
}

/* For how long threads were held that should have slept, and how to have them sleep. */
static void note_held(const struct report *r)
{
	const struct profile *p = r->p;
	const char *command = p->n_runs ? p->runs[p->n_runs - 1].command : NULL;
	double most = 0;

	for (size_t i = 0; i < r->a->n_points; i++)
		for (size_t j = 0; r->a->points[i].visits && j < r->a->points[i].n_lines; j++)
			most = fmax(most, r->a->points[i].lines[j].held);
	if (most > 0)
		note(r, NOTE_DETAIL,
		     "Threads that should have slept were held for up to %.0f %% of the time in a "
		     "line's experiments.",
		     100 * most);
	/* One line, however long, to be copied. */
	if (command && *command && any_verdict(r->a, VERDICT_UNDECIDED, UNDECIDED_INJECT))
		note(r, NOTE_COMMAND, "With a handler: cozbpf %s --inject=auto", command);
}

/* Waits that the program's own threads end get shorter when those threads do: the lines with most
 * of the CPU time. */
static void note_busiest(const struct report *r)
{
	const struct profile_samples *top[TOLD_LINES] = {NULL};
	char *text = NULL;
	double all = 0;
	size_t size;
	FILE *f = xopen_memstream(&text, &size);

	for (size_t i = 0; i < r->p->n_samples; i++) {
		const struct profile_samples *s = &r->p->samples[i];
		size_t k;

		if (wait_of(s->location, NULL))
			continue;
		all += (double)s->ns;
		for (k = TOLD_LINES; k > 0 && (!top[k - 1] || s->ns > top[k - 1]->ns); k--)
			if (k < TOLD_LINES)
				top[k] = top[k - 1];
		if (k < TOLD_LINES)
			top[k] = s;
	}
	for (size_t k = 0; k < TOLD_LINES && top[k]; k++) {
		_cleanup_free_ char *name = text_line_name(r, top[k]->location, text_name_room(r));

		(void)fprintf(f, "%s%s (%.0f %%)", k ? ", " : "", name,
			      100 * (double)top[k]->ns / all);
	}
	xclose_memstream(f);
	if (all > 0)
		note(r, NOTE_PLAIN,
		     "Where the program's threads ran most, by CPU time in its lines: %s.", text);
	free(text);
}

void note_again(const struct report *r)
{
	if (r->h->again)
		note(r, NOTE_COMMAND, "As often as it takes: %s", r->h->again);
}

void verdict_notes(const struct report *r)
{
	if (any_verdict(r->a, VERDICT_HURTS, UNDECIDED_OPEN))
		note(r, NOTE_DETAIL,
		     "A negative effect means contention: if the line gets faster, threads meet "
		     "more often where they get in each other's way (a "
		     "lock, a cache line, a queue). Look there before you make it faster.");
	for (enum undecided why = UNDECIDED_OPEN + 1; why < N_UNDECIDED; why++)
		if (any_verdict(r->a, VERDICT_UNDECIDED, why))
			note(r, NOTE_PLAIN, "%c%s: %s.%s%s",
			     toupper(undecided_words[why].verdict[0]),
			     undecided_words[why].verdict + 1, undecided_words[why].why,
			     r->verbose ? " " : "", r->verbose ? undecided_words[why].more : "");
	if (any_verdict(r->a, VERDICT_UNDECIDED, UNDECIDED_ABSENT))
		note_busiest(r);
	note_held(r);
	if (any_verdict(r->a, VERDICT_UNDECIDED, UNDECIDED_OPEN)) {
		note(r, NOTE_DETAIL,
		     "Undecided: the intervals are still too wide, in parentheses about how much "
		     "longer to run. Further runs into the same file add "
		     "up.");
		note_again(r);
	}
}
