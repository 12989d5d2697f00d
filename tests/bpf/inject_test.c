// SPDX-License-Identifier: BSD-2-Clause
/* Payment handlers in processes that run already: put in, paid by, taken out, and what is refused.
 * The ledger is played here, by a map of slots and by signals of our own. */
#include "base/error.h"
#include "shared/shim_abi.h"
#include "target/shim/image.h"
#include "target/injector.h"
#include "tests/bpf/inject_target.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define TURNS 30
#define KILLS 10

static int signo, slots_fd;
static struct shim_slot *slots;

static struct injector *begin(void)
{
	const struct injector_options o = {.image = shim_blob_image,
					   .size = shim_blob_image_size,
					   .pay = SHIM_PAY_SLEEP,
					   .signo = signo};
	struct injector *i = NULL;
	struct error e = {""};

	if (injector_start(&o, &i, &e) < 0 || injector_give_slots(i, slots_fd, &e) < 0)
		fail_msg("%s", e.text);
	return i;
}

static int try_enter(struct injector *i, pid_t pid, struct injected *ret, struct error *e)
{
	int pidfd = (int)syscall(SYS_pidfd_open, pid, 0),
	    err = injector_enter(i, pid, pidfd, ret, e);

	if (pidfd >= 0)
		(void)close(pidfd);
	return err;
}

static void enter(struct injector *i, pid_t pid)
{
	struct injected got;
	struct error e = {""};

	if (try_enter(i, pid, &got, &e) < 0)
		fail_msg("%s", e.text);
}

static void leave(struct injector *i)
{
	struct error e = {""};

	if (injector_stop(i, &e) < 0)
		fail_msg("%s", e.text);
}

static struct shim_slot *claim(pid_t tid)
{
	struct shim_slot *s = &slots[(unsigned int)tid % SHIM_SLOTS];

	*s = (struct shim_slot){.tid = (unsigned int)tid};
	return s;
}

/* Has a thread pay, and waits until it has. */
static void pay(pid_t pid, struct shim_slot *s, long long owed)
{
	unsigned long long paid = s->paid_ns;
	unsigned int before = __atomic_load_n(&s->payments, __ATOMIC_ACQUIRE);

	__atomic_store_n(&s->owed_ns, owed, __ATOMIC_RELEASE);
	assert_int_equal(syscall(SYS_tgkill, pid, s->tid, signo), 0);
	for (int i = 0; __atomic_load_n(&s->payments, __ATOMIC_ACQUIRE) == before; i++) {
		assert_true(i < 50000);
		(void)usleep(200);
	}
	assert_true(s->paid_ns - paid >= (unsigned long long)owed);
}

static void pays_and_leaves_nothing(void **state)
{
	pid_t pid = start(1 << COMPUTES | 1 << SLEEPS, NULL);
	char *before = facts(pid);
	struct injector *i = begin();
	struct shim_slot *s;

	(void)state;
	enter(i, pid);
	s = claim(shared->tids[COMPUTES]);
	for (int n = 0; n < 20; n++)
		pay(pid, s, n % 2 ? 30000 : 2 * MSEC);
	/* One of many in mid-payment does not keep us from leaving. */
	__atomic_store_n(&s->owed_ns, SHIM_MAX_PAY_NS, __ATOMIC_RELEASE);
	assert_int_equal(syscall(SYS_tgkill, pid, s->tid, signo), 0);
	leave(i);
	finish_as_before(pid, before);
}

/* A call that takes longer than the test is interrupted only if we do it: and a descriptor of ours
 * would be seen. */
static void interrupts_nothing(void **state)
{
	static const int sets[] = {(1 << KINDS) - 1, 1 << WAITS, 1 << TIMED_RECEIVE, 1 << READS};

	(void)state;
	for (size_t k = 0; k < sizeof(sets) / sizeof(*sets); k++) {
		pid_t pid = start(sets[k], NULL);
		char *before = facts(pid);
		uint64_t computed = shared->turns[COMPUTES];

		for (int n = 0; n < (k ? TURNS / 3 : TURNS); n++) {
			struct injector *i = begin();

			enter(i, pid);
			enter(i, pid); /* is there already */
			leave(i);
			same_facts(pid, before);
		}
		assert_int_equal(shared->eintr, 0);
		assert_true(!(sets[k] & 1 << READS) || shared->turns[READS] == 0);
		assert_true(!(sets[k] & 1 << COMPUTES) || shared->turns[COMPUTES] > computed);
		finish(pid);
		free(before);
	}
}

