// SPDX-License-Identifier: BSD-2-Clause
#include "target/syscalls.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include <cmocka.h>

static void known_names(void **state)
{
	size_t n = 0;

	(void)state;
	assert_int_equal(syscall_number("read"), SYS_read);
	assert_int_equal(syscall_number("getppid"), SYS_getppid);
	assert_int_equal(syscall_number("epoll_pwait2"), SYS_epoll_pwait2);
	while (syscall_names()[n]) {
		assert_true(syscall_number(syscall_names()[n]) >= 0);
		n++;
	}
	assert_true(n > 300);
}

static void numbers_and_others(void **state)
{
	(void)state;
	assert_int_equal(syscall_number("0"), 0);
	assert_int_equal(syscall_number("467"), 467);
	assert_int_equal(syscall_number("1024"), -ENOENT);
	assert_int_equal(syscall_number("99999999999999999999"), -ENOENT);
	assert_int_equal(syscall_number(""), -ENOENT);
	assert_int_equal(syscall_number("-1"), -ENOENT);
	assert_int_equal(syscall_number("raed"), -ENOENT);
	assert_int_equal(syscall_number("read "), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_names),
		cmocka_unit_test(numbers_and_others),
	};

	return cmocka_run_group_tests_name("target syscalls", tests, NULL, NULL);
}
