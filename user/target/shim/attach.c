// SPDX-License-Identifier: BSD-2-Clause
/* The constructor: take over the three inherited descriptors, then leave no trace of them in the
 * program. */
#include "shim.h"
#include "shared/shim_first.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FD_PATH "/proc/self/fd/"

struct shim_page *shim_page;
struct shim_slot *shim_slots;
struct shim_launch shim_launch;
struct shim_identity shim_own_image;

/* If the last path in @value is /proc/self/fd/<n>, returns n and where that path begins; else -1.
 */
static int trailing_descriptor(char *value, char **ret_path)
{
	char *path = value, *p;
	long n = 0;

	for (p = value; *p; p++)
		if (*p == ':' || *p == ' ')
			path = p + 1;
	if (strncmp(path, FD_PATH, strlen(FD_PATH)) != 0)
		return -1;
	p = path + strlen(FD_PATH);
	/* The element before it is ours, too. */
	if (strncmp(p, SHIM_FIRST_MARK, strlen(SHIM_FIRST_MARK)) == 0) {
		p += strlen(SHIM_FIRST_MARK);
		path -= path > value; /* the separator */
		while (path > value && path[-1] != ':')
			path--;
	}
	if (!*p)
		return -1;
	for (; *p; p++) {
		if (*p < '0' || *p > '9')
			return -1;
		n = n * 10 + (*p - '0');
		if (n > INT_MAX - SHIM_FDS)
			return -1;
	}
	*ret_path = path;
	return (int)n;
}

/* The loader obeys the last LD_PRELOAD if the environment has several; the launcher extended that
 * one. */
static char **find_preload(void)
{
	char **found = NULL;

	if (!environ)
		return NULL;
	for (char **e = environ; *e; e++)
		if (strncmp(*e, SHIM_PRELOAD, strlen(SHIM_PRELOAD)) == 0)
			found = e;
	return found;
}

/* Undoes the launcher's edit. The strings and the vector are the ones that the kernel laid out and
 * main receives, so both are edited where they are. A value that was ours alone was not there
 * before; "<value><separator>ours" was "<value>", even if that is empty. */
static void restore_environment(char **entry, char *path)
{
	if (path > *entry + strlen(SHIM_PRELOAD)) {
		path[-1] = '\0';
		return;
	}
	do
		entry[0] = entry[1];
	while (*entry++);
}

/* Is @fd an image that nobody can change, with what we are told at its end? */
static bool read_launch(int fd, struct shim_launch *ret)
{
	long end = raw_call(SYS_lseek, fd, 0, SEEK_END);

	return shim_sealed(fd, SHIM_IMAGE_SEALS) && shim_identify(fd, &shim_own_image) &&
	       end >= (long)sizeof(*ret) &&
	       raw_call(SYS_pread64, fd, ret, sizeof(*ret), end - (long)sizeof(*ret)) ==
		       (long)sizeof(*ret) &&
	       ret->magic == SHIM_MAGIC;
}

/* NULL if the descriptor is not the one that is meant, or cannot be mapped whole: a file shorter
 * than the mapping would raise SIGBUS at the first touch. A BPF map has no length to seek; its mmap
 * refuses a length above its own. */
static void *map_shared(int fd, const struct shim_identity *wanted, size_t size)
{
	long p;

	if (!shim_is(fd, wanted) ||
	    (!wanted->map_id && raw_call(SYS_lseek, fd, 0, SEEK_END) < (long)size))
		return NULL;
	p = raw_call(SYS_mmap, NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return p < 0 ? NULL : (void *)p;
}

static void attach(void)
{
	char **entry = find_preload(), *path;
	struct shim_launch launch;
	struct shim_page *page;
	int fd;

	if (!entry)
		return;
	fd = trailing_descriptor(*entry + strlen(SHIM_PRELOAD), &path);
	/* Somebody else's descriptors are not ours to close. */
	if (fd < 0 || !read_launch(fd, &launch) || !shim_sealed(fd + 1, SHIM_PAGE_SEALS))
		return;
	page = map_shared(fd + 1, &launch.page, sizeof(*page));
	if (!page)
		return;
	launch.server[sizeof(launch.server) - 1] = '\0';
	shim_launch = launch;
	restore_environment(entry, path);
	/* Without slots the launcher left this number free, and by now it may be another library's.
	 */
	if (launch.slots.ino && shim_is(fd + 2, &launch.slots)) {
		shim_slots =
			map_shared(fd + 2, &launch.slots, SHIM_ENTRIES * sizeof(struct shim_slot));
		(void)raw_call(SYS_close, fd + 2);
	}
	(void)raw_call(SYS_close, fd);
	(void)raw_call(SYS_close, fd + 1);

	__atomic_store_n(&shim_page, page, __ATOMIC_RELEASE);
	page->slots_mapped = shim_slots != NULL;
	/* Also without slots: an unhandled real-time signal would end the program. */
	if (launch.pay == SHIM_PAY_SLEEP || launch.pay == SHIM_PAY_SPIN)
		shim_pay_install((enum shim_pay)launch.pay, (int)launch.signo);
	shim_filter_watch();
	/* Last: from here on the ledger may raise the signal. */
	if (__atomic_exchange_n(&page->loaded, 1, __ATOMIC_ACQ_REL))
		shim_exec_announce();
}

struct shim_page *shim_attach(void)
{
	static int attached;

	if (!__atomic_exchange_n(&attached, 1, __ATOMIC_ACQ_REL))
		attach();
	return __atomic_load_n(&shim_page, __ATOMIC_ACQUIRE);
}

__attribute__((constructor)) static void shim_start(void)
{
	(void)shim_attach();
}
