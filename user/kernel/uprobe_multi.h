/* SPDX-License-Identifier: BSD-2-Clause */
/* Links that hold many uprobes (Linux 6.6), which libbpf 1.1 has no call for. By bpf(2) itself. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define UPROBE_MULTI 48 /* BPF_TRACE_UPROBE_MULTI: what the program must be loaded for */

struct uprobe_multi {
	const char *path;	    /* of the file */
	const uint64_t *offsets;    /* in the file */
	const uint64_t *semaphores; /* offsets of counts to keep above 0 meanwhile, 0 for none; or NULL */
	const uint64_t *cookies;
	size_t n;
	pid_t pid; /* of the process that gets the probes, as far as uprobe_process knows one; 0: all processes */
	bool at_return;
};

/* What names the process @pid to the kernel when it places probes: @pid, or -1 for all processes. The kernel compares with the memory of the first
 * thread, which is gone once that thread has ended. So each program of a probe looks itself at the process that runs it. */
pid_t uprobe_process(pid_t pid);
/* A descriptor that is the link, or a negative errno. */
int uprobe_multi_link(int program_fd, const struct uprobe_multi *m);
/* Has this kernel such links, for whole processes? Before 6.10, and in stable kernels without the fix, they follow one thread only.
 * @program_fd: a program loaded for it. 0 or a negative errno. */
int uprobe_multi_try(int program_fd);
