// SPDX-License-Identifier: BSD-2-Clause
#include "report/annotate.h"

#include "base/cleanup.h"
#include "base/open_file.h"
#include "base/utf8.h"
#include "dwarf/lines.h"
#include "report/text.h"

#include <errno.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_WIDTH 100
/* A block, or an instruction's causes, are shown from this share of the function's samples on. */
#define WORTH_SHOWING 0.01
#define TEXT_ROOM 160
#define MOST_SOURCE (4U << 20)
#define MOST_FILES 16
/* Columns before the code. */
#define MARGIN 25

/* Source files that were read. */
struct sources {
	struct source {
		const char *name;
		char *text; /* owned; NULL: it cannot be read */
		size_t size;
	} all[MOST_FILES];
	size_t n;
};

/* With the rights of who owns the executable: its debug information can name any path. */
static char *read_source(const struct elf_object *o, const char *path, size_t *ret_size)
{
	struct file_rights as = {0};
	_cleanup_close_ int fd = -1;
	struct stat st;
	char *text;
	ssize_t n;

	if (path[0] != '/' || fstat(elf_object_fd(o), &st) < 0)
		return NULL;
	as.uid = st.st_uid;
	as.gid = st.st_gid;
	fd = open_file(path, &as);
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size > MOST_SOURCE)
		return NULL;
	text = malloc((size_t)st.st_size + 1);
	n = text ? read(fd, text, (size_t)st.st_size) : -1;
	if (n < 0) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	*ret_size = (size_t)n;
	return text;
}

/* The text of a line, the caller's; NULL: it is not known. */
static char *source_of(struct sources *s, const struct elf_object *o, const struct line_location *at)
{
	const struct source *file = NULL;
	const char *line, *end;

	for (size_t i = 0; i < s->n && !file; i++)
		if (s->all[i].name == at->file)
			file = &s->all[i];
	if (!file && s->n < MOST_FILES) {
		s->all[s->n].name = at->file;
		s->all[s->n].text = read_source(o, at->file, &s->all[s->n].size);
		file = &s->all[s->n++];
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
	return strndup(line, (size_t)(end - line));
}

static void sources_free(struct sources *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->all[i].text);
}

struct printing {
	struct report r;
	const struct annotate_page *p;
	struct sources sources;
	struct line_location at; /* that was printed last */
};

static double share(const struct annotation *a, double samples)
{
	return a->all > 0 ? samples / a->all : 0;
}

static double of_block(const struct annotation *a, const struct flow_block *b)
{
	double sum = 0;

	for (uint32_t i = b->first; i < b->first + b->n; i++)
		sum += a->samples[i];
	return sum;
}

static void put_line(struct printing *x, uint64_t vaddr)
{
	_cleanup_free_ char *source = NULL, *clean = NULL, *name = NULL, *text = NULL;
	struct line_location at;

	if (!x->p->of->lines || line_table_at(x->p->of->lines, vaddr, &at) < 0 || (x->at.file == at.file && x->at.line == at.line))
		return;
	x->at = at;
	source = source_of(&x->sources, x->p->of->object, &at);
	if (asprintf(&text, "%s:%u", strrchr(at.file, '/') ? strrchr(at.file, '/') + 1 : at.file, at.line) < 0)
		text = NULL;
	name = text_clean(&x->r, text ? text : "");
	clean = text_clean(&x->r, source ? source : "");
	(void)fprintf(x->r.out, "%*s%s  %.*s\n", MARGIN, "", name, x->r.width > MARGIN + 20 ? x->r.width - MARGIN - 2 - (int)strlen(name) : 0, clean);
}

static void put_culprits(const struct printing *x, uint16_t possible)
{
	const char *before = "may wait for: ";

	if (!possible)
		return;
	(void)fprintf(x->r.out, "%*s    ", MARGIN, "");
	for (int c = 0; c < N_CULPRITS; c++)
		if (possible >> c & 1) {
			(void)fprintf(x->r.out, "%s%s", before, culprit_name((enum culprit)c));
			before = ", ";
		}
	(void)fputc('\n', x->r.out);
}

