// SPDX-License-Identifier: BSD-2-Clause
/* Two like threads: work a inside one lock, then work b outside it; inside and outside together are a round, --share-a
 * inside. Either the lock is always taken (a visit each `inside`) or nobody ever waits (two visits each `inside +
 * outside`): the time between visits is max(inside, (inside + outside) / 2).
 * --kind ticket hands the lock over in turn, so a thread with next to nothing to do outside cannot take it twice;
 * --kind mutex is the plain pthread mutex, which keeps to the same arithmetic as long as the work outside is longer
 * than a wake-up. */
#include "program.h"

#include <linux/futex.h>
#include <sys/syscall.h>

static uint64_t steps_a, steps_b;
static struct program p = { .round_us = 5000, .share_a = 70, .kind = "ticket" };
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint32_t next_ticket, serving;
static bool ticket;

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static KEEP void work_b(void)
{
	SPIN(steps_b); /* LINE:b */
}

static void take(void)
{
	uint32_t mine, now;

	if (!ticket) {
		(void)pthread_mutex_lock(&mutex);
		return;
	}
	mine = __atomic_fetch_add(&next_ticket, 1, __ATOMIC_ACQ_REL);
	while ((now = __atomic_load_n(&serving, __ATOMIC_ACQUIRE)) != mine)
		(void)syscall(SYS_futex, &serving, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
}

static void give(void)
{
	uint32_t served;

	if (!ticket) {
		(void)pthread_mutex_unlock(&mutex);
		return;
	}
	served = __atomic_add_fetch(&serving, 1, __ATOMIC_ACQ_REL);
	if (__atomic_load_n(&next_ticket, __ATOMIC_ACQUIRE) != served) /* with two threads at most one waits */
		(void)syscall(SYS_futex, &serving, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *body(void *arg)
{
	pin_to(&p, (long)(intptr_t)arg);
	for (;;) {
		take();
		work_a();
		give();
		work_b();
		visit();
	}
	return NULL;
}

int main(int argc, char **argv)
{
	program_start(&p, argc, argv);
	ticket = strcmp(p.kind, "ticket") == 0;
	if (!ticket && strcmp(p.kind, "mutex") != 0)
		program_usage(argv[0]);
	steps_a = program_steps(&p, p.round_us * p.share_a / 100, p.speedup_a);
	steps_b = program_steps(&p, p.round_us * (100 - p.share_a) / 100, p.speedup_b);
	start_thread(body, (void *)0);
	start_thread(body, (void *)1);
	program_finish(&p, NULL);
}
