/* SPDX-License-Identifier: BSD-2-Clause */
/* cozbpf attach on a kernel that cannot pause threads: the processes get a payment handler, which they lose when we leave. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct error;
struct run;

/* Before there is a second thread: whoever does it is forked off. Nothing, unless the run injects. */
int run_inject_open(struct run *r, struct error *e);
/* Into all that is in scope: refused where a process that was named refuses; of the others it is said. */
int run_inject_all(struct run *r, struct error *e);
/* @pid has started another program, which took its handler away. */
void run_inject_anew(struct run *r, pid_t pid);
/* Into those in scope that have none yet: whose parent had none when it forked. A few times a second. */
struct session_process;
void run_inject_rest(struct run *r, const struct session_process *all, size_t n);
/* All go on without, as they were before. After the session is closed. */
void run_inject_close(struct run *r);
