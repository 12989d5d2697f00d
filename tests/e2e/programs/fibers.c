// SPDX-License-Identifier: BSD-2-Clause
/* Fibers on two threads, M:N: a function begins on one thread, gives up the CPU, and goes on and returns on the other: `rounds=N settle_ns=N`.
 * usage: fibers ROUNDS [SETTLE_SECONDS] */
#include "settle.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <ucontext.h>

#define THREADS 2
#define FIBERS 8
#define STACK (64 << 10)

struct fiber {
	ucontext_t here, *scheduler; /* of the thread that it runs on */
	struct fiber *next;
	bool done;
	uint64_t rounds;
	char stack[STACK];
};

static struct fiber fibers[FIBERS];
static struct {
	struct fiber *first;
	pthread_mutex_t lock;
	pthread_cond_t some;
} ready[THREADS];
static pthread_mutex_t left_lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned int left = FIBERS;
static long rounds;

static KEEP void burn(uint64_t n)
{
	BURN(n); /* LINE:burn */
}

static void give_up(struct fiber *f)
{
	(void)swapcontext(&f->here, f->scheduler);
}

static KEEP uint64_t handle(struct fiber *f, uint64_t x)
{
	give_up(f);
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

static void live(unsigned int low, unsigned int high)
{
	struct fiber *f = (struct fiber *)((uint64_t)high << 32 | low);

	for (long i = 0; i < rounds; i++)
		f->rounds = handle(f, f->rounds);
	f->done = true;
	give_up(f);
}

static void put(struct fiber *f, unsigned int thread)
{
	(void)pthread_mutex_lock(&ready[thread].lock);
	f->next = ready[thread].first;
	ready[thread].first = f;
	(void)pthread_cond_signal(&ready[thread].some);
	(void)pthread_mutex_unlock(&ready[thread].lock);
}

static bool some_left(void)
{
	bool some;

	(void)pthread_mutex_lock(&left_lock);
	some = left > 0;
	(void)pthread_mutex_unlock(&left_lock);
	return some;
}

static void end_one(void)
{
	(void)pthread_mutex_lock(&left_lock);
	left--;
	(void)pthread_mutex_unlock(&left_lock);
	for (unsigned int i = 0; i < THREADS; i++) {
		(void)pthread_mutex_lock(&ready[i].lock);
		(void)pthread_cond_broadcast(&ready[i].some);
		(void)pthread_mutex_unlock(&ready[i].lock);
	}
}

/* NULL: all fibers have ended. */
static struct fiber *take(unsigned int thread)
{
	struct fiber *f;

	(void)pthread_mutex_lock(&ready[thread].lock);
	while (!ready[thread].first && some_left())
		(void)pthread_cond_wait(&ready[thread].some, &ready[thread].lock);
	f = ready[thread].first;
	if (f)
		ready[thread].first = f->next;
	(void)pthread_mutex_unlock(&ready[thread].lock);
	return f;
}

static void *run(void *arg)
{
	unsigned int me = (unsigned int)(uintptr_t)arg;
	ucontext_t scheduler;
	struct fiber *f;

	while ((f = take(me))) {
		f->scheduler = &scheduler;
		(void)swapcontext(&scheduler, &f->here);
		if (f->done)
			end_one();
		else
			put(f, (me + 1) % THREADS);
	}
	return NULL;
}

static void begin(struct fiber *f, unsigned int thread)
{
	uint64_t address = (uint64_t)(uintptr_t)f;

	(void)getcontext(&f->here);
	f->here.uc_stack.ss_sp = f->stack;
	f->here.uc_stack.ss_size = STACK;
	makecontext(&f->here, (void (*)(void))live, 2, (unsigned int)address, (unsigned int)(address >> 32));
	put(f, thread);
}

int main(int argc, char **argv)
{
	uint64_t length = settle_length(argc, argv), all = 0;
	pthread_t threads[THREADS];

	rounds = (argc > 1 ? atol(argv[1]) : 1000) / FIBERS;
	settle(length);
	for (unsigned int i = 0; i < THREADS; i++) {
		(void)pthread_mutex_init(&ready[i].lock, NULL);
		(void)pthread_cond_init(&ready[i].some, NULL);
	}
	for (unsigned int i = 0; i < FIBERS; i++)
		begin(&fibers[i], i % THREADS);
	for (uintptr_t i = 0; i < THREADS; i++)
		(void)pthread_create(&threads[i], NULL, run, (void *)i);
	for (unsigned int i = 0; i < THREADS; i++)
		(void)pthread_join(threads[i], NULL);
	for (unsigned int i = 0; i < FIBERS; i++)
		all += fibers[i].rounds;
	settle(length / 4);
	printf("rounds=%llu settle_ns=%llu\n", (unsigned long long)all, (unsigned long long)length);
	return 0;
}
