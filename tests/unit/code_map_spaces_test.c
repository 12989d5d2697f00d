// SPDX-License-Identifier: BSD-2-Clause
/* The code map of several processes: a child of this one, and a program that is recognized late. */
#include "program/code/map.h"
#include "program/code/private.h"

#include "base/clock.h"
#include "base/open_file.h"
#include "program/elf/object.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "code_map_open.h"
#include "rights.h"

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
	assert_int_equal(code_map_refresh(m, space, pid, &changed, NULL), 0);
	assert_true(changed && m->spaces[space].n == m->spaces[0].n);
	assert_true(code_map_same_space(m, space, pid));
	assert_int_equal(write(go[1], "g", 1), 1);
	assert_int_equal(read(done[0], &c, 1), 1);
	assert_false(code_map_same_space(m, space, pid));
	assert_int_equal(code_map_refresh(m, space, pid, &changed, NULL), 0);
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

/* @path: of mkstemp. */
static void copy_ourselves(char *path)
{
	int fd = mkstemp(path), self = open("/proc/self/exe", O_RDONLY);

	assert_true(fd >= 0 && self >= 0);
	while (sendfile(fd, self, NULL, 1 << 20) > 0)
		;
	assert_int_equal(fchmod(fd, 0700), 0);
	(void)close(fd);
	(void)close(self);
}

/* In mount and user namespaces of our own from now on. */
static bool mount_elsewhere(const char *file, const char *path)
{
	return unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount(file, path, NULL, MS_BIND, NULL) == 0;
}

static bool may_mount_elsewhere(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(mount_elsewhere("/tmp", "/tmp") ? 0 : 1);
	return waitpid(pid, &status, 0) == pid && status == 0;
}

/* Starts @path, which waits. The process has executed it when this returns. @file: in mount and
 * user namespaces of its own, where this file is mounted over @path; NULL: in ours. */
static pid_t execute(const char *path, const char *file)
{
	int executed[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe2(executed, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!file || mount_elsewhere(file, path))
			(void)execl(path, path, "wait", NULL);
		_exit(1);
	}
	(void)close(executed[1]);
	assert_int_equal(read(executed[0], &c, 1), 0);
	(void)close(executed[0]);
	return pid;
}

static void end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
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
	pid_t pid;

	(void)state;
	copy_ourselves(path);
	pid = execute(path, NULL);
	assert_int_equal(code_map_add_space(m, &space), 0);
	objects = code_map_count(m);
	assert_int_equal(code_map_refresh(m, space, pid, &changed, NULL), 0);
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
	code_map_cut(m, &changed);
	assert_true(changed);
	changed = false;
	code_map_cut(m, &changed);
	assert_false(changed);
	end(pid);
	(void)unlink(path);
	code_map_close(m);
}

/* Has the process a mapping of @path that is placed? */
static bool is_placed(struct code_map *m, pid_t pid, const char *path)
{
	bool changed, placed = false;
	size_t space;

	assert_int_equal(code_map_add_space(m, &space), 0);
	assert_int_equal(code_map_refresh(m, space, pid, &changed, NULL), 0);
	for (size_t i = 0; i < m->spaces[space].n; i++) {
		const struct code_mapping *k = &m->spaces[space].mappings[i];

		placed |= k->placed && !strcmp(m->objects[k->object]->entry.path, path);
	}
	return placed;
}

static size_t find(const struct code_map *m, const char *path)
{
	size_t i = 0;

	while (i < m->n_objects && strcmp(m->objects[i]->entry.path, path) != 0)
		i++;
	return i;
}

/* The main executable is that of a process which has it by a mount of its own. */
static void test_main_named_by_a_user(void **state)
{
	char path[] = "/tmp/code_map_XXXXXX", forged[] = "/tmp/code_map_forged_XXXXXX", link[64];
	struct code_map *m = NULL;
	pid_t users, others;
	bool changed;

	(void)state;
	if (!may_mount_elsewhere()) {
		print_message("no user namespace can be made here\n");
		skip();
	}
	copy_ourselves(path);
	copy_ourselves(forged);
	users = execute(forged, path);
	others = execute(path, NULL);
	(void)snprintf(link, sizeof(link), "/proc/%d/exe", (int)users);
	assert_int_equal(code_map_open(link, &(struct code_scope){.lenient = true}, &m, NULL), 0);
	assert_int_equal(code_map_refresh(m, 0, users, &changed, NULL), 0);
	assert_true(is_placed(m, others, path));
	assert_string_equal(code_map_path(m, 0), path);
	end(users);
	end(others);
	code_map_close(m);
	(void)unlink(path);
	(void)unlink(forged);
}

