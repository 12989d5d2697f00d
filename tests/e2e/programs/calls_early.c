// SPDX-License-Identifier: BSD-2-Clause
/* Calls before main, from a library that no preloaded one depends on: its constructor may come first. */
#include "calls.h"

static int succeeded;

static void *answer(void *arg)
{
	return arg;
}

__attribute__((constructor)) static void begin(void)
{
	pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t c = PTHREAD_COND_INITIALIZER;
	void *result = NULL;
	pthread_t t;
	sem_t s;

	succeeded += pthread_mutex_lock(&m) == 0;
	succeeded += pthread_cond_broadcast(&c) == 0;
	succeeded += pthread_mutex_unlock(&m) == 0;
	succeeded += sem_init(&s, 0, 0) == 0;
	succeeded += sem_post(&s) == 0;
	succeeded += sem_wait(&s) == 0;
	succeeded += pthread_create(&t, NULL, answer, &succeeded) == 0 && pthread_join(t, &result) == 0 && result == &succeeded;
}

int early_calls(void)
{
	return succeeded;
}
