// SPDX-License-Identifier: BSD-2-Clause
/* Payments. The program is this one, run again under the preloaded library; it plays the ledger
 * too, through mappings of its own of the same page and slots. Bounds are lower bounds only: a busy
 * machine may stop a thread for as long as it likes. */
#include "tests/unit/shim_child.h"

#include "target/shim/image.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define MSEC 1000000LL
#define SIGNO ((unsigned int)SIGRTMIN + 8)

/* The child's. */
static struct shim_page *page;
static struct shim_slot *slots;

static struct shim_slot *claim(pid_t tid)
{
	unsigned int i = (unsigned int)tid % SHIM_SLOTS;

	while (__atomic_load_n(&slots[i].tid, __ATOMIC_ACQUIRE))
		i = (i + 1) % SHIM_SLOTS;
	slots[i] = (struct shim_slot){.tid = (unsigned int)tid};
	return &slots[i];
}

static void ask(struct shim_slot *s, long long owed)
{
	__atomic_store_n(&s->owed_ns, owed, __ATOMIC_RELEASE);
	CHECK(syscall(SYS_tgkill, getpid(), s->tid, SIGNO) == 0);
}

static unsigned int payments(const struct shim_slot *s)
{
	return __atomic_load_n(&s->payments, __ATOMIC_ACQUIRE);
}

/* From another thread. */
static void ask_and_wait(struct shim_slot *s, long long owed)
{
	unsigned int before = payments(s);

	ask(s, owed);
	for (int i = 0; payments(s) == before; i++) {
		/* Not slow: gone. */
		CHECK(i < 100000);
		(void)usleep(200);
	}
}

static void pays_what_is_owed(struct shim_slot *s)
{
	static const long long amounts[] = {2 * MSEC, 20000, 79000, 81000, 150000, 1, 1 * MSEC};
	long slack = prctl(PR_GET_TIMERSLACK);
	unsigned int n = payments(s);

	for (size_t i = 0; i < 3 * sizeof(amounts) / sizeof(amounts[0]); i++) {
		long long owed = amounts[i % (sizeof(amounts) / sizeof(amounts[0]))];
		unsigned long long before = s->paid_ns;

		errno = 4711;
		ask(s, owed);
		CHECK(errno == 4711);
		CHECK(s->paid_ns - before >= (unsigned long long)owed);
		CHECK(s->paying == 0 && s->owed_ns == 0 && payments(s) == ++n);
	}
	CHECK(prctl(PR_GET_TIMERSLACK) == slack);
	/* Nothing owed, or less than nothing, is a payment of nothing. */
	ask(s, 0);
	ask(s, -MSEC);
	ask(s, INT64_MIN);
	CHECK(payments(s) == n + 3);
	/* An absurd debt is cut; uncut, this would not come back. */
	ask(s, INT64_MAX);
	ask(s, 86400 * 1000 * MSEC);
	CHECK(payments(s) == n + 5);
}

