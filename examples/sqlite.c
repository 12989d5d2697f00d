// SPDX-License-Identifier: BSD-2-Clause
/* A program that waits for its disk: it puts rows into an SQLite database, many in each transaction, and each transaction is on the disk before the
 * next one begins. What would a faster disk be worth? With PERCENT below 100 the answer can be checked: the disk has the same work, in another
 * file, which another thread waits for; the transaction computes for as long as the call that waits does, and waits for that part of the time only.
 * usage: sqlite SECONDS FILE [PERCENT] */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <fcntl.h>
#include <libgen.h>
#include <math.h>
#include <pthread.h>
#include <semaphore.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline)) /* a function of its own in the profile */
#define ROWS 300
#define WARM_UP 200 /* first transactions, which wait for the disk with any PERCENT: how long that takes is measured */

static const sqlite3_io_methods *real_methods;
static sqlite3_io_methods methods;
static double part = 1;
static double synced, n_syncs;
static long transactions;

/* The other thread. */
static sem_t work;
static int other_file;
static long written;	   /* bytes since the last wait */
static atomic_long handed; /* ... and before it, which are the other thread's */

#define OTHER_SIZE 4194304L /* as long as SQLite's log gets */

/* Seconds that the disk takes, and that the call which waits for it computes. */
static double usual = 0.0005, computing;

static double seconds(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double now(void)
{
	return seconds(CLOCK_MONOTONIC);
}

static double computed(void)
{
	return seconds(CLOCK_THREAD_CPUTIME_ID);
}

/* Into the other file, which does not grow. */
static void put(long n)
{
	static const char bytes[65536];
	static long at;

	for (long some; n > 0; n -= some, at += some) {
		at = at >= OTHER_SIZE ? 0 : at;
		some = n < (long)sizeof(bytes) ? n : (long)sizeof(bytes);
		some = some < OTHER_SIZE - at ? some : OTHER_SIZE - at;
		if (pwrite(other_file, bytes, (size_t)some, at) != some) {
			perror("sqlite: cannot write");
			exit(1);
		}
	}
}

static void *wait_for_disk(void *arg)
{
	for (;;) {
		sem_wait(&work);
		put(atomic_exchange(&handed, 0));
		fdatasync(other_file);
	}
	return arg;
}

static int start_other_thread(const char *directory)
{
	pthread_t t;

	other_file = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (other_file < 0)
		return -1;
	put(OTHER_SIZE);
	return fsync(other_file) || sem_init(&work, 0, 0) || pthread_create(&t, NULL, wait_for_disk, NULL) ? -1 : 0;
}

/* Sleeps for @time, in seconds, less by how late sleeps have ended so far. */
static void wait_for(double time)
{
	static double late;
	double from = now(), sleep = late < time / 2 ? time - late : time / 2;
	struct timespec t = {.tv_nsec = (long)(sleep * 1e9)};

	if (sleep > 0) {
		nanosleep(&t, NULL);
		late += (now() - from - sleep - late) / 32;
	}
}

/* SQLite's way to the disk. */
static KEEP int to_disk(sqlite3_file *file, int flags)
{
	double from = now(), begun = computed();
	int r = SQLITE_OK;

	if (part >= 1 || transactions < WARM_UP) {
		r = real_methods->xSync(file, flags); /* the disk */
		computing += (computed() - begun - computing) / 64;
		usual += (now() - from - (computed() - begun) - usual) / 64;
	} else {
		atomic_fetch_add(&handed, written);
		sem_post(&work);
		while (computed() - begun < computing)
			continue;
		wait_for(part * usual);
	}
	written = 0;
	synced += now() - from;
	n_syncs++;
	return r;
}

static int to_log(sqlite3_file *file, const void *bytes, int n, sqlite3_int64 at)
{
	written += n;
	return real_methods->xWrite(file, bytes, n, at);
}

static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *ret_flags)
{
	sqlite3_vfs *usual_vfs = vfs->pAppData;
	int r = usual_vfs->xOpen(usual_vfs, name, file, flags, ret_flags);

	/* A transaction is on the disk once its log is. */
	if (r == SQLITE_OK && flags & SQLITE_OPEN_WAL) {
		real_methods = file->pMethods;
		methods = *real_methods;
		methods.xSync = to_disk;
		methods.xWrite = to_log;
		file->pMethods = &methods;
	}
	return r;
}

static void run(sqlite3 *db, const char *sql)
{
	char *error = NULL;

	if (sqlite3_exec(db, sql, NULL, NULL, &error) == SQLITE_OK)
		return;
	fprintf(stderr, "sqlite: %s: %s\n", sql, error);
	exit(1);
}

/* The progress point: a transaction is done. */
static KEEP void committed(void)
{
	__asm__ volatile("" : : : "memory");
}

static KEEP void insert(sqlite3 *db, sqlite3_stmt *statement)
{
	run(db, "BEGIN");
	for (int i = 0; i < ROWS; i++) {
		sqlite3_bind_int64(statement, 1, rand());
		if (sqlite3_step(statement) != SQLITE_DONE)
			exit(1);
		sqlite3_reset(statement);
	}
	run(db, "COMMIT");
}

int main(int argc, char **argv)
{
	double from, until;
	sqlite3_stmt *statement;
	sqlite3_vfs vfs;
	sqlite3 *db;
	long n;

	if (argc < 3) {
		fprintf(stderr, "usage: sqlite SECONDS FILE [PERCENT]\n");
		return 2;
	}
	if (argc > 3)
		part = atof(argv[3]) / 100;
	prctl(PR_SET_TIMERSLACK, 1UL);
	remove(argv[2]);
	vfs = *sqlite3_vfs_find(NULL);
	vfs.pAppData = sqlite3_vfs_find(NULL);
	vfs.zName = "watched";
	vfs.xOpen = open_file;
	if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK || sqlite3_open(argv[2], &db) != SQLITE_OK)
		return 1;
	run(db, "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE t (x INTEGER, y TEXT); CREATE INDEX i ON t (x)");
	if (sqlite3_prepare_v2(db, "INSERT INTO t VALUES (?1, hex(randomblob(32)))", -1, &statement, NULL) != SQLITE_OK)
		return 1;
	if (part < 1 && start_other_thread(dirname(argv[2]))) {
		perror("sqlite: cannot do the disk's work elsewhere");
		return 1;
	}
	until = INFINITY;
	from = 0;
	for (; now() < until; transactions++) {
		if (transactions == WARM_UP) {
			synced = n_syncs = 0;
			from = now();
			until = from + atof(argv[1]);
		}
		/* The same work again and again: the table does not grow. */
		if (transactions % 100 == 0)
			run(db, "DELETE FROM t");
		insert(db, statement);
		committed();
	}
	n = transactions - WARM_UP;
	from = now() - from;
	printf("%ld transactions, %.0f us each; %.0f us a sync, %.0f %% of the time; of each it computes for %.0f us\n", n, 1e6 * from / (double)n,
	       1e6 * synced / n_syncs, 100 * synced / from, 1e6 * computing);
	return 0; /* the other thread still has the files */
}
