// SPDX-License-Identifier: BSD-2-Clause
#include "target/internal.h"

#include <signal.h>
#include <stdbool.h>

static struct {
	bool known;
	sigset_t mask;
	bool ignored[_NSIG];
} start;

void target_save_signals(void)
{
	struct sigaction sa;

	if (start.known)
		return;
	(void)sigprocmask(SIG_SETMASK, NULL, &start.mask);
	for (int s = 1; s < _NSIG; s++)
		start.ignored[s] = sigaction(s, NULL, &sa) == 0 && !(sa.sa_flags & SA_SIGINFO) && sa.sa_handler == SIG_IGN;
	start.known = true;
}

void signals_restore(void)
{
	struct sigaction sa = {0};

	/* Dispositions first: a signal that waits behind the mask must not reach one of our handlers in the child. libc refuses
	 * its two internal signals, which it also set up itself. */
	for (int s = 1; s < _NSIG; s++) {
		sa.sa_handler = start.ignored[s] ? SIG_IGN : SIG_DFL;
		(void)sigaction(s, &sa, NULL);
	}
	(void)sigprocmask(SIG_SETMASK, &start.mask, NULL);
}
