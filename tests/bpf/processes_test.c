// SPDX-License-Identifier: BSD-2-Clause
/* A scope of many processes: who is in it after forks, execs and exits, what they share, and that
 * nothing stays behind. */
#include "base/clock.h"
#include "base/error.h" /* before cmocka, whose macro fail() would hit it */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "program/code/map.h"
#include "experiment/session/internal.h"
#include "cozbpf.skel.h" /* after abi.h */
#include "tests/bpf/require.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 4

static volatile uint64_t sink;

__attribute__((noinline)) static void crowd_work(void)
{
	for (int i = 0; i < 100000; i++)
		sink += (uint64_t)i;
}

static void *busy(void *arg)
{
	for (;;)
		crowd_work();
	return arg;
}

static void family(int go)
{
	char *sleeping[] = {(char *)(uintptr_t) "sleep", (char *)(uintptr_t) "100", NULL};
	pthread_t t;
	char c;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(go, &c, 1) < 0)
		_exit(1);
	for (int i = 0; i < CHILDREN; i++) {
		if (fork() > 0)
			continue;
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		pthread_create(&t, NULL, busy, NULL);
		busy(NULL);
	}
	if (fork() == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)usleep(100000);
		(void)execv("/bin/sleep", sleeping);
		_exit(1);
	}
	for (;;)
		(void)pause();
}

static struct session *session;
static struct code_map *code;

static void open_session(bool many)
{
	struct session_options o = {.config.payer = ABI_PAY_NONE,
				    .config.signo = SIGRTMAX - 3,
				    .rate_hz = 1000,
				    .seed = 1,
				    .config.many = many};
	struct code_scope scope = {.functions = true};
	struct error e = {.text = ""};

	if (code_map_open("/proc/self/exe", &scope, &code, &e) < 0 ||
	    session_open(&o, &session, &e) < 0 || session_set_code(session, code, &e) < 0)
		fail_msg("%s", e.text);
}

static pid_t start_family(int *ret_go)
{
	int go[2];
	pid_t pid;

	assert_int_equal(pipe(go), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close(go[1]);
		family(go[0]);
	}
	(void)close(go[0]);
	*ret_go = go[1];
	return pid;
}

static size_t entered(struct session_process **ret)
{
	size_t n;

	assert_int_equal(session_processes(session, ret, &n), 0);
	return n;
}

static size_t used_slots(void)
{
	struct shim_slot *slots = mmap(NULL, SHIM_SLOTS * sizeof(*slots), PROT_READ, MAP_SHARED,
				       session_slots_fd(session), 0);
	size_t n = 0;

	assert_ptr_not_equal(slots, MAP_FAILED);
	for (size_t i = 0; i < SHIM_SLOTS; i++)
		n += slots[i].tid != 0;
	(void)munmap(slots, SHIM_SLOTS * sizeof(*slots));
	return n;
}

static void children_are_in_scope_as_long_as_they_live(void **state)
{
	struct session_process *all;
	struct backend_sample *samples;
	struct error e = {.text = ""};
	uint64_t in_work = 0;
	unsigned int shared = ABI_SPACE_NONE, flags;
	const pid_t *execs;
	pid_t pid, execed = 0;
	size_t n, same = 0;
	int go;

	(void)state;
	REQUIRE_BPF();
	open_session(true);
	pid = start_family(&go);
	if (session_attach(session, pid, &e) < 0 || session_look(session, pid, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(write(go, "g", 1), 1);
	(void)close(go);
	(void)usleep(400000);
	assert_int_equal(entered(&all), 2 + CHILDREN);
	for (size_t i = 0; i < 2 + CHILDREN; i++)
		assert_int_equal(all[i].flags, ABI_PROC_IN | ABI_PROC_FOLLOW);
	free(all);
	/* One has started another program: nothing is known of what it maps until somebody looks.
	 */
	n = session_execs(session, &execs);
	assert_int_equal(n, 1);
	execed = execs[0];
	assert_int_equal(entered(&all), 2 + CHILDREN);
	for (size_t i = 0; i < 2 + CHILDREN; i++) {
		if (all[i].pid == execed)
			assert_int_equal(all[i].space, ABI_SPACE_NONE);
		else
			shared = all[i].space;
	}
	assert_int_not_equal(shared, ABI_SPACE_NONE);
	for (size_t i = 0; i < 2 + CHILDREN; i++)
		same += all[i].space == shared;
	free(all);
	assert_int_equal(same, 1 + CHILDREN);
	if (session_look(session, execed, &e) < 0)
		fail_msg("%s", e.text);
	/* Samples of all of them add up under one name. */
	assert_int_equal(session_backend.samples(session, &samples, &n), 0);
	for (size_t i = 0; i < n; i++) {
		const char *line, *function;

		if (session_backend.name(session, samples[i].addr, &line, &function) == 0 &&
		    strcmp(line, "crowd_work") == 0)
			in_work += samples[i].count;
	}
	free(samples);
	assert_true(in_work > 100);
	assert_true(used_slots() >= 2 + 2 * CHILDREN);
	/* One leaves the scope; its slots are free when it ends, too. */
	session_leave(session, execed);
	assert_int_equal(session_flags(session, execed, &flags), -ENOENT);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	for (int i = 0; i < 50 && (entered(&all) > 0 || used_slots() > 0); i++) {
		free(all);
		(void)usleep(20000);
	}
	assert_int_equal(entered(&all), 0);
	free(all);
	assert_int_equal(used_slots(), 0);
	session_maintain(session);
	session_maintain(session);
	session_close(session);
	code_map_close(code);
}

static void one_process_is_no_family(void **state)
{
	struct session_process *all;
	struct backend_sample *samples;
	struct error e = {.text = ""};
	size_t n;
	bool changed;
	pid_t pid;
	int go;

	(void)state;
	REQUIRE_BPF();
	open_session(false);
	pid = start_family(&go);
	if (session_attach(session, pid, &e) < 0 ||
	    code_map_refresh(code, 0, pid, &changed, &e) < 0 ||
	    session_set_code(session, code, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(write(go, "g", 1), 1);
	(void)close(go);
	(void)usleep(300000);
	assert_int_equal(entered(&all), 0);
	free(all);
	assert_int_equal(session_execs_fd(session), -1);
	assert_int_equal(session_backend.samples(session, &samples, &n), 0);
	for (size_t i = 0; i < n; i++) {
		const char *line, *function;

		if (session_backend.name(session, samples[i].addr, &line, &function) == 0)
			assert_string_not_equal(line, "crowd_work");
	}
	free(samples);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	session_close(session);
	code_map_close(code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(children_are_in_scope_as_long_as_they_live),
		cmocka_unit_test(one_process_is_no_family),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
