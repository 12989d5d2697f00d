/* SPDX-License-Identifier: BSD-2-Clause */
/* A test that needs BPF skips with the reason where it cannot have it, and fails instead when
 * CI=true. */
#pragma once

#include "kernel/probe.h"

#include <stdlib.h>
#include <string.h>

#define REQUIRE_BPF()                                                                            \
	do {                                                                                     \
		if (!feature_usable("sched_switch", NULL)) {                                     \
			const char *_ci = getenv("CI");                                          \
			if (_ci && strcmp(_ci, "true") == 0)                                     \
				fail_msg("BPF programs cannot be loaded here, and CI must not "  \
					 "skip");                                                \
			print_message("skipped: BPF programs cannot be loaded here (needs root " \
				      "and a kernel with BTF)\n");                               \
			skip();                                                                  \
		}                                                                                \
	} while (0)
