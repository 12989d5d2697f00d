/* SPDX-License-Identifier: BSD-2-Clause */
/* Which share of the samples of a database each image, function, line, process, ... has. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct counts;
struct database;
struct error;

enum shares_by {
	SHARES_IMAGE,
	SHARES_FUNCTION,
	SHARES_LINE,
	SHARES_PROCESS,
	SHARES_CGROUP,
	SHARES_HOST,
	N_SHARES_BY
};
/* "image", ... in this order, then NULL. */
extern const char *const shares_by_names[];

/* Globs; NULL: all. */
struct shares_choice {
	enum shares_by by;
	const char *event; /* its name; NULL: the first that there is of cycles and cpu-clock */
	const char *image, *process, *cgroup, *host;
	const char *build_id;  /* a beginning of it; NULL: all */
	uint64_t from_s, to_s; /* since 1970 */
};

struct share {
	char *name, *image; /* owned; image is "" where it says nothing */
	uint64_t samples;
	double amount; /* ns of a clock, else events */
};

struct shares {
	struct share *all; /* the largest first */
	size_t n;
	uint64_t samples, idle; /* of all that was chosen, and those that found the CPU idle, which
				   have no share */
	double amount;
	char *event;	       /* owned; NULL: there is nothing */
	uint64_t from_s, to_s; /* the epochs that were read */
	char **unread; /* owned; images whose functions cannot be named, with the reason, the
			  largest first */
	size_t n_unread;
};

/* Where samples are read: @each is called as database_each is, with @from as its database. */
struct shares_source {
	int (*each)(void *from, uint64_t from_s, uint64_t to_s,
		    int (*cb)(struct counts *c, void *arg), void *arg, struct error *e);
	void *from;
};
struct shares_source shares_database(struct database *d);

/* What reading gives, with @e. Nothing that fits is no error. */
int shares_of(struct database *d, const struct shares_choice *c, struct shares *ret,
	      struct error *e);
void shares_free(struct shares *s);
/* The half-width of the 95 % interval of a share of @all samples of which @samples are: both are
 * counts of a Poisson process. */
double shares_half_width(uint64_t samples, uint64_t all);
