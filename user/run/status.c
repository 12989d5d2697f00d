// SPDX-License-Identifier: BSD-2-Clause
#include "run/status.h"

#include "base/clock.h"
#include "base/utf8.h"
#include "options/run_options.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TERMINAL_EVERY_NS (NSEC_PER_SEC / 4)
#define PLAIN_EVERY_NS (10 * NSEC_PER_SEC)
#define LINE_MAX_BYTES 512

static uint64_t interval(const struct status *s)
{
	return s->terminal ? TERMINAL_EVERY_NS : PLAIN_EVERY_NS;
}

void status_init(struct status *s, FILE *out, bool quiet, uint64_t now)
{
	const char *term = getenv("TERM");

	*s = (struct status){.out = out, .quiet = quiet};
	/* A dumb terminal cannot go back to the line's start and erase it. */
	s->terminal = isatty(fileno(out)) && !(term && strcmp(term, "dumb") == 0);
	s->next_ns = now + interval(s);
}

bool status_due(const struct status *s, uint64_t now)
{
	return !s->quiet && now >= s->next_ns;
}

static void append(char *buf, size_t size, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void append(char *buf, size_t size, const char *fmt, ...)
{
	size_t n = strlen(buf);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(buf + n, size - n, fmt, ap);
	va_end(ap);
}

/* The end of a path says more than its beginning. */
static const char *short_name(const char *line)
{
	const char *slash = strrchr(line, '/');

	return slash && slash[1] ? slash + 1 : line;
}

void status_format(const struct status_facts *f, size_t width, char *buf, size_t size)
{
	buf[0] = '\0';
	append(buf, size, "%.0f", (double)f->elapsed_ns / NSEC_PER_SEC);
	if (f->duration_ns)
		append(buf, size, "/%.0f", (double)f->duration_ns / NSEC_PER_SEC);
	append(buf, size, " s, %zu experiment%s on %zu line%s", f->experiments, f->experiments == 1 ? "" : "s", f->lines, f->lines == 1 ? "" : "s");
	if (isfinite(f->visits_per_s))
		append(buf, size, ", %.*f visits/s", f->visits_per_s < 100 ? 1 : 0, f->visits_per_s);
	if (f->best)
		append(buf, size, ", best %s %+.1f %% [%.1f, %.1f] at 50 %%", short_name(f->best), f->best_effect * 100, f->best_low * 100,
		       f->best_high * 100);
	if (f->until_ci > 0 && isfinite(f->missing_s))
		append(buf, size, ", about %.0f s more to +-%g points", f->missing_s, 100 * f->until_ci);
	if (f->selected)
		append(buf, size, ", now %s %s %.0f %%", short_name(f->selected), f->slows ? "slowed by" : "at", f->speedup * 100);
	if (width && strlen(buf) > width)
		buf[width] = '\0';
	utf8_make_printable(buf, utf8_locale());
}

void status_update(struct status *s, uint64_t now, const struct status_facts *f)
{
	char line[LINE_MAX_BYTES];

	if (!status_due(s, now))
		return;
	s->next_ns = now + interval(s);
	if (s->terminal) {
		static const char prefix[] = "cozbpf: ";
		int columns = terminal_width(fileno(s->out));
		/* A full last column wraps on some terminals. */
		size_t width = columns < 20 ? 79 : (size_t)columns - 1;

		status_format(f, width - (sizeof(prefix) - 1), line, sizeof(line));
		(void)fprintf(s->out, "\r%s%s\033[K", prefix, line);
		s->drawn = true;
	} else {
		status_format(f, 0, line, sizeof(line));
		(void)fprintf(s->out, "cozbpf: %s\n", line);
	}
	(void)fflush(s->out);
}

void status_clear(struct status *s)
{
	if (!s->drawn)
		return;
	s->drawn = false;
	(void)fputs("\r\033[K", s->out);
	(void)fflush(s->out);
}
