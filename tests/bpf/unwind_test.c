// SPDX-License-Identifier: BSD-2-Clause
/* Work in libraries, in the kernel, behind a signal frame and in code without tables belongs to the
 * function in scope that caused it. The functions are compiled without frame pointers. */
#include "base/clock.h"
#include "base/error.h" /* before cmocka, whose macro fail() would hit it */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "program/code/map.h"
#include "experiment/session/session.h"
#include "tests/bpf/require.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* clang leaves frame pointers out by itself where it optimises. */
#ifdef __clang__
#define WORK __attribute__((noinline, disable_tail_calls))
#else
#define WORK                              \
	__attribute__((noinline, noclone, \
		       optimize("omit-frame-pointer", "no-optimize-sibling-calls")))
#endif

#define SETTLE_NS (250 * NSEC_PER_MSEC)

static volatile uint64_t sink;

static char from[1 << 16], to[1 << 16], words[512][16];

WORK void unwind_memcpy(void);
WORK void unwind_memcpy(void)
{
	for (int i = 0; i < 100; i++)
		memcpy(to, from, sizeof(from) - (sink & 1));
}

/* The comparison, too, is the library's: nothing in scope stands between. */
WORK void unwind_qsort(void);
WORK void unwind_qsort(void)
{
	for (unsigned int i = 0; i < 512; i++) {
		words[i][0] = (char)('a' + i * 7919 % 23);
		words[i][1] = (char)('a' + i * 104729 % 19);
	}
	qsort(words, 512, sizeof(*words), (int (*)(const void *, const void *))strcmp);
}

WORK void unwind_printf(void);
WORK void unwind_printf(void)
{
	char text[128];

	for (int i = 0; i < 100; i++)
		sink += (uint64_t)snprintf(text, sizeof(text), "%s %d %f", "some", i, i * 0.37);
}

WORK void unwind_sin(void);
WORK void unwind_sin(void)
{
	double sum = 0;

	for (int i = 0; i < 1000; i++)
		sum += sin(i * 1e5) + pow(i, 0.3);
	sink += sum > 0;
}

WORK void unwind_syscall(void);
WORK void unwind_syscall(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < 10; i++)
		sink += (uint64_t)read(fd, to, sizeof(to));
}

WORK void unwind_vdso(void);
WORK void unwind_vdso(void)
{
	struct timespec t;

	for (int i = 0; i < 1000; i++)
		sink += (uint64_t)clock_gettime(CLOCK_MONOTONIC, &t);
}

/* The handler is the library's: what is in scope lies behind the signal frame. */
WORK void unwind_signal(void);
WORK void unwind_signal(void)
{
	(void)signal(SIGUSR1, (void (*)(int))(void *)srand);
	for (int i = 0; i < 10; i++)
		(void)raise(SIGUSR1);
}

/* As a just-in-time compiler would make it: push rbp; mov rbp, rsp; mov ecx, 100000; dec ecx; jnz;
 * pop rbp; ret. */
WORK void unwind_made(void);
WORK void unwind_made(void)
{
	static const uint8_t code[] = {0x55, 0x48, 0x89, 0xe5, 0xb9, 0xa0, 0x86, 0x01,
				       0x00, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
	static void *page;

	if (!page) {
		page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memcpy(page, code, sizeof(code));
	}
	((void (*)(void))(uintptr_t)page)();
	sink++;
}

#include "unwind_test_system.h"

/* Samples show one function of the system's after the other: each makes another table. */
WORK void unwind_system(void);
WORK void unwind_system(void)
{
	static void (*const all[])(void) = {system_1, system_2, system_3, system_4};
	static uint64_t from_ns;
	uint64_t now = clock_monotonic_ns(), known;

	if (!from_ns)
		from_ns = now;
	known = (now - from_ns) / (SETTLE_NS / 5) + 1;
	for (uint64_t i = 0; i < 4 && i < known; i++)
		all[i]();
	sink++;
}

static void child(void (*work)(void), int go)
{
	char c;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(go, &c, 1) < 0)
		_exit(1);
	for (;;)
		work();
}

static uint64_t named(struct session *s, const char *function, uint64_t *ret_all)
{
	struct backend_sample *all;
	uint64_t in = 0;
	size_t n;

	*ret_all = 0;
	assert_int_equal(session_backend.samples(s, &all, &n), 0);
	for (size_t i = 0; i < n; i++) {
		const char *line, *name;

		*ret_all += all[i].count;
		if (session_backend.name(s, all[i].addr, &line, &name) == 0 && name &&
		    strcmp(name, function) == 0)
			in += all[i].count;
	}
	free(all);
	return in;
}

static uint64_t samples_outside(struct session *s)
{
	struct abi_totals t;

	assert_int_equal(session_totals(s, &t), 0);
	return t.samples_outside;
}