/* Nothing can be read of the process by its own number then; by that of a thread it can. */
static void leaves_what_has_lost_its_first_thread(void **state)
{
	struct injector *i = begin();
	struct shim_slot *s;
	pid_t pid, tid;
	char *before;

	(void)state;
	headless = true;
	pid = start(1 << COMPUTES | 1 << SLEEPS, NULL);
	headless = false;
	tid = shared->tids[COMPUTES];
	before = facts(tid);
	enter(i, pid);
	s = claim(tid);
	pay(pid, s, MSEC);
	leave(i);
	same_facts(tid, before);
	finish(pid);
	free(before);
}

static void children_inherit_it_and_lose_it(void **state)
{
	pid_t pid = start(1 << COMPUTES, NULL);
	struct injector *i = begin();
	char *before, *child;

	(void)state;
	before = facts(pid);
	enter(i, pid);
	__atomic_store_n(&shared->fork, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(&shared->child, __ATOMIC_ACQUIRE))
		(void)usleep(1000);
	child = facts(shared->child);
	assert_string_not_equal(child, before);
	free(child);
	pay(shared->child, claim(shared->child), MSEC);
	leave(i);
	same_facts(shared->child, before);
	finish_as_before(pid, before);
}

/* Wherever we are killed, the program goes on, and loses what it was given a little later. */
static void is_cleaned_up_when_we_are_killed(void **state)
{
	pid_t pid = start((1 << KINDS) - 1, NULL);
	char *before = facts(pid);

	(void)state;
	for (int n = 0; n < KILLS; n++) {
		pid_t us = fork();
		char *after = NULL;

		if (us == 0) {
			struct injector *i = begin();
			struct injected got;

			(void)try_enter(i, pid, &got, NULL);
			(void)pause();
			_exit(0);
		}
		(void)usleep((useconds_t)(n * 1700));
		assert_int_equal(kill(us, SIGKILL), 0);
		assert_int_equal(waitpid(us, NULL, 0), us);
		for (int k = 0; k < 200; k++) {
			free(after);
			(void)usleep(50000);
			after = facts(pid);
			/* ... also of one that was just about to begin. */
			if (k > 6 && strcmp(before, after) == 0)
				break;
		}
		assert_string_equal(before, after);
		free(after);
	}
	assert_int_equal(shared->eintr, 0);
	finish(pid);
	free(before);
}

static void use_signal(void)
{
	struct sigaction sa = {.sa_handler = (void (*)(int))abort};

	(void)sigaction(signo, &sa, NULL);
}

static void filter_calls(void)
{
	struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
	struct sock_fprog p = {1, all};

	(void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	(void)prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p, 0, 0);
}

static void refused(struct injector *i, pid_t pid, int wanted, const char *why)
{
	struct injected got;
	struct error e = {""};
	int err = try_enter(i, pid, &got, &e);

	if (err != wanted || !strstr(e.text, why) || strchr(e.text, '\n'))
		fail_msg("%d: %s", err, e.text);
}

static void refuses_what_it_must(void **state)
{
	struct injector *i = begin();
	char *before;
	pid_t pid;

	(void)state;
	refused(i, 4194303, -ESRCH, "ended");
	pid = start(1 << COMPUTES, use_signal);
	before = facts(pid);
	refused(i, pid, -EBUSY, "--signal");
	finish_as_before(pid, before);
	pid = start(1 << COMPUTES, filter_calls);
	before = facts(pid);
	refused(i, pid, -EPERM, "seccomp");
	finish_as_before(pid, before);
	pid = start(1 << COMPUTES, NULL);
	before = facts(pid);
	assert_int_equal(ptrace(PTRACE_SEIZE, pid, 0, 0), 0);
	refused(i, pid, -EPERM, "traced by process");
	assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, 0, 0), 0);
	assert_int_equal(waitpid(pid, NULL, __WALL), pid);
	assert_int_equal(ptrace(PTRACE_DETACH, pid, 0, 0), 0);
	same_facts(pid, before);
	free(before);
	/* And then it can be had. */
	enter(i, pid);
	leave(i);
	finish(pid);
}

