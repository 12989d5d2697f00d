// SPDX-License-Identifier: BSD-2-Clause
/* System calls in a thread of another process, whose memory is hostile and whose helper can be
 * ended by anybody; and we ourselves are killed at the worst moment. ptrace and kill come by here.
 * Not among the unit tests: a sanitizer would be in the program as well, whose handlers of faults
 * are not a program's. */
#include "shared/shim_abi.h"
#include "target/shim/image.h"
#include "target/inject_private.h"
#include "target/process.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SLOTS_SIZE (SHIM_ENTRIES * sizeof(struct shim_slot))

static bool dies_at_options; /* the calling process, before it has set a tracee's options */
static bool memory_lies;     /* every word that is read of a tracee is 0 */
static bool helper_dies;     /* before anybody has waited for it */
static size_t steered; /* the register, by its offset, that gets another value just before a call;
			  0, which is r15: none */
static uint64_t steered_at; /* ... that is made here */
static bool dawdles;	    /* so that what a tracee does between two requests has time to show */
static pid_t killed;

int __real_kill(pid_t pid, int signo);
int __wrap_kill(pid_t pid, int signo);
int __wrap_kill(pid_t pid, int signo)
{
	killed = pid;
	return __real_kill(pid, signo);
}

static void end_helper(pid_t pid)
{
	(void)__real_kill(pid, SIGKILL);
	while (process_is_live(pid))
		(void)usleep(1000);
}

long __real_ptrace(enum __ptrace_request request, pid_t tid, void *address, void *data);
long __wrap_ptrace(enum __ptrace_request request, pid_t tid, void *address, void *data);
long __wrap_ptrace(enum __ptrace_request request, pid_t tid, void *address, void *data)
{
	long r;

	if (request == PTRACE_SETOPTIONS && dies_at_options)
		(void)__real_kill(getpid(), SIGKILL);
	if (request == PTRACE_PEEKDATA && memory_lies)
		return 0;
	if (request == PTRACE_SETREGS && steered) {
		struct user_regs_struct regs = *(struct user_regs_struct *)data;

		if (regs.rip == steered_at)
			*(unsigned long long *)((char *)&regs + steered) ^= 1;
		return __real_ptrace(request, tid, address, &regs);
	}
	r = __real_ptrace(request, tid, address, data);
	if (dawdles && (request == PTRACE_SEIZE || request == PTRACE_CONT))
		(void)usleep(2000);
	if (request == PTRACE_GETREGS && helper_dies &&
	    ((struct user_regs_struct *)data)->orig_rax == SYS_clone)
		end_helper((pid_t)((struct user_regs_struct *)data)->rax);
	return r;
}

/* A program that only computes; it can be asked how far it is. */
static volatile uint64_t *turns;

static pid_t start(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(*turns)++;
	}
	return pid;
}

static void assert_runs(void)
{
	uint64_t before = *turns;

	for (int i = 0; *turns == before; i++) {
		assert_true(i < 5000);
		(void)usleep(1000);
	}
}

