// SPDX-License-Identifier: BSD-2-Clause
/* What a sleeper owes when a timer wakes it is slept off (R6 under hold), by it and by nobody else:
 * whoever has its CPU next does not pay for it, and what the sleeper owes for running, later, is
 * held. A thread that earns has a CPU for itself; on the other one are the sleeper and, beside it,
 * one that always works. The child's handler of the payment signal sleeps as the shim's does. */
#include "tests/bpf/driven.h"

#include "experiment/session/internal.h"
#include "cozbpf.skel.h" /* after abi.h */

#include <bpf/bpf.h>
#include <sched.h>
#include <sys/mman.h>

#define SIGNO (SIGRTMAX - 3)
#define ASLEEP_US 6000 /* at 50 %, less than one payment may be at most */
#define RUNS_NS (20 * NSEC_PER_MSEC)

static struct shim_slot *slots;
/* The child's, and ours to read. */
static struct shared {
	uint32_t bystander; /* its thread id */
	uint32_t cycles;    /* sleeps of the sleeper */
} * shared;

static struct shim_slot *slot_of(unsigned int tid)
{
	for (unsigned int i = 0; i < SHIM_PROBES; i++)
		if (slots[(tid + i) % SHIM_SLOTS].tid == tid)
			return &slots[(tid + i) % SHIM_SLOTS];
	return NULL;
}