static void attributes(void (*work)(void), const char *function)
{
	struct session_options o = {.config.payer = ABI_PAY_NONE,
				    .config.signo = SIGRTMAX - 3,
				    .rate_hz = 2000,
				    .seed = 1};
	struct code_scope scope = {.functions = true};
	struct error e = {.text = ""};
	struct code_map *code;
	struct session *s = NULL;
	uint64_t in, all, outside, before;
	bool changed = false;
	char *words_of_it;
	int go[2];
	pid_t pid;

	REQUIRE_BPF();
	assert_int_equal(pipe(go), 0);
	if (code_map_open("/proc/self/exe", &scope, &code, &e) < 0 || session_open(&o, &s, &e) < 0)
		fail_msg("%s", e.text);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close(go[1]);
		child(work, go[0]);
	}
	(void)close(go[0]);
	if (session_attach(s, pid, &e) < 0 || code_map_refresh(code, 0, pid, &changed, &e) < 0 ||
	    session_set_code(s, code, &e) < 0)
		fail_msg("%s", e.text);
	assert_true(changed);
	assert_int_equal(write(go[1], "g", 1), 1);
	(void)close(go[1]);
	for (int i = 0; i < 10; i++) {
		(void)usleep(SETTLE_NS / 10 / 1000);
		(void)named(s, function, &all);
		if (code_map_refresh(code, 0, pid, &changed, &e) < 0 ||
		    (changed && session_set_code(s, code, &e) < 0))
			fail_msg("%s", e.text);
	}
	before = samples_outside(s);
	(void)usleep(400000);
	outside = samples_outside(s) - before;
	in = named(s, function, &all);
	words_of_it = session_counters(s);
	print_message("%s: %llu of %llu samples, %llu outside\n", function, (unsigned long long)in,
		      (unsigned long long)all, (unsigned long long)outside);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	session_close(s);
	code_map_close(code);
	assert_true(all > 200);
	/* The rest: the child's loop, which calls it. */
	assert_true(in * 100 >= all * 95);
	if (outside * 100 > all + outside)
		fail_msg("%llu of %llu samples are outside: %s", (unsigned long long)outside,
			 (unsigned long long)(all + outside), words_of_it);
	free(words_of_it);
}

/* Its name has the version of the distribution's clang in it. */
static bool open_llvm(void)
{
	char path[256] = "";
	FILE *f = popen("PATH=$PATH:/usr/sbin ldconfig -p | sed -n '/libLLVM/s/.*=> //p'", "re");

	if (!f)
		return false;
	if (fgets(path, sizeof(path), f))
		path[strcspn(path, "\n")] = '\0';
	(void)pclose(f);
	return path[0] && dlopen(path, RTLD_NOW);
}

/* Nearly a million rows stand before those of libc: the tables have several chunks. */
static void test_large_library(void **state)
{
	uint64_t from_ns;
	struct code_scope scope = {.functions = true};
	struct code_map *code;
	bool changed = false;

	(void)state;
	if (!open_llvm()) {
		print_message("skipped: no libLLVM, which clang brings\n");
		skip();
	}
	assert_int_equal(code_map_open("/proc/self/exe", &scope, &code, NULL), 0);
	from_ns = clock_monotonic_ns();
	assert_int_equal(code_map_refresh(code, 0, getpid(), &changed, NULL), 0);
	from_ns = clock_monotonic_ns() - from_ns;
	print_message("its table and all others: %llu ms\n",
		      (unsigned long long)(from_ns / NSEC_PER_MSEC));
	assert_true(from_ns < NSEC_PER_SEC);
	code_map_close(code);
	attributes(unwind_printf, "unwind_printf");
}

#define TEST(name)                            \
	static void test_##name(void **state) \
	{                                     \
		(void)state;                  \
		attributes(name, #name);      \
	}
TEST(unwind_memcpy)
TEST(unwind_qsort)
TEST(unwind_printf)
TEST(unwind_sin)
TEST(unwind_syscall)
TEST(unwind_vdso)
TEST(unwind_signal)
TEST(unwind_made)
TEST(unwind_system)

/* A child closes what has just been opened, where a thread goes on with the tables that the child
 * does not have. With glibc 2.43 a child waits for such a thread for ever even when it has ended.
 */
static void test_closed_by_a_child(void **state)
{
	struct session_options o = {.config.payer = ABI_PAY_NONE,
				    .config.signo = SIGRTMAX - 3,
				    .rate_hz = 2000,
				    .seed = 1};
	uint64_t until = clock_monotonic_ns() + 20 * NSEC_PER_SEC;
	struct error e = {.text = ""};
	struct session *s = NULL;
	pid_t ended = 0, pid;

	(void)state;
	REQUIRE_BPF();
	if (session_open(&o, &s, &e) < 0)
		fail_msg("%s", e.text);
	session_settle(s);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		session_close(s);
		_exit(0);
	}
	while (!ended && clock_monotonic_ns() < until) {
		(void)usleep(10000);
		ended = waitpid(pid, NULL, WNOHANG);
	}
	(void)kill(pid, SIGKILL);
	session_close(s);
	assert_int_equal(ended, pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unwind_memcpy),	  cmocka_unit_test(test_unwind_qsort),
		cmocka_unit_test(test_unwind_printf),	  cmocka_unit_test(test_unwind_sin),
		cmocka_unit_test(test_unwind_syscall),	  cmocka_unit_test(test_unwind_vdso),
		cmocka_unit_test(test_unwind_signal),	  cmocka_unit_test(test_unwind_made),
		cmocka_unit_test(test_unwind_system),	  cmocka_unit_test(test_large_library),
		cmocka_unit_test(test_closed_by_a_child),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
