// SPDX-License-Identifier: BSD-2-Clause
/* handover with processes for threads: a parent forks two workers, one with work a and one with work b, which hand over through pipes,
 * through TCP over the loopback device, or through a counter in shared memory with a process-shared mutex and condition variable (--kind). With --window 1 they strictly
 * alternate, with more the slower sets the pace. The parent only waits. */
#include "channel.h"

#include <sys/mman.h>

static struct shared {
	struct channel items, credits;
	struct visit_counts counts;
	struct worked worked;
} *shared;

static uint64_t steps_a, steps_b;
static struct program p = { .round_us = 5000, .share_a = 60, .window = 1, .kind = "pipe" };
static bool by_descriptor;

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static KEEP void work_b(void)
{
	SPIN(steps_b); /* LINE:b */
}

static void open_channel(struct channel *c)
{
	int fds[2];

	if (strcmp(p.kind, "tcp") == 0) {
		open_tcp(fds);
		c->in = fds[0];
		c->out = fds[1];
	} else if (by_descriptor) {
		open_pipe(c);
	} else {
		open_counter(c, true);
	}
}

static void give(struct channel *c)
{
	if (by_descriptor)
		give_byte(c);
	else
		give_counter(c);
}

static void take(struct channel *c)
{
	if (by_descriptor)
		take_byte(c);
	else
		take_counter(c);
}

static void producer(void)
{
	pin_to(&p, 0);
	for (;;) {
		take(&shared->credits);
		work_a();
		give(&shared->items);
	}
}

static void consumer(void)
{
	pin_to(&p, 1);
	for (;;) {
		take(&shared->items);
		work_b();
		visit();
		give(&shared->credits);
	}
}

static void start_worker(void (*body)(void))
{
	if (!in_child())
		return;
	body();
	_exit(2);
}

int main(int argc, char **argv)
{
	program_start(&p, argc, argv);
	by_descriptor = strcmp(p.kind, "mutex") != 0;
	if (by_descriptor && strcmp(p.kind, "pipe") != 0 && strcmp(p.kind, "tcp") != 0)
		program_usage(argv[0]);
	steps_a = program_steps(&p, p.round_us * p.share_a / 100, p.speedup_a);
	steps_b = program_steps(&p, p.round_us * (100 - p.share_a) / 100, p.speedup_b);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	check(shared != MAP_FAILED, "mmap");
	visit_counts = &shared->counts;
	worked = &shared->worked;
	open_channel(&shared->items);
	open_channel(&shared->credits);
	for (long i = 0; i < p.window; i++)
		give(&shared->credits);
	start_worker(producer);
	start_worker(consumer);
	program_finish(&p, NULL);
}
