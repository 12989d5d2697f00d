/* SPDX-License-Identifier: BSD-2-Clause */
/* Counts how often the blocks of a function are executed in a running process: by probes in many
 * short windows, in which the process runs up to thousands of times more slowly.
 * annotate/executions.h says how rates follow from windows. Needs links of many probes (Linux 6.6).
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

struct annotation;
struct elf_object;
struct error;

/* For @seconds, of the function of @a, whose file @o is; @all_samples: those of the whole process;
 * sets a->executed and a->executed_errors. -ENOTSUP: the kernel cannot; -ESRCH: there is no such
 * process, or it ended; -ENODATA: it executed nothing of it meanwhile, or code of which that cannot
 * be told; -ENOMEM; and what attaching probes gives. */
int counting_run(pid_t pid, const struct elf_object *o, struct annotation *a, uint64_t all_samples,
		 double seconds, struct error *e);