static void pays_a_debt_once(struct shim_slot *s)
{
	unsigned long long before = s->paid_ns;
	unsigned int n = payments(s);
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, (int)SIGNO);
	CHECK(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	ask(s, 2 * MSEC);
	ask(s, 2 * MSEC);
	CHECK(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
	CHECK(payments(s) == n + 2);
	CHECK(s->paid_ns - before >= 2 * MSEC);
	CHECK(s->owed_ns == 0);
}

static void knows_its_own_slot_only(struct shim_slot *s)
{
	unsigned int n = payments(s);
	unsigned long long lost = page->no_slot;
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		__atomic_store_n(&s->owed_ns, 10 * MSEC, __ATOMIC_RELEASE);
		(void)syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGNO);
		_exit(s->owed_ns == 10 * MSEC ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	CHECK(payments(s) == n && page->no_slot == lost + 1);
	s->owed_ns = 0;
	/* A slot that was taken away, then given back elsewhere within reach. */
	s->tid = 0;
	CHECK(syscall(SYS_tgkill, getpid(), getpid(), SIGNO) == 0);
	CHECK(payments(s) == n && page->no_slot == lost + 2);
	s->tid = (unsigned int)getpid();
}

/* What the ledger does while a payment goes on: it writes all that is owed since its last part. */
struct debt {
	struct shim_slot *slot;
	unsigned long long from;
	long long whole;
	unsigned int payments; /* before this one */
	bool interrupts;
};

static void *keep_writing(void *arg)
{
	struct debt *d = arg;

	/* A busy machine can begin this thread after the payment. */
	while (!__atomic_load_n(&d->slot->paying, __ATOMIC_ACQUIRE) &&
	       payments(d->slot) == d->payments)
		;
	if (d->interrupts)
		CHECK(syscall(SYS_tgkill, getpid(), d->slot->tid, SIGUSR1) == 0);
	while (payments(d->slot) == d->payments) {
		long long left =
			d->whole -
			(long long)(__atomic_load_n(&d->slot->paid_ns, __ATOMIC_ACQUIRE) - d->from);

		if (left > 0)
			__atomic_store_n(&d->slot->owed_ns, left, __ATOMIC_RELEASE);
		(void)usleep(500);
	}
	return NULL;
}

/* Returns how much was paid. */
static unsigned long long pay_all(struct shim_slot *s, long long whole, bool interrupts)
{
	struct debt d = {.slot = s,
			 .from = s->paid_ns,
			 .whole = whole,
			 .payments = payments(s),
			 .interrupts = interrupts};
	pthread_t t;

	CHECK(pthread_create(&t, NULL, keep_writing, &d) == 0);
	ask(s, 10 * MSEC);
	CHECK(payments(s) == d.payments + 1);
	CHECK(pthread_join(t, NULL) == 0);
	s->owed_ns = 0;
	return s->paid_ns - d.from;
}

static volatile sig_atomic_t interrupted;

static void note(int signo)
{
	interrupted = signo;
}

/* The first part is over in 10 ms, in which the ledger has to have written: it has several turns.
 */
static void pays_more_than_a_part(struct shim_slot *s)
{
	int turns = 0;

	while (pay_all(s, 35 * MSEC, false) < 35 * MSEC)
		CHECK(++turns < 100);
	/* For a day, if no signal of the program's own came. */
	CHECK(signal(SIGUSR1, note) != SIG_ERR);
	(void)pay_all(s, 86400 * 1000 * MSEC, true);
	CHECK(interrupted == SIGUSR1);
}

struct reader {
	int pipe[2];
	struct shim_slot *slot;
};

static void *disturb(void *arg)
{
	struct reader *r = arg;

	(void)usleep(20000);
	for (int i = 0; i < 10; i++)
		ask_and_wait(r->slot, MSEC);
	CHECK(write(r->pipe[1], "x", 1) == 1);
	return NULL;
}

static void restarts_read(struct shim_slot *s)
{
	struct reader r = {.slot = s};
	pthread_t t;
	char c = 0;

	CHECK(pipe(r.pipe) == 0);
	CHECK(pthread_create(&t, NULL, disturb, &r) == 0);
	CHECK(read(r.pipe[0], &c, 1) == 1 && c == 'x');
	CHECK(pthread_join(t, NULL) == 0);
}

static int computing;
static struct shim_slot *thread_slot;

static void *compute(void *unused)
{
	thread_slot = claim((pid_t)syscall(SYS_gettid));
	__atomic_store_n(&computing, 1, __ATOMIC_RELEASE);
	/* No cancellation point in here. */
	while (__atomic_load_n(&computing, __ATOMIC_ACQUIRE))
		;
	__atomic_store_n(&computing, 2, __ATOMIC_RELEASE);
	return unused;
}

/* A pending cancellation must wait for a cancellation point of the program's, and a payment is
 * none. */
static void is_no_cancellation_point(void)
{
	pthread_t t;
	void *result = NULL;

	CHECK(pthread_create(&t, NULL, compute, &computing) == 0);
	while (!__atomic_load_n(&computing, __ATOMIC_ACQUIRE))
		(void)usleep(200);
	CHECK(pthread_cancel(t) == 0);
	for (int i = 0; i < 3; i++)
		ask_and_wait(thread_slot, MSEC);
	CHECK(thread_slot->paid_ns >= 3 * MSEC);
	__atomic_store_n(&computing, 0, __ATOMIC_RELEASE);
	CHECK(pthread_join(t, &result) == 0);
	CHECK(computing == 2 && result == &computing);
}

static int child(char **argv)
{
	struct shim_slot *s;

	page = child_page(argv);
	slots = child_slots(argv);
	CHECK(page->loaded == 1 && page->slots_mapped == 1);
	s = claim(getpid());
	pays_what_is_owed(s);
	pays_a_debt_once(s);
	pays_more_than_a_part(s);
	knows_its_own_slot_only(s);
	restarts_read(s);
	is_no_cancellation_point();
	return 0;
}

static void by_sleeping(void **state)
{
	(void)state;
	run_child(shim_image, shim_image_size, SHIM_PAY_SLEEP, SIGNO);
}

static void by_spinning(void **state)
{
	(void)state;
	run_child(shim_image, shim_image_size, SHIM_PAY_SPIN, SIGNO);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_sleeping),
		cmocka_unit_test(by_spinning),
	};
	sigset_t set;

	if (argc == 3)
		return child(argv);
	/* A program that inherits the signal blocked pays all the same. */
	sigemptyset(&set);
	sigaddset(&set, (int)SIGNO);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	prepare_children();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
