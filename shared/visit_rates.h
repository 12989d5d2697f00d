/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Counters of bpf/visit_rates.bpf.c: one for each place that has a probe, then one for each system
 * call by its number. */
#pragma once

#include "shared/namespace.h"

#define VISIT_RATES_SITES 8192
#define VISIT_RATES_CALLS 512
