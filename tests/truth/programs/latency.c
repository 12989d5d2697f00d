// SPDX-License-Identifier: BSD-2-Clause
/* Requests whose latency is arithmetic, from request_begin(r) to request_end(r).
 *
 * classes: one thread serves them one after the other: work b, and for one in twenty work a as well, five times as long. A
 * second thread is at work in c all the time and nobody waits for it. Of a round (b) of 4 ms: latency 4 ms, one in twenty 24
 * ms. queue: one thread makes requests (b) and another serves them (a), two at most are under way. While a > b the server
 * always works, and a request waits for the one before it: made b after a service began, it is done when that one and its
 * own are: 2 a - b. With a < b it waits for nobody: a. The threads of begin and end differ: the request is the key.
 * lock: as classes, but what makes some requests slow is a second thread that holds a lock for as long as a takes, now and
 * then; a request takes that lock before its work b. */
#include "program.h"

enum { CLASS = 20, SLOWER = 5, WINDOW = 2 };

static uint64_t steps_a, steps_b;
static struct program p = {.round_us = 4000, .share_a = 60, .kind = "classes"};
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static char requests[WINDOW]; /* a request is an address in here */
static unsigned long made, done;

static KEEP void request_begin(const char *request)
{
	__asm__ volatile("" : : "r"(request) : "memory");
}

/* The request is the second argument. */
static KEEP void request_end(int status, const char *request)
{
	__asm__ volatile("" : : "r"(status), "r"(request) : "memory");
}

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
	SPIN(steps_b); /* LINE:c */
}

/* Which one of each twenty is slow is chance, so that it falls in step with nothing. */
static void *serve_classes(void *arg)
{
	uint64_t random = 1;

	pin_to(&p, 0);
	for (;;) {
		unsigned int slow;

		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		slow = (unsigned int)(random >> 33) % CLASS;
		for (unsigned int i = 0; i < CLASS; i++) {
			request_begin(requests);
			work_b();
			if (i == slow)
				work_a();
			request_end(0, requests);
			visit();
		}
	}
	return arg;
}

static void *elsewhere(void *arg)
{
	pin_to(&p, 1);
	for (;;)
		work_c();
	return arg;
}

static void *serve_behind_lock(void *arg)
{
	pin_to(&p, 0);
	for (;;) {
		request_begin(requests);
		(void)pthread_mutex_lock(&mutex);
		(void)pthread_mutex_unlock(&mutex);
		work_b();
		request_end(0, requests);
		visit();
	}
	return arg;
}

/* Between two times it sleeps for 30 to 40 rounds, so that it falls in step with nothing. */
static void *hold_lock(void *arg)
{
	uint64_t random = 1;

	pin_to(&p, 1);
	for (;;) {
		random = random * 6364136223846793005ULL + 1442695040888963407ULL;
		(void)usleep((useconds_t)(p.round_us * (30 + (double)((random >> 33) % 10))));
		(void)pthread_mutex_lock(&mutex);
		work_a();
		(void)pthread_mutex_unlock(&mutex);
	}
	return arg;
}

static void *make(void *arg)
{
	pin_to(&p, 0);
	for (unsigned long n = 0;; n++) {
		(void)pthread_mutex_lock(&mutex);
		while (made - done == WINDOW)
			(void)pthread_cond_wait(&changed, &mutex);
		(void)pthread_mutex_unlock(&mutex);
		work_b();
		request_begin(&requests[n % WINDOW]);
		(void)pthread_mutex_lock(&mutex);
		made++;
		(void)pthread_cond_broadcast(&changed);
		(void)pthread_mutex_unlock(&mutex);
	}
	return arg;
}

static void *serve_queue(void *arg)
{
	pin_to(&p, 1);
	for (unsigned long n = 0;; n++) {
		(void)pthread_mutex_lock(&mutex);
		while (made == done)
			(void)pthread_cond_wait(&changed, &mutex);
		(void)pthread_mutex_unlock(&mutex);
		work_a();
		request_end(0, &requests[n % WINDOW]);
		visit();
		(void)pthread_mutex_lock(&mutex);
		done++;
		(void)pthread_cond_broadcast(&changed);
		(void)pthread_mutex_unlock(&mutex);
	}
	return arg;
}

int main(int argc, char **argv)
{
	program_start(&p, argc, argv);
	if (strcmp(p.kind, "classes") == 0) {
		steps_b = program_steps(&p, p.round_us, p.speedup_b);
		steps_a = program_steps(&p, SLOWER * p.round_us, p.speedup_a);
		start_thread(serve_classes, NULL);
		start_thread(elsewhere, NULL);
	} else if (strcmp(p.kind, "lock") == 0) {
		steps_b = program_steps(&p, p.round_us, p.speedup_b);
		steps_a = program_steps(&p, SLOWER * p.round_us, p.speedup_a);
		start_thread(serve_behind_lock, NULL);
		start_thread(hold_lock, NULL);
	} else if (strcmp(p.kind, "queue") == 0) {
		steps_a = program_steps(&p, p.round_us * p.share_a / 100, p.speedup_a);
		steps_b = program_steps(&p, p.round_us * (100 - p.share_a) / 100, p.speedup_b);
		start_thread(make, NULL);
		start_thread(serve_queue, NULL);
	} else {
		program_usage(argv[0]);
	}
	program_finish(&p, NULL);
}
