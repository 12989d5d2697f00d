/* SPDX-License-Identifier: BSD-2-Clause */
/* What all parts of the report share: how to print names that others chose, and numbers. Internal
 * to the package. */
#pragma once

#include "report/report.h"

struct json_object;
struct libscols_line;
struct libscols_table;

/* Beyond a knee, less than this share of the slope before it is nothing. */
#define NO_MORE 0.15

/* What is to be said beside the numbers, in the same words in text, JSON and HTML. */
enum note_kind {
	NOTE_PLAIN,
	NOTE_DETAIL,  /* how it was measured: in text only where r->verbose asks for it */
	NOTE_WARNING, /* the numbers may be wrong */
	NOTE_REASON,  /* why there are none */
	NOTE_COMMAND, /* words and a command, to be copied: one line, however long */
};

struct note {
	enum note_kind kind;
	char *text;
};

struct notes {
	struct note *list;
	size_t n;
};

/* The first @n bytes of @name; 0: none. */
struct directory {
	const char *name;
	size_t n;
};

struct report {
	FILE *out;
	struct notes *notes; /* where notes are kept; NULL: they are printed at once */
	const struct profile *p;
	const struct analysis *a;
	const struct report_hints *h; /* never NULL */
	bool utf8, color, inlined;
	bool verbose, all; /* as of struct report_options; both but in text */
	int width;	   /* columns of text; 0: it is no text */
	size_t top, curves;
	struct directory directory; /* that the names of all lines begin with */
};

/* Of all lines, for a file or another program: in UTF-8. @p and @a: NULL where it is of none, as @h
 * where there is nothing to add. @notes: as of struct report. */
struct report report_make(FILE *out, const struct profile *p, const struct analysis *a,
			  const struct report_hints *h, struct notes *notes);
/* For a terminal. @width: columns that no line exceeds, 40 to 1000; 0: 100. */
struct report report_text(FILE *out, const struct profile *p, const struct analysis *a,
			  const struct report_hints *h, int width);
/* A printable copy of a foreign string (the caller's): control characters, bytes that are no text
 * and, outside UTF-8 locales, everything beyond ASCII become '?'; so does what would turn the
 * direction of writing. */
char *text_clean(const struct report *r, const char *s);
/* The same for the name of a line: without the common directory, cut to @columns at most. */
char *text_line_name(const struct report *r, const char *selected, size_t columns);
/* A copy of a clean string, cut to @columns at most: out of its middle, since its begin says where
 * something is and its end what it is. The caller's. */
char *text_cut(const struct report *r, const char *s, size_t columns);
/* What a name in a sentence may take of a line. */
size_t text_name_room(const struct report *r);
/* As utf8_put_csv. */
void text_csv(const struct report *r, const char *s);

/* A number or a verdict, as text. */
struct words {
	char text[96];
};
/* As printf writes it; what does not fit is cut off. */
struct words text_words(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* "12.4 ±1.3" in points; "-" if unknown. */
struct words text_effect(const struct report *r, struct analysis_change c);
/* "12.4 % [11.1, 13.7]": of so many times the change. */
struct words text_interval(struct analysis_change c, double factor);
/* What a word for so many things ends in. */
static inline const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}
/* "48.8 %"; "-" if unknown. */
struct words text_share(double share);
/* "48.8", for a column in percent. */
struct words text_percent(double share, const char *unknown);
/* The verdict as the table has it: "helps", "undecided (90 s)". @spins: threads of its point do. */
struct words text_verdict(const struct analysis_line *line, bool spins);
/* The verdict in words, with what the curve says beyond it: "helps: 40.1 % by the time it is 40 %
 * faster, no more beyond". */
char *text_verdict_long(const struct analysis_line *line);
/* "15.0 s", "12.0 ms", "18 us", "7 ns". */
struct words text_duration(double ns);
/* How much longer to run: "13 s", "5 min", "3 h", "days". */
struct words text_time_left(double s);
/* "2026-11-30 12:17", in UTC; "" if it is no time. */
struct words text_time(uint64_t at_s);

