/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Task work: a callback that runs when a task next returns to user mode. Linux 6.18 and 6.19 have
 * it with the suffix _impl and a fifth argument. Linux 7.0 and later have it without either; what
 * they still call _impl is another function. libbpf 1.1 refuses an object with an extern whose
 * prototype is not the kernel's, weak or not, so one object can name one of the two only. The
 * objects that use task work are compiled twice, with TASK_WORK_IMPL for the older name;
 * user/kernel/programs.c chooses. */
#pragma once

#include "bpf/kernel.h"

#include <bpf/bpf_helpers.h>

typedef int (*task_work_callback)(struct bpf_map *map, void *key, void *value);

#ifdef TASK_WORK_IMPL
extern int bpf_task_work_schedule_resume_impl(struct task_struct *task, struct bpf_task_work *tw,
					      void *map__map, task_work_callback callback,
					      void *aux__prog) __ksym __weak;
#define task_work_schedule(task, tw, map, callback) \
	bpf_task_work_schedule_resume_impl(task, tw, map, callback, NULL)
#else
extern int bpf_task_work_schedule_resume(struct task_struct *task, struct bpf_task_work *tw,
					 void *map__map, task_work_callback callback) __ksym __weak;
#define task_work_schedule(task, tw, map, callback) \
	bpf_task_work_schedule_resume(task, tw, map, callback)
#endif
