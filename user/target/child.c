// SPDX-License-Identifier: BSD-2-Clause
/* The child's side: from fork to exec, with the signals that we were started with. */
#include "target/internal.h"

#include "base/cleanup.h"

#include "shared/shim_abi.h"
#include "shared/shim_first.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* Above what programs and shells use by number, below the usual soft limit of 1024. */
#define PRELOAD_FD 200
#define PRELOAD_FD_LAST 1000000
#define SHELL "/bin/sh"

static struct {
	bool known;
	sigset_t mask;
	bool ignored[_NSIG];
} at_start;

void target_save_signals(void)
{
	struct sigaction sa;

	if (at_start.known)
		return;
	(void)sigprocmask(SIG_SETMASK, NULL, &at_start.mask);
	for (int s = 1; s < _NSIG; s++)
		at_start.ignored[s] = sigaction(s, NULL, &sa) == 0 && !(sa.sa_flags & SA_SIGINFO) &&
				      sa.sa_handler == SIG_IGN;
	at_start.known = true;
}

/* Gives the calling process the mask and the dispositions that target_save_signals remembered. */
static void restore_signals(void)
{
	struct sigaction sa = {0};

	/* Dispositions first: a signal that waits behind the mask must not reach one of our
	 * handlers in the child. libc refuses its two internal signals, which it also set up
	 * itself. */
	for (int s = 1; s < _NSIG; s++) {
		sa.sa_handler = at_start.ignored[s] ? SIG_IGN : SIG_DFL;
		(void)sigaction(s, &sa, NULL);
	}
	(void)sigprocmask(SIG_SETMASK, &at_start.mask, NULL);
}

static void report(const struct child_plan *plan, enum child_stage stage, int errnum)
{
	struct child_report r = {.stage = stage, .errnum = errnum};

	(void)TEMP_FAILURE_RETRY(send(plan->socket, &r, sizeof(r), MSG_NOSIGNAL));
}

static _Noreturn void give_up(const struct child_plan *plan, enum child_stage stage, int errnum)
{
	report(plan, stage, errnum);
	_exit(127);
}

/* Die with the parent until exec. A change of ids clears this, so it is asked for after each. */
static void bind_to_parent(const struct child_plan *plan)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != plan->parent)
		give_up(plan, CHILD_ORPHANED, ESRCH);
}

static bool is_free(int fd)
{
	return fcntl(fd, F_GETFD) < 0 && errno == EBADF;
}

/* The first of three consecutive free numbers: from PRELOAD_FD up, or below it if the limit is low.
 * -1: none. */
static int find_numbers(void)
{
	struct rlimit limit;
	int end, start;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return -1;
	end = limit.rlim_cur > PRELOAD_FD_LAST ? PRELOAD_FD_LAST : (int)limit.rlim_cur;
	for (int n = PRELOAD_FD; n + SHIM_FDS <= end; n++)
		if (is_free(n) && is_free(n + 1) && is_free(n + 2))
			return n;
	start = (end < PRELOAD_FD ? end : PRELOAD_FD) - SHIM_FDS;
	for (int n = start; n > STDERR_FILENO; n--)
		if (is_free(n) && is_free(n + 1) && is_free(n + 2))
			return n;
	return -1;
}

/* Places the three descriptors (shared/shim_abi.h) where exec keeps them; returns the first number
 * or a negative errno. */
static int place_descriptors(const struct child_plan *plan)
{
	const int from[SHIM_FDS] = {plan->image_fd, plan->spec->page_fd, plan->spec->slots_fd};
	int n = find_numbers();

	if (n < 0)
		return -EMFILE;
	for (int i = 0; i < SHIM_FDS; i++)
		/* dup2 leaves the copy without close-on-exec. */
		if (from[i] >= 0 && dup2(from[i], n + i) < 0)
			return -errno;
	return n;
}

/* A shell's guess: text has no NUL in its first line. An executable of another kind is refused here
 * instead of by a syntax error. */
