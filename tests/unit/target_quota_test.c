// SPDX-License-Identifier: BSD-2-Clause
/* What the files of control groups say of CPU quotas, in both versions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "target/quota.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *path_in(const char *line, int version)
{
	static char copy[128];

	(void)snprintf(copy, sizeof(copy), "%s", line);
	return quota_path(copy, version);
}

static void lines_of_the_hierarchy_with_quotas(void **state)
{
	(void)state;
	assert_string_equal(path_in("0::/user.slice/a b\n", 2), "/user.slice/a b");
	assert_string_equal(path_in("4:cpu,cpuacct:/docker/1:2\n", 1), "/docker/1:2");
	assert_string_equal(path_in("4:cpuacct,cpu:/x\n", 1), "/x");
	assert_null(path_in("4:cpu,cpuacct:/x\n", 2));
	assert_null(path_in("0::/x\n", 1));
	assert_null(path_in("3:cpuset:/x\n", 1));
	assert_null(path_in("3:cpuacct:/x\n", 1));
	assert_null(path_in("1:name=cpu:/x\n", 1));
	assert_null(path_in("nonsense", 1));
	assert_null(path_in("", 2));
}

static void cpus_of_a_quota(void **state)
{
	(void)state;
	assert_true(quota_cpus("150000 100000\n", NULL) == 1.5);
	assert_true(quota_cpus("50000\n", "100000\n") == 0.5);
	assert_true(quota_cpus("max 100000\n", NULL) == 0);
	assert_true(quota_cpus("-1\n", "100000\n") == 0);
	assert_true(quota_cpus("", NULL) == 0);
	assert_true(quota_cpus("5", NULL) == 0);
	assert_true(quota_cpus("5 0", NULL) == 0);
	assert_true(quota_cpus("nan nan", NULL) == 0);
}

/* Whatever this machine has mounted. */
static void groups_of_this_process(void **state)
{
	struct quotas *q = quotas_new();
	uint64_t periods, used_up;
	const char *path = "";

	(void)state;
	assert_non_null(q);
	quotas_look(q, getpid());
	quotas_look(q, getpid());
	quotas_look(q, -1);
	quotas_read(q, &periods, &used_up);
	assert_true(used_up <= periods);
	if (quotas_smallest(q, &path) > 0)
		assert_int_equal(path[0], '/');
	else
		assert_null(path);
	quotas_free(q);
	quotas_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_of_the_hierarchy_with_quotas),
		cmocka_unit_test(cpus_of_a_quota),
		cmocka_unit_test(groups_of_this_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
