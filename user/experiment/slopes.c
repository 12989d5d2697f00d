// SPDX-License-Identifier: BSD-2-Clause
#include "experiment/slopes.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/waits.h"
#include "experiment/tally.h"
#include "profile/profile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A window has to see several rounds of the program: its visits find what led to them since its
 * begin. */
#define SHORTEST_NS (250 * NSEC_PER_MSEC)
#define LONGEST_NS (8 * NSEC_PER_SEC)
#define LEAST_VISITS                                                                \
	20 /* of the point that is visited least; with fewer the next one is longer \
	    */
/* An interval that does not begin and end in one window is not seen: windows are at least so many
 * times as long as 99 % of them. */
#define SLOW_PART 10
#define WAIT_NS (20 * NSEC_PER_MSEC)
/* After so many windows they are twice as long, so that what is kept of days is bounded. */
#define MANY_WINDOWS 512
#define LAST_NS (512 * NSEC_PER_SEC)
#define MOST_WAITS 12 /* places where threads wait, of all that are followed */
#define MAX_NAME 512  /* bytes; a program says what its lines are called */
/* Where a window has seen no visit, windows take one part in so many of their share: the program
 * may pass its point later. */
#define BARREN_PART 10
/* What a whole run is longer than has no room in a vector (ABI_D_UNIT). */
#define LONGEST_WHOLE_NS (1000 * NSEC_PER_SEC)

struct slopes {
	const struct backend_ops *ops;
	void *backend;
	slopes_sink sink;
	void *arg;
	struct tally *tally;
	struct slopes_time time;
	uint64_t since_ns;  /* the first step; 0: not yet */
	uint64_t spent_ns;  /* in windows that are closed */
	bool barren;	    /* the last one has seen no visit that it can use */
	uint64_t length_ns; /* of the next window */
	size_t n_windows;
	uint64_t begun_ns;		     /* 0: no window is open */
	const char *lines[ABI_MAX_FOLLOWED]; /* interned by the backend, or the caller's */
	size_t n_lines;
	bool found[ABI_MAX_FOLLOWED]; /* of a whole run: lines that have their places */
	struct abi_place places[ABI_MAX_PLACES];
	size_t n_places;
};

int slopes_new(const struct backend_ops *ops, void *backend, slopes_sink sink, void *arg,
	       struct tally *t, const struct slopes_time *time, struct slopes **ret)
{
	struct slopes *s;

	if (!ops->slopes_begin)
		return -EOPNOTSUPP;
	s = xcalloc(1, sizeof(*s));
	s->ops = ops;
	s->backend = backend;
	s->sink = sink;
	s->arg = arg;
	s->tally = t;
	s->time = *time;
	s->length_ns = SHORTEST_NS;
	*ret = s;
	return 0;
}

void slopes_free(struct slopes *s)
{
	free(s);
}

