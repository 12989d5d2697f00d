/* SPDX-License-Identifier: BSD-2-Clause */
/* What the preloaded library is told at its start, and what it recognises its descriptors by. It
 * stands at the end of the library's own memory file, which is sealed: a process that can write the
 * shared page (a sibling, a worker that dropped its privileges) cannot change it. */
#pragma once

#include "shared/raw_call.h"
#include "shared/shim_abi.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define SHIM_MAGIC 0x32306d6968735a43ULL /* "CZshim02" */

/* A file that descriptors are of. The kernel gives the numbers of a memory file to no other one
 * until the machine is started again. BPF maps share one inode and have ids instead. */
struct shim_identity {
	unsigned long long dev, ino;
	unsigned long long map_id; /* 0: a memory file */
};

/* The last bytes of the memory file that the library is loaded from. */
struct shim_launch {
	unsigned long long magic;
	struct shim_identity page;
	struct shim_identity slots; /* ino 0: there are none */
	unsigned int pay;	    /* enum shim_pay */
	unsigned int signo;	    /* the payment signal */
	int server_pid;		    /* the controller, in the PID namespace that it launched from */
	unsigned int server_uid;    /* and its user, in that user namespace */
	char server[SHIM_SERVER_NAME]; /* the socket to ask for the descriptors at the next exec;
					  "": there is none */
};
SHIM_STATIC_ASSERT(sizeof(struct shim_launch) == 72 + SHIM_SERVER_NAME);

/* Of the library's image: nobody can change what is loaded. Of the page: nobody can make it shorter
 * than a mapping of it. */
#define SHIM_IMAGE_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define SHIM_PAGE_SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW)

static inline bool shim_sealed(int fd, int seals)
{
	long has = raw_call(SYS_fcntl, fd, F_GET_SEALS);

	return has >= 0 && (has & seals) == seals;
}

static inline void shim_put_number(char *to, unsigned int n)
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

/* 0: it is no BPF map. */
static inline unsigned long long shim_map_id(int fd)
{
	static const char key[] = "map_id:";
	char path[48] = "/proc/self/fdinfo/", text[512], *p;
	unsigned long long id = 0;
	long n;
	int info;

	shim_put_number(path + strlen(path), (unsigned int)fd);
	info = (int)raw_call(SYS_open, path, O_RDONLY | O_CLOEXEC);
	if (info < 0)
		return 0;
	n = raw_call(SYS_read, info, text, sizeof(text) - 1);
	(void)raw_call(SYS_close, info);
	text[n < 0 ? 0 : n] = '\0';
	p = strstr(text, key);
	if (!p)
		return 0;
	p += strlen(key);
	for (p += strspn(p, " \t"); *p >= '0' && *p <= '9'; p++)
		id = id * 10 + (unsigned long long)(*p - '0');
	return id;
}

/* false: neither a memory file (or another regular one) nor a BPF map. */
static inline bool shim_identify(int fd, struct shim_identity *ret)
{
	struct stat st;

	if (fd < 0 || raw_call(SYS_fstat, fd, &st) < 0)
		return false;
	*ret = (struct shim_identity){.dev = st.st_dev, .ino = st.st_ino};
	if (S_ISREG(st.st_mode))
		return true;
	ret->map_id = shim_map_id(fd);
	return ret->map_id > 0;
}

static inline bool shim_is(int fd, const struct shim_identity *wanted)
{
	struct shim_identity is;

	return shim_identify(fd, &is) && is.dev == wanted->dev && is.ino == wanted->ino &&
	       is.map_id == wanted->map_id;
}
