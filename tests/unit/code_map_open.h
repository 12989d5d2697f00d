/* SPDX-License-Identifier: BSD-2-Clause */
/* The code map of this process itself. */
#pragma once

#include "program/code/map.h"

#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

static inline struct code_map *open_map(const struct code_scope *scope)
{
	struct code_map *m = NULL;
	struct error e = {0};
	bool changed = false;

	if (code_map_open("/proc/self/exe", scope, &m, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(code_map_refresh(m, 0, getpid(), &changed, &e), 0);
	assert_true(changed);
	assert_int_equal(code_map_refresh(m, 0, getpid(), &changed, &e), 0);
	assert_false(changed);
	return m;
}
