/* SPDX-License-Identifier: BSD-2-Clause */
/* How often the blocks of a function are executed in a process that runs: counted by probes in many short windows, in which the process is slowed
 * down, by a factor of up to thousands. What is made of the windows: annotate/executions.h. It takes links of many probes (Linux 6.6). */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct annotation;
struct elf_object;
struct error;

/* For @seconds, of the function of @a, whose file @o is; @all_samples: those of the whole process; sets a->executed and a->executed_errors. -ENOTSUP:
 * the kernel cannot; -ESRCH: there is no such process, or it ended; -ENODATA: it executed nothing of it meanwhile, or code of which that cannot be
 * told; -ENOMEM; and what attaching probes gives. */
int counting_run(pid_t pid, const struct elf_object *o, struct annotation *a, uint64_t all_samples, double seconds, struct error *e);
