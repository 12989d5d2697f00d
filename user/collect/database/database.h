/* SPDX-License-Identifier: BSD-2-Clause */
/* A directory of counts: below it one directory for each epoch, and in that one file for each
 * image. cozbpf-database(5) describes it. One process writes, any number read meanwhile: a file is
 * written under another name, flushed to the disk and renamed, so it is always whole. */
#pragma once

#include "collect/database/counts.h"

#include <sys/types.h>

#define DATABASE_EPOCH_S 3600
#define DATABASE_DAY_S 86400
#define DATABASE_MARK "cozbpf-database"
#define EPOCH_NAME 40 /* bytes of the name of an epoch's directory */

struct database;

/* Called once with each thing that had to be left out: a damaged file, one that does not belong
 * there. NULL: they are left out silently. */
typedef void (*database_say)(const char *text, void *arg);

/* To read. -ENOENT, -EACCES; -EINVAL: the directory is no database; -EPROTO: another version's. */
int database_open(const char *path, database_say say, void *arg, struct database **ret,
		  struct error *e);
/* To write: makes the directory if there is none, and takes its lock until it is closed. @group may
 * read ((gid_t)-1: nobody else). -EBUSY: another process writes to it; -EPERM: it belongs to
 * another user or others may write to it; -ENOTEMPTY: there are other things in it. */
int database_open_writer(const char *path, gid_t group, database_say say, void *arg,
			 struct database **ret, struct error *e);
void database_close(struct database *d); /* NULL is allowed */
const char *database_path(const struct database *d);

/* Bounds epochs from now on, which are of a database of at most @most_bytes; before, they are not.
 */
void database_bound(struct database *d, uint64_t most_bytes);

/* Adds @c to what the file of its image and epoch has. When this returns 0, it is on the disk.
 * Else, -ENOSPC above all, nothing has changed. A file that is damaged or of another image stays,
 * and another name is taken. Where an epoch of more than an hour holds @c's begin, it goes there.
 * -E2BIG: its owner's files have no room left in a bounded epoch. -EEXIST: it is of a day of which
 * there are hours that it would hide. @c is then of the epoch, and can have fewer processes
 * (counts_bound_who). */
int database_add(struct database *d, struct counts *c, struct error *e);

/* Calls @cb with the counts of each file of the epochs that overlap [@from_s, @to_s), epochs in
 * order of time, until it returns non-zero, and returns that. @cb may change the counts, and take
 * over what it sets to 0. */
int database_each(struct database *d, uint64_t from_s, uint64_t to_s,
		  int (*cb)(struct counts *c, void *arg), void *arg, struct error *e);

/* A name for a new profile of experiments in the epoch of @now_s, on @host; its directory is made.
 * *ret is the caller's (free). */
int database_profile_path(struct database *d, uint64_t now_s, const char *host, char **ret,
			  struct error *e);
/* As database_each, of the profiles of experiments; @fd is open while @cb runs. What is no regular
 * file is left out. */
int database_each_profile(struct database *d, uint64_t from_s, uint64_t to_s,
			  int (*cb)(int fd, const char *path, void *arg), void *arg,
			  struct error *e);
/* Copies the profile @fd, which is called @path, to the epoch of the same time, under a name that
 * is free. */
int database_add_profile(struct database *d, int fd, const char *path, struct error *e);

struct database_epoch {
	uint64_t begin_s, seconds;
	/* Of its files, once they were measured: what they take of the disk, with their inodes. */
	uint64_t bytes;
	size_t files;
	uint64_t changed_ns;   /* when a file came there or went */
	char name[EPOCH_NAME]; /* of its directory */
};
/* In order of time; *ret is the caller's (free). What a longer epoch replaces is not among them. */
int database_epochs(struct database *d, struct database_epoch **ret, size_t *ret_n,
		    struct error *e);
void database_measure(struct database *d, struct database_epoch *x);

/* Removes epochs that ended before @before_s, and then the oldest ones until all files together
 * take at most
 * @most_bytes of the disk. The newest one stays. *ret_n: how many went. Can be called often. */
int database_prune(struct database *d, uint64_t before_s, uint64_t most_bytes, size_t *ret_n,
		   struct error *e);
/* Removes the oldest epoch, unless there is only one: -ENOENT. */
int database_drop_oldest(struct database *d, struct error *e);
/* Makes one epoch of all those that lie within a day (of UTC) that ended before @before_s. A crash
 * leaves either the one or the others in force. *ret_n: how many days. */
int database_compact(struct database *d, uint64_t before_s, size_t *ret_n, struct error *e);
