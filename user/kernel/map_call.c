// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/map_call.h"

#include <sched.h>

bool map_call_begin(void)
{
	const struct sched_param least = {.sched_priority = 1};

	return sched_getscheduler(0) == SCHED_OTHER &&
	       sched_setscheduler(0, SCHED_FIFO, &least) == 0;
}

void map_call_end(const bool *raised)
{
	const struct sched_param none = {0};

	if (*raised)
		(void)sched_setscheduler(0, SCHED_OTHER, &none);
}
