// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/* Samples and scheduler edges. Both schedule payments; they are one object because Debian 12's
 * bpftool (7.1) cannot link two objects that name the same kernel function. */
#include "bpf/sample.h"
#include "bpf/edges.h"
#include "bpf/sync_lifecycle.h"
#include "bpf/calibrate.h"
