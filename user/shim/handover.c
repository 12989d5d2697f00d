// SPDX-License-Identifier: BSD-2-Clause
/* The library's hand-over to a program that is about to be started. */
#include "handover.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define PRELOAD "LD_PRELOAD="
#define PRELOAD_FD 200
#define PRELOAD_TRIES 64
#define MAX_VALUE HANDOVER_VALUE
#define PATIENCE_US 200000

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

bool handover_ask(int ret[SHIM_FDS])
{
	return __atomic_load_n(&shim_page, __ATOMIC_ACQUIRE) && ask(SHIM_ASK_DESCRIPTORS, ret);
}

void handover_close(const int *fds, int n)
{
	for (int i = 0; i < n; i++)
		(void)close(fds[i]);
}

int handover_place(const int fds[SHIM_FDS], bool kept)
{
	int from = PRELOAD_FD, placed = -1;

	for (int try = 0; placed < 0 && try < PRELOAD_TRIES; try++) {
		int at[SHIM_FDS], n = 0;

		for (; n < SHIM_FDS; n++) {
			at[n] = handover_fcntl(fds[n], kept ? F_DUPFD : F_DUPFD_CLOEXEC, from + n);
			if (at[n] < 0 || at[n] != at[0] + n)
				break;
			if (n == 0)
				from = at[0];
		}
		if (n == SHIM_FDS) {
			placed = at[0];
			break;
		}
		handover_close(at, at[n] < 0 ? n : n + 1);
		if (at[n] < 0)
			break;
		from++;
	}
	return placed;
}

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
	if (syscall(SYS_fstat, fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_mode & (S_ISUID | S_ISGID))
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

bool handover_loads(const char *path)
{
	return loads_library(path, 0);
}

bool handover_survey(char *const *envp, struct handover_environment *ret)
{
	*ret = (struct handover_environment){.envp = envp};
	for (; envp[ret->n] && ret->n < HANDOVER_STRINGS; ret->n++)
		if (strncmp(envp[ret->n], PRELOAD, strlen(PRELOAD)) == 0)
			ret->old = envp[ret->n]; /* with several, the loader obeys the last */
	ret->had = ret->old ? strnlen(ret->old, MAX_VALUE) : 0;
	return ret->n < HANDOVER_STRINGS && ret->had < MAX_VALUE;
}

void handover_preload(const struct handover_environment *e, int first, char *to)
{
	if (e->old) {
		memcpy(to, e->old, e->had);
		to += e->had;
		*to++ = strchr(e->old, ' ') && !strchr(e->old, ':') ? ' ' : ':';
	} else {
		memcpy(to, PRELOAD, strlen(PRELOAD));
		to += strlen(PRELOAD);
	}
	memcpy(to, "/proc/self/fd/", 14);
	append_number(to + 14, (unsigned int)first);
}

void handover_fill(const struct handover_environment *e, char *entry, char **vector)
{
	size_t where = e->n;

	for (size_t i = 0; i < e->n; i++) {
		vector[i] = e->envp[i];
		if (e->envp[i] == e->old)
			where = i;
	}
	vector[e->n] = vector[e->n + 1] = NULL;
	vector[where] = entry;
}
