// SPDX-License-Identifier: BSD-2-Clause
/* Threads that live for one piece of work: in each round two are made, work side by side (a) and are joined; then the one that made them
 * works alone (b). A round is a + b. Of kind `fork` it is one process instead, which is waited for. */
#include "program.h"

#include <sys/wait.h>

static uint64_t steps_a, steps_b;
static struct program p = { .round_us = 5000, .share_a = 60, .kind = "thread", .stays = true };

static KEEP void work_a(void)
{
	SPIN(steps_a); /* LINE:a */
}

static KEEP void work_b(void)
{
	SPIN(steps_b); /* LINE:b */
}

static void *once(void *arg)
{
	work_a();
	return arg;
}

/* Born where they stay: a thread that moves itself has waited for its maker's CPU already. */
static void place(pthread_attr_t *attr, int index)
{
	cpu_set_t allowed, one;

	(void)pthread_attr_init(attr);
	if (!p.pin || sched_getaffinity(getpid(), sizeof(allowed), &allowed) < 0)
		return;
	index %= CPU_COUNT(&allowed);
	CPU_ZERO(&one);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed) && index-- == 0)
			CPU_SET(cpu, &one);
	(void)pthread_attr_setaffinity_np(attr, sizeof(one), &one);
}

static void by_threads(const pthread_attr_t attr[2])
{
	pthread_t t[2];

	/* The one on the maker's own CPU last: it may run at once, before the maker goes on. */
	for (int i = 1; i >= 0; i--) {
		int r = pthread_create(&t[i], &attr[i], once, NULL);

		if (r) {
			fprintf(stderr, "cannot create a thread: %s\n", strerror(r));
			exit(2);
		}
	}
	for (int i = 0; i < 2; i++)
		(void)pthread_join(t[i], NULL);
}

static void by_a_process(void)
{
	pid_t child = fork();

	if (child < 0) {
		perror("fork");
		exit(2);
	}
	if (child == 0) {
		work_a();
		_exit(0);
	}
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		continue;
}

static void *lead(void *arg)
{
	bool forks = strcmp(p.kind, "fork") == 0;
	pthread_attr_t attr[2];

	pin_to(&p, 0);
	place(&attr[0], 0);
	place(&attr[1], 1);
	for (;;) {
		if (forks)
			by_a_process();
		else
			by_threads(attr);
		work_b();
		visit();
	}
	return arg;
}

int main(int argc, char **argv)
{
	program_start(&p, argc, argv);
	steps_a = program_steps(&p, p.round_us * p.share_a / 100, p.speedup_a);
	steps_b = program_steps(&p, p.round_us * (100 - p.share_a) / 100, p.speedup_b);
	start_thread(lead, NULL);
	program_finish(&p, NULL);
}
