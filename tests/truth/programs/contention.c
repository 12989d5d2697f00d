// SPDX-License-Identifier: BSD-2-Clause
/* A line that makes things worse when it gets faster. Both threads share a lock that is given out in turn. One does its visits under it
 * (b) and comes back at once; the other works outside (a), then takes the lock for as long as a b of full length. While it is outside the
 * first gets ceil(a / b) visits done, then has to let it in: k visits take k b + c, and k falls as a gets shorter. */
#include "program.h"

#include <linux/futex.h>
#include <sys/syscall.h>

static uint64_t steps_a, steps_b, steps_c;
static struct program p = { .round_us = 9000, .share_a = 700.0 / 9 };
static uint32_t next_ticket, serving;

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static KEEP void work_b(void)
{
	SPIN(steps_b); /* LINE:b */
}

static KEEP void work_c(void)
{
	SPIN(steps_c); /* LINE:c */
}

static void take(void)
{
	uint32_t mine = __atomic_fetch_add(&next_ticket, 1, __ATOMIC_ACQ_REL), now;

	while ((now = __atomic_load_n(&serving, __ATOMIC_ACQUIRE)) != mine)
		(void)syscall(SYS_futex, &serving, FUTEX_WAIT_PRIVATE, now, NULL, NULL, 0);
}

static void give(void)
{
	uint32_t served = __atomic_add_fetch(&serving, 1, __ATOMIC_ACQ_REL);

	if (__atomic_load_n(&next_ticket, __ATOMIC_ACQUIRE) != served)
		(void)syscall(SYS_futex, &serving, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *intrude(void *arg)
{
	pin_to(&p, 0);
	for (;;) {
		work_a();
		take();
		work_c();
		give();
	}
	return arg;
}

static void *serve(void *arg)
{
	pin_to(&p, 1);
	for (;;) {
		take();
		work_b();
		give();
		visit();
	}
	return arg;
}

int main(int argc, char **argv)
{
	double b;

	program_start(&p, argc, argv);
	b = p.round_us * (100 - p.share_a) / 100;
	steps_a = program_steps(&p, p.round_us * p.share_a / 100, p.speedup_a);
	steps_b = program_steps(&p, b, p.speedup_b);
	steps_c = program_steps(&p, b, 0);
	start_thread(intrude, NULL);
	start_thread(serve, NULL);
	program_finish(&p, NULL);
}
