// SPDX-License-Identifier: BSD-2-Clause
/* The library's hand-over to a program that is about to be started. */
#include "handover.h"

#include <elf.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define PRELOAD_FD 200
#define PRELOAD_TRIES 64
#define PATIENCE_US 200000
#define DEFAULT_PATH "/bin:/usr/bin"

/* Is the peer, the process that called listen, the controller? The kernel translates both numbers
 * into this process's namespaces. A user namespace that does not know the controller's uid gives
 * another one: there nothing is asked for. A PID namespace that the program has made does not know
 * the controller's pid, and gives 0. */
static bool is_controller(int s)
{
	struct ucred peer;
	socklen_t size = sizeof(peer);

	return raw_call(SYS_getsockopt, s, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
	       size == sizeof(peer) && peer.uid == shim_launch.server_uid &&
	       (peer.pid == shim_launch.server_pid || peer.pid == 0);
}

/* Nobody answers any more, or another one: each try could take as long as the last. */
static bool given_up;

static int connect_to_controller(void)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	const struct timeval patience = {.tv_usec = PATIENCE_US};
	size_t length = strlen(shim_launch.server);
	long s, result;

	if (!length || given_up || !__atomic_load_n(&shim_page->serves, __ATOMIC_RELAXED))
		return -1;
	s = raw_call(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (s < 0)
		return -1;
	memcpy(to.sun_path + 1, shim_launch.server, length); /* an abstract name: no file */
	for (int which = SO_RCVTIMEO; which <= SO_SNDTIMEO; which++)
		(void)raw_call(SYS_setsockopt, s, SOL_SOCKET, which, &patience, sizeof(patience));
	result = raw_call(SYS_connect, s, &to, offsetof(struct sockaddr_un, sun_path) + 1 + length);
	given_up = result == 0 ? !is_controller((int)s) : result == -EAGAIN;
	if (result == 0 && !given_up)
		return (int)s;
	(void)raw_call(SYS_close, s);
	return -1;
}

/* Asks the controller @what (enum shim_request). */
static bool ask(char what, struct msghdr *answer)
{
	int s = connect_to_controller();
	long n = -1;

	if (s < 0)
		return false;
	if (raw_call(SYS_sendto, s, &what, 1, MSG_NOSIGNAL, NULL, 0) == 1) {
		n = raw_call(SYS_recvmsg, s, answer, MSG_CMSG_CLOEXEC);
		given_up = n == -EAGAIN;
	}
	(void)raw_call(SYS_close, s);
	return n == 1;
}

void shim_exec_announce(void)
{
	char byte;
	struct iovec part = {&byte, 1};

	(void)ask(SHIM_ASK_READY, &(struct msghdr){.msg_iov = &part, .msg_iovlen = 1});
}

/* What a program would load and map has to be what this one has. Of the image that is the whole
 * check: the same file, which was sealed when it was loaded here, has the same contents. */
static bool is_ours(int fd, int i)
{
	const struct shim_identity *const wanted[SHIM_FDS] = {&shim_own_image, &shim_launch.page,
							      &shim_launch.slots};

	return shim_is(fd, wanted[i]);
}

bool handover_ask(int ret[SHIM_FDS])
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(SHIM_FDS * sizeof(int))];
	} control;
	char byte;
	struct iovec part = {&byte, 1};
	struct msghdr m = {.msg_iov = &part,
			   .msg_iovlen = 1,
			   .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	int fds[sizeof(control) / sizeof(int)]; /* more than are asked for find room */
	struct cmsghdr *c;
	int n = 0;

	if (!__atomic_load_n(&shim_page, __ATOMIC_ACQUIRE) || !ask(SHIM_ASK_DESCRIPTORS, &m))
		return false;
	c = CMSG_FIRSTHDR(&m);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
		n = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		memcpy(fds, CMSG_DATA(c), (size_t)n * sizeof(int));
	}
	if (n == SHIM_FDS && is_ours(fds[0], 0) && is_ours(fds[1], 1) && is_ours(fds[2], 2)) {
		memcpy(ret, fds, SHIM_FDS * sizeof(int));
		return true;
	}
	handover_close(fds, n);
	return false;
}

void handover_close(const int *fds, int n)
{
	for (int i = 0; i < n; i++)
		(void)raw_call(SYS_close, fds[i]);
}

