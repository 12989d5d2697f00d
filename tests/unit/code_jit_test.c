// SPDX-License-Identifier: BSD-2-Clause
/* Code that a process makes as it runs, in the code map of this process itself and of others. */
#include "program/code/map.h"
#include "program/code/private.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
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

/* Nothing else is there, nor a sanitizer's shadow; the third stretch lies across a multiple of 4
 * GiB.
 */
#define FIRST 0x200510000000ULL
#define SECOND 0x200510100000ULL
#define ACROSS 0x2006fffff000ULL
#define BYTES 0x2000

static char path[64];

static void make_code(uint64_t at)
{
	void *p = mmap((void *)(uintptr_t)at, BYTES, PROT_READ | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	assert_ptr_equal(p, (void *)(uintptr_t)at);
}

static int set_up(void **state)
{
	(void)state;
	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	(void)unlink(path);
	make_code(FIRST);
	make_code(SECOND);
	make_code(ACROSS);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	(void)munmap((void *)(uintptr_t)FIRST, BYTES);
	(void)munmap((void *)(uintptr_t)SECOND, BYTES);
	(void)munmap((void *)(uintptr_t)ACROSS, BYTES);
	return unlink(path) == 0 || errno == ENOENT ? 0 : -1;
}

static void put(const char *text)
{
	FILE *f = fopen(path, "ae");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* Has the time come at which the map may be read again? */
static void let_read(struct code_map *m, bool may)
{
	assert_non_null(m->spaces[0].jit);
	m->spaces[0].jit->soon_ns = m->spaces[0].jit->later_ns = may ? 0 : UINT64_MAX;
}

static bool refresh(struct code_map *m)
{
	bool changed = false;

	assert_int_equal(code_map_refresh(m, 0, getpid(), &changed, NULL), 0);
	return changed;
}

static const struct code_mapping *mapping_at(const struct code_map *m, size_t space, uint64_t addr)
{
	for (size_t i = 0; i < m->spaces[space].n; i++) {
		const struct code_mapping *k = &m->spaces[space].mappings[i];

		assert_true(!i || k->start >= k[-1].end);
		if (addr >= k->start && addr < k->end)
			return k;
	}
	return NULL;
}

/* As BPF makes it. */
static uint64_t code_at(const struct code_map *m, size_t space, uint64_t addr)
{
	const struct code_mapping *k = mapping_at(m, space, addr);

	assert_true(k && k->placed);
	return ABI_CODE(k->object, addr - (m->objects[k->object]->rows_base + k->bias));
}

static bool in_scope(const struct code_map *m, uint64_t addr)
{
	const struct code_object *o = m->objects[mapping_at(m, 0, addr)->object];

	assert_int_equal(o->n_rows, 1);
	assert_int_equal(o->rows[0].pc, 0);
	assert_int_equal(o->rows[0].kind & ABI_ROW_KIND, ABI_ROW_NONE);
	assert_int_equal(!o->in_scope, !(o->rows[0].kind & ABI_ROW_IN_SCOPE));
	return o->in_scope;
}

static void is_named(struct code_map *m, size_t space, uint64_t addr, const char *line,
		     const char *function)
{
	const char *has, *of, *again;

	assert_int_equal(code_map_name(m, code_at(m, space, addr), &has, &of), 1);
	assert_string_equal(has, line);
	assert_int_equal(!of, !function);
	if (of)
		assert_string_equal(of, function);
	assert_int_equal(code_map_name(m, code_at(m, space, addr), &again, NULL), 1);
	assert_ptr_equal(has, again);
}

static void code_is_named_by_the_map(void **state)
{
	struct code_map *m = open_map(&(struct code_scope){0});
	const char *wait;

	(void)state;
	/* Nothing says what it is: its callers have its samples. */
	assert_null(mapping_at(m, 0, FIRST));
	put("200510000000 100 JS:*fib /srv/app.js:12:17\n200510100000 100 other\n");
	let_read(m, false);
	assert_false(refresh(m));
	let_read(m, true);
	assert_true(refresh(m));
	assert_false(refresh(m));
	assert_true(in_scope(m, FIRST));
	assert_ptr_equal(mapping_at(m, 0, FIRST), mapping_at(m, 0, SECOND));
	assert_ptr_equal(mapping_at(m, 0, FIRST), mapping_at(m, 0, FIRST + BYTES));
	is_named(m, 0, FIRST, "fib /srv/app.js:12:17 [jit]", "fib");
	is_named(m, 0, FIRST + 0xff, "fib /srv/app.js:12:17 [jit]", "fib");
	is_named(m, 0, SECOND + 1, "other [jit]", NULL);
	is_named(m, 0, FIRST + 0x100, "unnamed program code [jit]", NULL);
	assert_int_equal(
		code_map_name(m, ABI_CODE_WAITS(ABI_WAIT_DISK, code_at(m, 0, SECOND)), &wait, NULL),
		1);
	assert_string_equal(wait, "other [jit] [disk]");
	/* It is no file. */
	assert_false(code_map_in_scope(m, mapping_at(m, 0, FIRST)->object));
	assert_null(code_map_elf(m, mapping_at(m, 0, FIRST)->object, NULL));
	assert_false(code_map_is_called(m, mapping_at(m, 0, FIRST)->object, "[jit]"));
	code_map_close(m);
}

static void the_map_is_read_again(void **state)
{
	struct code_map *m;

	(void)state;
	put("200510000000 100 first\n");
	m = open_map(&(struct code_scope){0});
	is_named(m, 0, FIRST, "first [jit]", NULL);
	let_read(m, false);
	put("200510000000 80 second\n200510001000 10 third\n");
	is_named(m, 0, FIRST, "first [jit]", NULL);
	is_named(m, 0, FIRST + 0x1000, "unnamed program code [jit]", NULL);
	m->spaces[0].jit->soon_ns = 0;
	is_named(m, 0, FIRST, "first [jit]", NULL); /* that is known */
	is_named(m, 0, FIRST + 0x1000, "third [jit]", NULL);
	is_named(m, 0, FIRST, "second [jit]", NULL);
	is_named(m, 0, FIRST + 0x80, "first [jit]", NULL);
	put("200510000000 100 fourth\n");
	let_read(m, true);
	is_named(m, 0, FIRST, "fourth [jit]", NULL);
	/* What was read stays when the file goes. */
	assert_int_equal(unlink(path), 0);
	let_read(m, true);
	is_named(m, 0, FIRST, "fourth [jit]", NULL);
	/* Reading takes no more than a part of the time. */
	assert_true(m->spaces[0].jit->later_ns > m->spaces[0].jit->soon_ns);
	code_map_close(m);
}

static size_t ranges_of(struct code_map *m, const char *name, struct addr_range *ret, size_t max)
{
	size_t n = 0;
	int r = code_map_intervals(m, name, ret, max, &n);

	assert_true(r == 0 ? n > 0 : r == -ENOENT);
	return r == 0 ? n : 0;
}

static void names_have_ranges(void **state)
{
	struct addr_range some[4];
	struct code_map *m;

	(void)state;
	put("200510000000 100 fib /srv/app.js:12:17\n"
	    "200510100000 200 fib /srv/app.js:12:17\n"
	    "200510001000 100 fib /srv/other.js:1:1\n"
	    "2006fffffff0 20 across\n");
	m = open_map(&(struct code_scope){0});
	assert_int_equal(ranges_of(m, "fib /srv/app.js:12:17 [jit]", some, 4), 2);
	assert_int_equal(some[0].lo, code_at(m, 0, FIRST));
	assert_int_equal(some[0].hi, code_at(m, 0, FIRST + 0x100));
	assert_int_equal(some[1].lo, code_at(m, 0, SECOND));
	assert_int_equal(some[1].hi, code_at(m, 0, SECOND + 0x200));
	/* The largest if there is no room for all. */
	assert_int_equal(ranges_of(m, "fib /srv/app.js:12:17 [jit]", some, 1), 1);
	assert_int_equal(some[0].lo, code_at(m, 0, SECOND));
	assert_int_equal(ranges_of(m, "fib [jit]", some, 4), 3);
	assert_int_equal(ranges_of(m, "fi [jit]", some, 4), 0);
	assert_int_equal(ranges_of(m, "none [jit]", some, 4), 0);
	/* Each part of 4 GiB has places of its own. */
	assert_int_equal(ranges_of(m, "across [jit]", some, 4), 2);
	is_named(m, 0, 0x2006ffffffffULL, "across [jit]", NULL);
	is_named(m, 0, 0x200700000000ULL, "across [jit]", NULL);
	assert_true(mapping_at(m, 0, 0x2006ffffffffULL) != mapping_at(m, 0, 0x200700000000ULL));
	assert_int_equal(ranges_of(m, "fib [jit] [disk]", some, 4), 3);
	assert_int_equal(ABI_CODE_WAIT(some[0].lo), ABI_WAIT_DISK);
	/* What a name means follows the map. */
	put("200510000000 200000 all\n");
	let_read(m, true);
	is_named(m, 0, FIRST, "all [jit]", NULL);
	assert_int_equal(ranges_of(m, "fib /srv/app.js:12:17 [jit]", some, 4), 0);
	assert_int_equal(ranges_of(m, "all [jit]", some, 4), 1);
	code_map_close(m);
}

static void the_scope_is_the_users(void **state)
{
	static const char *const all[][2] = {{"JIT", NULL},   {"MAIN", NULL}, {"!JIT", NULL},
					     {"MAIN", "JIT"}, {"*", NULL},    {"*", "!JIT"}};
	static const bool made[] = {true, false, false, true, true, false},
			  main[] = {false, true, true, true, true, true};

	(void)state;
	put("200510000000 2000 f\n");
	for (size_t i = 0; i < sizeof(made); i++) {
		struct code_map *m = open_map(&(struct code_scope){
			.binaries = all[i], .n_binaries = all[i][1] ? 2 : 1, .lenient = true});
		const char *name;

		assert_int_equal(in_scope(m, FIRST), made[i]);
		assert_int_equal(m->objects[0]->in_scope, main[i]);
		assert_int_equal(code_map_name(m, code_at(m, 0, FIRST), &name, NULL),
				 made[i] ? 1 : -ENOENT);
		assert_null(code_map_unmatched(m));
		assert_int_equal(code_map_check(m, NULL), 0);
		code_map_close(m);
	}
}

/* A program like this one, which makes code of its own, writes a map and waits. */
static int be_program(const char *ready)
{
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	make_code(FIRST);
	put("200510000000 1000 py::work:/srv/work.py\n");
	(void)!write(atoi(ready), "r", 1);
	(void)pause();
	return 0;
}

/* Starts this executable as @copy. */
static pid_t start(const char *copy)
{
	int ready[2], from, to;
	char fd[16], c;
	pid_t pid;

	from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	to = open(copy, O_WRONLY | O_CREAT | O_CLOEXEC, 0700);
	assert_true(from >= 0 && to >= 0);
	while (sendfile(to, from, NULL, 1 << 20) > 0)
		;
	(void)close(from);
	(void)close(to);
	assert_int_equal(pipe(ready), 0);
	(void)snprintf(fd, sizeof(fd), "%d", ready[1]);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)execl(copy, copy, "program", fd, NULL);
		_exit(1);
	}
	(void)close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	(void)close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	char map[64];

	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	(void)snprintf(map, sizeof(map), "/tmp/perf-%d.map", (int)pid);
	(void)unlink(map);
}