static void finish(pid_t pid)
{
	(void)__real_kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

static int try_stop(pid_t pid, struct remote *ret)
{
	uint64_t at;
	int err = inject_syscall_of(pid, &at);

	for (int i = 0; err == 0 && i < 50; i++) {
		err = remote_stop(pid, -1, pid, at, ret);
		if (err != -EAGAIN)
			break;
		err = 0;
	}
	return err;
}

static struct remote stop_process(pid_t pid)
{
	struct remote r;

	assert_int_equal(try_stop(pid, &r), 0);
	return r;
}

static int count_child(pid_t pid, void *arg)
{
	struct process_facts f;
	pid_t *parent_and_children = arg;

	if (process_read(pid, &f) == 0 && f.parent == parent_and_children[0] && f.state != 'Z' &&
	    f.state != 'X')
		parent_and_children[1]++;
	return 0;
}

static pid_t children_of(pid_t pid)
{
	pid_t x[2] = {pid, 0};

	(void)process_each(count_child, x);
	return x[1];
}

/* Killed before the kernel knows that the helper is to end with us. */
static void no_helper_outlives_us(void **state)
{
	pid_t pid = start(), us;
	int status;

	(void)state;
	assert_runs();
	us = fork();
	if (us == 0) {
		struct remote r, helper;
		pid_t number;
		int err = try_stop(pid, &r);

		dies_at_options = true;
		if (err == 0)
			err = remote_helper(&r, &helper, &number);
		_exit(-err);
	}
	assert_int_equal(waitpid(us, &status, 0), us);
	assert_int_equal(status, SIGKILL); /* it died where it should */
	for (int i = 0; children_of(pid) && i < 1000; i++)
		(void)usleep(1000);
	assert_int_equal(children_of(pid), 0);
	/* Nor did it take the program with it. */
	assert_runs();
	finish(pid);
}

/* A number that somebody else may have by now is not killed. */
static void kills_its_own_helper_only(void **state)
{
	const uint64_t none[6] = {0};
	struct remote r, helper;
	pid_t pid = start(), number, killer;
	int64_t value;

	(void)state;
	r = stop_process(pid);
	assert_int_equal(remote_helper(&r, &helper, &number), 0);
	assert_int_equal(remote_call(&helper, SYS_getpid, none, &value), 0);
	assert_int_equal(value, helper.tid);
	killer = fork();
	if (killer == 0) {
		(void)usleep(100000);
		_exit(__real_kill(helper.tid, SIGKILL) ? 1 : 0);
	}
	assert_int_equal(remote_call(&helper, SYS_pause, none, &value), -ESRCH);
	killed = 0;
	remote_end(&helper, &r, number);
	assert_int_equal(killed, 0);
	(void)waitpid(killer, NULL, 0);
	assert_int_equal(remote_release(&r), 0);
	assert_runs();
	/* Nor one's that ended at once. */
	r = stop_process(pid);
	helper_dies = true;
	assert_int_equal(remote_helper(&r, &helper, &number), -ESRCH);
	helper_dies = false;
	assert_int_equal(killed, 0);
	assert_int_equal(remote_release(&r), 0);
	assert_runs();
	/* One that lives is. */
	r = stop_process(pid);
	assert_int_equal(remote_helper(&r, &helper, &number), 0);
	remote_end(&helper, &r, number);
	assert_int_equal(killed, helper.tid);
	assert_int_equal(children_of(pid), 0);
	assert_int_equal(remote_release(&r), 0);
	assert_runs();
	finish(pid);
}

/* The program's other threads can write there what they like: descriptors are found without it. */
static void takes_no_descriptor_from_memory(void **state)
{
	struct inject_options o = {
		.image = shim_blob_image, .size = shim_blob_image_size, .signo = SIGRTMAX - 4};
	struct inject_layout l = {0};
	struct remote r, helper;
	pid_t pid = start(), number;
	char maps[128];

	(void)state;
	o.slots_fd = memfd_create("slots", MFD_CLOEXEC);
	assert_true(o.slots_fd >= 0);
	assert_int_equal(ftruncate(o.slots_fd, (off_t)SLOTS_SIZE), 0);
	r = stop_process(pid);
	assert_int_equal(remote_helper(&r, &helper, &number), 0);
	memory_lies = true;
	assert_int_equal(inject_map(&o, &helper, &l), 0);
	memory_lies = false;
	remote_end(&helper, &r, number);
	assert_true(l.slots != 0);
	/* It is found again. */
	(void)snprintf(maps, sizeof(maps), "%llx-0 r-xp 0\n%llx-0 rw-s 0 anon_inode:bpf-map\n",
		       (unsigned long long)l.blob, (unsigned long long)l.slots);
	assert_ptr_equal(inject_layout_in(pid, maps, &l, 1), &l);
	assert_int_equal(inject_unmap(&r, &l), 0);
	assert_int_equal(remote_release(&r), 0);
	assert_runs();
	(void)close(o.slots_fd);
	finish(pid);
}

/* Who shares the program's memory can have the thread make another call than ours. That one does
 * not happen. */
static void has_no_other_call_made(void **state)
{
	/* Below that of exit_group by the bit that is steered. */
	const long number = SYS_clock_nanosleep;
	const uint64_t none[6] = {0};
	const size_t registers[] = {
		offsetof(struct user_regs_struct, rax), offsetof(struct user_regs_struct, rdi),
		offsetof(struct user_regs_struct, rsi), offsetof(struct user_regs_struct, rdx),
		offsetof(struct user_regs_struct, r10), offsetof(struct user_regs_struct, r8),
		offsetof(struct user_regs_struct, r9),
	};
	/* exit_group by an instruction behind ours, and a call as 32-bit programs make it */
	static const unsigned char codes[][9] = {
		{0xeb, 0x00, 0xb8, SYS_exit_group, 0, 0, 0, 0x0f, 0x05}, {0xcd, 0x80, 0x0f, 0x05}};
	unsigned char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int64_t value;
	struct remote r;
	pid_t pid;

	(void)state;
	assert_true(code != MAP_FAILED && (number ^ 1) == SYS_exit_group);
	memcpy(code, "\x0f\x05", 2);
	pid = start();
	steered_at = (uintptr_t)code;
	for (size_t i = 0; i < sizeof(registers) / sizeof(*registers); i++) {
		assert_int_equal(remote_stop(pid, -1, pid, steered_at, &r), 0);
		steered = registers[i];
		assert_int_equal(remote_call(&r, number, none, &value), -EFAULT);
		steered = 0;
		/* The next one is again made as it should be. */
		assert_int_equal(remote_call(&r, SYS_getpid, none, &value), 0);
		assert_int_equal(value, pid);
		assert_int_equal(remote_release(&r), 0);
		assert_runs();
	}
	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		assert_int_equal(remote_stop(pid, -1, pid, steered_at, &r), 0);
		memcpy(code, codes[i], sizeof(codes[i]));
		assert_int_equal(remote_call(&r, SYS_getpid, none, &value), -EFAULT);
		memcpy(code, "\x0f\x05", 2);
		assert_int_equal(remote_release(&r), 0);
		assert_runs();
	}
	(void)munmap(code, 4096);
	finish(pid);
}