/* Maps the file that @pid has at @path, through its root directory, in a process that waits. */
static pid_t map_through(pid_t pid, const char *path)
{
	int mapped[2];
	pid_t child;
	char c;

	assert_int_equal(pipe(mapped), 0);
	child = fork();
	if (child == 0) {
		char link[PATH_MAX];
		int fd;

		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)snprintf(link, sizeof(link), "/proc/%d/root%s", (int)pid, path);
		fd = open(link, O_RDONLY);
		if (mmap(NULL, 1 << 20, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) != MAP_FAILED)
			(void)!write(mapped[1], "m", 1);
		(void)pause();
		_exit(1);
	}
	(void)close(mapped[1]);
	assert_int_equal(read(mapped[0], &c, 1), 1);
	(void)close(mapped[0]);
	return child;
}

/* A user has mounted a file elsewhere in a namespace and is the first to map it: in the namespace,
 * or in ours, by the way through the namespace's root. The path that others map it by is its name,
 * and decides whether it is in scope. */
static void test_named_by_a_user(void **state)
{
	char path[] = "/tmp/code_map_XXXXXX", forged[] = "/tmp/code_map_forged_XXXXXX";
	const char *const globs[] = {"*/code_map_forged_*", path};

	(void)state;
	if (!may_mount_elsewhere()) {
		print_message("no user namespace can be made here\n");
		skip();
	}
	copy_ourselves(path);
	copy_ourselves(forged);
	for (int i = 0; i < 4; i++) {
		struct code_map *m = open_map(&(struct code_scope){
			.binaries = &globs[i % 2], .n_binaries = 1, .lenient = true});
		bool in_scope = i % 2 == 1; /* by its right name */
		pid_t inside = execute(forged, path), others = execute(path, NULL), again;
		pid_t users = i < 2 ? inside : map_through(inside, forged);
		const struct code_object *o;
		size_t at, version;

		(void)is_placed(m, users, forged);
		at = find(m, forged);
		assert_true(at < m->n_objects);
		o = m->objects[at];
		assert_int_equal(o->in_scope, !in_scope);
		/* Who may not follow the links cannot open what is mounted there. */
		if (rights_follow_mapped())
			assert_int_equal(any_in_scope(o), !in_scope);
		version = code_map_version(m);
		assert_true(is_placed(m, others, path));
		assert_int_equal(find(m, path), at);
		assert_int_equal(find(m, forged), m->n_objects);
		assert_int_equal(o->in_scope, in_scope);
		assert_int_equal(any_in_scope(o), in_scope);
		assert_true(code_map_version(m) > version);
		again = execute(forged, path);
		version = code_map_version(m);
		assert_true(is_placed(m, again, path));
		assert_int_equal(code_map_version(m), version);
		end(again);
		end(inside);
		if (users != inside)
			end(users);
		end(others);
		code_map_close(m);
	}
	(void)unlink(path);
	(void)unlink(forged);
}

/* A file is placed in a later process although the first one that mapped it has ended. Where its
 * inode has been given to another file since, that is another object. */
static void test_inode_again(void **state)
{
	char path[] = "/tmp/code_map_XXXXXX";
	struct code_map *m = open_map(&(struct code_scope){0});
	pid_t first, second;
	size_t at, n;

	(void)state;
	copy_ourselves(path);
	first = execute(path, NULL);
	assert_true(is_placed(m, first, path));
	end(first);
	at = find(m, path);
	n = m->n_objects;
	assert_true(at < n && m->objects[at]->life.ns);
	second = execute(path, NULL);
	assert_true(is_placed(m, second, path));
	assert_int_equal(m->n_objects, n);
	m->objects[at]->life.ns--; /* as if the file were a later one */
	/* Others may not follow the links: for them it is no object's. */
	assert_int_equal(is_placed(m, second, path), rights_follow_mapped());
	if (rights_follow_mapped()) {
		assert_int_equal(m->n_objects, n + 1);
		assert_int_equal(code_map_find_object(m, &m->objects[n]->entry, second), n);
	}
	/* So it is for an executable. */
	m->objects[m->n_objects - 1]->life.ns--;
	assert_int_equal(code_map_add_main(m, second, NULL), 0);
	if (rights_follow_mapped()) {
		assert_int_equal(m->n_objects, n + 2);
		assert_true(m->objects[n + 1]->is_main);
		assert_int_equal(m->objects[n]->entry.inode, 0);
	}
	end(second);
	(void)unlink(path);
	code_map_close(m);
}

