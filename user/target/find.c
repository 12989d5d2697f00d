// SPDX-License-Identifier: BSD-2-Clause
/* Which file a command name stands for: the shell's rules and the shell's exit codes. */
#include "target/launch.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/open_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What execvp searches when there is no PATH. */
#define DEFAULT_PATH "/bin:/usr/bin"
/* The kernel reads no more of a "#!" line (BINPRM_BUF_SIZE). */
#define SCRIPT_LINE 256

/* 0 if @path is a regular file that we may execute, else the errno that exec would give; EISDIR for
 * a directory. */
static int why_not(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	if (!S_ISREG(st.st_mode))
		return EACCES;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? errno : 0;
}

static int refuse(struct error *e, const char *path, int errnum)
{
	switch (errnum) {
	case ENOENT:
		return fail(e, ENOENT, "%s: No such file or directory", path);
	case EISDIR:
		return fail(e, EACCES, "%s: is a directory, not a program", path);
	case EACCES:
		if (file_is_anothers_fuse(path))
			return fail(
				e, EACCES,
				"%s: Permission denied: it is on a FUSE file system that only the "
				"user who mounted it can read; mount it with "
				"-o allow_other, or run a copy of the program that is elsewhere",
				path);
		if (access(path, F_OK) == 0)
			return fail(e, EACCES, "%s: Permission denied: not executable; chmod +x %s",
				    path, path);
		return fail(e, EACCES, "%s: Permission denied", path);
	default:
		/* Found something that cannot be run: 126, as the shell says for ENOTDIR, ELOOP and
		 * their like. */
		return fail(e, EACCES, "%s: %s", path, strerror(errnum));
	}
}

int target_find_executable(const char *name, char **ret, struct error *e)
{
	_cleanup_free_ char *denied = NULL;
	const char *path, *end;
	int why;

	if (!*name)
		return fail(e, ENOENT, "the command's name is empty");
	if (strchr(name, '/')) {
		why = why_not(name);
		if (why)
			return refuse(e, name, why);
		*ret = strdup(name);
		return *ret ? 0 : fail(e, ENOMEM, "out of memory");
	}
	path = getenv("PATH");
	if (!path)
		path = DEFAULT_PATH;
	for (;; path = end + 1) {
		_cleanup_free_ char *candidate = NULL;

		end = strchrnul(path, ':');
		/* An empty element is the current directory. */
		if (asprintf(&candidate, "%.*s/%s", end > path ? (int)(end - path) : 1,
			     end > path ? path : ".", name) < 0) {
			candidate = NULL;
			return fail(e, ENOMEM, "out of memory");
		}
		why = why_not(candidate);
		if (!why) {
			*ret = TAKE_PTR(candidate);
			return 0;
		}
		/* A shell goes on searching, and complains of the first one if nothing better
		 * comes. */
		if (why == EACCES && !denied && access(candidate, F_OK) == 0)
			denied = TAKE_PTR(candidate);
		if (!*end)
			break;
	}
	if (denied)
		return refuse(e, denied, EACCES);
	return fail(e, ENOENT, "%s: command not found", name);
}

/* Those that take the next word as well. */
static bool takes_word(const char *option)
{
	static const char *const all[] = {"--library-path",
					  "--glibc-hwcaps-prepend",
					  "--glibc-hwcaps-mask",
					  "--inhibit-rpath",
					  "--audit",
					  "--preload",
					  "--argv0"};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(option, all[i]))
			return true;
	return false;
}

const char *target_of_linker(const char *path, char *const *argv)
{
	const char *base = basename(path);

	/* ld-linux-x86-64.so.2, ld-2.31.so, ld.so, ld-musl-x86_64.so.1 */
	if (strncmp(base, "ld", 2) != 0 || (base[2] != '-' && base[2] != '.') ||
	    !strstr(base, ".so"))
		return NULL;
	while (*argv && *++argv && !strncmp(*argv, "--", 2))
		if (takes_word(*argv) && argv[1])
			argv++;
	return *argv;
}

char *target_script_interpreter(const char *path)
{
	_cleanup_close_ int fd = open_file(path, NULL);
	char line[SCRIPT_LINE + 1], *p;
	ssize_t n;

	if (fd < 0)
		return NULL;
	n = read(fd, line, SCRIPT_LINE);
	if (n < 3 || line[0] != '#' || line[1] != '!')
		return NULL;
	line[n] = '\0';
	p = line + 2;
	p += strspn(p, " \t");
	p[strcspn(p, " \t\n")] = '\0';
	return *p ? strdup(p) : NULL;
}