static bool looks_like_text(const char *path)
{
	char head[128];
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof(head));
	const char *eol;

	if (n < 0)
		return false;
	eol = memchr(head, '\n', (size_t)n);
	return !memchr(head, '\0', eol ? (size_t)(eol - head) : (size_t)n);
}

/* Only returns when it failed, with the errno. */
static int exec_program(const struct child_plan *plan, char **envp)
{
	char *const *argv = plan->spec->argv;
	size_t n = 0;
	const char **shell;

	(void)execve(plan->path, argv, envp);
	if (errno != ENOEXEC || !looks_like_text(plan->path))
		return errno;
	while (argv[n])
		n++;
	shell = calloc(n + 2, sizeof(*shell));
	if (!shell)
		return ENOMEM;
	shell[0] = SHELL;
	shell[1] = plan->path;
	for (size_t i = 1; i < n; i++)
		shell[i + 1] = argv[i];
	(void)execve(SHELL, (char *const *)shell, envp);
	return errno;
}

static void has_to_be_first(const char *path, char ret[SHIM_FIRST_MAX])
{
	_cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd >= 0)
		shim_first_library(fd, ret);
}

char **environ_with_preload(char *const *envp, int fd, const char *first)
{
	struct shim_environment e = {.envp = envp};
	char **vector, *entry;

	/* With several, the loader obeys the last. */
	for (; envp && envp[e.n]; e.n++)
		if (strncmp(envp[e.n], SHIM_PRELOAD, strlen(SHIM_PRELOAD)) == 0)
			e.old = envp[e.n];
	e.had = e.old ? strlen(e.old) : 0;
	(void)snprintf(e.first, sizeof(e.first), "%s", first);
	vector = calloc(e.n + 2, sizeof(*vector));
	entry = malloc(shim_preload_room(&e));
	if (!vector || !entry) {
		free(vector);
		free(entry);
		return NULL;
	}
	shim_preload(&e, fd, entry);
	shim_environment_fill(&e, entry, vector);
	return vector;
}

/* What the program prints goes to the file. A FIFO without a reader is not waited for. */
static int redirect(const char *path)
{
	_cleanup_close_ int fd =
		open(path,
		     O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
		     0666);

	return fd < 0 || fcntl(fd, F_SETFL, O_APPEND) < 0 || dup2(fd, STDOUT_FILENO) < 0 ||
			       dup2(fd, STDERR_FILENO) < 0
		       ? -errno
		       : 0;
}

static int capture(int fd)
{
	_cleanup_close_ int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);

	return nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(fd, STDOUT_FILENO) < 0 ||
			       dup2(fd, STDERR_FILENO) < 0
		       ? -errno
		       : 0;
}

_Noreturn void child_run(const struct child_plan *plan)
{
	char **envp, first[SHIM_FIRST_MAX] = "", go;
	int r;

	bind_to_parent(plan);
	r = identity_assume(plan->spec->identity);
	if (r < 0)
		give_up(plan, CHILD_IDENTITY, -r);
	bind_to_parent(plan);
	if (plan->spec->output_to) {
		r = redirect(plan->spec->output_to);
		if (r < 0)
			give_up(plan, CHILD_OUTPUT, -r);
	}
	if (plan->spec->captures) {
		r = capture(plan->spec->captured_fd);
		if (r < 0)
			give_up(plan, CHILD_OUTPUT, -r);
	}
	envp = environ;
	if (plan->image_fd >= 0) {
		r = place_descriptors(plan);
		if (r < 0)
			give_up(plan, CHILD_PRELOAD, -r);
		has_to_be_first(plan->path, first);
		envp = environ_with_preload(environ, r, first);
		if (!envp)
			give_up(plan, CHILD_ENVIRON, ENOMEM);
	}
	report(plan, CHILD_READY, 0);

	if (TEMP_FAILURE_RETRY(recv(plan->socket, &go, sizeof(go), 0)) != 1)
		_exit(127);
	/* From here on the program is on its own: it outlives us. */
	(void)prctl(PR_SET_PDEATHSIG, 0);
	restore_signals();
	give_up(plan, CHILD_EXEC, exec_program(plan, envp));
}
