/* SPDX-License-Identifier: BSD-2-Clause */
/* One record of a profile, decoded from a line of either form. Internal to the package. */
#pragma once

#include "profile/profile.h"

struct json_tokener;

enum record_type { RECORD_STARTUP, RECORD_EXPERIMENT, RECORD_POINT, RECORD_RUNTIME, RECORD_SAMPLES, RECORD_IGNORED };

struct record {
	enum record_type type;
	union {
		struct profile_startup startup;
		struct profile_experiment experiment;
		struct profile_point point;
		struct profile_samples samples;
		struct profile_runtime runtime;
	};
};

/* Decodes a line without its newline. -EINVAL: no record; -ENOMEM. */
int record_parse(struct json_tokener *tok, const char *line, size_t len, struct record *ret);
void record_free(struct record *r);
