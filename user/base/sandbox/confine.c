// SPDX-License-Identifier: BSD-2-Clause
#include "base/sandbox/confine.h"
#include "base/sandbox/filter.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NOBODY 65534
/* No other process has this group. */
#define GROUP_APART ((gid_t)-3)

/* Memory checkers reserve terabytes of address space. */
#if defined(__SANITIZE_ADDRESS__)
#define BOUND_MEMORY 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BOUND_MEMORY 0
#endif
#endif
#ifndef BOUND_MEMORY
#define BOUND_MEMORY 1
#endif

bool sandbox_drop_rights(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
	_cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	/* Short of memory, the kernel takes decoders first. */
	if (fd >= 0)
		(void)!write(fd, "1000", 4);
	/* Root that cannot become somebody else (a user namespace without that user, no CAP_SETUID)
	 * would read files as root. */
	if (geteuid() == 0 && (setgroups(0, NULL) < 0 ||
			       /* A user namespace need not have the group. */
			       (setresgid(GROUP_APART, GROUP_APART, GROUP_APART) < 0 &&
				setresgid(NOBODY, NOBODY, NOBODY) < 0) ||
			       setresuid(NOBODY, NOBODY, NOBODY) < 0))
		return false;
	if (syscall(SYS_capset, &head, none) < 0)
		return false;
	/* Nobody's other processes must not look into this one, nor, since they are of another
	 * group, into the program that it becomes; and it goes when its maker does. */
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == 0 &&
	       prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == 0;
}

bool sandbox_bound(int what, uint64_t most)
{
	struct rlimit l = {most, most};

	return setrlimit(what, &l) == 0;
}

static uint64_t address_space(void)
{
	char text[64] = "";
	_cleanup_close_ int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	unsigned long pages = 0;

	return fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && sscanf(text, "%lu", &pages) == 1
		       ? pages * (uint64_t)sysconf(_SC_PAGESIZE)
		       : 256ULL << 20;
}

/* All else fails, as it would for want of a right. */
static bool filter_calls(void)
{
	struct sock_filter code[] = {
		FILTER_BEGIN,
		ALLOW_COMMON,
		ALLOW(sendto),
		ALLOW(recvfrom),
		ALLOW(recvmsg),
		ALLOW(poll),
		/* Not locks and leases, which hold up the file's users, nor signals. */
		ALLOW_IF(fcntl, 1, F_DUPFD_CLOEXEC),
		ALLOW_DATA(mmap),
		FILTER_END,
	};

	return filter_install(code, sizeof(code) / sizeof(code[0]));
}

bool sandbox_confine(uint64_t memory_bytes, unsigned int cpu_s)
{
	rlim_t memory = address_space() + memory_bytes;

	if (BOUND_MEMORY && !sandbox_bound(RLIMIT_AS, memory))
		return false;
	if (!sandbox_bound(RLIMIT_CORE, 0) || !sandbox_bound(RLIMIT_FSIZE, 0) ||
	    !sandbox_bound(RLIMIT_NPROC, 0))
		return false;
	sandbox_allow_time(cpu_s);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
		return false;
	/* A kernel without it (CONFIG_SECCOMP_FILTER) leaves the rest. */
	return filter_calls() || errno == EINVAL;
}

void sandbox_allow_time(unsigned int cpu_s)
{
	struct timespec used = {0};
	struct rlimit l;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	if (getrlimit(RLIMIT_CPU, &l) == 0) {
		l.rlim_cur = (rlim_t)used.tv_sec + cpu_s + 1;
		if (l.rlim_max == RLIM_INFINITY || l.rlim_cur < l.rlim_max)
			(void)setrlimit(RLIMIT_CPU, &l);
	}
}
