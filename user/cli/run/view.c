// SPDX-License-Identifier: BSD-2-Clause
/* What the live view says. */
#include "cli/run/status.h"

#include "base/clock.h"
#include "base/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#define POINTS_SHOWN 6
#define NUMBERS 46 /* columns of a line's effect, interval and verdict */

const char *view_short_name(const char *line)
{
	const char *slash = strrchr(line, '/');

	return slash && slash[1] ? slash + 1 : line;
}

static void add(struct view *v, size_t columns, enum view_style style, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
static void add(struct view *v, size_t columns, enum view_style style, const char *fmt, ...)
{
	struct view_line *l = &v->lines[v->n];
	va_list ap;

	if (v->n == VIEW_ROWS)
		return;
	l->style = style;
	va_start(ap, fmt);
	(void)vsnprintf(l->text, sizeof(l->text), fmt, ap);
	va_end(ap);
	/* So many bytes are at most as many columns. */
	if (columns < sizeof(l->text))
		l->text[columns] = '\0';
	utf8_make_printable(l->text, utf8_locale());
	v->n++;
}

void view_progress(const struct status_facts *f, char *buf, size_t size)
{
	char of[32] = "", run[32] = "";
	size_t n;

	if (f->run)
		(void)snprintf(run, sizeof(run), "run %zu, ", f->run);
	if (f->duration_ns)
		(void)snprintf(of, sizeof(of), "/%.0f",
			       (double)f->duration_ns / (double)NSEC_PER_SEC);
	(void)snprintf(buf, size, "%s%.0f%s s, ", run, (double)f->elapsed_ns / (double)NSEC_PER_SEC,
		       of);
	n = strlen(buf);
	if (f->slopes_only)
		(void)snprintf(buf + n, size - n, "no pauses");
	else
		(void)snprintf(buf + n, size - n, "%zu experiment%s on %zu line%s", f->experiments,
			       f->experiments == 1 ? "" : "s", f->lines, f->lines == 1 ? "" : "s");
}

void view_now(const struct status_facts *f, char *buf, size_t size)
{
	buf[0] = '\0';
	if (f->selected)
		(void)snprintf(buf, size, ", now %s %s %.0f %%", view_short_name(f->selected),
			       f->slows ? "slowed by" : "at", 100 * f->speedup);
}

static void add_head(const struct status_facts *f, size_t columns, struct view *v)
{
	char progress[VIEW_BYTES], now[VIEW_BYTES];

	view_progress(f, progress, sizeof(progress));
	view_now(f, now, sizeof(now));
	add(v, columns, VIEW_BOLD, "cozbpf: %s%s", progress, now);
}

static void add_points(const struct status_facts *f, size_t columns, struct view *v)
{
	double s = (double)f->elapsed_ns / (double)NSEC_PER_SEC;

	for (size_t i = 0; i < f->n_points && i < POINTS_SHOWN; i++) {
		const struct status_point *p = &f->points[i];
		double rate = s > 0 ? (double)p->visits / s : 0;

		add(v, columns, VIEW_PLAIN, "%8.*f visits/s  %s", rate < 100 ? 1 : 0, rate,
		    view_short_name(p->name));
	}
	if (f->n_points > POINTS_SHOWN)
		add(v, columns, VIEW_PLAIN, "%16s  %zu more points", "",
		    f->n_points - POINTS_SHOWN);
}

static void add_lines(const struct status_facts *f, size_t columns, struct view *v)
{
	const struct certainty *c = f->certainty;
	size_t name = columns > NUMBERS + 10 ? columns - NUMBERS : 10;

	if (!c || !c->n_top) {
		add(v, columns, VIEW_PLAIN, "No line is known well enough yet.");
		return;
	}
	add(v, columns, VIEW_BOLD, "%-*s%8s  %-18s%s", (int)name,
	    c->slopes	? "10 % faster is worth a tenth of"
	    : c->shares ? "of the slowest 1 % of intervals"
			: "if the line were 50 % faster",
	    c->slopes	? "slope"
	    : c->shares ? "share"
			: "effect",
	    "95 % interval", f->slopes_only ? "" : "verdict");
	for (size_t i = 0; i < c->n_top; i++) {
		const struct certainty_line *l = &c->top[i];
		const char *words = view_short_name(l->selected);
		size_t length = strlen(words);
		char range[32];

		(void)snprintf(range, sizeof(range), "[%.1f, %.1f]", 100 * l->low, 100 * l->high);
		/* Here too, its end says more. */
		add(v, columns, VIEW_PLAIN,
		    c->slopes || c->shares ? "%-*.*s%6.1f %%  %-18s%s" : "%-*.*s%+6.1f %%  %-18s%s",
		    (int)name, (int)name - 1,
		    length > name - 1 ? words + (length - (name - 1)) : words, 100 * l->effect,
		    range, l->verdict);
	}
}

void view_format(const struct status_facts *f, size_t columns, size_t rows, struct view *ret)
{
	size_t room = rows < VIEW_ROWS ? rows : VIEW_ROWS;

	ret->n = 0;
	add_head(f, columns, ret);
	for (size_t i = 0; i < f->n_warnings; i++)
		add(ret, columns, VIEW_WARNING, "warning: %s", f->warnings[i]);
	if (f->until_ci > 0 && isfinite(f->missing_s))
		add(ret, columns, VIEW_PLAIN, "about %.0f s more to +-%g points", f->missing_s,
		    100 * f->until_ci);
	add_points(f, columns, ret);
	add_lines(f, columns, ret);
	if (ret->n > room)
		ret->n = room;
}
