// SPDX-License-Identifier: BSD-2-Clause
/* What to do next: the last line of a report as text. */
#include "report/text.h"

#include "base/cleanup.h"
#include "base/jit.h"
#include "base/memory.h"
#include "base/shell.h"
#include "base/waits.h"

static bool gains(const struct analysis_line *line)
{
	return line->verdict == VERDICT_HELPS ||
	       (line->verdict == VERDICT_UNDECIDED && slope_is_told(line));
}

static bool hurts(const struct analysis_line *line)
{
	return line->verdict == VERDICT_HURTS;
}

static bool lacks_time(const struct analysis_line *line)
{
	return line->verdict == VERDICT_UNDECIDED && line->undecided == UNDECIDED_OPEN &&
	       line->missing_s > 0;
}

static bool is_idle(const struct analysis_line *line)
{
	return line->verdict == VERDICT_NO_EFFECT;
}

/* NULL: there is none. */
static const struct analysis_line *first_line(const struct report *r,
					      bool (*fits)(const struct analysis_line *line))
{
	for (size_t i = 0; i < r->a->n_points; i++)
		for (size_t j = 0; r->a->points[i].visits && j < r->a->points[i].n_lines; j++)
			if (fits(&r->a->points[i].lines[j]))
				return &r->a->points[i].lines[j];
	return NULL;
}

/* The command that shows the line's instructions. The caller's. */
static char *annotate_command(const struct report *r, const char *name)
{
	char *text = NULL;
	size_t size;
	FILE *f = xopen_memstream(&text, &size);

	(void)fputs("cozbpf annotate", f);
	shell_put(f, name);
	if (r->h->profile)
		shell_put(f, r->h->profile);
	else
		(void)fputs(" PROFILE", f);
	xclose_memstream(f);
	return text;
}

static void print_gain(const struct report *r, const struct analysis_line *line, const char *name)
{
	_cleanup_free_ char *whole = text_line_name(r, line->selected, SIZE_MAX),
			    *command = annotate_command(r, whole);

	if (line->wait == WAIT_CPU)
		paragraph(r, 2, "Next: more CPUs, or fewer threads that want one.");
	else if (line->wait)
		paragraph(r, 2, "Next: fewer or shorter waits at %s.", name);
	else if (!r->p->n_addresses || jit_is_name(line->selected)) /* it is in no file */
		paragraph(r, 2, "Next: make %s faster; cozbpf diff says what came of it.", name);
	else
		note(r, NOTE_COMMAND, "Next: see its instructions: %s", command);
}

void next_print(const struct report *r)
{
	const struct analysis_line *line;
	_cleanup_free_ char *name = NULL;

	if (analysis_disturbed(r->p, r->a))
		return; /* once more, as is said above */
	if (!(line = first_line(r, gains)) && !(line = first_line(r, hurts)) &&
	    !(line = first_line(r, lacks_time)) && !(line = first_line(r, is_idle)))
		return;
	name = text_line_name(r, line->selected, text_name_room(r));
	if (gains(line))
		print_gain(r, line, name);
	else if (hurts(line))
		paragraph(r, 2,
			  "Next: look for what threads share at %s: a lock, a cache line, a queue.",
			  name);
	else if (lacks_time(line))
		paragraph(
			r, 2,
			"Next: run about %s longer, which decides %s; runs into the same file add "
			"up.",
			text_time_left(line->missing_s).text, name);
	else
		paragraph(
			r, 2,
			"Next: try another progress point, or waits as well (--what all): none of "
			"these lines is worth it for this one.");
}