static int by_place(const void *a, const void *b)
{
	const struct abi_place *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* The line's code gets the next place, unless there is no room for all of it. */
static int add_line(struct slopes *s, const char *line)
{
	const unsigned int entry = ABI_ENTRY_FIRST + (unsigned int)s->n_lines;
	struct abi_interval at[ABI_MAX_INTERVALS];
	size_t n;
	int r = s->ops->intervals(s->backend, line, at, &n);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (n > ABI_MAX_PLACES - s->n_places)
		return 0;
	for (size_t i = 0; i < n; i++)
		s->places[s->n_places++] = (struct abi_place){at[i].lo, at[i].hi, entry, 0};
	s->lines[s->n_lines++] = line;
	return 0;
}

/* Of a whole run: lines whose code is there now, and was not before. A run of which no line is
 * known yet has no window: it finds them. */
static int follow_whole(struct slopes *s, uint64_t now, uint64_t *ret_due)
{
	size_t before = s->n_lines;
	int r = tally_drain(s->tally);

	*ret_due = now + WAIT_NS;
	if (!s->time.n_lines)
		return r;
	for (size_t i = 0; r == 0 && i < s->time.n_lines; i++) {
		size_t had = s->n_lines;

		if (!s->found[i])
			r = add_line(s, s->time.lines[i]);
		s->found[i] |= s->n_lines > had;
	}
	if (r < 0 || (s->begun_ns && s->n_lines == before))
		return r;
	qsort(s->places, s->n_places, sizeof(*s->places), by_place);
	if (s->begun_ns)
		return s->ops->slopes_follow(s->backend, s->places, s->n_places);
	s->begun_ns = *s->time.whole_since_ns;
	return s->ops->slopes_begin(s->backend, s->places, s->n_places, s->begun_ns);
}

/* Where there are no samples yet, there is nothing to open. */
static int open_window(struct slopes *s, uint64_t now, uint64_t *ret_due)
{
	struct tally_line *lines[ABI_MAX_FOLLOWED];
	/* Waiting for a CPU has no place. */
	unsigned int waits = s->time.waits & ~(1U | 1U << WAIT_CPU);
	size_t n = tally_most(s->tally, waits, lines, MOST_WAITS);
	int r = 0;

	n += tally_most(s->tally, 1, lines + n, ABI_MAX_FOLLOWED - n);
	*ret_due = now + (n ? s->length_ns : WAIT_NS);
	if (!n)
		return 0;
	s->n_lines = s->n_places = 0;
	for (size_t i = 0; r == 0 && i < n; i++)
		r = add_line(s, lines[i]->name);
	if (r < 0)
		return r;
	qsort(s->places, s->n_places, sizeof(*s->places), by_place);
	r = s->ops->slopes_begin(s->backend, s->places, s->n_places, 0);
	s->begun_ns = r == 0 ? now : 0;
	return r;
}

/* Texts of places, each at most PROFILE_MAX_SLOPES long, and their records. */
struct texts {
	struct profile_slopes record;
	char text[PROFILE_MAX_SLOPES];
	size_t used;
	const struct slopes *slopes;
};

static int flush(struct texts *t)
{
	int r = t->used ? t->slopes->sink(t->slopes->arg, &t->record) : 0;

	t->used = 0;
	return r;
}

static int add_text(struct texts *t, int64_t ns, const char *name)
{
	char line[PROFILE_MAX_SLOPES];
	int n = snprintf(line, sizeof(line), "%" PRId64 "\t%s\n", ns, name), r = 0;

	/* A name without end, or one that would be taken for two. */
	if (n < 0 || strlen(name) > MAX_NAME || (size_t)n >= sizeof(line) || strpbrk(name, "\t\n"))
		return 0;
	if ((size_t)n >= sizeof(t->text) - t->used)
		r = flush(t);
	memcpy(t->text + t->used, line, (size_t)n + 1);
	t->used += (size_t)n;
	return r;
}

static int tell(const struct slopes *s, const struct backend_slopes *b, struct texts *t)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->n_lines; i++)
		r = add_text(t, b->place_ns[i], s->lines[i]);
	for (unsigned int kind = 1; r == 0 && kind < WAIT_KINDS; kind++) {
		char name[32];

		if (!(s->time.waits >> kind & 1))
			continue;
		(void)snprintf(name, sizeof(name), "[%s]", wait_name(kind));
		r = add_text(t, b->wait_ns[kind], name);
	}
	return r == 0 ? flush(t) : r;
}

/* For the draws of experiments. */
static void tell_tally(const struct slopes *s, const struct backend_slopes *b)
{
	double length = b->own_ns < b->time_ns ? (double)(b->time_ns - b->own_ns) : 0;

	for (size_t i = 0; i < s->n_lines; i++)
		tally_add_window(tally_line_named(s->tally, s->lines[i], NULL),
				 (double)b->place_ns[i], length);
}

