/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* What the BPF program that counts samples for `cozbpf collect` shares with the controller. */
#pragma once

#include "shared/namespace.h"

#define COLLECT_MAX_CPUS 256
/* Each CPU has two tables: one in which it counts, and one that is being read. A bucket is two
 * cache lines. */
#define COLLECT_BUCKETS 512
#define COLLECT_WAYS 5
#define COLLECT_MAX_IMAGES 16384
#define COLLECT_MAX_WHO 16384
#define COLLECT_NAME 64
#define COLLECT_MAX_EVENTS 8

/* Images that are no files; files have numbers from COLLECT_FILES on. */
enum {
	COLLECT_UNKNOWN,
	COLLECT_IDLE,
	COLLECT_KERNEL,
	COLLECT_ANONYMOUS,
	COLLECT_VDSO,
	COLLECT_FILES = 16
};
/* Processes likewise: of COLLECT_SOMEONE nothing is known, since the table was full or busy. */
enum { COLLECT_SOMEONE, COLLECT_INTERRUPTS, COLLECT_SWAPPER, COLLECT_PROCESSES = 16 };

struct collect_entry {
	unsigned long long offset; /* in the file; of the kernel the address */
	unsigned int image, who, event;
	unsigned int count; /* 0: the place is free */
};

struct collect_bucket {
	struct collect_entry ways[COLLECT_WAYS];
	unsigned long long unused;
};

/* A CPU's own. Nothing is ever set back. */
struct collect_cpu {
	unsigned long long busy;    /* the program runs on it */
	unsigned long long ticks;   /* all */
	unsigned long long hits;    /* found their bucket and entry */
	unsigned long long evicted; /* entries that made room for others */
	unsigned long long lost;    /* samples of those that could not be handed over */
	unsigned long long unknown; /* the address space was locked */
	unsigned long long outside; /* of tasks that are not in scope */
	unsigned long long unused[9];
};

/* A file in which code was found, as the kernel knows it. */
struct collect_file {
	unsigned long long inode, changed_ns;
	unsigned int device, generation;
	unsigned int owner;   /* as its file system has it, which can be any user's */
	unsigned int is_fuse; /* a process answers for the file system: nothing waits for that */
};

struct collect_image {
	unsigned int id;
	unsigned int known; /* its path has been found, or is not looked for any more */
	unsigned long long asked_ns;
	char name[COLLECT_NAME]; /* the last component */
};

struct collect_process {
	char name[16]; /* of its main thread */
	unsigned long long cgroup;
};

/* Code of a file was found for the first time, or again while its path is not known: here is a
 * process that has it mapped. */
struct collect_news {
	unsigned int image, pid;
	unsigned long long start, end;
	struct collect_file file;
	char name[COLLECT_NAME];
};
