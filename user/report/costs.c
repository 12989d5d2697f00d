// SPDX-License-Identifier: BSD-2-Clause
/* What it costs the program that its visits are counted. The whole of it counts against the time of
 * the run as if all visits were made one after the other: it is the most that it can be. */
#include "report/text.h"

#include <string.h>

#define TOO_MUCH 0.02 /* of the run */

/* Such a point is no cheaper for being passed seldom. */
#define SYSCALL_HINT                                                                            \
	" While a system call is counted, the kernel reports all of them; a tracepoint on its " \
	"way is cheaper, such as "                                                              \
	"-p tracepoint:sock:sock_send_length (Linux 6.3) for what is sent."

struct cost {
	double visits, ns, most_ns; /* all visits, what they took, the most that one did */
};

static struct cost cost_of(const struct profile *p, const char *name)
{
	struct cost c = {0};

	for (size_t i = 0; i < p->n_experiments; i++)
		for (size_t j = 0; j < p->experiments[i].n_points; j++) {
			const struct profile_point *x = &p->experiments[i].points[j];

			if (x->kind != PROFILE_THROUGHPUT || !x->name || strcmp(x->name, name))
				continue;
			c.visits += (double)x->delta;
			c.ns += (double)x->delta * (double)x->cost_ns;
			if ((double)x->cost_ns > c.most_ns)
				c.most_ns = (double)x->cost_ns;
		}
	return c;
}

void costs_notes(const struct report *r)
{
	for (size_t i = 0; i < r->a->n_points; i++) {
		const struct analysis_point *point = &r->a->points[i];
		struct cost c = point->kind == PROFILE_THROUGHPUT ? cost_of(r->p, point->name)
								  : (struct cost){0};
		double share = r->a->elapsed_ns > 0 ? c.ns / r->a->elapsed_ns : 0;
		struct words each = text_duration(c.most_ns);

		if (!(c.ns > 0))
			continue;
		if (share > TOO_MUCH)
			note(r, NOTE_WARNING,
			     "to count '%s' took up to %.1f %% of the run, %s a visit. Count "
			     "samples of a line or function "
			     "instead of its visits (-p sampled:FILE:LINE, sampled:FUNCTION), or "
			     "name a place that is passed less often.%s",
			     point->name, 100 * share, each.text,
			     !strncmp(point->name, "syscall:", strlen("syscall:")) ? SYSCALL_HINT
										   : "");
		else
			note(r, NOTE_DETAIL,
			     "To count '%s' took up to %.2g %% of the run, %s a visit.",
			     point->name, 100 * share, each.text);
	}
}
