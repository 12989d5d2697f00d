/* SPDX-License-Identifier: BSD-2-Clause */
/* Filters of system calls, as lists of those that are allowed. Internal to the package. */
#pragma once

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define FILTER_LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define FILTER_RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
#define FILTER_JUMP(test, value, if_so, if_not) \
	BPF_JUMP(BPF_JMP | (test) | BPF_K, value, if_so, if_not)

#define FILTER_BEGIN                                                      \
	FILTER_LOAD(arch), FILTER_JUMP(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0), \
		FILTER_RETURN(SECCOMP_RET_KILL_PROCESS), FILTER_LOAD(nr)
/* All else fails, as it would for want of a right. */
#define FILTER_END FILTER_RETURN(SECCOMP_RET_ERRNO | EPERM)

#define ALLOW(name) FILTER_JUMP(BPF_JEQ, SYS_##name, 0, 1), FILTER_RETURN(SECCOMP_RET_ALLOW)
/* Only with @value as the low half of argument @arg. */
#define ALLOW_IF(name, arg, value)                                                   \
	FILTER_JUMP(BPF_JEQ, SYS_##name, 0, 4), FILTER_LOAD(args[arg]),              \
		FILTER_JUMP(BPF_JEQ, value, 0, 1), FILTER_RETURN(SECCOMP_RET_ALLOW), \
		FILTER_LOAD(nr)
/* Only with none of @bits in the low half of argument @arg. */
#define ALLOW_WITHOUT(name, arg, bits)                                  \
	FILTER_JUMP(BPF_JEQ, SYS_##name, 0, 4), FILTER_LOAD(args[arg]), \
		FILTER_JUMP(BPF_JSET, bits, 1, 0), FILTER_RETURN(SECCOMP_RET_ALLOW), FILTER_END
/* Code is not made at run time. */
#define ALLOW_DATA(name) ALLOW_WITHOUT(name, 2, PROT_EXEC)
/* What any program needs that reads what is open, computes, and writes to what is open. Limits are
 * its own alone: another decoder has the same user. Of a descriptor, its flags: no locks and
 * leases, which hold up the file's users, nor signals. */
#define ALLOW_COMMON                                                                           \
	ALLOW(read), ALLOW(pread64), ALLOW(write), ALLOW(lseek), ALLOW(close), ALLOW(fstat),   \
		ALLOW(newfstatat), ALLOW(readlink), ALLOW(brk), ALLOW(munmap), ALLOW(mremap),  \
		ALLOW(madvise), ALLOW(futex), ALLOW(getrandom), ALLOW(clock_gettime),          \
		ALLOW(rt_sigprocmask), ALLOW(rt_sigreturn), ALLOW(sigaltstack), ALLOW(getpid), \
		ALLOW(gettid), ALLOW(restart_syscall), ALLOW(sched_yield), ALLOW(exit),        \
		ALLOW(exit_group), ALLOW_IF(prlimit64, 0, 0), ALLOW_IF(fcntl, 1, F_GETFD),     \
		ALLOW_IF(fcntl, 1, F_GETFL), ALLOW_DATA(mprotect)

/* confine.c: sets a limit (RLIMIT_*) of this process, for good. */
bool sandbox_bound(int what, uint64_t most);

/* Of this thread, from now on. False, with errno: EINVAL if the kernel has no filters. */
static inline bool filter_install(struct sock_filter *code, size_t n)
{
	struct sock_fprog program = {.len = (unsigned short)n, .filter = code};

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}
