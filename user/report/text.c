// SPDX-License-Identifier: BSD-2-Clause
#include "report/text.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "base/waits.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#define MAX_NAME 4096
#define LEAST_NAME 8 /* a name is not cut to less */
#define NAME_IN_SENTENCE 200
/* Of a text without a terminal; and what is more or less than any terminal has. */
#define DEFAULT_WIDTH 100
#define MIN_WIDTH 40
#define MAX_WIDTH 1000

char *text_clean(const struct report *r, const char *s)
{
	char *copy = xstrndup(s, MAX_NAME);

	utf8_make_printable(copy, r->utf8);
	return copy;
}

void text_csv(const struct report *r, const char *s)
{
	_cleanup_free_ char *clean = text_clean(r, s);

	utf8_put_csv(r->out, clean, r->utf8);
}

char *text_cut(const struct report *r, const char *s, size_t columns)
{
	const char *dots = r->utf8 ? "\u2026" : "...", *head = s, *tail = s;
	size_t n = utf8_columns(s), room;

	if (n <= columns || columns <= utf8_columns(dots))
		return xstrdup(s);
	room = columns - utf8_columns(dots);
	for (size_t i = 0; i < room / 3; i++)
		head += utf8_bytes(head);
	for (size_t i = 0; i < n - (room - room / 3); i++)
		tail += utf8_bytes(tail);
	return xasprintf("%.*s%s%s", (int)(head - s), s, dots, tail);
}

char *text_line_name(const struct report *r, const char *selected, size_t columns)
{
	const struct directory *d = &r->directory;
	bool shares = d->n && strncmp(selected, d->name, d->n) == 0 && selected[d->n];
	_cleanup_free_ char *name = text_clean(r, selected + (shares ? d->n : 0));

	return columns < LEAST_NAME ? TAKE_PTR(name) : text_cut(r, name, columns);
}

size_t text_name_room(const struct report *r)
{
	return r->width && r->width / 2 < NAME_IN_SENTENCE ? (size_t)r->width / 2
							   : NAME_IN_SENTENCE;
}

/* FILE:LINE, or a wait there? Others have no directory that they could share. */
static bool is_file_line(const char *selected)
{
	size_t n = strlen(selected), digits = 0;

	(void)wait_of(selected, &n);
	while (digits < n && selected[n - 1 - digits] >= '0' && selected[n - 1 - digits] <= '9')
		digits++;
	return digits && digits + 1 < n && selected[n - 1 - digits] == ':';
}

static struct directory common_directory(const struct analysis *a)
{
	const char *first = NULL;
	size_t n = 0;

	for (size_t i = 0; i < a->n_points; i++)
		for (size_t j = 0; j < a->points[i].n_lines; j++) {
			const char *s = a->points[i].lines[j].selected;
			size_t same = 0;

			if (!is_file_line(s))
				continue;
			if (!first) {
				first = s;
				n = strlen(s);
			}
			while (same < n && s[same] == first[same])
				same++;
			n = same;
		}
	while (n && first[n - 1] != '/')
		n--;
	return (struct directory){first, n > 1 ? n : 0};
}

struct report report_make(FILE *out, const struct profile *p, const struct analysis *a,
			  const struct report_hints *h, struct notes *notes)
{
	static const struct report_hints no_hints;

	return (struct report){.out = out,
			       .notes = notes,
			       .p = p,
			       .a = a,
			       .h = h ? h : &no_hints,
			       .utf8 = true,
			       .verbose = true,
			       .all = true,
			       .top = SIZE_MAX,
			       .directory = a ? common_directory(a) : (struct directory){0}};
}

struct report report_text(FILE *out, const struct profile *p, const struct analysis *a,
			  const struct report_hints *h, int width)
{
	struct report r = report_make(out, p, a, h, NULL);

	r.utf8 = utf8_locale();
	r.verbose = r.all = false;
	r.width = width <= 0	      ? DEFAULT_WIDTH
		  : width < MIN_WIDTH ? MIN_WIDTH
		  : width > MAX_WIDTH ? MAX_WIDTH
				      : width;
	return r;
}

