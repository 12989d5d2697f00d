// SPDX-License-Identifier: BSD-2-Clause
/* A process that starts another program takes the library along: the exec functions ask the controller for the descriptors that the launch
 * began with (shared/shim_abi.h), and add the library to LD_PRELOAD as the launch did. Without an answer, and for what could not load the
 * library (static, set-uid or foreign executables), the program is started as if there was no library here. posix_spawn, system and popen
 * call the kernel inside libc and cannot be seen from here.
 *
 * A child of vfork shares its parent's memory: all that is made here is on the stack. */
#include "shim.h"

#include <alloca.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define PRELOAD "LD_PRELOAD="
#define PRELOAD_FD 200
#define PRELOAD_TRIES 64
#define MAX_STRINGS 16384 /* pointers on the stack */
#define MAX_VALUE 4096    /* of LD_PRELOAD */
#define PATIENCE_US 200000
#define DEFAULT_PATH "/bin:/usr/bin"

/* "/proc/self/fd/N", without stdio. */
static void append_number(char *to, unsigned int n)
{
	char digits[12];
	size_t i = 0;

	do
		digits[i++] = (char)('0' + n % 10);
	while (n /= 10);
	while (i)
		*to++ = digits[--i];
	*to = '\0';
}

/* Asks the controller @what (enum shim_request); fds of a SHIM_ASK_DESCRIPTORS go to @ret. */
static bool ask(char what, int ret[SHIM_FDS])
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const struct timeval patience = {.tv_usec = PATIENCE_US};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(SHIM_FDS * sizeof(int))];
	} control;
	char answer = 0;
	struct iovec part = {&answer, 1};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	size_t length = strnlen(shim_page->server, sizeof(shim_page->server));
	struct cmsghdr *c;
	bool ok;
	int s;

	if (!length)
		return false;
	s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (s < 0)
		return false;
	memcpy(to.sun_path + 1, shim_page->server, length); /* an abstract name: no file */
	(void)setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	(void)setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	ok = connect(s, (const struct sockaddr *)&to, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length)) == 0 &&
	     send(s, &what, 1, MSG_NOSIGNAL) == 1 && recvmsg(s, &m, MSG_CMSG_CLOEXEC) == 1;
	(void)close(s);
	if (!ok || what != SHIM_ASK_DESCRIPTORS)
		return ok;
	c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(SHIM_FDS * sizeof(int)))
		return false;
	memcpy(ret, CMSG_DATA(c), SHIM_FDS * sizeof(int));
	return true;
}

void shim_exec_announce(void)
{
	(void)ask(SHIM_ASK_READY, NULL);
}

static void close_all(const int *fds, int n)
{
	for (int i = 0; i < n; i++)
		(void)close(fds[i]);
}

/* Copies of @fds with consecutive numbers that exec keeps; the first, or -1. @fds are closed. */
static int place(const int fds[SHIM_FDS])
{
	int from = PRELOAD_FD, placed = -1;

	for (int try = 0; placed < 0 && try < PRELOAD_TRIES; try++) {
		int at[SHIM_FDS], n = 0;

		for (; n < SHIM_FDS; n++) {
			at[n] = fcntl(fds[n], F_DUPFD, from + n);
			if (at[n] < 0 || at[n] != at[0] + n)
				break;
			if (n == 0)
				from = at[0];
		}
		if (n == SHIM_FDS) {
			placed = at[0];
			break;
		}
		close_all(at, at[n] < 0 ? n : n + 1);
		if (at[n] < 0)
			break;
		from++;
	}
	close_all(fds, SHIM_FDS);
	return placed;
}

/* Would the dynamic loader of the program at @path load the library? */
static bool loads_library(const char *path, int depth)
{
	char head[256];
	Elf64_Ehdr *elf = (Elf64_Ehdr *)head;
	bool loads = false;
	struct stat st;
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return false;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_mode & (S_ISUID | S_ISGID))
		n = -1;
	else
		n = pread(fd, head, sizeof(head) - 1, 0);
	if (n > 2 && head[0] == '#' && head[1] == '!' && depth == 0) {
		char *p = head + 2;

		head[n] = '\0';
		p += strspn(p, " \t");
		p[strcspn(p, " \t\n")] = '\0';
		loads = *p && loads_library(p, 1);
	} else if (n >= (ssize_t)sizeof(*elf) && memcmp(elf->e_ident, ELFMAG, SELFMAG) == 0 && elf->e_ident[EI_CLASS] == ELFCLASS64 &&
		   elf->e_machine == EM_X86_64 && elf->e_phentsize == sizeof(Elf64_Phdr)) {
		for (unsigned int i = 0; i < elf->e_phnum && i < 64 && !loads; i++) {
			Elf64_Phdr p;

			loads = pread(fd, &p, sizeof(p), (off_t)(elf->e_phoff + i * sizeof(p))) == (ssize_t)sizeof(p) &&
				p.p_type == PT_INTERP;
		}
	}
	(void)close(fd);
	return loads;
}

