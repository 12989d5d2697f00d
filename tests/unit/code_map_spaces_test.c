// SPDX-License-Identifier: BSD-2-Clause
/* The code map of several processes: a child of this one, and a program that is recognized late. */
#include "code/map.h"
#include "code/private.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "code_map_open.h"

/* A child maps the same objects at the same places until it maps something else. */
static void test_spaces(void **state)
{
	struct code_map *m = open_map(&(struct code_scope){0});
	size_t space, again, objects;
	bool changed;
	int go[2], done[2];
	char c;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(done), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close(go[1]);
		if (read(go[0], &c, 1) == 1) {
			(void)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE,
				   open("/proc/self/exe", O_RDONLY), 0);
			(void)!write(done[1], "d", 1);
		}
		(void)read(go[0], &c, 1);
		_exit(0);
	}
	assert_true(code_map_same_space(m, 0, pid));
	assert_int_equal(code_map_add_space(m, &space), 0);
	assert_false(code_map_same_space(m, space, pid)); /* nothing is known of it */
	assert_int_equal(code_map_refresh_space(m, space, pid, &changed, NULL), 0);
	assert_true(changed && m->spaces[space].n == m->spaces[0].n);
	assert_true(code_map_same_space(m, space, pid));
	assert_int_equal(write(go[1], "g", 1), 1);
	assert_int_equal(read(done[0], &c, 1), 1);
	assert_false(code_map_same_space(m, space, pid));
	assert_int_equal(code_map_refresh_space(m, space, pid, &changed, NULL), 0);
	assert_true(changed && m->spaces[space].n > m->spaces[0].n);
	/* It runs the executable that is there already. */
	objects = code_map_count(m);
	assert_int_equal(code_map_add_main(m, pid, NULL), 0);
	assert_int_equal(code_map_count(m), objects);
	code_map_drop_space(m, space);
	assert_int_equal(code_map_add_space(m, &again), 0);
	assert_int_equal(again, space);
	(void)close(go[1]);
	(void)waitpid(pid, NULL, 0);
	assert_false(code_map_same_space(m, 0, pid));
	code_map_close(m);
}

static bool any_in_scope(const struct code_object *o)
{
	for (size_t i = 0; i < o->n_rows; i++)
		if (o->rows[i].kind & ABI_ROW_IN_SCOPE)
			return true;
	return false;
}

/* A process whose mappings are read before it is known what it executes: its executable looks like
 * a library first. */
static void test_main_seen_late(void **state)
{
	char path[] = "/tmp/code_map_XXXXXX";
	struct code_map *m = open_map(&(struct code_scope){0});
	const struct code_object *o;
	size_t space, objects, version;
	bool changed = false;
	int executed[2], fd = mkstemp(path), self = open("/proc/self/exe", O_RDONLY);
	pid_t pid;
	char c;

	(void)state;
	assert_true(fd >= 0 && self >= 0);
	while (sendfile(fd, self, NULL, 1 << 20) > 0)
		;
	assert_int_equal(fchmod(fd, 0700), 0);
	(void)close(fd);
	(void)close(self);
	assert_int_equal(pipe2(executed, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)execl(path, path, "wait", NULL);
		_exit(1);
	}
	(void)close(executed[1]);
	assert_int_equal(read(executed[0], &c, 1), 0);
	(void)close(executed[0]);
	assert_int_equal(code_map_add_space(m, &space), 0);
	objects = code_map_count(m);
	assert_int_equal(code_map_refresh_space(m, space, pid, &changed, NULL), 0);
	assert_true(code_map_count(m) > objects);
	o = m->objects[objects];
	assert_string_equal(o->entry.path, path);
	assert_false(o->is_main || any_in_scope(o));
	version = code_map_version(m);
	assert_int_equal(code_map_add_main(m, pid, NULL), 0);
	assert_true(o->is_main && any_in_scope(o));
	assert_true(code_map_version(m) > version);
	version = code_map_version(m);
	assert_int_equal(code_map_add_main(m, pid, NULL), 0);
	assert_true(code_map_version(m) == version);
	changed = false;
	assert_int_equal(code_map_cut(m, &changed), 0);
	assert_true(changed);
	changed = false;
	assert_int_equal(code_map_cut(m, &changed), 0);
	assert_false(changed);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	(void)unlink(path);
	code_map_close(m);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spaces),
		cmocka_unit_test(test_main_seen_late),
	};

	if (argc > 1 && strcmp(argv[1], "wait") == 0)
		return pause();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
