/* SPDX-License-Identifier: BSD-2-Clause */
/* For pay.c in the injected handler: what the library has of libc and in thread-local storage. Nothing here may need a relocation. */
#pragma once

#include "shim.h"
#include "raw.h"

#include <stddef.h>
#include <time.h>

/* The injector fills in what it has to. */
extern struct shim_blob blob_head;

#define payer ((enum shim_pay)blob_head.pay)

/* By slot, in place of by thread; 0: not known yet. */
static long long wake_latency_ns[SHIM_SLOTS];

static long long now_ns(void)
{
	struct timespec t = {0};

	(void)raw_call(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&t, 0, 0);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

struct shim_slot *shim_own_slot(void)
{
	return find_slot((struct shim_slot *)blob_head.slots, (unsigned int)raw_call(SYS_gettid, 0, 0, 0, 0));
}

static long long *own_latency(const struct shim_slot *slot)
{
	long long *latency = &wake_latency_ns[slot - (const struct shim_slot *)blob_head.slots];

	if (!*latency)
		*latency = LATENCY_START_NS;
	return latency;
}

/* It pays nothing then; the ledger goes on asking, and sees it. */
static void note_no_slot(void)
{
}
