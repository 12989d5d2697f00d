/* SPDX-License-Identifier: BSD-2-Clause */
/* CPU quotas of the control groups that processes are in, those of all groups above included:
 * cpu.max (version 2) or cpu.cfs_quota_us (version 1), and how often they were used up. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct quotas;

/* The caller's (quotas_free); NULL: no memory. */
struct quotas *quotas_new(void);
void quotas_free(struct quotas *q); /* NULL is allowed */
/* Adds the groups of @pid that have a quota and are not known yet. What cannot be read has none. */
void quotas_look(struct quotas *q, pid_t pid);
/* In how many periods threads of a group ran, and in how many of these its quota was used up: of
 * all groups together, since each was added. */
void quotas_read(struct quotas *q, uint64_t *ret_periods, uint64_t *ret_used_up);
/* The smallest quota, in CPUs, and its group's directory, which is @q's; 0: there is none. */
double quotas_smallest(const struct quotas *q, const char **ret_path);

/* For tests. Of a line of /proc/PID/cgroup the path, if its hierarchy has the quotas of @version;
 * else NULL. The line is changed. */
char *quota_path(char *line, int version);
/* CPUs, of the text of cpu.max, or of cpu.cfs_quota_us and cpu.cfs_period_us; 0: no quota. */
double quota_cpus(const char *quota, const char *period);
