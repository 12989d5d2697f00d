/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes of a control group and the groups below it, of either version: both list them in
 * cgroup.procs. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct cgroup;
struct error;

/* @path: a directory of a mounted hierarchy, or relative to the root of one (as systemd and
 * /proc/PID/cgroup write it). -ENOENT: @e names the nearest. Nothing is read yet. */
int cgroup_open(const char *path, struct cgroup **ret, struct error *e);
void cgroup_free(struct cgroup *g); /* NULL is allowed */
/* Who is in it now. -ENOENT: the group was removed. */
int cgroup_refresh(struct cgroup *g, struct error *e);
bool cgroup_has(const struct cgroup *g, pid_t pid);
size_t cgroup_size(const struct cgroup *g);
