// SPDX-License-Identifier: BSD-2-Clause
/* Where the time goes, by samples alone: of a profile that says nothing of what lines are worth. */
#include "report/text.h"

#include "base/cleanup.h"
#include "base/waits.h"

#include <math.h>
#include <string.h>

#define LEAST_SHARE 0.0005 /* less is printed as 0.0 % */

/* Samples are of execution; waits have times. */
static bool is_executed(const struct profile_samples *s, double total)
{
	return !wait_of(s->location, NULL) && (double)s->count >= LEAST_SHARE * total;
}

void where_print(const struct report *r)
{
	_cleanup_free_ const struct profile_samples **all = profile_samples_sorted(r->p);
	double total = analysis_sampled(r->p);
	struct text_table tb;
	bool functions = false;
	size_t n = 0;

	for (size_t i = 0; i < r->p->n_samples && n < r->top; i++)
		if (total > 0 && is_executed(all[i], total))
			all[n++] = all[i];
	if (!n)
		return;
	for (size_t i = 0; i < n; i++)
		functions = functions || all[i]->function;
	(void)fputc('\n', r->out);
	paragraph(r, 0, "Where it executes, by samples, which do not say what a line is worth.");
	tb = text_table(r);
	text_column(&tb, "line", TEXT_NAME, 0);
	if (functions)
		text_column(&tb, "function", TEXT_NAME, 1);
	text_column(&tb, "share", TEXT_NUMBER, 0);
	for (size_t i = 0; i < n; i++) {
		_cleanup_free_ char *name = text_line_name(r, all[i]->location, SIZE_MAX),
				    *function = text_clean(r, all[i]->function ?: "-");
		struct libscols_line *row = text_row(&tb);

		text_cell(row, 0, name);
		if (functions)
			text_cell(row, 1, function);
		text_cell(row, 1 + functions,
			  text_share(fmin(1, (double)all[i]->count / total)).text);
	}
	text_table_end(&tb);
}
