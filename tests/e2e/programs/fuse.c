// SPDX-License-Identifier: BSD-2-Clause
/* A file system in user space (FUSE) that shows the files of a directory, without a library.
 * Stopped by SIGSTOP, it hangs; after SIGUSR1 it answers all but reads; after SIGUSR2, what is open
 * from then on has no state, and who closes it waits. It ends, and what waits for it fails, when it
 * is killed. fuse DIRECTORY MOUNTPOINT [OPTIONS] */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define MOST_FILES 16
#define MOST_READ (128 * 1024)

static int directory, device;
static char names[MOST_FILES][NAME_MAX + 1]; /* a node's number is its index + 2; 1 is the root */
static size_t n_names;
static volatile sig_atomic_t reads_hang, files_hang;
static bool is_open; /* since then */

static void hang(int signo)
{
	if (signo == SIGUSR1)
		reads_hang = 1;
	else
		files_hang = 1;
}

static void answer(uint64_t unique, int error, const void *data, size_t size)
{
	static char out[sizeof(struct fuse_out_header) + MOST_READ];
	struct fuse_out_header h = {.len = (uint32_t)(sizeof(h) + (error ? 0 : size)),
				    .error = error,
				    .unique = unique};

	memcpy(out, &h, sizeof(h));
	if (!error && size)
		memcpy(out + sizeof(h), data, size);
	(void)!write(device, out, h.len); /* fails where the request was interrupted */
}

static int attributes(uint64_t node, struct fuse_attr *ret)
{
	struct stat st;

	if (node > n_names + 1)
		return -ENOENT;
	if ((node == 1 ? fstat(directory, &st) : fstatat(directory, names[node - 2], &st, 0)) < 0)
		return -errno;
	*ret = (struct fuse_attr){
		.ino = node,
		.size = (uint64_t)st.st_size,
		.blocks = (uint64_t)st.st_blocks,
		.mtime = (uint64_t)st.st_mtime,
		.mode = st.st_mode,
		.nlink = 1,
		.uid = st.st_uid,
		.gid = st.st_gid,
		.blksize = 4096,
	};
	return 0;
}

static uint64_t node_of(const char *name)
{
	for (size_t i = 0; i < n_names; i++)
		if (!strcmp(names[i], name))
			return i + 2;
	if (n_names == MOST_FILES || strlen(name) > NAME_MAX ||
	    faccessat(directory, name, F_OK, 0) < 0)
		return 0;
	memcpy(names[n_names], name, strlen(name) + 1);
	return ++n_names + 1;
}

static void read_file(const struct fuse_in_header *h, const struct fuse_read_in *in)
{
	static char data[MOST_READ];
	int fd = openat(directory, names[h->nodeid - 2], O_RDONLY | O_CLOEXEC);
	ssize_t n = pread(fd, data, in->size < MOST_READ ? in->size : MOST_READ, (off_t)in->offset);

	answer(h->unique, n < 0 ? -errno : 0, data, n < 0 ? 0 : (size_t)n);
	(void)close(fd);
}

static void serve(const struct fuse_in_header *h, const void *in)
{
	struct fuse_init_out init = {.major = FUSE_KERNEL_VERSION,
				     .minor = FUSE_KERNEL_MINOR_VERSION,
				     .max_readahead = MOST_READ,
				     .max_write = 4096};
	struct fuse_entry_out entry = {0};
	struct fuse_attr_out attr = {0};
	struct fuse_open_out open = {0};
	struct fuse_statfs_out fs = {.st = {.bsize = 4096, .namelen = NAME_MAX}};
	int r;

	switch (h->opcode) {
	case FUSE_INIT:
		answer(h->unique, 0, &init, sizeof(init));
		break;
	case FUSE_LOOKUP:
		entry.nodeid = node_of(in);
		r = entry.nodeid ? attributes(entry.nodeid, &entry.attr) : -ENOENT;
		answer(h->unique, r, &entry, sizeof(entry));
		break;
	case FUSE_GETATTR:
		r = is_open ? -EIO : attributes(h->nodeid, &attr.attr);
		answer(h->unique, r, &attr, sizeof(attr));
		break;
	case FUSE_OPEN:
		is_open = files_hang;
		/* fall through */
	case FUSE_OPENDIR:
		answer(h->unique, 0, &open, sizeof(open));
		break;
	case FUSE_READ:
		if (!reads_hang)
			read_file(h, in);
		break;
	case FUSE_STATFS:
		answer(h->unique, 0, &fs, sizeof(fs));
		break;
	case FUSE_FLUSH:
		if (is_open)
			break;
		/* fall through */
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		answer(h->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break; /* nothing is answered to these */
	default:
		answer(h->unique, -ENOSYS, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	static char in[FUSE_MIN_READ_BUFFER + MOST_READ] __attribute__((aligned(8)));
	char options[256];

	directory = argc > 2 ? open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	(void)snprintf(options, sizeof(options), "fd=%d,rootmode=40000,group_id=0,%s", device,
		       argc > 3 ? argv[3] : "user_id=0");
	if (directory < 0 || device < 0 ||
	    mount("cozbpf-test", argv[2], "fuse", MS_NODEV, options) < 0) {
		perror("fuse");
		return 1;
	}
	(void)signal(SIGUSR1, hang);
	(void)signal(SIGUSR2, hang);
	for (;;) {
		ssize_t n = read(device, in, sizeof(in));

		if (n < 0 && errno != EINTR && errno != EAGAIN && errno != ENOENT)
			return errno == ENODEV ? 0 : 1; /* unmounted */
		if (n >= (ssize_t)sizeof(struct fuse_in_header))
			serve((const struct fuse_in_header *)in,
			      in + sizeof(struct fuse_in_header));
	}
}
