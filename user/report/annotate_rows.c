// SPDX-License-Identifier: BSD-2-Clause
#include "report/annotate_rows.h"

#include "base/cleanup.h"
#include "base/memory.h"
#include "base/open_file.h"
#include "program/elf/object.h"
#include "profile/source_text.h"
#include "base/sandbox/opener.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WORTH 3 /* lines that the notes speak of */
#define WORTH_AT 1   /* of analysis_curve_speedups */
#define LONG_BLOCK 100
#define FEW_BEFORE 3
#define ONE_INSTRUCTION 0.3 /* from this share of a line's samples on, an instruction is named */

void annotate_rows_end(struct annotate_rows *x)
{
	for (size_t i = 0; i < x->n_sources; i++)
		free(x->sources[i].text);
	x->n_sources = 0;
}

/* Debug information can name any path, whoever owns the executable. */
static char *read_source(const char *path)
{
	_cleanup_opener_ int fd = *path == '/' ? opener_open(path, file_rights_reader()) : -1;
	size_t n;

	return fd < 0 ? NULL : source_read(fd, &n);
}

/* The text of a line, the caller's; NULL: it is not known. */
static char *source_of(struct annotate_rows *x, const struct line_location *at)
{
	const struct annotate_source *file = NULL;
	const char *line, *end;

	for (size_t i = 0; i < x->n_sources && !file; i++)
		if (x->sources[i].name == at->file)
			file = &x->sources[i];
	if (!file && x->n_sources < ANNOTATE_MOST_FILES) {
		x->sources[x->n_sources] =
			(struct annotate_source){at->file, read_source(at->file)};
		file = &x->sources[x->n_sources++];
	}
	line = file ? file->text : NULL;
	for (uint32_t k = 1; line && k < at->line; k++) {
		line = strchr(line, '\n');
		line += line != NULL;
	}
	if (!line)
		return NULL;
	line += strspn(line, " \t");
	end = strchrnul(line, '\n');
	return xstrndup(line, (size_t)(end - line));
}

/* Is the line called @selected at @at? */
static bool is_at(const char *selected, const struct line_location *at)
{
	size_t n;

	return source_line_number(selected, &n) == at->line && strlen(at->file) == n &&
	       memcmp(selected, at->file, n) == 0;
}

const struct analysis_line *annotate_effect(const struct annotate_page *p,
					    const struct line_location *at)
{
	for (size_t i = 0; p->point && i < p->point->n_lines; i++)
		if (!p->point->lines[i].wait && is_at(p->point->lines[i].selected, at))
			return &p->point->lines[i];
	return NULL;
}

static bool location(const struct annotate_page *p, size_t instruction, struct line_location *ret)
{
	return p->of->lines &&
	       line_table_at(p->of->lines, p->a->flow.all[instruction].at, ret) == 0;
}

bool annotate_line_begins(struct annotate_rows *x, size_t instruction, struct annotate_line *ret)
{
	_cleanup_free_ char *source = NULL, *name = NULL;
	struct line_location at;

	if (!location(x->p, instruction, &at) || (x->at.file == at.file && x->at.line == at.line))
		return false;
	x->at = at;
	source = source_of(x, &at);
	name = xasprintf("%s:%u", strrchr(at.file, '/') ? strrchr(at.file, '/') + 1 : at.file,
			 at.line);
	*ret = (struct annotate_line){text_clean(&x->r, name),
				      text_clean(&x->r, source ? source : ""),
				      annotate_effect(x->p, &at)};
	return true;
}

void annotate_line_free(struct annotate_line *l)
{
	free(l->name);
	free(l->text);
}

double annotate_share(const struct annotation *a, double samples)
{
	return a->all > 0 ? samples / a->all : 0;
}

double annotate_block(const struct annotation *a, const struct flow_block *b)
{
	double sum = 0;

	for (uint32_t i = b->first; i < b->first + b->n; i++)
		sum += a->samples[i] + a->called[i];
	return sum;
}

bool annotate_is_shown(const struct annotation *a, const struct flow_block *b, uint32_t instruction)
{
	double near = 0;

	for (uint32_t i = instruction; i < b->first + b->n && i <= instruction + FEW_BEFORE; i++)
		near += a->samples[i] + a->called[i];
	return b->n <= LONG_BLOCK || near > 0;
}