static void put_instruction(struct printing *x, uint32_t i)
{
	const struct annotation *a = x->p->a;
	char text[TEXT_ROOM], cycles[16] = "";
	_cleanup_free_ char *clean = NULL;

	put_line(x, a->flow.all[i].at);
	annotation_text(a, x->p->of->object, i, text, sizeof(text));
	clean = text_clean(&x->r, text);
	if (a->model.cycles)
		(void)snprintf(cycles, sizeof(cycles), "%.1f", a->model.cycles[i]);
	if (a->samples[i] > 0)
		(void)fprintf(x->r.out, "%8.0f %5.1f %% %7s  ", a->samples[i], 100 * share(a, a->samples[i]), cycles);
	else
		(void)fprintf(x->r.out, "%16s %7s  ", "", cycles);
	(void)fprintf(x->r.out, "%6" PRIx64 "  %.*s\n", a->flow.all[i].at, x->r.width > MARGIN + 18 ? x->r.width - MARGIN - 9 : 9, clean);
	if (share(a, a->samples[i]) >= WORTH_SHOWING)
		put_culprits(x, a->culprits.of[i]);
}

static const char *const skid_words[] = {
	[SKID_NONE] = "Samples are at the instruction that waited, as measured here.",
	[SKID_NEXT] = "Samples are at the instruction after the one that waited, as measured here.",
	[SKID_UNKNOWN] = "Samples are at the instruction that waited or at the one after it: which could not be measured.",
};

static void put_head(const struct printing *x)
{
	const struct annotation *a = x->p->a;
	const struct shares_code *of = x->p->of;
	_cleanup_free_ char *function = elf_demangle(of->symbol.function), *name = text_clean(&x->r, function ? function : of->symbol.function),
			    *image = text_clean(&x->r, of->image);

	paragraph(&x->r, 0, "%s in %s: %" PRIu64 " of %" PRIu64 " samples (%.1f %%) of %s.", name, image, of->samples, of->total,
		  100 * (double)of->samples / (double)of->total, of->event);
	paragraph(&x->r, 0, "%zu instructions in %zu blocks.", a->flow.n, a->flow.n_blocks);
	if (a->flow.cut || a->flow.holes)
		paragraph(&x->r, 2, "- Left out: %zu bytes beyond the first %u, %zu bytes that are no instruction.", a->flow.cut, FLOW_MOST_BYTES,
			  a->flow.holes);
	if (a->flow.lost || a->flow.inside)
		paragraph(&x->r, 2, "- %zu jumps lead to where nobody knows, %zu into the middle of an instruction.", a->flow.lost, a->flow.inside);
	if (a->between > 0)
		paragraph(&x->r, 2, "- %.0f samples are at no instruction's begin.", a->between);
	paragraph(&x->r, 2, "- %s", skid_words[a->skid]);
	if (a->model.cycles)
		paragraph(&x->r, 2, "- cycles: that an instruction takes at least, by LLVM's model of %s%s.", a->model.cpu,
			  a->model.left_out ? ", in the blocks with the most samples" : "");
	else
		paragraph(&x->r, 2, "- No cycles: %s.", a->unmodelled.text);
	(void)fprintf(x->r.out, "%8s %7s %7s  %6s\n", "samples", "share", a->model.cycles ? "cycles" : "", "code");
}