/* The interpreter whose functions a map names is left out, unless it is asked for. */
static void functions_stand_for_their_interpreter(void **state)
{
	static const char *const called[] = {"python3.99", "serpent"};
	char dir[] = "/tmp/code_jit_XXXXXX", copy[PATH_MAX];

	(void)state;
	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < 4; i++) {
		const char *asked = "MAIN";
		struct code_scope scope = {
			.lenient = true, .binaries = &asked, .n_binaries = i / 2};
		struct code_map *m = open_map(&scope);
		size_t space, known = code_map_count(m);
		const struct code_object *o;
		bool changed = false;
		pid_t pid;

		(void)snprintf(copy, sizeof(copy), "%s/%s", dir, called[i % 2]);
		pid = start(copy);
		assert_int_equal(code_map_add_space(m, &space), 0);
		assert_int_equal(code_map_add_main(m, pid, NULL), 0);
		assert_int_equal(code_map_refresh(m, space, pid, &changed, NULL), 0);
		assert_true(changed);
		o = m->objects[known];
		assert_string_equal(o->entry.path, copy);
		assert_true(o->is_main && o->rows_tried && o->n_rows);
		assert_int_equal(o->in_scope, i != 0);
		for (size_t k = 0; k < o->n_rows && i == 0; k++)
			assert_false(o->rows[k].kind & ABI_ROW_IN_SCOPE);
		if (i < 2)
			is_named(m, space, FIRST, "py::work:/srv/work.py [jit]", "work");
		code_map_close(m);
		end(pid);
		assert_int_equal(unlink(copy), 0);
	}
	assert_int_equal(rmdir(dir), 0);
}

