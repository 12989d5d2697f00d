/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes on instructions of programs. Nothing else in the product places one, so that what is
 * decided here holds for all: a probe stands only where an instruction surely begins
 * (elf/code_place.h). Links that hold many (Linux 6.6) are made by bpf(2) itself, since libbpf 1.1
 * has no call for them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct bpf_link;
struct bpf_program;
struct code_places;
struct error;

#define UPROBE_MULTI \
	48 /* BPF_TRACE_UPROBE_MULTI: what a program must be loaded for whose links hold many */

struct uprobe {
	uint64_t vaddr;	    /* in the object's own numbering */
	uint64_t semaphore; /* address of a count to keep above 0 meanwhile; 0: none */
	uint64_t cookie;
	bool certain; /* that an instruction begins there: code_place_check has said so */
};

struct uprobes {
	struct code_places *places; /* the object, and what is known of it */
	const char *path;	    /* of the file; NULL: what the object was opened as */
	const char *name;	    /* what errors call it; NULL: as the object */
	pid_t pid; /* the only process that they are put into; 0: all that map the file */
	const struct uprobe *all;
	size_t n;
};

/* One probe of @u, number @i, that calls @program. *ret is the caller's. -EINVAL: no instruction
 * begins there; -ERANGE: it is not in the file; -ESRCH: they would not be alone in the process;
 * else what the kernel says. @e names the place. */
int uprobe_attach(const struct uprobes *u, size_t i, const struct bpf_program *program,
		  struct bpf_link **ret, struct error *e);
/* All of them in one link: a descriptor, or a negative errno as above. */
int uprobes_link(const struct uprobes *u, const struct bpf_program *program, struct error *e);
/* Can probes be put into the process @pid alone? The kernel compares with the memory of the first
 * thread, which is gone once that thread has ended. */
bool uprobes_alone_in(pid_t pid);
/* May this user place a probe by a link of its own, as uprobe_attach does? The kernel asks for
 * CAP_SYS_ADMIN, where links that hold many take CAP_PERFMON. 0 or a negative errno. */
int uprobe_allowed(void);
/* Has this kernel such links, for whole processes? Before 6.10, and in stable kernels without the
 * fix, they follow one thread only.
 * @program_fd: a program loaded for it. 0 or a negative errno. */
int uprobes_try(int program_fd);
