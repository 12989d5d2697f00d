// SPDX-License-Identifier: BSD-2-Clause
#include "wrap.h"

#include <stdlib.h>

/* A thread begins level: its maker has paid. Its end lets those go that join it, however it ends. */
struct birth {
	void *(*function)(void *);
	int (*c11_function)(void *);
	void *arg;
};

static void at_end(void *arg)
{
	(void)arg;
	shim_before_wake();
}

static struct birth begin(void *arg)
{
	struct birth b = *(struct birth *)arg;

	free(arg);
	shim_after_wait(false, false);
	return b;
}

static void *live(void *arg)
{
	struct birth b = begin(arg);
	void *volatile result;

	pthread_cleanup_push(at_end, NULL);
	result = b.function(b.arg);
	pthread_cleanup_pop(1);
	return result;
}

static int live_c11(void *arg)
{
	struct birth b = begin(arg);
	volatile int result;

	pthread_cleanup_push(at_end, NULL);
	result = b.c11_function(b.arg);
	pthread_cleanup_pop(1);
	return result;
}

static struct birth *prepare(const struct birth *b)
{
	int saved = errno;
	struct birth *copy = malloc(sizeof(*copy));

	errno = saved;
	if (!copy)
		return NULL;
	*copy = *b;
	shim_before_wake();
	return copy;
}

EXPORT int pthread_create(pthread_t *restrict ret, const pthread_attr_t *restrict attributes, void *(*function)(void *), void *restrict arg)
{
	struct birth *b = prepare(&(struct birth){.function = function, .arg = arg});
	int result = b ? REAL(pthread_create)(ret, attributes, live, b) : EAGAIN;

	if (result != 0)
		free(b);
	return result;
}

EXPORT int thrd_create(thrd_t *ret, thrd_start_t function, void *arg)
{
	struct birth *b = prepare(&(struct birth){.c11_function = function, .arg = arg});
	int result = b ? REAL(thrd_create)(ret, live_c11, b) : thrd_nomem;

	if (result != thrd_success)
		free(b);
	return result;
}