static void have_filter(int kinds)
{
	__atomic_store_n(&shared->filtered, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&shared->filter, kinds, __ATOMIC_RELEASE);
	while (__atomic_load_n(&shared->filtered, __ATOMIC_ACQUIRE) <
	       __builtin_popcount((unsigned int)kinds))
		(void)usleep(1000);
}

/* The one that would be stopped first is the one that may make no calls of ours; and later there is
 * no other one. */
static void spares_threads_with_filters(void **state)
{
	struct injector *i = begin();
	struct injected got;
	struct error e = {""};
	char *before;
	pid_t pid, tid;

	(void)state;
	headless = true;
	pid = start(1 << COMPUTES | 1 << SLEEPS, NULL);
	headless = false;
	tid = shared->tids[COMPUTES];
	have_filter(1 << SLEEPS);
	before = facts(tid);
	if (try_enter(i, pid, &got, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(got.threads, 2);
	assert_int_equal(got.filtered, 1);
	pay(pid, claim(tid), MSEC);
	have_filter(1 << COMPUTES);
	leave(i);
	same_facts(tid, before);
	free(before);
	/* Now it is refused. */
	i = begin();
	refused(i, pid, -EPERM, "seccomp");
	leave(i);
	finish(pid);
}

static void takes_a_number_for_the_process_only(void **state)
{
	pid_t pid = start(1 << COMPUTES, NULL), gone = fork();
	struct injector *i = begin();
	char *before = facts(pid);
	struct injected got;
	struct error e = {""};
	int pidfd;

	(void)state;
	if (gone == 0)
		_exit(0);
	pidfd = (int)syscall(SYS_pidfd_open, gone, 0);
	assert_true(pidfd >= 0);
	assert_int_equal(waitpid(gone, NULL, 0), gone);
	assert_int_equal(injector_enter(i, pid, pidfd, &got, &e), -ESRCH);
	leave(i);
	(void)close(pidfd);
	finish_as_before(pid, before);
}

static void spares_the_stopped(void **state)
{
	/* No epoll: for that a stop and what ends it is an interruption anyway. */
	pid_t pid = start(1 << COMPUTES | 1 << SLEEPS, NULL);
	struct injector *i = begin();
	uint64_t turns;

	(void)state;
	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(waitpid(pid, NULL, WUNTRACED), pid);
	turns = shared->turns[COMPUTES];
	enter(i, pid);
	leave(i);
	(void)usleep(20000);
	assert_int_equal(shared->turns[COMPUTES], turns);
	assert_int_equal(state_of(pid), 'T');
	assert_int_equal(kill(pid, SIGCONT), 0);
	finish(pid);
	assert_int_equal(shared->eintr, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pays_and_leaves_nothing),
		cmocka_unit_test(interrupts_nothing),
		cmocka_unit_test(leaves_what_has_lost_its_first_thread),
		cmocka_unit_test(children_inherit_it_and_lose_it),
		cmocka_unit_test(is_cleaned_up_when_we_are_killed),
		cmocka_unit_test(refuses_what_it_must),
		cmocka_unit_test(spares_threads_with_filters),
		cmocka_unit_test(takes_a_number_for_the_process_only),
		cmocka_unit_test(spares_the_stopped),
	};
	LIBBPF_OPTS(bpf_map_create_opts, o, .map_flags = BPF_F_MMAPABLE);

	signo = SIGRTMAX - 4;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	slots_fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "slots", 4, sizeof(struct shim_slot),
				  SHIM_ENTRIES, &o);
	if (shared == MAP_FAILED || slots_fd < 0)
		return 125;
	slots = mmap(NULL, SHIM_ENTRIES * sizeof(*slots), PROT_READ | PROT_WRITE, MAP_SHARED,
		     slots_fd, 0);
	if (slots == MAP_FAILED)
		return 125;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