/* What is executed there may have other rights than what was stopped: it gets no registers. */
static void lets_go_of_another_program(void **state)
{
	static const char path[] = "/bin/sh", option[] = "-c", script[] = "exit 7";
	static const char *const arguments[] = {path, option, script, NULL};
	const uint64_t call[6] = {(uintptr_t)path, (uintptr_t)arguments, (uintptr_t)&arguments[3]};
	pid_t pid = start();
	struct remote r = stop_process(pid);
	int64_t value;
	int status;

	(void)state;
	assert_int_equal(remote_call(&r, SYS_execve, call, &value), -ESRCH);
	assert_true(r.ended);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
}

static void stops_threads_of_the_process_only(void **state)
{
	pid_t pid = start(), other = start(), gone = fork();
	int pidfd;
	struct remote r;

	(void)state;
	if (gone == 0)
		_exit(0);
	pidfd = (int)syscall(SYS_pidfd_open, gone, 0);
	assert_true(pidfd >= 0);
	assert_int_equal(waitpid(gone, NULL, 0), gone);
	assert_runs();
	assert_int_equal(remote_stop(pid, -1, other, 0, &r), -ESRCH);
	assert_int_equal(remote_stop(pid, pidfd, pid, 0, &r), -ESRCH);
	assert_runs();
	(void)close(pidfd);
	finish(pid);
	finish(other);
}

/* A program that does without getppid(), and asks for it all the time: turns[0] times, turns[1]
 * times with success. */
static pid_t start_filtered(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getppid, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) < 0)
			_exit(1);
		for (;; turns[0]++)
			if (syscall(SYS_getppid) >= 0)
				turns[1]++;
	}
	return pid;
}

/* Filters are suspended for our calls, and never while the program runs. */
static void filters_stay_in_force(void **state)
{
	const uint64_t none[6] = {0};
	pid_t pid = start_filtered();
	int64_t answer = 0;

	(void)state;
	turns[1] = 0;
	assert_runs();
	dawdles = true;
	for (int i = 0; i < 20; i++) {
		struct remote r = stop_process(pid);

		assert_int_equal(remote_call(&r, SYS_getppid, none, &answer), 0);
		assert_int_equal(answer, getpid());
		assert_int_equal(remote_release(&r), 0);
		assert_runs();
	}
	dawdles = false;
	assert_int_equal(turns[1], 0);
	finish(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_helper_outlives_us),
		cmocka_unit_test(kills_its_own_helper_only),
		cmocka_unit_test(takes_no_descriptor_from_memory),
		cmocka_unit_test(has_no_other_call_made),
		cmocka_unit_test(lets_go_of_another_program),
		cmocka_unit_test(stops_threads_of_the_process_only),
		cmocka_unit_test(filters_stay_in_force),
	};
	sigset_t all;

	turns = mmap(NULL, 2 * sizeof(*turns), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		     -1, 0);
	if (turns == MAP_FAILED)
		return 125;
	/* As target/remote.h asks. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_BLOCK, &all, NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
