/* SPDX-License-Identifier: BSD-2-Clause */
/* How long the runs of a program took. Internal to the package. */
#pragma once

#include "analysis/analysis.h"

void run_times_of(const struct profile *p, struct analysis_run_times *ret);
