/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's list of tracepoints. */
#pragma once

#include <stddef.h>

/* Its directory of events, as a descriptor; mounted for us alone where nobody has mounted it. A
 * negative errno: -EPERM and -EACCES where only root may look, -ENODEV where the kernel has none.
 */
int tracefs_open_events(void);
/* The number that perf knows the event by; @events as above. -ENOENT: no such event. */
int tracefs_event_id(int events, const char *category, const char *name);
/* The event nearest to what was asked for, as "CATEGORY:NAME" into @ret; 0, or -ENOENT if nothing
 * is near. */
int tracefs_similar(int events, const char *category, const char *name, char *ret, size_t size);