char *annotate_causes(uint16_t possible)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = xopen_memstream(&text, &size);

	for (int c = 0; c < N_CULPRITS; c++)
		if (possible >> c & 1)
			(void)fprintf(f, "%s%s", ftello(f) ? ", " : "", culprit_names[c]);
	xclose_memstream(f);
	return text;
}

/* Beyond such a standard error a count says nothing. */
#define EXECUTED_AT_ALL 0.5

static bool executions_known(const struct annotation *a, size_t block)
{
	return a->executed && a->executed_errors[block] <= EXECUTED_AT_ALL;
}

char *annotate_executed(const struct annotate_rows *x, const struct flow_block *b)
{
	static const char *const units[] = {"", " thousand", " million", " billion"};
	const struct annotation *a = x->p->a;
	size_t i = (size_t)(b - a->flow.blocks), unit = 0;
	double n = a->executed ? a->executed[i] : 0;

	if (!a->executed)
		return NULL;
	if (!executions_known(a, i))
		return xstrdup("how often it is executed is not known");
	for (; n >= 1000 && unit + 1 < sizeof(units) / sizeof(units[0]); unit++)
		n /= 1000;
	/* 95 %, as all intervals. */
	return xasprintf("executed %.3g%s times a second, %s%.0f %%", n, units[unit],
			 x->r.utf8 ? "\u00b1" : "+-", 196 * a->executed_errors[i]);
}

double annotate_cycles(const struct annotate_page *p, const struct flow_block *b,
		       uint32_t instruction)
{
	const struct annotation *a = p->a;
	size_t i = (size_t)(b - a->flow.blocks);

	if (!executions_known(a, i) || !(a->clock_hz > 0) || !(a->samples[instruction] > 0))
		return NAN;
	return a->samples[instruction] / (double)p->of->total * a->clock_hz / a->executed[i];
}

static bool is_known(struct analysis_change c, enum verdict v)
{
	(void)v;
	return isfinite(c.effect);
}

/* At how many per cent what is known of the line's effect; false: nothing is. */
static bool worth_at(const struct annotate_rows *x, const struct analysis_line *l,
		     double *ret_percent, struct words *ret)
{
	struct analysis_change c;
	bool known = analysis_told(l, WORTH_AT, is_known, l->verdict, ret_percent, &c);

	*ret = text_effect(&x->r, c);
	return known;
}

char *annotate_worth(const struct annotate_rows *x, const struct analysis_line *l)
{
	struct words effect;
	double percent;

	if (!worth_at(x, l, &percent, &effect))
		return xasprintf("worth is not known (%s)", verdict_names[l->verdict]);
	return xasprintf("worth %s %% if %.0f %% faster (%s)", effect.text, percent,
			 verdict_names[l->verdict]);
}

/* The same of what, and with all that the curve says. */
static char *worth_long(const struct annotate_rows *x, const struct analysis_line *l)
{
	_cleanup_free_ char *verdict = text_verdict_long(l);
	struct words effect;
	double percent;

	if (!worth_at(x, l, &percent, &effect))
		return xasprintf("worth an amount that is not known (%s)", verdict);
	return xasprintf("worth %s %% of the %s of %s if it is %.0f %% faster (%s)", effect.text,
			 x->p->point->kind == PROFILE_LATENCY ? "latency" : "time per visit",
			 x->p->point->name, percent, verdict);
}

char *annotate_function(const struct annotate_rows *x)
{
	_cleanup_free_ char *function = elf_demangle(x->p->of->symbol.function);

	return text_clean(&x->r, function ? function : x->p->of->symbol.function);
}

/* The samples of a line that was tried, and the instruction that waited in the most of them. They
 * were drawn by where they were found. */
struct worth {
	double samples, most;
	size_t at;
};

static void add_up(const struct annotate_page *p, struct worth *all)
{
	const struct analysis_line *effect = NULL;
	struct line_location at, last = {0};

	for (size_t i = 0; i < p->a->flow.n; i++) {
		double n = p->a->found[i] + p->a->called[i];
		struct worth *w;

		if (!(n > 0) || !location(p, i, &at))
			continue;
		if (at.file != last.file || at.line != last.line)
			effect = annotate_effect(p, &at);
		last = at;
		if (!effect)
			continue;
		w = &all[effect - p->point->lines];
		w->samples += n;
		if (n > w->most) {
			w->most = n;
			w->at = p->a->culprits.waited[i];
		}
	}
}