bool handover_has(int first, int i)
{
	return first >= 0 && !shim_filtered && is_ours(first + i, i);
}

void handover_remove(int first)
{
	for (int i = 0; i < SHIM_FDS; i++)
		if (handover_has(first, i))
			(void)raw_call(SYS_close, first + i);
}

int handover_place(const int fds[SHIM_FDS], bool kept)
{
	int from = PRELOAD_FD;

	for (int try = 0; try < PRELOAD_TRIES; try++) {
		int at[SHIM_FDS], n = 0;

		for (; n < SHIM_FDS; n++) {
			at[n] = (int)raw_call(SYS_fcntl, fds[n], kept ? F_DUPFD : F_DUPFD_CLOEXEC,
					      n ? at[0] + n : from);
			if (at[n] < 0 || at[n] != at[0] + n)
				break;
		}
		if (n == SHIM_FDS)
			return at[0];
		handover_close(at, at[n] < 0 ? n : n + 1);
		if (at[n] < 0)
			break;
		from = at[0] + 1;
	}
	return -1;
}

static bool loads_library(const char *path, int depth, struct shim_environment *e)
{
	char head[256];
	Elf64_Ehdr *elf = (Elf64_Ehdr *)head;
	bool loads = false;
	struct stat st;
	long n;
	int fd;

	/* The kernel executes regular files alone. To open another one may have an effect, as
	 * /dev/watchdog shows. */
	if (raw_call(SYS_stat, path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	fd = (int)raw_call(SYS_open, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	/* Of a program with other rights than its starter's the loader refuses the library, but
	 * descriptors would be open there. */
	if (raw_call(SYS_fstat, fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    st.st_mode & (S_ISUID | S_ISGID) ||
	    raw_call(SYS_fgetxattr, fd, "security.capability", NULL, 0) > 0)
		n = -1;
	else
		n = raw_call(SYS_pread64, fd, head, sizeof(head) - 1, 0);
	if (n > 2 && head[0] == '#' && head[1] == '!' && depth == 0) {
		char *p = head + 2;

		head[n] = '\0';
		p += strspn(p, " \t");
		p[strcspn(p, " \t\n")] = '\0';
		loads = *p && loads_library(p, 1, e);
	} else if (n >= (long)sizeof(*elf) && memcmp(elf->e_ident, ELFMAG, SELFMAG) == 0 &&
		   elf->e_ident[EI_CLASS] == ELFCLASS64 && elf->e_machine == EM_X86_64 &&
		   elf->e_phentsize == sizeof(Elf64_Phdr)) {
		Elf64_Phdr p;

		loads = shim_header(fd, elf, PT_INTERP, 0, &p);
		if (loads)
			shim_first_library(fd, e->first);
	}
	(void)raw_call(SYS_close, fd);
	return loads;
}

bool handover_loads(const char *path, struct shim_environment *e)
{
	return loads_library(path, 0, e);
}

static const char *search_path(void)
{
	for (char **e = environ; e && *e; e++)
		if (strncmp(*e, "PATH=", 5) == 0)
			return *e + 5;
	return DEFAULT_PATH;
}

bool handover_candidate(const char **at, const char *file, char ret[PATH_MAX])
{
	size_t name = strlen(file), n;

	while (!*at || **at) {
		const char *part = *at ? *at + 1 : search_path();

		n = strcspn(part, ":");
		*at = part + n;
		if (n + name + 2 > PATH_MAX)
			continue;
		memcpy(ret, part, n);
		if (n)
			ret[n++] = '/';
		memcpy(ret + n, file, name + 1);
		return true;
	}
	return false;
}

bool handover_survey(char *const *envp, struct shim_environment *ret)
{
	*ret = (struct shim_environment){.envp = envp};
	for (; envp[ret->n] && ret->n < HANDOVER_STRINGS; ret->n++)
		if (strncmp(envp[ret->n], SHIM_PRELOAD, strlen(SHIM_PRELOAD)) == 0)
			ret->old = envp[ret->n]; /* with several, the loader obeys the last */
	ret->had = ret->old ? strnlen(ret->old, HANDOVER_VALUE) : 0;
	return !shim_filtered && ret->n < HANDOVER_STRINGS && ret->had < HANDOVER_VALUE;
}