/* What one process makes is not what another one makes in the same place. */
static void each_process_has_its_own(void **state)
{
	struct code_map *m;
	struct addr_range some[4];
	const char *name;
	bool changed;
	uint64_t code;
	size_t space;
	pid_t pid;

	(void)state;
	put("200510000000 1000 parent\n200510001000 1000 both\n");
	m = open_map(&(struct code_scope){0});
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)pause();
		_exit(0);
	}
	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)pid);
	put("200510000000 1000 child\n200510001000 1000 both\n");
	assert_true(code_map_same_space(m, 0, getpid()));
	assert_false(code_map_same_space(m, 0, pid));
	assert_int_equal(code_map_add_space(m, &space), 0);
	assert_int_equal(code_map_refresh(m, space, pid, &changed, NULL), 0);
	assert_true(code_map_same_space(m, space, pid));
	is_named(m, 0, FIRST, "parent [jit]", NULL);
	is_named(m, space, FIRST, "child [jit]", NULL);
	assert_int_equal(ranges_of(m, "both [jit]", some, 4), 2);
	/* Code that is new is seen, and what is the same stays so. */
	assert_int_equal(munmap((void *)(uintptr_t)SECOND, BYTES), 0);
	assert_false(code_map_same_space(m, 0, getpid()));
	assert_true(code_map_same_space(m, space, pid));
	/* Samples of a process that has gone can still be named; it is no target any more. */
	code = code_at(m, space, FIRST);
	end(pid);
	code_map_drop_space(m, space);
	assert_int_equal(code_map_name(m, code, &name, NULL), 1);
	assert_string_equal(name, "child [jit]");
	assert_int_equal(ranges_of(m, "child [jit]", some, 4), 0);
	assert_int_equal(ranges_of(m, "both [jit]", some, 4), 1);
	code_map_close(m);
	(void)snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
}

