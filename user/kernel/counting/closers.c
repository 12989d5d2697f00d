// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/counting/private.h"

#include <unistd.h>

static void *close_link(void *arg)
{
	struct closer *c = arg;

	(void)close(c->fd);
	return NULL;
}

static void wait_for(struct closer *c)
{
	if (c->runs)
		(void)pthread_join(c->thread, NULL);
	c->runs = false;
}

void closers_close(struct closers *x, int fd)
{
	struct closer *c = &x->all[x->next++ % CLOSERS];

	wait_for(c);
	c->fd = fd;
	c->runs = pthread_create(&c->thread, NULL, close_link, c) == 0;
	if (!c->runs)
		(void)close(fd);
}

void closers_wait(struct closers *x)
{
	for (size_t i = 0; i < CLOSERS; i++)
		wait_for(&x->all[i]);
}
