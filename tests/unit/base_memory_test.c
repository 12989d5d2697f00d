// SPDX-License-Identifier: BSD-2-Clause
/* Where there is no memory the profiler ends with one line and its own status, and writes nothing
 * else. */
#include "base/array.h"
#include "base/log.h"
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void test_ends_with_one_line(void **state)
{
	char said[128] = "";
	int ends[2], status;
	size_t n = 0;
	pid_t child;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	(void)fflush(NULL);
	child = fork();
	if (child == 0) {
		(void)dup2(ends[1], STDOUT_FILENO);
		(void)dup2(ends[1], STDERR_FILENO);
		(void)setvbuf(stdout, NULL, _IOFBF, 4096);
		(void)fputs("half a record", stdout);
		(void)or_out_of_memory(NULL);
		_exit(0);
	}
	(void)close(ends[1]);
	for (ssize_t got; (got = read(ends[0], said + n, sizeof(said) - 1 - n)) > 0;)
		n += (size_t)got;
	(void)close(ends[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), EXIT_OURS);
	assert_string_equal(said, "cozbpf: out of memory\n");
}

static void test_nothing_is_something(void **state)
{
	char *none = xcalloc(0, 0), *copy = xmemdup(NULL, 0, sizeof(int));
	int *all = NULL;

	(void)state;
	assert_non_null(none);
	assert_non_null(copy);
	free(none);
	free(copy);
	for (int i = 0; i < 20; i++) {
		xarray_room(all, (size_t)i);
		all[i] = i;
	}
	assert_int_equal(all[0] + all[19], 19);
	free(all);
}

static void test_strings(void **state)
{
	const int numbers[] = {3, 1, 4};
	int *copy = xmemdup(numbers, 3, sizeof(*copy));
	char *text = xasprintf("%d of %s", copy[2], "us"), *end = xstrndup(text + 5, 1), *whole;
	size_t size;
	FILE *f = xopen_memstream(&whole, &size);

	(void)state;
	(void)fputs(text, f);
	(void)fputs(end, f);
	xclose_memstream(f);
	assert_string_equal(whole, "4 of usu");
	free(copy);
	free(text);
	free(end);
	free(whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ends_with_one_line),
		cmocka_unit_test(test_nothing_is_something),
		cmocka_unit_test(test_strings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
