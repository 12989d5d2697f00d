// SPDX-License-Identifier: BSD-2-Clause
#include "program/elf/debuginfod.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "debuginfod-find"
#define MOST_DIGITS 128
#define WAIT_NS (50 * NSEC_PER_SEC)

bool debuginfod_wanted(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	return urls && *urls;
}

static bool is_build_id(const char *id)
{
	size_t n = strlen(id);

	return n >= 4 && n <= MOST_DIGITS && strspn(id, "0123456789abcdef") == n;
}

/* "NAME=value" of our environment; NULL: it is not set there. */
static char *inherited(const char *name)
{
	const char *value = getenv(name);
	char *text;

	return value && asprintf(&text, "%s=%s", name, value) >= 0 ? text : NULL;
}

/* What the child needs, made before it is. */
struct asking {
	const struct file_rights *as;
	char *argv[4], *envp[8];
};

static void asking_free(struct asking *a)
{
	for (size_t i = 0; a->envp[i]; i++)
		free(a->envp[i]);
}

static void prepare(struct asking *a, const char *id)
{
	static const char *const passed[] = {"DEBUGINFOD_URLS", "DEBUGINFOD_CACHE_PATH",
					     "DEBUGINFOD_TIMEOUT", "DEBUGINFOD_MAXSIZE", "PATH"};
	const struct file_rights *as = file_rights_invoker();
	const struct passwd *user = getpwuid(as->uid);
	size_t n = 0;
	char *text;

	*a = (struct asking){
		.as = as,
		.argv = {(char *)PROGRAM, (char *)"debuginfo", (char *)(uintptr_t)id, NULL}};
	/* Root's home is not where a user's cache is. */
	if (user && asprintf(&text, "HOME=%s", user->pw_dir) >= 0)
		a->envp[n++] = text;
	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
		text = inherited(passed[i]);
		if (text)
			a->envp[n++] = text;
	}
}

/* There is no way back from here. */
static _Noreturn void ask(const struct asking *a, int out)
{
	struct sigaction usual = {.sa_handler = SIG_DFL};
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;

	if (geteuid() == 0 && a->as->uid != 0 &&
	    (setgroups(a->as->n_groups, a->as->groups) < 0 ||
	     setresgid(a->as->gid, a->as->gid, a->as->gid) < 0 ||
	     setresuid(a->as->uid, a->as->uid, a->as->uid) < 0 || setuid(0) == 0))
		_exit(127);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (int s = 1; s < _NSIG; s++)
		(void)sigaction(s, &usual, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
	    dup2(nothing, STDERR_FILENO) < 0)
		_exit(127);
	(void)syscall(SYS_close_range, 3U, ~0U, 0U);
	(void)execvpe(PROGRAM, a->argv, a->envp);
	_exit(127);
}

/* Up to the end of what it prints. -ETIMEDOUT, -EMSGSIZE. */
static int read_all(int fd, char *text, size_t size)
{
	uint64_t until = clock_monotonic_ns() + WAIT_NS;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	size_t n = 0;

	for (;;) {
		uint64_t now = clock_monotonic_ns();
		ssize_t got;
		int ready;

		if (now >= until)
			return -ETIMEDOUT;
		ready = poll(&p, 1, (int)((until - now) / NSEC_PER_MSEC) + 1);
		if (ready < 0 && errno != EINTR)
			return -errno;
		/* Nothing is there to be read: a read would wait without end. */
		if (ready <= 0)
			continue;
		got = read(fd, text + n, size - 1 - n);
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got == 0) {
			text[n] = '\0';
			return 0;
		}
		n += got > 0 ? (size_t)got : 0;
		if (n == size - 1)
			return -EMSGSIZE;
	}
}

int debuginfod_find(const char *id, char **ret)
{
	_cleanup_(asking_free) struct asking a;
	char text[PATH_MAX + 2], *end;
	int out[2], status = 0, r;
	pid_t pid;

	prepare(&a, id);
	if (!is_build_id(id))
		return -EINVAL;
	if (!debuginfod_wanted())
		return -ENOENT;
	if (pipe2(out, O_CLOEXEC) < 0)
		return -errno;
	pid = fork();
	if (pid == 0)
		ask(&a, out[1]);
	r = pid < 0 ? -errno : 0;
	(void)close(out[1]);
	if (r == 0)
		r = read_all(out[0], text, sizeof(text));
	(void)close(out[0]);
	if (pid > 0) {
		if (r < 0)
			(void)kill(pid, SIGKILL);
		(void)TEMP_FAILURE_RETRY(waitpid(pid, &status, 0));
	}
	if (r < 0)
		return r;
	end = strchr(text, '\n');
	if (end)
		*end = '\0';
	if (status != 0 || text[0] != '/')
		return -ENOENT;
	*ret = strdup(text);
	return *ret ? 0 : -ENOMEM;
}
