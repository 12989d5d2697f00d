/* SPDX-License-Identifier: BSD-2-Clause */
/* What was counted in one image (an executable, a library, the kernel) in one epoch: how many
 * samples of which process found it at which place. After the profiles of DCPI (Anderson et al.,
 * Continuous Profiling: Where Have All the Cycles Gone?, TOCS 1997, section 4.3). */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct error;

enum counts_kind {
	COUNTS_UNKNOWN, /* the address space was locked when the sample was taken */
	COUNTS_IDLE,	/* the idle task */
	COUNTS_KERNEL,	/* itself, or the module that the path names; offsets are distances from its
			   first instruction */
	COUNTS_ANONYMOUS, /* code in memory that is of no file, as that of JIT compilers; offsets
			     are 0 */
	COUNTS_VDSO,
	COUNTS_FILE,	/* offsets are in the file */
	COUNTS_SAMPLER, /* no code: how the sampling itself went, an event for each number */
	COUNTS_OTHER,	/* images whose owner has no room left in the epoch; offsets are 0 */
	N_COUNTS_KINDS
};
/* "[kernel]", ... as tables say it; NULL of COUNTS_FILE. */
const char *counts_kind_name(enum counts_kind kind);

struct counts_image {
	enum counts_kind kind;
	char *path;	/* owned; "" if it is not known */
	char *build_id; /* owned; lower-case hexadecimal, "" if it has none */
	/* Of the file; what distinguishes images without a build id. */
	uint64_t device, inode, changed_ns;
	/* The user that the file belongs to. Anyone can give a file any build id, so files of
	 * different owners are never one image. */
	uint32_t owner;
};
#define COUNTS_NOBODY \
	65534U /* owns what is only said to be root's: by a mount without set-user-id */
#define COUNTS_NO_OWNER UINT32_MAX /* it is not known; not in databases */

/* Of one host, in one set of counts. */
#define COUNTS_MOST_WHO 1024
/* Of one set. */
#define COUNTS_MOST_SAMPLES (1ULL << 48)

struct counts_who {
	char *process, *cgroup, *host; /* owned; "" if not known */
};

struct counts_event {
	char *name;	/* owned */
	uint64_t every; /* what one count stands for: ns of a clock, else events */
};

struct counts_row {
	uint64_t offset, count;
	uint32_t who, event; /* indices */
};

struct counts {
	uint64_t begin_s, seconds; /* of the epoch: since 1970, and its length */
	struct counts_image image;
	struct counts_who *who;
	size_t n_who;
	struct counts_event *events;
	size_t n_events;
	void *whose, *what; /* trees (search.h) of @who and @events, by their names */
	/* Once sorted: by offset, process and event, none twice. */
	struct counts_row *rows;
	size_t n_rows;
};

void counts_free(struct counts *c); /* what it owns */
/* Their indices; they are added if they are not there. Strings are copied. */
uint32_t counts_who(struct counts *c, const char *process, const char *cgroup, const char *host);
uint32_t counts_event(struct counts *c, const char *name, uint64_t every);
/* Rows need not be in order before counts_sort. */
void counts_add(struct counts *c, uint64_t offset, uint32_t who, uint32_t event, uint64_t count);
void counts_sort(struct counts *c);
/* Adds the rows of @from to @c, without sorting. The images may be called differently. */
void counts_append(struct counts *c, const struct counts *from);
/* The same, and sorts. */
void counts_merge(struct counts *c, const struct counts *from);
/* Takes out whose the rows were: all are of one nameless process then, and sorted. */
void counts_forget_who(struct counts *c);
/* Where there are more than COUNTS_MOST_WHO processes of a host, those with the fewest samples
 * become one, which is called "[other]"; then it is sorted. */
void counts_bound_who(struct counts *c);
/* Of all rows together. */
uint64_t counts_samples(const struct counts *c);
/* Files of one owner and build, or the same file, unchanged, if it has no build id; of the kernel,
 * the same part. */
int counts_same_image(const struct counts_image *a, const struct counts_image *b);
/* Copies all strings. */
void counts_copy_image(struct counts_image *ret, const struct counts_image *from);

/* The bytes of a file: a line that says what it is, a checksum, the body (counts.proto). They are
 * the caller's (free). */
unsigned char *counts_encode(const struct counts *c, size_t *ret_n);
/* Trusts nothing. -EINVAL with @e saying what is wrong; *ret is the caller's (counts_free) only if
 * 0. */
int counts_decode(const unsigned char *bytes, size_t n, struct counts *ret, struct error *e);
