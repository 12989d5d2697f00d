// SPDX-License-Identifier: BSD-2-Clause
/* Like threads (--threads, 2): work a inside one lock, then work b outside it; inside and outside together are a round, --share-a
 * inside. Either the lock is always taken (a visit each `inside`) or nobody ever waits for it (two threads: two visits each `inside +
 * outside`; more than CPUs: all CPUs are busy): the time between visits is max(inside, (inside + outside) / min(threads, CPUs)).
 * --more is work inside the lock besides a.
 * --kind ticket hands the lock over in turn, so a thread with next to nothing to do outside cannot take it twice;
 * --kind mutex is the plain pthread mutex, which keeps to the same arithmetic as long as the work outside is longer
 * than a wake-up. With adaptive that mutex spins for some microseconds first. With spin (pthread_spin_lock) and trylock (again and again) threads never
 * block. The first turn is in the order of the threads, so that pinned ones take the ticket lock on one CPU after the other. */
#include "program.h"

#include <linux/futex.h>
#include <sys/syscall.h>

static uint64_t steps_a, steps_b, steps_more;
static struct program p = { .round_us = 5000, .share_a = 70, .threads = 2, .kind = "ticket" };
static pthread_mutex_t mutex;
static pthread_spinlock_t spin;
static uint32_t next_ticket, serving, *places; /* a word for each thread that can wait: a ticket's holder alone is woken */

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static KEEP void work_b(void)
{
	SPIN(steps_b); /* LINE:b */
}

static KEEP void work_more(void)
{
	SPIN(steps_more);
}

static void ticket_take(void)
{
	uint32_t mine = __atomic_fetch_add(&next_ticket, 1, __ATOMIC_SEQ_CST), *place = &places[mine % (uint32_t)p.threads];

	for (;;) {
		uint32_t seen = __atomic_load_n(place, __ATOMIC_SEQ_CST);

		if (__atomic_load_n(&serving, __ATOMIC_SEQ_CST) == mine)
			return;
		(void)syscall(SYS_futex, place, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
	}
}

static void ticket_give(void)
{
	uint32_t served = __atomic_add_fetch(&serving, 1, __ATOMIC_SEQ_CST), *place;

	if (__atomic_load_n(&next_ticket, __ATOMIC_SEQ_CST) == served)
		return; /* nobody waits, and who comes will see its turn */
	place = &places[served % (uint32_t)p.threads];
	(void)__atomic_add_fetch(place, 1, __ATOMIC_SEQ_CST);
	(void)syscall(SYS_futex, place, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void mutex_take(void)
{
	(void)pthread_mutex_lock(&mutex);
}

static void mutex_try(void)
{
	while (pthread_mutex_trylock(&mutex))
		continue;
}

static void mutex_give(void)
{
	(void)pthread_mutex_unlock(&mutex);
}

static void spin_take(void)
{
	(void)pthread_spin_lock(&spin);
}

static void spin_give(void)
{
	(void)pthread_spin_unlock(&spin);
}

static const struct lock {
	const char *name;
	void (*take)(void), (*give)(void);
} locks[] = {
	{ "ticket", ticket_take, ticket_give },  { "mutex", mutex_take, mutex_give }, { "adaptive", mutex_take, mutex_give },
	{ "trylock", mutex_try, mutex_give },    { "spin", spin_take, spin_give },
};
static const struct lock *lock;

static void choose_lock(const char *name)
{
	pthread_mutexattr_t attributes;

	for (size_t i = 0; i < sizeof(locks) / sizeof(locks[0]); i++)
		if (strcmp(p.kind, locks[i].name) == 0)
			lock = &locks[i];
	if (!lock)
		program_usage(name);
	(void)pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	(void)pthread_mutexattr_init(&attributes);
	if (strcmp(p.kind, "adaptive") == 0)
		(void)pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
	(void)pthread_mutex_init(&mutex, &attributes);
}

static void *body(void *arg)
{
	uint32_t index = (uint32_t)(intptr_t)arg;

	pin_to(&p, index);
	while (lock == locks && __atomic_load_n(&next_ticket, __ATOMIC_SEQ_CST) < index)
		(void)sched_yield();
	for (;;) {
		lock->take();
		work_more();
		work_a();
		lock->give();
		work_b();
		visit();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	program_start(&p, argc, argv);
	choose_lock(argv[0]);
	steps_a = program_steps(&p, p.round_us * p.share_a / 100, p.speedup_a);
	steps_b = program_steps(&p, p.round_us * (100 - p.share_a) / 100, p.speedup_b);
	steps_more = program_steps(&p, p.more_us, 0);
	places = calloc((size_t)p.threads, sizeof(*places));
	if (!places) {
		perror("calloc");
		return 2;
	}
	for (long i = 0; i < p.threads; i++)
		start_thread(body, (void *)(intptr_t)i);
	program_finish(&p, NULL);
}