char *text_verdict_long(const struct analysis_line *line)
{
	const struct analysis_curve *c = &line->curve;
	const char *verdict = verdict_names[line->verdict];
	_cleanup_free_ char *text = NULL;
	double before = c->knee_effect / c->knee, after = c->slope_after / before;

	if (line->undecided != UNDECIDED_OPEN)
		text = xasprintf("undecided: %s", undecided_words[line->undecided].why);
	else if (line->verdict == VERDICT_UNDECIDED && line->missing_s > 0)
		text = xasprintf("undecided: needs about %.0f s more", ceil(line->missing_s));
	else if (line->verdict == VERDICT_HURTS)
		text = xstrdup("hurts: contention");
	else if (line->verdict != VERDICT_HELPS || isnan(c->knee) || !(before > 0))
		text = xstrdup(verdict);
	else if (fabs(after) < NO_MORE)
		text = xasprintf("helps: %.1f %% by the time it is %.0f %% faster, no more beyond",
				 100 * c->knee_effect, 100 * c->knee);
	else
		text = xasprintf("helps: %.1f %% by the time it is %.0f %% faster, then %s",
				 100 * c->knee_effect, 100 * c->knee,
				 after < 0   ? "it hurts"
				 : after < 1 ? "more slowly"
					     : "faster");
	if (line->foreign > ANALYSIS_FOREIGN_FLAG)
		return xasprintf("%s; disturbed, %.0f %% of the wait time was behind other "
				 "programs",
				 text, 100 * line->foreign);
	return TAKE_PTR(text);
}

struct words text_words(const char *fmt, ...)
{
	struct words w;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(w.text, sizeof(w.text), fmt, ap);
	va_end(ap);
	return w;
}

struct words text_effect(const struct report *r, struct analysis_change c)
{
	double e = c.effect * 100, half = (c.high - c.low) * 50;
	const char *pm = r->utf8 ? "\u00b1" : "+-";

	if (!isfinite(e))
		return text_words("-");
	if (fabs(e) < 0.05)
		e = 0; /* not "-0.0" */
	if (e < -999)
		return text_words("<-999");
	if (!isfinite(half))
		return text_words("%.1f %s?", e, pm);
	if (half > 999)
		return text_words("%.1f %s>999", e, pm);
	return text_words("%.1f %s%.1f", e, pm, half);
}

struct words text_interval(struct analysis_change c, double factor)
{
	return text_words("%.1f %% [%.1f, %.1f]", 100 * factor * c.effect,
			  100 * factor * (factor < 0 ? c.high : c.low),
			  100 * factor * (factor < 0 ? c.low : c.high));
}

struct words text_share(double share)
{
	return text_words(isfinite(share) ? "%.1f %%" : "-", 100 * share);
}

struct words text_percent(double share, const char *unknown)
{
	return isfinite(share) ? text_words("%.1f", fabs(share) < 0.0005 ? 0 : 100 * share)
			       : text_words("%s", unknown);
}

struct words text_duration(double ns)
{
	if (!isfinite(ns))
		return text_words("-");
	if (fabs(ns) >= 10e9)
		return text_words("%.1f s", ns / 1e9);
	if (fabs(ns) >= 1e6 || ns == 0)
		return text_words("%.1f ms", ns / 1e6);
	if (fabs(ns) >= 1e3)
		return text_words("%.0f us", ns / 1e3);
	return text_words("%.0f ns", ns);
}

struct words text_time_left(double s)
{
	return s > 86400  ? text_words("days")
	       : s > 7200 ? text_words("%.0f h", ceil(s / 3600))
	       : s > 120  ? text_words("%.0f min", ceil(s / 60))
			  : text_words("%.0f s", ceil(s));
}

struct words text_time(uint64_t at_s)
{
	struct words w = {""};
	time_t t = (time_t)at_s;
	struct tm tm;

	if (gmtime_r(&t, &tm))
		(void)strftime(w.text, sizeof(w.text), "%Y-%m-%d %H:%M", &tm);
	return w;
}

