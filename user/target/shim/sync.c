// SPDX-License-Identifier: BSD-2-Clause
#include "sync.h"

#include <stddef.h>

/* One byte that does nothing: the kernel emulates it. Five bytes it can turn into a call
 * (Linux 6.18), for two thirds of the price; but where that goes to is not there in a forked child,
 * which then ends by SIGSEGV. The exported name is for the controller. */
#define SITE(name)                                                         \
	__asm__(".pushsection .text\n"                                     \
		".balign 16\n"                                             \
		".globl shim_site_" #name "\n"                             \
		".hidden shim_site_" #name "\n"                            \
		".globl _cozbpf_site_" #name "\n"                          \
		".type shim_site_" #name ", @function\n"                   \
		".type _cozbpf_site_" #name ", @function\n"                \
		"shim_site_" #name ":\n"                                   \
		"_cozbpf_site_" #name ":\n"                                \
		".cfi_startproc\n"                                         \
		"nop\n"                                                    \
		"ret\n"                                                    \
		".cfi_endproc\n"                                           \
		".size shim_site_" #name ", .-shim_site_" #name "\n"       \
		".size _cozbpf_site_" #name ", .-_cozbpf_site_" #name "\n" \
		".popsection\n")

SITE(wakes);
SITE(blocks);
SITE(back);

/* A payment ends after a few milliseconds at the latest, and what is left is asked for again; but a
 * thread that cannot pay (it blocks the payment signal, or the controller is gone) must go on. */
#define PAY_TRIES 4
/* Without the controller nobody gets a slot: look ever more seldom. */
#define MOST_SKIPPED 65535U

__thread struct shim_self shim_self;

/* The ledger gives a thread its slot when it first sees it, and where should it if not here? */
void shim_find_slot(void)
{
	struct shim_self *me = &shim_self;

	/* Its own number is a system call away: each time the ledger is told. */
	if (shim_filtered) {
		shim_site_wakes();
		return;
	}
	if (me->skip > 0) {
		me->skip--;
		return;
	}
	shim_site_wakes();
	me->slot = shim_own_slot();
	if (!me->slot) {
		me->misses = me->misses < MOST_SKIPPED ? 2 * me->misses + 1 : MOST_SKIPPED;
		me->skip = me->misses;
	}
}

void shim_pay_all(const struct shim_sync *h)
{
	int tries = 0;

	do
		shim_site_wakes();
	while (++tries < PAY_TRIES && shim_active(h) && shim_owes(h, shim_self.slot));
}
