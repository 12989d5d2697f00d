/* SPDX-License-Identifier: BSD-2-Clause */
/* For the files of this package. */
#pragma once

#include "base/cleanup.h"
#include "collect/database/database.h"

#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>

/* What an owner's files of an epoch take. */
struct budget_owner {
	uint32_t owner;
	uint64_t bytes;
};

/* How much of an epoch is taken, of the one that was written to last. */
struct budget {
	uint64_t most_bytes; /* of the whole database; 0: epochs are not bounded */
	char epoch[EPOCH_NAME];
	struct budget_owner *all; /* owned */
	size_t n;
};

struct database {
	char *path;
	int fd, lock_fd;
	gid_t group;
	database_say say;
	void *arg;
	size_t left_out;
	char **said; /* paths of which that was told */
	size_t n_said;
	struct budget budget;
	struct database_epoch
		*measured; /* owned, in order of time: as they were when prune looked last */
	size_t n_measured;
};

#define DATABASE_ENDING ".counts"
#define DATABASE_PROFILE ".jsonl"
#define DATABASE_INODE_BYTES 1024
#define DATABASE_ASIDE                                                             \
	".new-" /* begins the names of files and directories that are not finished \
		 */

/* Tells once that @epoch/@name (or @name, if @epoch is NULL) is left out. */
void database_left_out(struct database *d, const char *epoch, const char *name, const char *why);

/* Opens a file of an epoch. A negative errno: it is gone, or it was left out. */
int database_open_file(struct database *d, int epoch_fd, const char *epoch, const char *name);
/* Adds to the file in a directory that is open; see database_add. @epoch is its name. */
int database_add_to(struct database *d, int epoch_fd, const char *epoch, struct counts *c,
		    struct error *e);
/* Each file of an epoch; see database_each. */
int database_each_of(struct database *d, const struct database_epoch *epoch,
		     int (*cb)(struct counts *c, void *arg), void *arg, struct error *e);

/* What is in a directory, in order of its names. */
struct entries {
	struct dirent **all; /* owned */
	int n;		     /* a negative errno: it cannot be read */
};
/* All but the directory and its parent; with an @ending, what is called so and does not begin with
 * a dot. @fd can be a negative errno instead. */
struct entries entries_of(int fd, const char *ending);
void entries_free(struct entries *x);
#define _cleanup_entries_ _cleanup_(entries_free)
/* Those of an epoch, which has none if it is gone, and the epoch's descriptor (or a negative
 * errno).
 */
int epoch_entries(struct database *d, const char *epoch, const char *ending, int *ret_fd,
		  struct entries *ret, struct error *e);
void epoch_name(uint64_t begin_s, uint64_t seconds, char ret[EPOCH_NAME]);
/* False: it is no name of an epoch. */
bool epoch_parse(const char *name, struct database_epoch *ret);
/* Makes its directory if there is none, and opens it. A negative errno. */
int epoch_open(struct database *d, const char *name, bool make);
/* The epoch that @begin_s belongs to: one of an hour, unless a longer one holds it. -EEXIST: it
 * would hide shorter ones. */
int epoch_of(struct database *d, uint64_t begin_s, uint64_t seconds, char ret[EPOCH_NAME],
	     struct error *e);
/* A directory and the files in it; other things are left there, and the directory with them. */
int epoch_remove(struct database *d, const char *name);
/* As database_epochs; those from *ret_n to *ret_all have been replaced. */
int epochs_list(struct database *d, struct database_epoch **ret, size_t *ret_n, size_t *ret_all,
		struct error *e);

/* budget.c: may the file of @owner, one of @epoch that is open, be @size bytes long after it was
 * @before (-1: there was none)? If so, that is taken. -E2BIG. */
int budget_take(struct database *d, int epoch_fd, const char *epoch, uint32_t owner, int64_t before,
		int64_t size);
/* What a file of an image is called: by its build id, else by a hash of what distinguishes it; with
 * its owner, and the number @turn if that is not 0. -ENOMEM: it cannot be hashed. */
int file_name(const struct counts_image *i, int turn, char *ret, size_t size);
