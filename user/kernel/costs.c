// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/costs.h"

#include "base/clock.h"
#include "program/elf/object.h"

#include <link.h>

#define CALLS 64
#define ROUNDS 5

/* One place of each cost that a probe has. */
void costs_emulated(void);
void costs_stepped(void);
#define PLACE(name, code)                                            \
	".type " name ", @function\n" name ": .cfi_startproc\n" code \
	"; ret\n.cfi_endproc\n.size " name ", . - " name "\n"
__asm__(".text\n" PLACE("costs_emulated", "nop") PLACE("costs_stepped", "mov %eax, %eax"));

static void nothing(void)
{
	__asm__ volatile("");
}

uint64_t costs_of_call(void (*call)(void))
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < ROUNDS; i++) {
		uint64_t start = clock_monotonic_ns(), took;

		for (int j = 0; j < CALLS; j++)
			call();
		took = (clock_monotonic_ns() - start) / CALLS;
		if (took < best)
			best = took;
	}
	return best;
}

uint64_t costs_beyond(uint64_t with, uint64_t without)
{
	return with > without ? with - without : 0;
}

/* The first object is the executable. */
static int take_base(struct dl_phdr_info *info, size_t size, void *arg)
{
	(void)size;
	*(uint64_t *)arg = info->dlpi_addr;
	return 1;
}

void costs_of_probes(int (*attach)(const struct elf_object *self,
				   const uint64_t vaddrs[COSTS_PLACES], void *arg),
		     void *arg, uint64_t ret_ns[COSTS_PLACES])
{
	void (*const calls[])(void) = {
		[CODE_EMULATED] = costs_emulated,
		[CODE_STEPPED] = costs_stepped,
	};
	uint64_t vaddrs[COSTS_PLACES], base = 0, idle = costs_of_call(nothing);
	_cleanup_elf_object_ struct elf_object *self = NULL;

	(void)dl_iterate_phdr(take_base, &base);
	if (elf_object_open("/proc/self/exe", &self, NULL) < 0)
		return;
	for (size_t i = 0; i < COSTS_PLACES; i++)
		vaddrs[i] = (uint64_t)(uintptr_t)calls[i] - base;
	if (attach(self, vaddrs, arg) < 0)
		return;
	for (size_t i = 0; i < COSTS_PLACES; i++)
		ret_ns[i] = costs_beyond(costs_of_call(calls[i]), idle);
}