/* Processes come and go for ever; their objects do not become more and more. */
static void objects_are_used_again(void **state)
{
	struct code_map *m;
	size_t space, most = 0;
	bool changed;

	(void)state;
	put("200510000000 1000 f\n");
	m = open_map(&(struct code_scope){0});
	for (size_t i = 0; i < 200; i++) {
		assert_int_equal(code_map_add_space(m, &space), 0);
		assert_int_equal(code_map_refresh(m, space, getpid(), &changed, NULL), 0);
		is_named(m, space, FIRST, "f [jit]", NULL);
		code_map_drop_space(m, space);
		if (i == 100)
			most = code_map_count(m);
	}
	assert_int_equal(code_map_count(m), most);
	assert_int_equal(m->n_surplus, 0);
	code_map_close(m);
}

/* A program can map anything anywhere. */
static void a_hostile_program_is_bounded(void **state)
{
	struct code_map *m;
	size_t n = 0;

	(void)state;
	put("200510000000 1000 f\n");
	for (uint64_t i = 0; i < 100; i++)
		make_code(0x210000000000ULL + i * 0x100000000ULL);
	m = open_map(&(struct code_scope){0});
	for (size_t i = 0; i < m->spaces[0].n; i++)
		n += m->objects[m->spaces[0].mappings[i].object]->jit != NULL;
	assert_int_equal(n, CODE_JIT_PARTS);
	assert_true(m->n_surplus > 0);
	is_named(m, 0, FIRST, "f [jit]", NULL);
	code_map_close(m);
	for (uint64_t i = 0; i < 100; i++)
		(void)munmap((void *)(uintptr_t)(0x210000000000ULL + i * 0x100000000ULL), BYTES);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(code_is_named_by_the_map, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_map_is_read_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_have_ranges, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_scope_is_the_users, set_up, tear_down),
		cmocka_unit_test_setup_teardown(functions_stand_for_their_interpreter, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(each_process_has_its_own, set_up, tear_down),
		cmocka_unit_test_setup_teardown(objects_are_used_again, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_hostile_program_is_bounded, set_up, tear_down),
	};

	if (argc > 2)
		return be_program(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
