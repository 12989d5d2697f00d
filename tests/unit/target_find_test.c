// SPDX-License-Identifier: BSD-2-Clause
/* Which file a command stands for, and what is said when it stands for none. */
#include "base/cleanup.h"
#include "base/error.h"
#include "target/internal.h"
#include "target/launch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

static char dir[] = "/tmp/cozbpf-find-XXXXXX";

static char *in_dir(const char *name)
{
	char *path = NULL;

	assert_true(asprintf(&path, "%s/%s", dir, name) > 0);
	return path;
}

static void write_file(const char *name, const char *text, mode_t mode)
{
	_cleanup_free_ char *path = in_dir(name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static int setup(void **state)
{
	(void)state;
	if (!mkdtemp(dir))
		return -1;
	write_file("tool", "#!  /bin/sh -e\n", 0755);
	write_file("plain", "text\n", 0644);
	write_file("noeol", "#!/bin/cat", 0755);
	write_file("empty", "#!\n", 0755);
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = {"tool", "plain", "noeol", "empty"};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		_cleanup_free_ char *path = in_dir(names[i]);

		(void)unlink(path);
	}
	return rmdir(dir);
}

static void finds_in_path(void **state)
{
	_cleanup_free_ char *old = strdup(getenv("PATH") ?: "/bin:/usr/bin"), *path = NULL,
			    *want = in_dir("tool");
	_cleanup_free_ char *search = NULL, *found = NULL;

	(void)state;
	assert_true(asprintf(&search, "/nonexistent:%s:/bin", dir) > 0);
	setenv("PATH", search, 1);
	assert_int_equal(target_find_executable("tool", &path, NULL), 0);
	assert_string_equal(path, want);
	assert_int_equal(target_find_executable("sh", &found, NULL), 0);
	assert_string_equal(found, "/bin/sh");
	setenv("PATH", old, 1);
}

static void empty_element_is_here(void **state)
{
	_cleanup_free_ char *old = strdup(getenv("PATH") ?: "/bin:/usr/bin"), *path = NULL,
			    *cwd = getcwd(NULL, 0);

	(void)state;
	assert_int_equal(chdir(dir), 0);
	setenv("PATH", "/nonexistent:", 1);
	assert_int_equal(target_find_executable("tool", &path, NULL), 0);
	assert_string_equal(path, "./tool");
	setenv("PATH", old, 1);
	assert_int_equal(chdir(cwd), 0);
}

static void says_what_is_wrong(void **state)
{
	_cleanup_free_ char *plain = in_dir("plain"), *below = in_dir("plain/x"),
			    *none = in_dir("none");
	_cleanup_free_ char *old = strdup(getenv("PATH") ?: "/bin:/usr/bin");
	struct error e = {0};
	char *path = NULL;

	(void)state;
	assert_int_equal(target_find_executable("no-such-command", &path, &e), -ENOENT);
	assert_string_equal(e.text, "no-such-command: command not found");
	assert_int_equal(target_find_executable("", &path, &e), -ENOENT);
	assert_int_equal(target_find_executable(none, &path, &e), -ENOENT);
	assert_non_null(strstr(e.text, "No such file"));
	assert_int_equal(target_find_executable(plain, &path, &e), -EACCES);
	assert_non_null(strstr(e.text, "not executable; chmod +x"));
	assert_int_equal(target_find_executable(dir, &path, &e), -EACCES);
	assert_non_null(strstr(e.text, "directory"));
	assert_int_equal(target_find_executable(below, &path, &e), -EACCES);
	/* In PATH, but nobody may execute it. */
	setenv("PATH", dir, 1);
	assert_int_equal(target_find_executable("plain", &path, &e), -EACCES);
	assert_non_null(strstr(e.text, plain));
	setenv("PATH", old, 1);
	assert_null(path);
}

static void reads_interpreters(void **state)
{
	static const struct {
		const char *name, *want;
	} cases[] = {{"tool", "/bin/sh"},
		     {"noeol", "/bin/cat"},
		     {"empty", NULL},
		     {"plain", NULL},
		     {"none", NULL}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_free_ char *path = in_dir(cases[i].name),
				    *got = target_script_interpreter(path);

		if (cases[i].want)
			assert_string_equal(got, cases[i].want);
		else
			assert_null(got);
	}
}

static void check_environ_with(const char *first, char *const *envp, size_t at, const char *want)
{
	char **got = environ_with_preload(envp, 200, first);
	size_t n = 0;

	assert_non_null(got);
	assert_string_equal(got[at], want);
	for (; envp[n]; n++)
		if (n != at)
			assert_ptr_equal(got[n], envp[n]);
	assert_null(got[at == n ? n + 1 : n]);
	free(got[at]);
	free(got);
}

static void check_environ(char *const *envp, size_t at, const char *want)
{
	check_environ_with("", envp, at, want);
}

static void extends_the_environment(void **state)
{
	char a[] = "A=1", b[] = "B=", one[] = "LD_PRELOAD=x.so", colon[] = "LD_PRELOAD=x:y z",
	     blank[] = "LD_PRELOAD=x y";
	char empty[] = "LD_PRELOAD=", other[] = "LD_PRELOADED=1";

	(void)state;
	check_environ((char *[]){a, b, NULL}, 2, "LD_PRELOAD=/proc/self/fd/200");
	check_environ((char *[]){NULL}, 0, "LD_PRELOAD=/proc/self/fd/200");
	check_environ((char *[]){other, NULL}, 1, "LD_PRELOAD=/proc/self/fd/200");
	check_environ((char *[]){a, one, b, NULL}, 1, "LD_PRELOAD=x.so:/proc/self/fd/200");
	check_environ((char *[]){colon, b, NULL}, 0, "LD_PRELOAD=x:y z:/proc/self/fd/200");
	check_environ((char *[]){a, blank, NULL}, 1, "LD_PRELOAD=x y /proc/self/fd/200");
	check_environ((char *[]){a, empty, NULL}, 1, "LD_PRELOAD=:/proc/self/fd/200");
	check_environ((char *[]){one, a, blank, NULL}, 2, "LD_PRELOAD=x y /proc/self/fd/200");
	check_environ_with("f.so", (char *[]){a, NULL}, 1, "LD_PRELOAD=f.so:/proc/self/fd/./200");
	check_environ_with("f.so", (char *[]){empty, NULL}, 0,
			   "LD_PRELOAD=:f.so:/proc/self/fd/./200");
	check_environ_with("f.so", (char *[]){one, NULL}, 0, "LD_PRELOAD=x.so:/proc/self/fd/200");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_in_path),	   cmocka_unit_test(empty_element_is_here),
		cmocka_unit_test(says_what_is_wrong),	   cmocka_unit_test(reads_interpreters),
		cmocka_unit_test(extends_the_environment),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