/* Headings, paragraphs and notes become printable, whatever is in them (text_clean). */
void heading(const struct report *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A paragraph, wrapped at the width, each line after the first indented by @indent; the rest of
 * one, of whose first line @column columns are printed. */
#define paragraph(r, indent, ...) paragraph_rest(r, 0, indent, __VA_ARGS__)
void paragraph_rest(const struct report *r, int column, int indent, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

/* A table that is printed to the report: no wider, whatever is in it. */
#define TEXT_MAX_COLUMNS 12
enum text_column_kind {
	TEXT_NAME,   /* is cut, as text_cut does, if the table is too wide */
	TEXT_WORDS,  /* ... only where there is no name to cut */
	TEXT_NUMBER, /* never, and to the right */
};
struct text_table {
	const struct report *r;
	struct libscols_table *scols;
	struct text_column {
		enum text_column_kind kind;
		unsigned int leaves;
		size_t title, width;
		bool left_out;
	} columns[TEXT_MAX_COLUMNS];
	size_t n;
};
struct text_table text_table(const struct report *r);
/* @leaves: the column with the largest number is left out first if the table is too wide; 0: it is
 * not left out. */
void text_column(struct text_table *t, const char *title, enum text_column_kind kind,
		 unsigned int leaves);
struct libscols_line *text_row(struct text_table *t);
/* @text: clean. */
void text_cell(struct libscols_line *row, size_t column, const char *text);
/* As text_effect. */
void text_change_cell(const struct report *r, struct libscols_line *row, size_t column,
		      struct analysis_change c);
/* The name of a line, in the first column. */
void text_line_cell(const struct report *r, struct libscols_line *row, const char *selected);
/* Prints the table and frees it. */
void text_table_end(struct text_table *t);

/* A note, without its "Warning: " or "- ". */
void note(const struct report *r, enum note_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
extern const char *const note_kind_names[]; /* "note" of two, "warning", "reason", "command" */
/* Prints those that are warnings, or those that are none. */
void notes_print(const struct report *r, const struct notes *n, bool warnings);
void notes_free(struct notes *n); /* frees the contents, not @n */

/* The command that makes more of a program that was too short, if there is one. */
void note_again(const struct report *r);

/* The lines of a point that have a row, in their order (the caller frees): all of them if r->all,
 * else r->top at most of those that experiments or a slope say something of, if there are any. */
const struct analysis_line **shown_lines(const struct report *r, const struct analysis_point *point,
					 size_t *ret_n);
/* The rows, and one line on all that have none. */
void table_print(const struct report *r, const struct analysis_point *point);
/* What the table's verdicts need to be understood: phases, threads that spin. */
void table_notes(const struct report *r, const struct analysis_point *point);
/* Of a point that a run found by itself: which, and what else, in words; else NULL. */
const char *choice_of(const struct report *r, const struct analysis_point *point);
#define INLINED_MAX_LINES 64 /* of one copy; more are left out */
/* A line's code in one place of those that profile_samples.inlined tells of. */
struct inlined_copy {
	uint64_t count;			/* samples */
	char *lines[INLINED_MAX_LINES]; /* innermost first; in a buffer of inlined_next's */
	size_t n;
};
/* Takes the next copy from *at, a writable string, which it cuts up. False: none is left. */
bool inlined_next(char **at, struct inlined_copy *ret);
/* Under the table: into what its lines were inlined, and what into them. */
void inlined_print(const struct report *r, const struct analysis_point *point);
void curves_print(const struct report *r, const struct analysis_point *point);
/* Of a latency point that measured: notes on its intervals, its table, notes on what the table
 * lacks. */
void latency_head_notes(const struct report *r, const struct analysis_intervals *in);
void latency_print_lines(const struct report *r, const struct analysis_point *point);
void latency_notes(const struct report *r, const struct analysis_point *point);
/* What a latency point's intervals are made of, by how long they are: a table, and its lines, those
 * first that the slowest have most of (the caller frees). */
#define CLASSES_CAPTION                                                                          \
	"What intervals are made of, in %, by how long they are: up to the median, from there "  \
	"to the 90th and to the 99th percentile, and above. Where an interval waited for other " \
	"threads, what they did meanwhile is a part of it."
extern const char *const class_titles[PROFILE_CLASSES];
const struct analysis_line **class_lines(const struct analysis_point *point, size_t *ret_n);
struct words class_length(const struct analysis_point *point, size_t class); /* on average */
void classes_print(const struct report *r, const struct analysis_point *point);
/* How far the report can be trusted, if r->verbose with the books of all experiments; those notes
 * on the whole run that are no warnings; and what to do next. */
void footer_print(const struct report *r, const struct notes *run);
void next_print(const struct report *r);
void footer_notes(const struct report *r);
/* Which objects samples that belong to no line executed, in per cent of @of; NULL: not known. The
 * caller's. */
char *elsewhere_text(const struct report *r, double of);
/* Of which rows most of the time is in another object than their own. */
void elsewhere_notes(const struct report *r, const struct analysis_point *point);
/* jit.c: what would give code names that has none. */
void jit_notes(const struct report *r);
/* Does a row of any point have this verdict, for this reason? */
bool any_verdict(const struct analysis *a, enum verdict v, enum undecided why);
/* What the verdicts mean, and how to come to one. */
void verdict_notes(const struct report *r);
/* What the points cost the program. */
void costs_notes(const struct report *r);
/* Is there nothing to print a table of? Notes why. */
bool report_is_empty(const struct analysis *a);
void empty_notes(const struct report *r);
/* A table of where samples were, if there are any. */
void where_print(const struct report *r);
/* How long the runs took; NULL: that is not known of several. The caller's. */
char *run_times_text(const struct report *r);
/* The command line of the program, or our own where it is not known; NULL: neither is. */
const char *what_was_profiled(const struct profile *p);
const char *point_kind_name(enum profile_point_kind kind); /* "throughput", "latency" */
/* "visit", "interval" or "departure". */
const char *what_is_counted(const struct analysis_point *point);
/* What effects are effects on: "mean latency", "time per visit" or "run time". */
const char *what_shrinks(const struct analysis_point *point);
/* Is what the line's slope says worth a sentence? */
bool slope_is_told(const struct analysis_line *line);
/* What a point's lines say, in sentences; "" where nothing was tried. The caller's. */
char *answer(const struct report *r, const struct analysis_point *point);

/* How far the experiments of a profile can be trusted, at a glance, and why in words (the
 * caller's). */
enum light { LIGHT_UNKNOWN, LIGHT_POOR, LIGHT_FAIR, LIGHT_GOOD };
extern const char *const light_names[]; /* "unknown", "poor", "fair", "good" */
enum light fidelity_light(const struct analysis *a, size_t n_experiments, char **words);

/* A row of the books: what it is called, how long, in words. */
struct book_row {
	const char *name;
	double ns;
	const char *words;
};
#define MAX_BOOK_ROWS 10
/* How many rows there are; 0: the profile has no record of delays. */
size_t book_rows(const struct analysis *a, struct book_row rows[MAX_BOOK_ROWS]);
/* Why a latency point with begins or ends has no intervals; whether there is one such. */
bool intervals_missing(const struct report *r);
/* That points never fired. */
void silent_notes(const struct report *r);
/* Points of which nothing was seen, of the profile and of the hints, each once; NULL-terminated,
 * the caller's to free (not the names).
 */
const char **silent_points(const struct report *r);

/* json.c: adds a value to an object. A number has nine digits, more than anything here is known to,
 * and times in ns are whole up to a second; what is not finite is null. Of a string what is no
 * UTF-8 is replaced; NULL is null. A change is an object of its own. */
void json_add_number(struct json_object *to, const char *key, double v);
void json_add_string(struct json_object *to, const char *key, const char *v);
void json_add_bool(struct json_object *to, const char *key, bool v);
void json_add_change(struct json_object *to, const char *key, struct analysis_change c);
/* Takes @value; NULL is null. */
void json_add(struct json_object *to, const char *key, struct json_object *value);
struct json_object *json_add_array(struct json_object *to, const char *key); /* a new one */
void json_append(struct json_object *list, struct json_object *value);	     /* takes @value */
struct json_object *json_append_new(struct json_object *list);		     /* a new object */
struct json_object *json_new(void);
/* As utf8_put_json, with an end of line; frees @o. @flags: of json-c, beside pretty ones. */
void json_print(FILE *out, struct json_object *o, int flags);
