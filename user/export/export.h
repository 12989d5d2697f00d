/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles in the formats of other tools. Pure: needs no privilege. */
#pragma once

#include "profile/reader.h"

#include <stdio.h>

/* Chrome's trace events (JSON), for Perfetto and chrome://tracing: each experiment with its line and speedup, and over time the visits per second of
 * each point, the delay that the program has taken and the load out of scope. Experiments of files that do not say when they began are left out.
 * -ENODATA: all of them; -ENOMEM; negative errno. */
int export_trace(FILE *out, const struct profile *p);
/* The samples as pprof reads them: https://github.com/google/pprof/blob/main/proto/profile.proto, compressed by gzip. Each location of the profile is
 * a function with one line. -ENODATA: the profile has no samples; -ENOMEM; negative errno. */
int export_pprof(FILE *out, const struct profile *p);
