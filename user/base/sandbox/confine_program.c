// SPDX-License-Identifier: BSD-2-Clause
/* Confines a program that is not ours. It has to load itself and its libraries, so that it can open
 * files, where a decoder is given them. */
#include "base/sandbox/confine.h"
#include "base/sandbox/filter.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define FILE_READ (LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE)
/* The rights that the first version of Landlock knows: every kernel with Landlock handles all of
 * them. */
#define ALL_RIGHTS ((LANDLOCK_ACCESS_FS_MAKE_SYM << 1) - 1)

/* Nothing but libraries and programs: no file of any user, no /proc. Links among them (/lib) are
 * followed to where they lead. */
static bool allow_libraries_alone(void)
{
	static const struct {
		const char *path;
		uint64_t rights;
	} all[] = {
		{"/usr", FILE_READ | LANDLOCK_ACCESS_FS_READ_DIR},
		{"/lib", FILE_READ | LANDLOCK_ACCESS_FS_READ_DIR},
		{"/lib64", FILE_READ | LANDLOCK_ACCESS_FS_READ_DIR},
		{"/etc/ld.so.cache", LANDLOCK_ACCESS_FS_READ_FILE},
	};
	const struct landlock_ruleset_attr handled = {.handled_access_fs = ALL_RIGHTS};
	_cleanup_close_ int rules = (int)syscall(SYS_landlock_create_ruleset, &handled,
						 sizeof(handled.handled_access_fs), 0);

	/* A kernel without Landlock: the filter of system calls and the user nobody remain. */
	if (rules < 0)
		return errno == ENOSYS || errno == EOPNOTSUPP;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		_cleanup_close_ int fd = open(all[i].path, O_PATH | O_CLOEXEC);
		const struct landlock_path_beneath_attr below = {.allowed_access = all[i].rights,
								 .parent_fd = fd};

		if (fd >= 0 && syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH,
				       &below, 0) < 0)
			return false;
	}
	return syscall(SYS_landlock_restrict_self, rules, 0) == 0;
}

/* No sockets, no processes or threads, no signals, nothing that writes but to what is open, no code
 * that is made at run time. What it cannot do without can fail: a program is expected to bear EPERM
 * for the rest. */
static bool filter_calls(void)
{
	struct sock_filter code[] = {
		FILTER_BEGIN,
		ALLOW_COMMON,
		ALLOW(readv),
		ALLOW(writev),
		ALLOW(statx),
		ALLOW(access),
		ALLOW(faccessat),
		ALLOW(faccessat2),
		ALLOW(readlinkat),
		ALLOW_WITHOUT(openat, 2,
			      O_ACCMODE | O_CREAT | O_TRUNC | O_APPEND |
				      (O_TMPFILE & ~O_DIRECTORY)),
		/* Libraries are mapped to be executed; memory that can be written never is. */
		FILTER_JUMP(BPF_JEQ, SYS_mmap, 0, 7),
		FILTER_LOAD(args[2]),
		FILTER_JUMP(BPF_JSET, PROT_EXEC, 0, 4),
		FILTER_JUMP(BPF_JSET, PROT_WRITE, 2, 0),
		FILTER_LOAD(args[3]),
		FILTER_JUMP(BPF_JSET, MAP_ANONYMOUS, 0, 1),
		FILTER_END,
		FILTER_RETURN(SECCOMP_RET_ALLOW),
		ALLOW(gettimeofday),
		ALLOW(getrusage),
		ALLOW(uname),
		ALLOW(sysinfo),
		ALLOW(sched_getaffinity),
		ALLOW(rt_sigaction),
		ALLOW(set_tid_address),
		ALLOW(set_robust_list),
		ALLOW(rseq),
		ALLOW(arch_prctl),
		/* To become the program. It stays confined, and another one would be as well. */
		ALLOW(execve),
		FILTER_END,
	};

	return filter_install(code, sizeof(code) / sizeof(code[0]));
}

bool sandbox_confine_program(const struct sandbox_bounds *b)
{
	/* Nothing of ours is in reach: not even the directory that we are in. */
	return chdir("/") == 0 && sandbox_drop_rights() &&
	       sandbox_bound(RLIMIT_FSIZE, b->output_bytes) &&
	       sandbox_bound(RLIMIT_AS, b->memory_bytes) && sandbox_bound(RLIMIT_CPU, b->cpu_s) &&
	       sandbox_bound(RLIMIT_NPROC, 1) && sandbox_bound(RLIMIT_CORE, 0) &&
	       allow_libraries_alone() && filter_calls();
}
