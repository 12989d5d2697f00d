// SPDX-License-Identifier: BSD-2-Clause
/* The wrapped calls of --sync pthread: when do they reach the places where the ledger listens? The
 * program is this one, run again under the preloaded library; it plays the ledger, too. A
 * breakpoint stands where the controller would put its probe. */
#include "tests/unit/shim_child.h"

#include "target/shim/image.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>

/* The child's. */
static struct shim_slot *slots;
static struct shim_sync *all;
enum { WAKES, BLOCKS, BACK, SITES };
static const char *const names[SITES] = {"_cozbpf_site_wakes", "_cozbpf_site_blocks",
					 "_cozbpf_site_back"};
static unsigned char *sites[SITES];
static pid_t watched; /* whose visits count */
static unsigned int visits[SITES];
static long credit;    /* at the last return */
static bool give;      /* a slot to who has none */
static long long pays; /* before waking, each time */

static struct shim_slot *slot_of(pid_t tid)
{
	struct shim_slot *s = &slots[(unsigned int)tid % SHIM_SLOTS];

	return s->tid == (unsigned int)tid ? s : NULL;
}

static void visit(int signo, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	unsigned char *at = (unsigned char *)regs[REG_RIP] - 1;
	pid_t tid = (pid_t)syscall(SYS_gettid);
	struct shim_slot *s = slot_of(tid);

	(void)signo;
	(void)info;
	for (int i = 0; i < SITES; i++) {
		if (at != sites[i] || tid != watched)
			continue;
		(void)__atomic_add_fetch(&visits[i], 1, __ATOMIC_SEQ_CST);
		if (i == BACK)
			credit = (long)regs[REG_RDI];
	}
	if (s && at == sites[WAKES])
		s->paid_ns += (unsigned long long)pays;
	else if (!s && give)
		slots[(unsigned int)tid % SHIM_SLOTS] =
			(struct shim_slot){.tid = (unsigned int)tid, .level = all->g};
}

enum { NOP = 0x90, BREAKPOINT = 0xcc };

static void set_sites(int instruction)
{
	for (int i = 0; i < SITES; i++)
		__atomic_store_n(sites[i], (unsigned char)instruction, __ATOMIC_SEQ_CST);
}

static void listen_at_sites(void)
{
	struct sigaction sa = {.sa_sigaction = visit, .sa_flags = SA_SIGINFO};
	long page = sysconf(_SC_PAGESIZE);

	CHECK(sigaction(SIGTRAP, &sa, NULL) == 0);
	for (int i = 0; i < SITES; i++) {
		static const unsigned char nop[] = {NOP, 0xc3}; /* and the return */
		uintptr_t start;

		sites[i] = dlsym(RTLD_DEFAULT, names[i]);
		CHECK(sites[i] && memcmp(sites[i], nop, sizeof(nop)) == 0);
		start = (uintptr_t)sites[i] & ~((uintptr_t)page - 1);
		CHECK(mprotect((void *)start, (size_t)page, PROT_READ | PROT_WRITE | PROT_EXEC) ==
		      0);
	}
	set_sites(BREAKPOINT);
}

/* A sanitizer's runtime begins a thread with all signals blocked, and may call there what is
 * wrapped: a breakpoint would end the program. */
static struct {
	void *(*function)(void *);
	void *arg;
	int begun, listening;
} thread;

static void *once_listening(void *arg)
{
	(void)arg;
	__atomic_store_n(&thread.begun, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&thread.listening, __ATOMIC_SEQ_CST))
		(void)usleep(100);
	return thread.function(thread.arg);
}

static void begin_thread(pthread_t *t, void *(*function)(void *), void *arg)
{
	thread.function = function;
	thread.arg = arg;
	thread.begun = thread.listening = 0;
	set_sites(NOP);
	CHECK(pthread_create(t, NULL, once_listening, NULL) == 0);
	while (!__atomic_load_n(&thread.begun, __ATOMIC_SEQ_CST))
		(void)usleep(100);
	set_sites(BREAKPOINT);
	__atomic_store_n(&thread.listening, 1, __ATOMIC_SEQ_CST);
}

static void forget(void)
{
	memset(visits, 0, sizeof(visits));
	credit = -1;
}