/* Of one point, or one class of a latency point. @first: no point before it had visits. */
static int close_class(const struct slopes *s, const char *name, const char *class,
		       const struct backend_slopes *b, uint64_t length_ns, bool first,
		       struct texts *t)
{
	if (!b->visits || (s->time.whole_since_ns && length_ns > LONGEST_WHOLE_NS))
		return 0;
	if (first && !s->time.whole_since_ns)
		tell_tally(s, b);
	t->record = (struct profile_slopes){
		.point = (char *)(uintptr_t)name,
		.class = (char *)(uintptr_t) class,
		.began = s->begun_ns,
		.length = length_ns,
		.seen = b->seen,
		.visits = b->visits,
		.time_ns = b->time_ns,
		.own_ns = b->own_ns,
		.places = t->text,
	};
	return tell(s, b, t);
}

/* *ret_seen: how many visits there were, all of them; too few of them if slow intervals would not
 * fit into the window. */
static int close_point(const struct slopes *s, size_t i, const struct profile_point *point,
		       uint64_t length_ns, bool first, struct texts *t, uint64_t *ret_seen)
{
	bool latency = point->kind == PROFILE_LATENCY;
	uint64_t slow_ns = 0;
	int r = 0;

	*ret_seen = 0;
	for (unsigned int class = 0; r == 0 && class < (latency ? PROFILE_CLASSES : 1); class ++) {
		struct backend_slopes b;

		r = s->ops->slopes(s->backend, i, class, &b);
		if (r < 0)
			return r;
		*ret_seen += b.seen;
		slow_ns = b.slow_ns;
		r = close_class(s, point->name,
				!latency    ? NULL
				: b.classed ? profile_class_names[class]
					    : PROFILE_ALL_CLASSES,
				&b, length_ns, first, t);
	}
	if (slow_ns > length_ns / SLOW_PART && *ret_seen >= LEAST_VISITS)
		*ret_seen = LEAST_VISITS - 1;
	return r;
}

int slopes_close(struct slopes *s, const struct profile_point *points, size_t n_points,
		 uint64_t now)
{
	_cleanup_free_ struct texts *t = NULL;
	uint64_t least = 0, seen, length;
	int r;

	if (!s->begun_ns)
		return 0;
	r = s->ops->slopes_end(s->backend);
	t = xcalloc(1, sizeof(*t));
	t->slopes = s;
	length = now > s->begun_ns ? now - s->begun_ns : 0;
	for (size_t i = 0; r == 0 && i < n_points; i++) {
		r = close_point(s, i, &points[i], length, least == 0, t, &seen);
		least = seen && (!least || seen < least) ? seen : least;
	}
	s->begun_ns = 0;
	s->spent_ns += length;
	s->barren = least == 0;
	if ((least < LEAST_VISITS && s->length_ns < LONGEST_NS) || s->length_ns < s->time.long_ns ||
	    (++s->n_windows % MANY_WINDOWS == 0 && s->length_ns < LAST_NS))
		s->length_ns *= 2;
	return r;
}

/* Before a window, at @now: has the time for it come? */
static bool is_turn(const struct slopes *s, uint64_t now)
{
	double share = s->barren ? s->time.share / BARREN_PART : s->time.share;

	return s->time.share >= 1 ||
	       (double)(s->spent_ns + s->length_ns) <=
		       (double)s->time.first_ns + share * (double)(now - s->since_ns);
}

int slopes_step(struct slopes *s, const struct profile_point *points, size_t n_points, uint64_t now,
		uint64_t *ret_due)
{
	int r = 0;

	if (s->time.whole_since_ns) {
		r = follow_whole(s, now, ret_due);
		return r < 0 ? r : 1;
	}
	r = slopes_close(s, points, n_points, now);
	if (!s->since_ns)
		s->since_ns = now;
	if (r < 0 || !is_turn(s, now))
		return r;
	r = tally_drain(s->tally);
	if (r == 0)
		r = open_window(s, now, ret_due);
	return r < 0 ? r : 1;
}

void slopes_drop(struct slopes *s)
{
	if (s && s->begun_ns)
		(void)s->ops->slopes_end(s->backend);
	if (s)
		s->begun_ns = s->time.n_lines = 0; /* what is left of a run is not a whole one */
}
