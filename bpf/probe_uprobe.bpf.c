// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* May programs be attached to uprobes, one by one or many at once? */
#include "bpf/kernel.h"

#include <bpf/bpf_helpers.h>

SEC("?uprobe")
int probe_uprobe(void *ctx)
{
	return (int)bpf_get_attach_cookie(ctx);
}