static bool visited(unsigned int wakes, unsigned int blocks, unsigned int backs)
{
	bool as_said = visits[WAKES] == wakes && visits[BLOCKS] == blocks && visits[BACK] == backs;

	if (!as_said)
		(void)fprintf(stderr, "wakes %u, blocks %u, back %u\n", visits[WAKES],
			      visits[BLOCKS], visits[BACK]);
	forget();
	return as_said;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t alone;
static sem_t sem;
static const struct timespec past;

static void lock_and_unlock(void)
{
	CHECK(pthread_mutex_lock(&mutex) == 0);
	CHECK(pthread_mutex_unlock(&mutex) == 0);
}

static void read_and_unlock(void)
{
	CHECK(pthread_rwlock_rdlock(&rwlock) == 0);
	CHECK(pthread_rwlock_unlock(&rwlock) == 0);
}

static void write_and_unlock(void)
{
	CHECK(pthread_rwlock_wrlock(&rwlock) == 0);
	CHECK(pthread_rwlock_unlock(&rwlock) == 0);
}

static void spin_and_unlock(void)
{
	CHECK(pthread_spin_lock(&spin) == 0);
	CHECK(pthread_spin_unlock(&spin) == 0);
}

static void signal_one(void)
{
	CHECK(pthread_cond_signal(&cond) == 0);
}

static void signal_all(void)
{
	CHECK(pthread_cond_broadcast(&cond) == 0);
}

static void post_and_wait(void)
{
	CHECK(sem_post(&sem) == 0);
	CHECK(sem_wait(&sem) == 0);
}

static void send_signals(void)
{
	CHECK(kill(getpid(), 0) == 0);
	CHECK(pthread_kill(pthread_self(), 0) == 0);
}

/* None of them has to wait. */
static void (*const calls[])(void) = {lock_and_unlock, read_and_unlock, write_and_unlock,
				      spin_and_unlock, signal_one,	signal_all,
				      post_and_wait,   send_signals};
#define N_CALLS (sizeof(calls) / sizeof(*calls))

static void nothing_to_do_is_told_nobody(void)
{
	/* No experiment: also with a debt. */
	all->g = 1000000;
	for (size_t i = 0; i < N_CALLS; i++)
		calls[i]();
	CHECK(visited(0, 0, 0));
	all->active = 1;
	all->g = 0;
	/* No slot: it is asked for, ever more seldom. */
	for (int i = 0; i < 1000; i++)
		lock_and_unlock();
	CHECK(visits[WAKES] >= 2 && visits[WAKES] <= 12);
	forget();
	give = true;
	for (int i = 0; i < 2000; i++)
		lock_and_unlock();
	CHECK(visited(1, 0, 0));
	for (size_t i = 0; i < N_CALLS; i++)
		calls[i]();
	CHECK(visited(0, 0, 0));
}

static void debts_are_paid_before_waking(void)
{
	struct shim_slot *s = slot_of(watched);

	for (size_t i = 0; i < N_CALLS; i++) {
		pays = all->g = 5000 * (long long)(i + 1);
		pays -= s->level + (long long)s->paid_ns;
		calls[i]();
		CHECK(visited(1, 0, 0));
	}
	/* What was paid counts before the ledger has seen it. */
	lock_and_unlock();
	CHECK(visited(0, 0, 0));
	all->g += SHIM_THRESHOLD_NS - 1;
	lock_and_unlock();
	CHECK(visited(0, 0, 0));
	/* A payment in pieces. */
	all->g += 9000;
	pays = 5000;
	lock_and_unlock();
	CHECK(visited(2, 0, 0)); /* less than the threshold is left */
	/* A thread that cannot pay goes on. */
	all->g += 1000000;
	pays = 0;
	lock_and_unlock();
	CHECK(visited(4, 0, 0));
	s->level = all->g - (long long)s->paid_ns;
	/* The last one at a barrier lets the others go. */
	all->g += 5000;
	pays = 5000;
	CHECK(pthread_barrier_wait(&alone) == PTHREAD_BARRIER_SERIAL_THREAD);
	CHECK(visited(1, 1, 1));
	all->g += 5000;
	CHECK(pthread_mutex_lock(&mutex) == 0);
	CHECK(pthread_cond_timedwait(&cond, &mutex, &past) == ETIMEDOUT);
	CHECK(visited(1, 1, 1));
	CHECK(pthread_mutex_unlock(&mutex) == 0);
	pays = 0;
}

static void *lets_go(void *arg)
{
	(void)arg;
	while (!__atomic_load_n(&visits[BLOCKS], __ATOMIC_SEQ_CST))
		(void)usleep(100);
	CHECK(pthread_mutex_unlock(&mutex) == 0);
	return NULL;
}

static void *holds(void *arg)
{
	CHECK(pthread_mutex_lock(&mutex) == 0);
	(void)sem_post(arg);
	return lets_go(NULL);
}

static void waits_are_told(void)
{
	pthread_t t;
	sem_t held;

	CHECK(sem_init(&held, 0, 0) == 0);
	begin_thread(&t, holds, &held);
	while (sem_trywait(&held) != 0)
		(void)usleep(100);
	CHECK(pthread_mutex_trylock(&mutex) == EBUSY);
	CHECK(visited(0, 0, 0));
	CHECK(pthread_mutex_lock(&mutex) == 0);
	CHECK(credit == 1);
	CHECK(visited(0, 1, 1));
	CHECK(pthread_join(t, NULL) == 0);
	CHECK(credit == 1);
	CHECK(visited(0, 1, 1));
	/* None after a timeout. */
	CHECK(pthread_mutex_timedlock(&mutex, &past) == ETIMEDOUT);
	CHECK(credit == 0);
	CHECK(visited(0, 1, 1));
	CHECK(pthread_cond_timedwait(&cond, &mutex, &past) == ETIMEDOUT);
	CHECK(credit == 0);
	CHECK(visited(0, 1, 1));
	CHECK(sem_timedwait(&sem, &past) < 0 && errno == ETIMEDOUT);
	CHECK(credit == 0);
	CHECK(visited(0, 1, 1));
	CHECK(pthread_mutex_unlock(&mutex) == 0);
}

static void *end_experiment(void *arg)
{
	while (!__atomic_load_n(&visits[BLOCKS], __ATOMIC_SEQ_CST))
		(void)usleep(100);
	__atomic_store_n(&all->active, 0, __ATOMIC_SEQ_CST);
	CHECK(sem_post(arg) == 0);
	return NULL;
}

/* The experiment ended meanwhile: the ledger must know that the wait has. */
static void waits_end_with_experiments(void)
{
	pthread_t t;

	begin_thread(&t, end_experiment, &sem);
	CHECK(sem_wait(&sem) == 0);
	CHECK(visited(0, 1, 1));
	CHECK(pthread_join(t, NULL) == 0);
	CHECK(visited(0, 0, 0));
	all->active = 1;
}

/* The last thing that a thread does is to pay. */
static void *takes_over(void *arg)
{
	watched = (pid_t)syscall(SYS_gettid);
	forget();
	lock_and_unlock();
	CHECK(visited(1, 0, 0)); /* its slot */
	all->g += 5000;
	pays = 5000;
	return arg;
}

static void threads_end_paid(void)
{
	pid_t me = watched;
	pthread_t t;
	void *result = NULL;

	begin_thread(&t, takes_over, &result);
	CHECK(pthread_join(t, &result) == 0 && result == &result);
	CHECK(visited(1, 0, 0));
	watched = me;
	pays = 0;
}

static int child(char **argv)
{
	slots = child_slots(argv);
	all = (struct shim_sync *)&slots[SHIM_SLOTS];
	watched = getpid();
	CHECK(pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE) == 0);
	CHECK(pthread_barrier_init(&alone, NULL, 1) == 0);
	CHECK(sem_init(&sem, 0, 0) == 0);
	listen_at_sites();
	nothing_to_do_is_told_nobody();
	debts_are_paid_before_waking();
	waits_are_told();
	waits_end_with_experiments();
	threads_end_paid();
	return 0;
}

static void calls_tell_what_the_ledger_needs(void **state)
{
	(void)state;
	run_child(shim_pthread_image, shim_pthread_image_size, SHIM_PAY_NONE, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_tell_what_the_ledger_needs),
	};

	if (argc == 3)
		return child(argv);
	prepare_children();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
