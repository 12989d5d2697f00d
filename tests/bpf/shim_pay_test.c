// SPDX-License-Identifier: BSD-2-Clause
/* A debt that is slept off through the shim (R6 under hold) must not be held as well while the shim
 * pays. The child here plays the shim: its handler takes its time to pay, another thread's hits go
 * on meanwhile, and the ledger's books must say of it what the handler says and nothing more. */
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

#include <bpf/bpf.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIGNO (SIGRTMAX - 3)
#define PAYMENT_NS (20 * NSEC_PER_MSEC)
#define OVERHEAD_NS (200 * NSEC_PER_USEC) /* of one payment, far above any that was calibrated */

static struct shim_slot *slots;
static volatile uint64_t sink;

__attribute__((noinline)) static void hot_line(void)
{
	for (int i = 0; i < 100000; i++)
		sink += (uint64_t)i;
}

static void *hitter(void *arg)
{
	for (;;)
		hot_line();
	return arg;
}

static struct shim_slot *slot_of(unsigned int tid)
{
	for (unsigned int i = 0; i < SHIM_PROBES; i++)
		if (slots[(tid + i) % SHIM_SLOTS].tid == tid)
			return &slots[(tid + i) % SHIM_SLOTS];
	return NULL;
}

static void pay_slowly(int signo)
{
	uint64_t start = clock_monotonic_ns();
	struct shim_slot *slot = slot_of((unsigned int)gettid());

	(void)signo;
	if (!slot)
		return;
	slot->paying = 1;
	__atomic_exchange_n(&slot->owed_ns, 0, __ATOMIC_ACQ_REL);
	while (clock_monotonic_ns() - start < PAYMENT_NS)
		;
	__atomic_add_fetch(&slot->paid_ns, clock_monotonic_ns() - start, __ATOMIC_RELEASE);
	__atomic_add_fetch(&slot->payments, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->paying, 0, __ATOMIC_RELEASE);
}

static void child(int go)
{
	struct sigaction sa = {.sa_handler = pay_slowly, .sa_flags = SA_RESTART};
	pthread_t t;
	char c;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)sigaction(SIGNO, &sa, NULL);
	if (read(go, &c, 1) < 0)
		_exit(1);
	pthread_create(&t, NULL, hitter, NULL);
	/* Woken by a timer, so from outside, with more than a moment's debt. */
	for (;;)
		(void)usleep(10000);
}

/* What the books say that @tid has paid in the experiment that just ended. */
static int64_t paid_by(struct session *s, unsigned int tid)
{
	struct abi_thread_record r;
	int64_t paid = -1;
	int fd = bpf_iter_create(bpf_link__fd(s->iter));

	assert_true(fd >= 0);
	while (read(fd, &r, sizeof(r)) == (ssize_t)sizeof(r))
		if (r.tid == tid)
			paid = r.paid;
	(void)close(fd);
	return paid;
}

static void a_debt_is_slept_off_once(void **state)
{
	struct session_options o = {
		.config.payer = ABI_PAY_HOLD, .config.signo = SIGNO, .rate_hz = 1000, .seed = 1};
	struct code_scope scope = {.functions = true};
	struct abi_interval iv[ABI_MAX_INTERVALS];
	struct backend_setup setup = {.intervals = iv, .speedup = 0.5};
	struct session *s = NULL;
	struct code_map *code;
	struct shim_slot before, *slot;
	struct error e = {.text = ""};
	int go[2];
	int64_t paid;
	bool changed;
	pid_t pid;

	(void)state;
	REQUIRE_BPF();
	if (!feature_usable("task_work", NULL)) {
		print_message("skipped: no BPF task work on this kernel\n");
		skip();
	}
	if (code_map_open("/proc/self/exe", &scope, &code, &e) < 0 || session_open(&o, &s, &e) < 0)
		fail_msg("%s", e.text);
	session_calibrate(s);
	slots = mmap(NULL, SHIM_SLOTS * sizeof(*slots), PROT_READ | PROT_WRITE, MAP_SHARED,
		     session_slots_fd(s), 0);
	assert_ptr_not_equal(slots, MAP_FAILED);
	assert_int_equal(pipe(go), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)close(go[1]);
		child(go[0]);
	}
	(void)close(go[0]);
	if (session_attach(s, pid, &e) < 0 || code_map_refresh(code, 0, pid, &changed, &e) < 0 ||
	    session_set_code(s, code, &e) < 0)
		fail_msg("%s", e.text);
	s->skel->bss->control.signals_ok = 1;
	assert_int_equal(write(go[1], "g", 1), 1);
	(void)close(go[1]);
	(void)usleep(100000);

	slot = slot_of((unsigned int)pid);
	assert_non_null(slot);
	before = *slot;
	assert_int_equal(session_backend.intervals(s, "hot_line", iv, &setup.n_intervals), 0);
	assert_int_equal(session_backend.begin(s, &setup), 0);
	(void)usleep(500000);
	assert_int_equal(session_backend.end(s), 0);
	paid = paid_by(s, (unsigned int)pid);
	assert_true(paid > 0);
	assert_true(slot->payments - before.payments >= 3);
	/* What is not folded in yet may be missing; there must be nothing else. */
	assert_true(paid <= (int64_t)(slot->paid_ns - before.paid_ns +
				      (slot->payments - before.payments + 1) * OVERHEAD_NS));
	(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
	(void)munmap(slots, SHIM_SLOTS * sizeof(*slots));
	session_close(s);
	code_map_close(code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_debt_is_slept_off_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