static void pay_asleep(int signo)
{
	uint64_t start = clock_monotonic_ns(), until = 0;
	struct shim_slot *slot = slot_of((unsigned int)gettid());
	int64_t owed;

	(void)signo;
	if (!slot)
		return;
	slot->paying = 1;
	/* The ledger writes anew, when the thread comes by, what it owes by then. */
	while ((owed = -__atomic_exchange_n(&slot->owed_ns, 0, __ATOMIC_ACQ_REL)) >
	       (int64_t)until) {
		struct timespec t;

		until = (uint64_t)owed;
		t = (struct timespec){.tv_sec = (time_t)((start + until) / NSEC_PER_SEC),
				      .tv_nsec = (long)((start + until) % NSEC_PER_SEC)};
		(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
	}
	__atomic_add_fetch(&slot->paid_ns, clock_monotonic_ns() - start, __ATOMIC_RELEASE);
	__atomic_add_fetch(&slot->payments, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->paying, 0, __ATOMIC_RELEASE);
}

static void pin(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	if (sched_setaffinity(0, sizeof(one), &one) < 0)
		_exit(1);
}

static void *earner(void *arg)
{
	pin(1);
	for (;;)
		produce();
	return arg;
}

static void *bystander(void *arg)
{
	pin(0);
	__atomic_store_n(&shared->bystander, (uint32_t)gettid(), __ATOMIC_RELEASE);
	for (;;)
		consume();
	return arg;
}

static void sleep_and_run(uint64_t runs_ns)
{
	struct sigaction sa = {.sa_handler = pay_asleep, .sa_flags = SA_RESTART};
	struct timespec t;
	pthread_t made;

	(void)sigfillset(&sa.sa_mask);
	(void)sigaction(SIGNO, &sa, NULL);
	pthread_create(&made, NULL, earner, NULL);
	if (!runs_ns)
		pthread_create(&made, NULL, bystander, NULL);
	pin(0);
	for (;;) {
		uint64_t ran = 0, from;

		(void)usleep(ASLEEP_US);
		(void)__atomic_add_fetch(&shared->cycles, 1, __ATOMIC_RELEASE);
		(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
		from = (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
		while (ran < runs_ns) {
			consume();
			(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
			ran = (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec - from;
		}
	}
}

static void sleeps_only(void)
{
	sleep_and_run(0);
}

static void sleeps_and_runs(void)
{
	sleep_and_run(RUNS_NS);
}

static bool too_few_cpus(void)
{
	if (sysconf(_SC_NPROCESSORS_ONLN) >= 2)
		return false;
	print_message("skipped: needs two CPUs\n");
	return true;
}

static void start(struct driven *d, void (*body)(void))
{
	struct session_options o = {
		.config.payer = ABI_PAY_HOLD, .config.signo = SIGNO, .rate_hz = 1000, .seed = 1};

	driven_open(d, &o);
	session_calibrate(d->session);
	slots = mmap(NULL, SHIM_SLOTS * sizeof(*slots), PROT_READ | PROT_WRITE, MAP_SHARED,
		     session_slots_fd(d->session), 0);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	assert_ptr_not_equal(slots, MAP_FAILED);
	assert_ptr_not_equal(shared, MAP_FAILED);
	driven_fork(d, body);
	d->session->skel->bss->control.signals_ok = 1;
	driven_go(d);
}

static void stop_driving(struct driven *d)
{
	driven_stop(d);
	(void)munmap(slots, SHIM_SLOTS * sizeof(*slots));
	(void)munmap(shared, sizeof(*shared));
}

/* What the books say of @tid and the experiment that just ended. */
static struct abi_thread_record record_of(struct session *s, unsigned int tid)
{
	struct abi_thread_record r;
	int fd = bpf_iter_create(bpf_link__fd(s->iter));

	assert_true(fd >= 0);
	while (read(fd, &r, sizeof(r)) == (ssize_t)sizeof(r))
		if (r.tid == tid) {
			(void)close(fd);
			return r;
		}
	fail_msg("no books of thread %u", tid);
	return r;
}

/* The sleeper comes by its CPU again and again, each time owing what accrued in 6 ms. Who works
 * there stops for as long as G grows, not for the sleeper's debts. */
static void the_next_one_does_not_pay_for_a_sleeper(void **state)
{
	struct backend_totals a, b;
	struct profile_experiment owed;
	struct abi_thread_record r;
	uint32_t payments;
	struct driven d;

	(void)state;
	REQUIRE_FEATURE("task_work", "BPF task work");
	if (too_few_cpus())
		skip();
	start(&d, sleeps_only);
	payments = slot_of((unsigned int)d.pid)->payments;
	driven_experiment(&d, 0.5, &a, &b, &owed);
	r = record_of(d.session, shared->bystander);
	/* Of its clock: what it paid and what it was given, or lost, for having waited. */
	print_message("growth %.1f ms; the bystander paid %.1f and was credited %.1f ms; %u "
		      "payments of the sleeper\n",
		      (double)(b.growth - a.growth) / 1e6, (double)r.paid / 1e6,
		      (double)r.rq_credited / 1e6,
		      slot_of((unsigned int)d.pid)->payments - payments);
	assert_true(slot_of((unsigned int)d.pid)->payments - payments >= 5);
	assert_true(r.paid > 0);
	assert_true((double)r.paid <= 1.1 * (double)(b.growth - a.growth));
	assert_int_equal(owed.imbalance, 0);
	stop_driving(&d);
}

/* A payment for each sleep; what comes while the sleeper runs, though it is more than a sleep would
 * be worth, is held. */
static void a_running_sleeper_is_held(void **state)
{
	struct backend_totals a, b;
	struct profile_experiment owed;
	uint32_t payments, cycles;
	struct driven d;

	(void)state;
	REQUIRE_FEATURE("task_work", "BPF task work");
	if (too_few_cpus())
		skip();
	start(&d, sleeps_and_runs);
	payments = slot_of((unsigned int)d.pid)->payments;
	cycles = shared->cycles;
	driven_experiment(&d, 0.5, &a, &b, &owed);
	payments = slot_of((unsigned int)d.pid)->payments - payments;
	cycles = shared->cycles - cycles;
	print_message("%u sleeps, %u payments\n", cycles, payments);
	assert_true(cycles >= 3);
	assert_true(payments > 0);
	assert_true(payments <= 2 * cycles);
	assert_int_equal(owed.imbalance, 0);
	stop_driving(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_next_one_does_not_pay_for_a_sleeper),
		cmocka_unit_test(a_running_sleeper_is_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
