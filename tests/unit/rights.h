/* SPDX-License-Identifier: BSD-2-Clause */
/* What this process may do: root in a container need not have every capability. */
#pragma once

#include <linux/capability.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <unistd.h>

static inline bool rights_have(int capability)
{
	return geteuid() == 0 && prctl(PR_CAPBSET_READ, capability, 0, 0, 0) == 1;
}

/* May it follow the kernel's links to mapped files? */
static inline bool rights_follow_mapped(void)
{
	return rights_have(CAP_SYS_ADMIN) || rights_have(CAP_CHECKPOINT_RESTORE);
}
