// SPDX-License-Identifier: BSD-2-Clause
#include "cli/run/status.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define VIEW_EVERY_NS (NSEC_PER_SEC / 4)
#define PLAIN_EVERY_NS (10 * NSEC_PER_SEC)
#define LINE_MAX_BYTES 512

static uint64_t interval(const struct status *s)
{
	return s->kind == STATUS_VIEW ? VIEW_EVERY_NS : PLAIN_EVERY_NS;
}

static void make_room(void *s)
{
	status_clear(s);
}

void status_init(struct status *s, FILE *out, enum status_kind kind, bool color, uint64_t now)
{
	*s = (struct status){.out = out, .kind = kind, .color = color};
	s->next_ns = now + interval(s);
	if (kind == STATUS_VIEW)
		log_before(make_room, s);
}

bool status_due(const struct status *s, uint64_t now)
{
	return s->kind != STATUS_NONE && now >= s->next_ns;
}

static void append(char *buf, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void append(char *buf, size_t size, const char *fmt, ...)
{
	size_t n = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(buf + n, size - n, fmt, ap);
	va_end(ap);
}

void status_format(const struct status_facts *f, char *buf, size_t size)
{
	const struct certainty_line *best =
		f->certainty && f->certainty->n_top ? &f->certainty->top[0] : NULL;
	double visits = 0, s = (double)f->elapsed_ns / (double)NSEC_PER_SEC;
	char now[VIEW_BYTES];

	view_progress(f, buf, size);
	view_now(f, now, sizeof(now));
	for (size_t i = 0; i < f->n_points; i++)
		visits += (double)f->points[i].visits;
	if (f->n_points && s > 0)
		append(buf, size, ", %.*f visits/s", visits < 100 * s ? 1 : 0, visits / s);
	if (best)
		append(buf, size,
		       f->certainty->slopes   ? ", best %s: slope %.1f %% [%.1f, %.1f]"
		       : f->certainty->shares ? ", slowest 1 %%: %s %.1f %% [%.1f, %.1f]"
					      : ", best %s %+.1f %% [%.1f, %.1f] at 50 %%",
		       view_short_name(best->selected), best->effect * 100, best->low * 100,
		       best->high * 100);
	if (f->until_ci > 0 && isfinite(f->missing_s))
		append(buf, size, ", about %.0f s more to +-%g points", f->missing_s,
		       100 * f->until_ci);
	append(buf, size, "%s", now);
	utf8_make_printable(buf, utf8_locale());
}

static void draw(struct status *s, const struct status_facts *f)
{
	static const char *const on[] = {
		[VIEW_PLAIN] = "", [VIEW_BOLD] = "\033[1m", [VIEW_WARNING] = "\033[33m"};
	struct winsize w = {0};
	struct view v;

	(void)ioctl(fileno(s->out), TIOCGWINSZ, &w);
	/* A full last column wraps on some terminals, and the cursor stands in a row of its own. */
	view_format(f, w.ws_col > 20 ? w.ws_col - 1U : 79, w.ws_row > 2 ? w.ws_row - 1U : 23, &v);
	if (s->drawn)
		(void)fprintf(s->out, "\r\033[%zuA", s->drawn);
	for (size_t i = 0; i < v.n; i++) {
		const char *start = s->color ? on[v.lines[i].style] : "";

		(void)fprintf(s->out, "%s%s%s\033[K\r\n", start, v.lines[i].text,
			      *start ? "\033[0m" : "");
	}
	(void)fputs("\033[J", s->out);
	s->drawn = v.n;
}

void status_update(struct status *s, uint64_t now, const struct status_facts *f)
{
	char line[LINE_MAX_BYTES];

	if (!status_due(s, now))
		return;
	s->next_ns = now + interval(s);
	if (s->kind == STATUS_VIEW) {
		draw(s, f);
	} else {
		status_format(f, line, sizeof(line));
		(void)fprintf(s->out, "cozbpf: %s\n", line);
	}
	(void)fflush(s->out);
}

void status_resized(struct status *s)
{
	if (!s->drawn)
		return;
	(void)fputs("\033[H\033[2J", s->out);
	s->drawn = 0;
	s->next_ns = 0;
}

void status_clear(struct status *s)
{
	if (!s->drawn)
		return;
	(void)fprintf(s->out, "\r\033[%zuA\033[J", s->drawn);
	(void)fflush(s->out);
	s->drawn = 0;
}

void status_end(struct status *s)
{
	status_clear(s);
	if (s->kind == STATUS_VIEW)
		log_before(NULL, NULL);
	s->kind = STATUS_NONE;
}