int annotate_print(FILE *out, const struct annotate_page *p)
{
	static const struct report_hints no_hints;
	int width = p->width ? p->width : DEFAULT_WIDTH;
	struct printing x = {.r = {.out = out, .h = &no_hints, .utf8 = utf8_locale(), .width = width, .table_width = width}, .p = p};
	size_t hidden = 0;

	put_head(&x);
	for (size_t b = 0; b < p->a->flow.n_blocks; b++) {
		const struct flow_block *block = &p->a->flow.blocks[b];

		if (!p->all && share(p->a, of_block(p->a, block)) < WORTH_SHOWING) {
			hidden += block->n;
			continue;
		}
		if (hidden)
			(void)fprintf(out, "%*s...\n", MARGIN, "");
		hidden = 0;
		for (uint32_t i = block->first; i < block->first + block->n; i++)
			put_instruction(&x, i);
	}
	if (hidden)
		(void)fprintf(out, "%*s...\n", MARGIN, "");
	sources_free(&x.sources);
	return fflush(out) ? -errno : 0;
}

static int add_instruction(struct json_object *list, const struct annotate_page *p, size_t i)
{
	struct json_object *row = json_object_new_object(), *causes = json_object_new_array();
	const struct annotation *a = p->a;
	struct line_location at;
	char text[TEXT_ROOM];
	int r = json_object_array_add(list, row);

	if (r || !row || !causes || json_object_object_add(row, "possible", causes)) {
		json_object_put(causes);
		return -ENOMEM;
	}
	annotation_text(a, p->of->object, i, text, sizeof(text));
	r = json_add_number(row, "address", (double)a->flow.all[i].at) | json_add_string(row, "code", text) |
	    json_add_number(row, "samples", a->samples[i]);
	if (a->model.cycles)
		r |= json_add_number(row, "cycles", a->model.cycles[i]);
	if (p->of->lines && line_table_at(p->of->lines, a->flow.all[i].at, &at) == 0)
		r |= json_add_string(row, "file", at.file) | json_add_number(row, "line", at.line);
	for (int c = 0; r == 0 && c < N_CULPRITS; c++)
		if (a->culprits.of[i] >> c & 1)
			r = json_object_array_add(causes, json_object_new_string(culprit_name((enum culprit)c)));
	return r ? -ENOMEM : 0;
}

static int add_block(struct json_object *list, const struct annotate_page *p, const struct flow_block *b)
{
	struct json_object *row = json_object_new_object(), *instructions = json_object_new_array();
	int r = json_object_array_add(list, row);

	if (r || !row || !instructions || json_object_object_add(row, "instructions", instructions)) {
		json_object_put(instructions);
		return -ENOMEM;
	}
	for (uint32_t i = b->first; r == 0 && i < b->first + b->n; i++)
		r = add_instruction(instructions, p, i);
	return r;
}

int annotate_json(FILE *out, const struct annotate_page *p)
{
	struct json_object *o = json_object_new_object(), *blocks = json_object_new_array();
	const struct annotation *a = p->a;
	int r = 0;

	if (!o || !blocks || json_object_object_add(o, "blocks", blocks)) {
		json_object_put(o);
		json_object_put(blocks);
		return -ENOMEM;
	}
	r = json_add_string(o, "function", p->of->symbol.function) | json_add_string(o, "image", p->of->image) |
	    json_add_string(o, "event", p->of->event) | json_add_number(o, "samples", (double)p->of->samples) |
	    json_add_number(o, "all_samples", (double)p->of->total) | json_add_number(o, "cut", (double)a->flow.cut) |
	    json_add_number(o, "no_instruction", (double)a->flow.holes) | json_add_number(o, "lost_jumps", (double)a->flow.lost) |
	    json_add_number(o, "jumps_inside", (double)a->flow.inside) |
	    json_add_string(o, "skid",
			    a->skid == SKID_NONE   ? "none"
			    : a->skid == SKID_NEXT ? "next"
						   : NULL) |
	    json_add_string(o, "model", a->model.cycles ? a->model.cpu : NULL);
	for (size_t b = 0; r == 0 && b < a->flow.n_blocks; b++)
		r = add_block(blocks, p, &a->flow.blocks[b]);
	if (r == 0)
		report_put_json(out, json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY));
	json_object_put(o);
	return r ? -ENOMEM : 0;
}