/* What is no program is known as well: its inode can be given to one. */
static void test_no_program(void **state)
{
	char path[] = "/tmp/code_map_XXXXXX", page[4096] = {0};
	struct code_map *m = open_map(&(struct code_scope){0});
	int fd = mkstemp(path);
	struct statx x;
	size_t at;
	void *p;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
	p = mmap(NULL, sizeof(page), PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(p != MAP_FAILED);
	assert_int_equal(file_look_at_open(fd, &x), 0);
	assert_false(is_placed(m, getpid(), path));
	at = find(m, path);
	assert_true(at < m->n_objects);
	if (rights_follow_mapped()) {
		assert_true(file_life_is_of(&m->objects[at]->life, &x));
		assert_true(m->objects[at]->life.ns);
		assert_int_equal(code_map_tell_apart(m, at, &m->objects[at]->entry, getpid()), at);
		/* One without a time is another one. */
		m->objects[at]->life.ns = 0;
		assert_int_not_equal(code_map_tell_apart(m, at, &m->objects[at]->entry, getpid()),
				     at);
	}
	assert_int_equal(munmap(p, sizeof(page)), 0);
	(void)close(fd);
	(void)unlink(path);
	code_map_close(m);
}

/* Two files that are there at once have the same numbers in mappings: each is an object, also while
 * the other is open. stat's device says which. */
static void test_same_numbers(void **state)
{
	char path[] = "/tmp/code_map_XXXXXX";
	struct code_map *m = open_map(&(struct code_scope){0});
	struct code_object *theirs;
	struct map_entry named;
	size_t at, n, space;
	bool changed;
	pid_t pid;

	(void)state;
	if (!rights_follow_mapped()) {
		code_map_close(m);
		skip(); /* others may not follow the kernel's links to mapped files */
	}
	copy_ourselves(path);
	pid = execute(path, NULL);
	assert_int_equal(code_map_add_main(m, pid, NULL), 0);
	assert_true(is_placed(m, pid, path));
	assert_int_equal(code_map_add_space(m, &space), 0);
	assert_int_equal(code_map_refresh(m, space, pid, &changed, NULL), 0);
	at = find(m, path);
	n = m->n_objects;
	theirs = m->objects[at];
	assert_true(theirs->elf && theirs->life.device);
	theirs->life.device++; /* as if it were the other one */
	/* What is known of the mapping was the other's. */
	assert_int_equal(code_map_refresh(m, space, pid, &changed, NULL), 0);
	assert_true(changed);
	assert_int_equal(m->n_objects, n + 1);
	for (int i = 0; i < 2; i++) {
		assert_true(is_placed(m, pid, path));
		assert_int_equal(m->n_objects, n + 1);
		assert_int_equal(code_map_add_main(m, pid, NULL), 0);
		assert_int_equal(m->n_objects, n + 1);
	}
	assert_true(m->objects[n]->is_main);
	assert_int_equal(theirs->entry.inode, m->objects[n]->entry.inode);
	/* What could neither be looked at nor opened is not ours. */
	theirs->life = (struct file_life){0};
	assert_int_equal(code_map_tell_apart(m, at, &m->objects[n]->entry, pid), n);
	theirs->life = m->objects[n]->life;
	theirs->life.device++;
	/* A process with the one is not where the other is. */
	assert_true(code_map_same_space(m, space, pid));
	m->objects[n]->life.device += 2;
	assert_false(code_map_same_space(m, space, pid));
	m->objects[n]->life.device -= 2;
	/* Of a mapping that has gone it is not known which it was. */
	named = m->objects[n]->entry;
	named.end += 4096;
	assert_int_equal(code_map_tell_apart(m, n, &named, pid), n);
	assert_int_equal(code_map_tell_apart(m, at, &named, pid), SIZE_MAX);
	/* One that was named and is not mapped yet has other numbers, and is found all the same. */
	named = m->objects[n]->entry;
	m->objects[n]->mapped = false;
	m->objects[n]->entry.device++;
	assert_int_equal(code_map_tell_apart(m, at, &named, pid), n);
	assert_true(m->objects[n]->mapped);
	assert_int_equal(m->objects[n]->entry.device, named.device);
	/* What a user names has stat's numbers. */
	named = m->objects[n]->entry;
	named.start = named.end = 0;
	assert_int_equal(code_map_find_object(m, &named, 0), n);
	theirs->life.device--;
	m->objects[n]->life.device++;
	m->objects[n]->entry.device++;
	theirs->entry.device++;
	assert_int_equal(code_map_find_object(m, &named, 0), at);
	end(pid);
	(void)unlink(path);
	code_map_close(m);
}

/* A process ends while its executable is opened. The next process that executes the file is placed
 * all the same. */
static void test_ends_when_looked_at(void **state)
{
	char path[] = "/tmp/code_map_XXXXXX";

	(void)state;
	copy_ourselves(path);
	for (int i = 0; i < 30; i++) {
		struct code_map *m = open_map(&(struct code_scope){0});
		pid_t pid = execute(path, NULL), killer = fork();

		if (killer == 0) {
			uint64_t until = clock_monotonic_ns() + (uint64_t)i * 20 * NSEC_PER_USEC;

			while (clock_monotonic_ns() < until)
				;
			(void)kill(pid, SIGKILL);
			_exit(0);
		}
		(void)code_map_add_main(m, pid, NULL);
		for (size_t k = 1; k < m->n_objects; k++)
			assert_true(!m->objects[k]->is_main || m->objects[k]->elf);
		(void)waitpid(killer, NULL, 0);
		end(pid);
		if (i == 29) {
			pid = execute(path, NULL);
			assert_int_equal(code_map_add_main(m, pid, NULL), 0);
			assert_true(is_placed(m, pid, path));
			end(pid);
		}
		code_map_close(m);
	}
	(void)unlink(path);
}

/* An executable with our path and another inode, which its process does not map, does not become
 * the object of our mappings. */
static void test_unmapped_namesake(void **state)
{
	char own[PATH_MAX] = "";
	struct map_entry p = {.path = own, .device = 1, .inode = 5};
	struct code_map *m = open_map(&(struct code_scope){.lenient = true});
	struct code_object *o;
	size_t at = m->n_objects, space;
	bool changed;

	(void)state;
	assert_true(readlink("/proc/self/exe", own, sizeof(own) - 1) > 0);
	o = code_object_add(m, &p, 1);
	assert_non_null(o);
	o->is_main = true;
	assert_int_equal(code_map_add_space(m, &space), 0);
	assert_int_equal(code_map_refresh(m, space, getpid(), &changed, NULL), 0);
	for (size_t i = 0; i < m->spaces[space].n; i++)
		assert_int_not_equal(m->spaces[space].mappings[i].object, at);
	assert_false(o->mapped);
	code_map_close(m);
}

/* Two files with the same path and inode on different devices are two objects. A refused addition
 * to the full table is counted. */
static void test_objects(void **state)
{
	struct map_entry p = {
		.path = (char *)(uintptr_t) "/one", .start = 4096, .end = 8192, .inode = 5};
	struct code_map *m = open_map(&(struct code_scope){0});
	size_t at;

	(void)state;
	at = code_map_find_object(m, &p, 1);
	assert_int_equal(code_map_find_object(m, &p, 2), at);
	p.device = 1;
	assert_int_equal(code_map_find_object(m, &p, 2), at + 1);
	while (m->n_objects < CODE_MAX_OBJECTS) {
		p.inode++;
		assert_true(code_object_add(m, &p, 1));
	}
	assert_int_equal(m->n_surplus, 0);
	p.inode++;
	assert_int_equal(code_map_find_object(m, &p, 1), SIZE_MAX);
	assert_int_equal(m->n_surplus, 1);
	code_map_close(m);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spaces),
		cmocka_unit_test(test_main_seen_late),

		cmocka_unit_test(test_inode_again),
		cmocka_unit_test(test_no_program),
		cmocka_unit_test(test_same_numbers),
		cmocka_unit_test(test_ends_when_looked_at),
		cmocka_unit_test(test_named_by_a_user),
		cmocka_unit_test(test_main_named_by_a_user),
		cmocka_unit_test(test_unmapped_namesake),
		cmocka_unit_test(test_objects),
	};

	if (argc > 1 && strcmp(argv[1], "wait") == 0)
		return pause();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
