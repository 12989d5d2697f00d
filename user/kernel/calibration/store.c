// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/calibration/store.h"

#include "base/cleanup.h"
#include "base/rng.h"
#include "base/write_all.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DIRECTORY "cozbpf"
#define MAX_FILE 1024

static bool only_ours(const struct stat *st, mode_t kind, mode_t others)
{
	return (st->st_mode & S_IFMT) == kind && st->st_uid == geteuid() && !(st->st_mode & others);
}

/* Whoever may write to a directory can put another one in the place of what is in it. */
static int open_directory(int at, const char *name, mode_t others)
{
	_cleanup_close_ int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	return only_ours(&st, S_IFDIR, others) ? TAKE_FD(fd) : -EPERM;
}

static int open_ours(const char *run, bool make)
{
	_cleanup_close_ int parent = open_directory(AT_FDCWD, run, S_IWGRP | S_IWOTH);

	if (parent < 0)
		return parent;
	if (make && mkdirat(parent, DIRECTORY, 0700) < 0 && errno != EEXIST)
		return -errno;
	return open_directory(parent, DIRECTORY, S_IRWXG | S_IRWXO);
}

#define FIGURES "pay %lld beside %lld slope %lld hit %lld beside %lld slope %lld tick %lld\n"

static bool sound(const struct abi_unseen *c)
{
	return c->ns >= 0 && c->ns <= CALIBRATION_MAX && c->beside_ns >= 0 &&
	       c->beside_ns <= CALIBRATION_MAX && c->slope_q8 >= 0 &&
	       c->slope_q8 <= CALIBRATION_MAX;
}

/* The file's text. Returns its length. */
static int render(const struct calibration_key *key, const struct abi_costs *c, char buf[MAX_FILE])
{
	int n;

	if (!sound(&c->pay) || !sound(&c->hit) || c->tick_ns < 0 || c->tick_ns > CALIBRATION_MAX)
		return -ERANGE;
	n = snprintf(buf, MAX_FILE, "cozbpf calibration\n%s\n" FIGURES, key->text, c->pay.ns,
		     c->pay.beside_ns, c->pay.slope_q8, c->hit.ns, c->hit.beside_ns,
		     c->hit.slope_q8, c->tick_ns);
	return n > 0 && n < MAX_FILE ? n : -ENAMETOOLONG;
}

/* Refuses a text that is not what render writes for these figures. */
static int parse(const char *text, const struct calibration_key *key, struct abi_costs *ret)
{
	const char *figures = strstr(text, "\npay ");
	struct abi_costs c = {0};
	char same[MAX_FILE];

	if (!figures || sscanf(figures + 1, FIGURES, &c.pay.ns, &c.pay.beside_ns, &c.pay.slope_q8,
			       &c.hit.ns, &c.hit.beside_ns, &c.hit.slope_q8, &c.tick_ns) != 7)
		return -EBADMSG;
	if (render(key, &c, same) < 0 || strcmp(same, text) != 0)
		return -EBADMSG;
	*ret = c;
	return 0;
}

int calibration_recall(const char *run, const struct calibration_key *key, struct abi_costs *ret)
{
	_cleanup_close_ int dir = key->text[0] ? open_ours(run, false) : -ENODATA, fd = -1;
	char text[MAX_FILE + 1];
	struct stat st;
	ssize_t n;

	if (dir < 0)
		return dir;
	/* O_NONBLOCK: a FIFO in the file's place must not stop us. */
	fd = openat(dir, key->file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	/* A second name may be where others can write. */
	if (!only_ours(&st, S_IFREG, S_IRWXG | S_IRWXO) || st.st_nlink != 1)
		return -EPERM;
	n = read(fd, text, sizeof(text));
	if (n < 0)
		return -errno;
	if (n > MAX_FILE || memchr(text, 0, (size_t)n))
		return -EBADMSG;
	text[n] = '\0';
	return parse(text, key, ret);
}

int calibration_keep(const char *run, const struct calibration_key *key, const struct abi_costs *c)
{
	_cleanup_close_ int dir = key->text[0] ? open_ours(run, true) : -ENODATA, fd = -1;
	char text[MAX_FILE], name[64];
	int n, r;

	if (dir < 0)
		return dir;
	n = render(key, c, text);
	if (n < 0)
		return n;
	(void)snprintf(name, sizeof(name), "%s.%llx", key->file,
		       (unsigned long long)rng_fresh_seed());
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = write_all(fd, text, (size_t)n);
	if (r == 0 && renameat(dir, name, dir, key->file) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(dir, name, 0);
	return r;
}

static bool read_boot(char *buf, size_t size)
{
	_cleanup_close_ int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);

	if (n <= 0)
		return false;
	buf[n] = '\0';
	buf[strcspn(buf, "\n")] = '\0';
	return buf[0] && !buf[strspn(buf, "0123456789abcdef-")];
}

struct own_id {
	char hex[41];
};

/* Of the executable, which comes first. */
static int find_build_id(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct own_id *id = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum && !id->hex[0]; i++) {
		const char *at = (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
			   *end = at + info->dlpi_phdr[i].p_memsz;

		while (info->dlpi_phdr[i].p_type == PT_NOTE &&
		       end - at >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
			const ElfW(Nhdr) *note = (const void *)at;
			const unsigned char *desc =
				(const unsigned char *)(note + 1) + ((note->n_namesz + 3) & ~3U);

			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4)
				for (size_t k = 0;
				     k < note->n_descsz && 2 * k + 2 < sizeof(id->hex); k++)
					(void)snprintf(id->hex + 2 * k, 3, "%02x", desc[k]);
			at = (const char *)desc + ((note->n_descsz + 3) & ~3U);
		}
	}
	return 1;
}

void calibration_key_make(struct calibration_key *ret, unsigned int payer, const char *how)
{
	struct own_id id = {.hex = ""};
	char boot[64];
	int n;

	*ret = (struct calibration_key){.text = ""};
	(void)dl_iterate_phdr(find_build_id, &id);
	/* Without one, programs that measure in different ways look alike. */
	if (!id.hex[0] || !read_boot(boot, sizeof(boot)))
		return;
	(void)snprintf(ret->file, sizeof(ret->file), "calibration-%u", payer);
	n = snprintf(ret->text, sizeof(ret->text), "boot=%s build=%s %s", boot, id.hex, how);
	if (n < 0 || (size_t)n >= sizeof(ret->text) || strchr(ret->text, '\n'))
		ret->text[0] = '\0';
}