/* The text is made printable, since parts of it are names that others chose. The caller frees. */
static char *format(const struct report *r, const char *fmt, va_list ap)
{
	char *s;

	if (vasprintf(&s, fmt, ap) < 0)
		out_of_memory();
	utf8_make_printable(s, r->utf8);
	return s;
}

void heading(const struct report *r, const char *fmt, ...)
{
	_cleanup_free_ char *s = NULL;
	va_list ap;

	va_start(ap, fmt);
	s = format(r, fmt, ap);
	va_end(ap);
	(void)fputs(r->color ? "\033[1m" : "", r->out);
	utf8_wrap(r->out, s, (size_t)r->width, 0, 2);
	(void)fputs(r->color ? "\033[0m\n" : "\n", r->out);
}

void paragraph_rest(const struct report *r, int column, int indent, const char *fmt, ...)
{
	_cleanup_free_ char *s = NULL;
	va_list ap;

	va_start(ap, fmt);
	s = format(r, fmt, ap);
	va_end(ap);
	utf8_wrap(r->out, s, (size_t)r->width, (size_t)column, (size_t)indent);
	(void)fputc('\n', r->out);
}

/* The bytes of the next character, or of an escaped one with its backslash. *@quoted: are we within
 * single quotes? */
static size_t shell_bytes(const char *s, bool *quoted)
{
	if (!*quoted && *s == '\\' && s[1])
		return 1 + utf8_bytes(s + 1);
	*quoted ^= *s == '\'';
	return utf8_bytes(s);
}

/* Prints words of which some are a command to be copied: where a line ends, a shell reads on in the
 * next one, also within single quotes. */
static void put_command(const struct report *r, const char *s)
{
	size_t room = (size_t)r->width - 2, column = 0; /* what ends a line takes two */
	bool quoted = false;

	while (*s) {
		const char *word = s + strspn(s, " "), *end = word;
		size_t columns = (size_t)(word - s);

		for (; *end && (quoted || *end != ' '); columns++)
			end += shell_bytes(end, &quoted);
		if (column && column + columns > room) {
			(void)fputs(" \\\n  ", r->out);
			column = 2;
			s = word;
		}
		for (quoted = false; s < end; column++) {
			size_t n;

			if (column >= room) {
				(void)fputs(quoted ? "'\\\n'" : "\\\n", r->out);
				column = quoted;
			}
			n = shell_bytes(s, &quoted);
			(void)fwrite(s, 1, n, r->out);
			s += n;
		}
		quoted = false;
	}
	(void)fputc('\n', r->out);
}

const char *const note_kind_names[] = {[NOTE_PLAIN] = "note",
				       [NOTE_DETAIL] = "note",
				       [NOTE_WARNING] = "warning",
				       [NOTE_REASON] = "reason",
				       [NOTE_COMMAND] = "command"};

void note(const struct report *r, enum note_kind kind, const char *fmt, ...)
{
	static const char *const before[] = {[NOTE_PLAIN] = "",
					     [NOTE_DETAIL] = "",
					     [NOTE_WARNING] = "Warning: ",
					     [NOTE_REASON] = "- ",
					     [NOTE_COMMAND] = ""};
	_cleanup_free_ char *s = NULL;
	va_list ap;

	if (kind == NOTE_DETAIL && !r->verbose)
		return;
	va_start(ap, fmt);
	s = format(r, fmt, ap);
	va_end(ap);
	if (r->notes) {
		xarray_add(r->notes->list, r->notes->n, (struct note){kind, TAKE_PTR(s)});
	} else if (kind == NOTE_COMMAND) {
		put_command(r, s);
	} else {
		paragraph(r, 2, "%s%s", before[kind], s);
	}
}

void notes_print(const struct report *r, const struct notes *n, bool warnings)
{
	for (size_t i = 0; i < n->n; i++)
		if ((n->list[i].kind == NOTE_WARNING) == warnings)
			note(r, n->list[i].kind, "%s", n->list[i].text);
}

void notes_free(struct notes *n)
{
	for (size_t i = 0; i < n->n; i++)
		free(n->list[i].text);
	free(n->list);
	*n = (struct notes){0};
}