static void note_line(const struct annotate_rows *x, const struct analysis_line *l,
		      const struct worth *w)
{
	const struct annotation *a = x->p->a;
	_cleanup_free_ char *worth = worth_long(x, l),
			    *name = text_line_name(&x->r, l->selected, SIZE_MAX),
			    *causes = annotate_causes(a->possible[w->at]);
	const char *slash = strrchr(name, '/');

	if (w->most < ONE_INSTRUCTION * w->samples)
		note(&x->r, NOTE_PLAIN, "%s is %s. No instruction has most of its samples.",
		     slash ? slash + 1 : name, worth);
	else
		note(&x->r, NOTE_PLAIN,
		     "%s is %s. %.0f %% of its samples are at one instruction, %" PRIx64 " %s%s%s.",
		     slash ? slash + 1 : name, worth, 100 * w->most / w->samples,
		     a->flow.all[w->at].at, annotation_text(a, x->p->of->object, w->at).text,
		     *causes ? "; may wait for: " : "", causes);
}

static void note_worth(const struct annotate_rows *x)
{
	const struct analysis_point *point = x->p->point;
	_cleanup_free_ struct worth *all = point ? xcalloc(point->n_lines, sizeof(*all)) : NULL;
	_cleanup_free_ char *function = annotate_function(x);
	size_t told = 0;

	if (!all)
		return;
	add_up(x->p, all);
	for (size_t i = 0; i < point->n_lines && told < MOST_WORTH; i++) {
		const struct analysis_line *l = &point->lines[i];

		if (strcmp(l->selected, x->p->of->symbol.function) == 0 ||
		    strcmp(l->selected, function) == 0) {
			_cleanup_free_ char *worth = worth_long(x, l);

			note(&x->r, NOTE_PLAIN, "The function is %s.", worth);
			told++;
		} else if (all[i].samples > 0 &&
			   (l->verdict == VERDICT_HELPS || l->verdict == VERDICT_HURTS)) {
			note_line(x, l, &all[i]);
			told++;
		}
	}
}

static const char *const skid_words[] = {
	[SKID_NONE] = "Samples are at the instruction that waited, as measured here.",
	[SKID_NEXT] = "Samples were found at the instruction after the one that waited, as "
		      "measured here, and are shown where it waited.",
	[SKID_UNKNOWN] = "Samples are at the instruction that waited or at the one after it: which "
			 "could not be measured.",
};

void annotate_notes(const struct annotate_rows *x)
{
	const struct annotation *a = x->p->a;

	note_worth(x);
	if (a->flow.cut || a->flow.holes)
		note(&x->r, NOTE_PLAIN,
		     "Left out: %zu bytes beyond the first %u, %zu bytes that are no instruction.",
		     a->flow.cut, FLOW_MOST_BYTES, a->flow.holes);
	if (a->flow.lost || a->flow.inside)
		note(&x->r, NOTE_PLAIN,
		     "%zu jump%s to where nobody knows, %zu into the middle of an instruction.",
		     a->flow.lost, a->flow.lost == 1 ? "" : "s", a->flow.inside);
	if (a->between > 0)
		note(&x->r, NOTE_PLAIN, "%.0f samples are at no instruction's begin.", a->between);
	note(&x->r, NOTE_PLAIN, "%s", skid_words[a->skid]);
	if (a->executed)
		note(&x->r, NOTE_PLAIN,
		     "Executions: in a second of CPU time, counted now. took: cycles for each "
		     "execution, from the samples, at %.2f GHz.",
		     a->clock_hz / 1e9);
	if (a->model.cycles && *a->model.cpu)
		note(&x->r, NOTE_PLAIN,
		     "cycles: that an instruction takes at least, by LLVM's model of %s%s.",
		     a->model.cpu,
		     a->model.left_out ? ", in the blocks with the most samples" : "");
	else if (*a->unmodelled.text)
		note(&x->r, NOTE_PLAIN, "No cycles: %s.", a->unmodelled.text);
}