static int plain(const char *path, char *const *argv, char *const *envp)
{
	return (int)syscall(SYS_execve, path, argv, envp);
}

static int start(const char *path, char *const *argv, char *const *envp)
{
	static char *const none[] = {NULL};
	const char *old = NULL;
	char **vector, *entry, *at;
	int fds[SHIM_FDS], first, saved = errno, r;
	size_t n = 0, where, had;

	if (!envp)
		envp = none;
	for (; envp[n] && n < MAX_STRINGS; n++)
		if (strncmp(envp[n], PRELOAD, strlen(PRELOAD)) == 0)
			old = envp[n];
	had = old ? strnlen(old, MAX_VALUE) : 0;
	if (!__atomic_load_n(&shim_page, __ATOMIC_ACQUIRE) || n == MAX_STRINGS || had == MAX_VALUE || !loads_library(path, 0) ||
	    !ask(SHIM_ASK_DESCRIPTORS, fds)) {
		errno = saved;
		return plain(path, argv, envp);
	}
	first = place(fds);
	errno = saved;
	if (first < 0)
		return plain(path, argv, envp);
	vector = alloca((n + 2) * sizeof(*vector));
	entry = alloca(had + sizeof(PRELOAD) + 32);
	at = entry;
	if (old) {
		memcpy(at, old, had);
		at += had;
		*at++ = strchr(old, ' ') && !strchr(old, ':') ? ' ' : ':';
	} else {
		memcpy(at, PRELOAD, strlen(PRELOAD));
		at += strlen(PRELOAD);
	}
	memcpy(at, "/proc/self/fd/", 14);
	append_number(at + 14, (unsigned int)first);
	where = n;
	for (size_t i = 0; i < n; i++) {
		vector[i] = envp[i];
		if (envp[i] == old) /* with several, the loader obeys the last */
			where = i;
	}
	vector[n] = NULL;
	vector[n + 1] = NULL;
	vector[where] = entry;
	r = plain(path, argv, vector);
	saved = errno;
	for (int i = 0; i < SHIM_FDS; i++)
		(void)close(first + i);
	errno = saved;
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
	if (n >= MAX_STRINGS) {
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

/* As execvp(3) has it: what is in the way is stepped over, what may not be executed is said in the end. */
EXPORT int execvpe(const char *file, char *const argv[], char *const envp[])
{
	const char *path = NULL, *end;
	char candidate[PATH_MAX];
	bool denied = false;
	size_t name = strlen(file);

	if (!*file) {
		errno = ENOENT;
		return -1;
	}
	if (strchr(file, '/'))
		return start_or_shell(file, argv, envp);
	for (char **e = environ; e && *e && !path; e++)
		if (strncmp(*e, "PATH=", 5) == 0)
			path = *e + 5;
	errno = ENOENT;
	for (path = path ? path : DEFAULT_PATH;; path = end + 1) {
		size_t n;

		end = path + strcspn(path, ":");
		n = (size_t)(end - path);
		if (n + name + 2 <= sizeof(candidate)) {
			memcpy(candidate, path, n);
			if (n)
				candidate[n++] = '/';
			memcpy(candidate + n, file, name + 1);
			(void)start_or_shell(candidate, argv, envp);
			if (errno == EACCES)
				denied = true;
			else if (errno != ENOENT && errno != ENOTDIR && errno != ESTALE && errno != ENODEV && errno != ETIMEDOUT)
				return -1;
		}
		if (!*end)
			break;
	}
	if (denied)
		errno = EACCES;
	return -1;
}

EXPORT int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

/* The words of a variable list, onto the stack of the caller; @n is how many there are. */
#define TAKE_WORDS(first, argv, n, list)                        \
	do {                                                    \
		va_start(list, first);                          \
		for (n = 1; va_arg(list, char *); n++)          \
			;                                       \
		va_end(list);                                   \
		argv = alloca((n + 1) * sizeof(*argv));         \
		va_start(list, first);                          \
		argv[0] = (char *)(uintptr_t)first;             \
		for (size_t i = 1; i <= n; i++)                 \
			argv[i] = va_arg(list, char *);         \
	} while (0)

EXPORT int execl(const char *path, const char *arg, ...)
{
	char **argv;
	va_list list;
	size_t n;

	TAKE_WORDS(arg, argv, n, list);
	va_end(list);
	return start(path, argv, environ);
}

EXPORT int execlp(const char *file, const char *arg, ...)
{
	char **argv;
	va_list list;
	size_t n;

	TAKE_WORDS(arg, argv, n, list);
	va_end(list);
	return execvpe(file, argv, environ);
}

EXPORT int execle(const char *path, const char *arg, ...)
{
	char **argv, *const *envp;
	va_list list;
	size_t n;

	TAKE_WORDS(arg, argv, n, list);
	envp = va_arg(list, char *const *);
	va_end(list);
	return start(path, argv, envp);
}
