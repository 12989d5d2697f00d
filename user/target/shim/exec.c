// SPDX-License-Identifier: BSD-2-Clause
/* A process that starts another program takes the library along: the exec functions ask the
 * controller for the descriptors that the launch began with (handover.h), and add the library to
 * LD_PRELOAD as the launch did. Without an answer, and for what could not load the library (static,
 * set-uid or of another architecture), the program is started as if there was no library here. What
 * calls the kernel inside libc is in spawn.c and shell.c.
 *
 * A child of vfork shares its parent's memory: all that is made here is on the stack. */
#include "handover.h"

#include <alloca.h>
#include <linux/limits.h>
#include <stdarg.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int plain(const char *path, char *const *argv, char *const *envp)
{
	long r;

	shell_hide(true);
	r = raw_call(SYS_execve, path, argv, envp);
	shell_hide(false);
	return (int)shim_result(r);
}

static int start(const char *path, char *const *argv, char *const *envp)
{
	static char *const none[] = {NULL};
	int fds[SHIM_FDS], first, r;
	struct shim_environment e;
	char **vector, *entry;

	if (!handover_survey(envp ? envp : none, &e) || !handover_loads(path, &e) ||
	    !handover_ask(fds))
		return plain(path, argv, envp ? envp : none);
	first = handover_place(fds, true);
	handover_close(fds, SHIM_FDS);
	if (first < 0)
		return plain(path, argv, e.envp);
	vector = alloca((e.n + 2) * sizeof(*vector));
	entry = alloca(shim_preload_room(&e));
	shim_preload(&e, first, entry);
	shim_environment_fill(&e, entry, vector);
	r = plain(path, argv, vector);
	handover_remove(first);
	return r;
}

EXPORT int execve(const char *path, char *const argv[], char *const envp[])
{
	return start(path, argv, envp);
}

EXPORT int execv(const char *path, char *const argv[])
{
	return start(path, argv, environ);
}

/* A text without "#!" is the shell's. */
static int start_or_shell(const char *path, char *const *argv, char *const *envp)
{
	const char **shell;
	size_t n = 0;
	int r = start(path, argv, envp);

	if (errno != ENOEXEC)
		return r;
	while (argv[n])
		n++;
	if (n >= HANDOVER_STRINGS) {
		errno = E2BIG;
		return -1;
	}
	shell = alloca((n + 3) * sizeof(*shell));
	shell[0] = "/bin/sh";
	shell[1] = path;
	for (size_t i = 1; i < n; i++)
		shell[i + 1] = argv[i];
	shell[n < 1 ? 2 : n + 1] = NULL;
	return start("/bin/sh", (char *const *)(uintptr_t)shell, envp);
}

/* As execvp(3) has it: what is in the way is stepped over, what may not be executed is said in the
 * end. */
EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
	const char *at = NULL;
	char candidate[PATH_MAX];
	bool denied = false;

	if (!*file) {
		errno = ENOENT;
		return -1;
	}
	if (strchr(file, '/'))
		return start_or_shell(file, argv, envp);
	errno = ENOENT;
	while (handover_candidate(&at, file, candidate)) {
		(void)start_or_shell(candidate, argv, envp);
		if (errno == EACCES)
			denied = true;
		else if (errno != ENOENT && errno != ENOTDIR && errno != ESTALE &&
			 errno != ENODEV && errno != ETIMEDOUT)
			return -1;
	}
	if (denied)
		errno = EACCES;
	return -1;
}

EXPORT int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

/* The words of a variable list, onto the stack. @rest: what else is taken from the list. */
#define WITH_WORDS(name, rest, start)                           \
	EXPORT int name(const char *path, const char *arg, ...) \
	{                                                       \
		char **argv, *const *envp = environ;            \
		va_list list;                                   \
		size_t n;                                       \
                                                                \
		va_start(list, arg);                            \
		for (n = 1; va_arg(list, char *); n++)          \
			;                                       \
		va_end(list);                                   \
		argv = alloca((n + 1) * sizeof(*argv));         \
		va_start(list, arg);                            \
		argv[0] = (char *)(uintptr_t)arg;               \
		for (size_t i = 1; i <= n; i++)                 \
			argv[i] = va_arg(list, char *);         \
		rest;                                           \
		va_end(list);                                   \
		return start(path, argv, envp);                 \
	}

WITH_WORDS(execl, , start)
WITH_WORDS(execlp, , execvpe)
WITH_WORDS(execle, envp = va_arg(list, char *const *), start)
