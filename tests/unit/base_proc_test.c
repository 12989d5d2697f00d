// SPDX-License-Identifier: BSD-2-Clause
/* Directories of /proc of a process whose first thread has ended. */
#include "base/proc.h"

#include "base/clock.h"
#include "target/maps.h"
#include "target/process.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void *stay(void *arg)
{
	(void)prctl(PR_SET_NAME, "other");
	for (;;)
		(void)pause();
	return arg;
}

/* A child whose first thread ends when another one runs. */
static pid_t start(void)
{
	pid_t pid = fork();
	pthread_t t;

	if (pid == 0) {
		(void)prctl(PR_SET_NAME, "first");
		if (pthread_create(&t, NULL, stay, NULL))
			_exit(1);
		pthread_exit(NULL);
	}
	return pid;
}

static void the_first_thread_has_ended(void **state)
{
	pid_t pid = start(), tid = pid;
	struct map_list maps, ours;
	struct process_facts f;
	char path[PROC_PATH], *exe, *own;

	(void)state;
	assert_true(pid > 0);
	for (int i = 0; i < 1000 && tid == pid; i++) {
		(void)usleep(5000);
		tid = proc_thread(pid);
	}
	assert_int_not_equal(tid, pid);
	proc_path(path, pid, "maps");
	assert_int_equal(access(path, R_OK), 0);
	assert_int_equal(map_list_read(pid, &maps, NULL), 0);
	assert_int_equal(map_list_read(getpid(), &ours, NULL), 0);
	assert_true(ours.n && maps.n >= ours.n); /* pthread_exit loads a library */
	assert_true(process_is_live(pid));
	assert_int_equal(process_read(pid, &f), 0);
	assert_string_equal(f.comm, "first");
	assert_int_equal(f.parent, getpid());
	assert_true(f.state == 'S' || f.state == 'R');
	assert_false(f.exiting);
	assert_int_equal(process_executable(pid, &exe), 0);
	assert_int_equal(process_executable(getpid(), &own), 0);
	assert_string_equal(exe, own);
	assert_true(process_vdso(pid) != 0);
	free(exe);
	free(own);
	map_list_free(&maps);
	map_list_free(&ours);
	assert_int_equal(kill(pid, SIGKILL), 0);
	/* A zombie as a whole has no thread to speak for it. */
	for (int i = 0; i < 1000 && process_is_live(pid); i++)
		(void)usleep(5000);
	assert_int_equal(proc_thread(pid), pid);
	assert_false(process_is_live(pid));
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(proc_thread(pid), pid);
}

static void ordinary(void **state)
{
	char path[PROC_PATH], wanted[PROC_PATH];

	(void)state;
	assert_int_equal(proc_thread(getpid()), getpid());
	assert_int_equal(proc_thread(0x7ffffff0), 0x7ffffff0);
	assert_int_equal(proc_thread(-1), -1);
	proc_path(path, getpid(), "map_files/ffffffffff600000-ffffffffff601000");
	(void)snprintf(wanted, sizeof(wanted),
		       "/proc/%d/map_files/ffffffffff600000-ffffffffff601000", (int)getpid());
	assert_string_equal(path, wanted);
}

static void a_process_knows_itself(void **state)
{
	struct timespec before;
	int own[2];
	pid_t pid, named = 0;
	uint64_t began;

	(void)state;
	assert_int_equal(proc_own_number(getpid()), getpid());
	assert_int_equal(proc_began_ns(INT_MAX), 0);
	assert_int_equal(clock_gettime(CLOCK_REALTIME, &before), 0);
	assert_int_equal(pipe(own), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)pause();
		_exit(0);
	}
	/* To a tick of the clock. */
	began = proc_began_ns(pid);
	assert_in_range(began, timespec_ns(before) - NSEC_PER_SEC,
			timespec_ns(before) + 60 * NSEC_PER_SEC);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	/* In a namespace of its own it has another number. */
	pid = (pid_t)syscall(SYS_clone, CLONE_NEWPID | SIGCHLD, NULL, NULL, NULL, NULL);
	if (pid < 0)
		skip();
	if (pid == 0) {
		pid_t number = (pid_t)syscall(SYS_getpid);

		(void)!write(own[1], &number, sizeof(number));
		(void)pause();
		_exit(0);
	}
	assert_int_equal(read(own[0], &named, sizeof(named)), sizeof(named));
	assert_int_not_equal(named, pid);
	assert_int_equal(proc_own_number(pid), named);
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	(void)close(own[0]);
	(void)close(own[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_thread_has_ended),
		cmocka_unit_test(a_process_knows_itself),
		cmocka_unit_test(ordinary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
