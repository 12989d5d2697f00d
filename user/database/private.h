/* SPDX-License-Identifier: BSD-2-Clause */
/* For the files of this package. */
#pragma once

#include "database/database.h"

#include <dirent.h>
#include <stdbool.h>

struct database {
	char *path;
	int fd, lock_fd;
	bool writes;
	gid_t group;
	database_say say;
	void *arg;
	size_t left_out;
	char **said; /* paths of which that was told */
	size_t n_said;
};

#define DATABASE_ENDING ".counts"
#define DATABASE_PROFILE ".jsonl"
#define DATABASE_ASIDE ".new-" /* begins the names of files and directories that are not finished */

/* Tells once that @epoch/@name (or @name, if @epoch is NULL) is left out. */
void database_left_out(struct database *d, const char *epoch, const char *name, const char *why);

/* Reads one file of counts. -ENOENT: there is none; -EINVAL: it is damaged, or no file of counts (@e says it); -ENOMEM and others. *ret is the
 * caller's.
 */
int database_read(int epoch_fd, const char *name, struct counts *ret, struct error *e);
/* Adds to the file in a directory that is open; see database_add. @epoch is its name. */
int database_add_to(struct database *d, int epoch_fd, const char *epoch, const struct counts *c, struct error *e);
/* Each file of an epoch; see database_each. */
int database_each_of(struct database *d, const char *epoch, int (*cb)(struct counts *c, void *arg), void *arg, struct error *e);

/* For scandirat(): everything in a directory but itself and its parent. */
int epoch_any(const struct dirent *entry);
void epoch_name(uint64_t begin_s, uint64_t seconds, char ret[40]);
/* False: it is no name of an epoch. */
bool epoch_parse(const char *name, struct database_epoch *ret);
/* Makes its directory if there is none, and opens it. A negative errno. */
int epoch_open(struct database *d, const char *name, bool make);
/* The epoch that @begin_s belongs to: one of an hour, unless a longer one holds it. */
int epoch_of(struct database *d, uint64_t begin_s, uint64_t seconds, char ret[40], struct error *e);
/* A directory and the files in it; other things are left there, and the directory with them. */
int epoch_remove(struct database *d, const char *name);
/* As database_epochs; those from *ret_n to *ret_all have been replaced. */
int epochs_list(struct database *d, struct database_epoch **ret, size_t *ret_n, size_t *ret_all, struct error *e);
