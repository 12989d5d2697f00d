/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads profile files, ours and Coz's, JSON lines and text, old spellings included. Pure: needs no
 * privilege. A file is foreign bytes: sizes are bounded, a bad line is skipped and counted, a file
 * with no good line is an error. */
#pragma once

#include "profile/profile.h"

struct error;

/* Who had the machine's CPU time while runs went on. Runs may know some of it only: each part
 * stands beside the machine's time of those that know it, so that shares of several runs together
 * are right. */
struct profile_machine {
	uint64_t own_ns, own_of_ns;		    /* the profiler's process */
	uint64_t kernel_ns, kernel_of_ns;	    /* its programs in the kernel, estimated */
	uint64_t scope_ns, foreign_ns, scope_of_ns; /* what was profiled, and all else that ran */
};

struct profile_run_experiment {
	struct profile_experiment x;
	struct profile_point *points;
	size_t n_points;
	size_t run; /* index into profile.runs */
};

struct profile {
	struct profile_startup *runs;
	size_t n_runs;
	struct profile_run_experiment *experiments;
	size_t n_experiments;
	struct profile_samples
		*samples; /* merged over runs, one per location, in the order of strcmp */
	size_t n_samples;
	struct profile_elsewhere *elsewhere; /* of all runs, as they come */
	size_t n_elsewhere;
	struct profile_addresses *addresses; /* of all runs, as they come */
	size_t n_addresses;
	struct profile_slopes *slopes; /* of all runs, as they come */
	size_t n_slopes;
	uint64_t runtime_ns; /* summed over runs */
	uint64_t sampled; /* samples that have a location, summed over runs; 0: as many as @samples
			     say */
	uint64_t unattributed;		/* those that have none */
	uint64_t too_deep, cut_short;	/* ... as in struct profile_runtime */
	struct profile_machine machine; /* summed over runs */
	size_t bad_lines;		/* skipped */
	size_t first_bad_line;		/* 1-based, 0: none */
	size_t kept;			/* bytes that records take, about */
};

/* Reads @path and adds it to @p, which the caller zeroed or filled by an earlier call. -ENOENT,
 * -EACCES, -EISDIR, -EINVAL (not a profile: @e says why), -E2BIG (too many records), -EFBIG (too
 * much that is no record). On failure @p is unchanged. */
int profile_read(struct profile *p, const char *path, struct error *e);
/* The same of an open file, which stays the caller's; @path is for messages. */
int profile_read_fd(struct profile *p, int fd, const char *path, struct error *e);
/* Bytes of records that are kept of a file, about: 1 GiB. Tests set less. */
extern size_t profile_most_kept;
/* The same from memory (what the fuzzer drives); @name is for messages. */
int profile_read_buffer(struct profile *p, const char *data, size_t size, const char *name,
			struct error *e);
/* Renames lines: @rename gets each "<file>:<line>" once and returns its new name, which is the
 * profile's (free). Samples of lines that then have one name are added up. */
void profile_rename_lines(struct profile *p, char *(*rename)(const char *line, void *arg),
			  void *arg);
/* The samples of a location, or NULL. */
const struct profile_samples *profile_find_samples(const struct profile *p, const char *location);
/* All n_samples of them, most samples first, equal ones by location; the caller's (free). */
const struct profile_samples **profile_samples_sorted(const struct profile *p);
void profile_free(struct profile *p); /* frees the contents, not @p */
/* One more run. */
void profile_machine_add_run(struct profile_machine *m, const struct profile_runtime *t);
/* How long the program of @run ran, as its log has it. */
void profile_run_ended(struct profile_startup *run, const struct profile_runtime *t);
/* 0..1; NaN: not known. */
double profile_machine_share(uint64_t ns, uint64_t of_ns);
