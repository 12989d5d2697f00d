// SPDX-License-Identifier: BSD-2-Clause
#include "base/open_file.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

/* linux/magic.h does not have it. */
#define CONFIGFS_MAGIC 0x62656570
#define NOBODY 65534

/* Descriptors that are kept free: what is open at once to look at processes, and some more. */
#define SPARE 64

static struct file_rights usual, invoker, reader;
static bool has_invoker;

bool descriptors_are_short(void)
{
	/* The next one that is given. */
	_cleanup_close_ int next = open("/", O_PATH | O_CLOEXEC);
	struct rlimit l;

	if (next < 0)
		return errno == EMFILE || errno == ENFILE;
	/* Where few are allowed in all, a quarter of them. */
	return getrlimit(RLIMIT_NOFILE, &l) == 0 &&
	       (rlim_t)next >= l.rlim_cur - (l.rlim_cur < 4 * SPARE ? l.rlim_cur / 4 : SPARE);
}

/* File systems whose regular files are made by the kernel. */
static bool is_kernels(const struct statfs *fs)
{
	static const uint32_t kernels[] = {
		PROC_SUPER_MAGIC,   SYSFS_MAGIC,	 DEBUGFS_MAGIC,	     TRACEFS_MAGIC,
		CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,	     SECURITYFS_MAGIC,
		SELINUX_MAGIC,	    SMACK_MAGIC,	 DEVPTS_SUPER_MAGIC, PSTOREFS_MAGIC,
		EFIVARFS_MAGIC,	    BINFMTFS_MAGIC,	 NSFS_MAGIC,	     RDTGROUP_SUPER_MAGIC,
		CONFIGFS_MAGIC,	    AAFS_MAGIC,
	};

	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
		if ((uint32_t)fs->f_type == kernels[i])
			return true;
	return false;
}

/* The kernel tells of an overlay that it is one, and nothing of what it lies over. But which
 * attributes there are each file system of disks and of memory says itself, and FUSE of none,
 * whatever its server answers. */
static bool says_nothing(int fd)
{
	struct statx x;

	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &x) < 0 ||
	       !(x.stx_attributes_mask & (STATX_ATTR_NODUMP | STATX_ATTR_COMPRESSED));
}

/* A mount as /proc/PID/mountinfo has it. */
struct file_mount {
	dev_t device;  /* of the mounted file system */
	bool is_users; /* a FUSE server's that another user runs */
};

/* Finds the mount number @id, or the first one of the file system @device unless that is 0, in the
 * mountinfo @f. -ENOENT: there is none; -ESRCH: it cannot be read. */
static int find_mount(FILE *f, uint64_t id, dev_t device, struct file_mount *ret)
{
	_cleanup_free_ char *line = NULL;
	size_t room = 0;

	while (f && getline(&line, &room, f) > 0) {
		/* The file system's own options come last; no field has a space in it. */
		const char *options = strrchr(line, ' ');
		const char *user = options ? strstr(options, "user_id=") : NULL;
		unsigned long uid = user ? strtoul(user + strlen("user_id="), NULL, 10) : 0;
		unsigned int of_major, of_minor;
		unsigned long long number;

		if (sscanf(line, "%llu %*u %u:%u", &number, &of_major, &of_minor) != 3 ||
		    (device ? makedev(of_major, of_minor) != device : number != id))
			continue;
		ret->device = makedev(of_major, of_minor);
		ret->is_users = uid != 0 && uid != geteuid();
		return 0;
	}
	return f && !ferror(f) ? -ENOENT : -ESRCH;
}

static int find_own_mount(uint64_t id, dev_t device, struct file_mount *ret)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/mountinfo", "re");

	return find_mount(f, id, device, ret);
}

/* Does the mount namespace of the thread @tid belong to our own user namespace? Then only root can
 * mount there. -ESRCH: the thread has ended. */
static int is_roots(pid_t tid, bool *ret)
{
	_cleanup_close_ int ns = -1, owner = -1;
	struct stat its, ours;
	char link[64];

	(void)snprintf(link, sizeof(link), "/proc/%d/ns/mnt", (int)tid);
	ns = open(link, O_RDONLY | O_CLOEXEC);
	owner = ns < 0 ? -1 : ioctl(ns, NS_GET_USERNS);
	*ret = owner >= 0 && fstat(owner, &its) == 0 && stat("/proc/self/ns/user", &ours) == 0 &&
	       its.st_dev == ours.st_dev && its.st_ino == ours.st_ino;
	return ns < 0 ? -ESRCH : 0;
}

/* Three kinds of mounts belong to root: those of our own mount namespace; those of the mount
 * namespace of the process in @path, if root made that namespace, as for a container; and mounts
 * elsewhere of a file system that is mounted in our namespace too. All others are a user's. */
static int is_on_users_mount(int fd, const char *path, dev_t *ret_device, bool *ret)
{
	_cleanup_fclose_ FILE *f = NULL;
	struct file_mount mount, here;
	char mountinfo[64];
	bool roots_namespace;
	struct statx x;
	int pid, r;

	*ret_device = 0;
	*ret = true;
	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &x) < 0)
		return -errno;
	r = find_own_mount(x.stx_mnt_id, 0, &mount);
	if (r == 0)
		*ret = mount.is_users;
	if (r == -ENOENT && sscanf(path, "/proc/%d/", &pid) == 1) {
		/* Opened before the namespace is looked at: a process can leave root's, but not
		 * enter it again. */
		(void)snprintf(mountinfo, sizeof(mountinfo), "/proc/%d/mountinfo", pid);
		f = fopen(mountinfo, "re");
		r = is_roots(pid, &roots_namespace);
		if (r == 0)
			r = find_mount(f, x.stx_mnt_id, 0, &mount);
		if (r == 0 && roots_namespace)
			*ret = mount.is_users;
		else if (r == 0)
			*ret = find_own_mount(0, mount.device, &here) < 0 || here.is_users;
	}
	if (r == 0)
		*ret_device = mount.device;
	return r == -ENOENT ? 0 : r;
}

bool file_may_be_fuse(int fd, int64_t file_system)
{
	return file_system == FUSE_SUPER_MAGIC ||
	       (file_system == OVERLAYFS_SUPER_MAGIC && says_nothing(fd));
}

int file_is_on_users_mount(int fd, const char *path, int64_t file_system, dev_t *ret_device,
			   bool *ret)
{
	bool any_user_can = file_system == FUSE_SUPER_MAGIC || file_system == OVERLAYFS_SUPER_MAGIC;
	int r;

	*ret_device = 0;
	*ret = false;
	if (!any_user_can && file_system != BTRFS_SUPER_MAGIC)
		return 0;
	r = is_on_users_mount(fd, path, ret_device, ret);
	if (any_user_can)
		return r;
	*ret = false;
	return 0;
}

bool overlays_have_lower_numbers(void)
{
	struct utsname kernel;
	int version, level;

	return uname(&kernel) == 0 && sscanf(kernel.release, "%d.%d", &version, &level) == 2 &&
	       (version < 6 || (version == 6 && level < 8));
}

/* Opens the path to look at. @as: what its links may lead to; NULL: anything. */
static int open_to_look(int directory, const char *path, int flags, const struct file_rights *as)
{
	struct open_how how = {.flags = (uint64_t)(O_PATH | O_CLOEXEC | flags),
			       .resolve = as && as->plain_path ? RESOLVE_NO_MAGICLINKS : 0};
	_cleanup_free_ char *name = as && as->root ? strndup(path, as->root) : NULL;
	_cleanup_close_ int root = name ? open(name, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	if (as && as->root) {
		if (root < 0)
			return -1;
		directory = root;
		path += as->root;
		how.flags |= O_NOFOLLOW;
		how.resolve |= RESOLVE_IN_ROOT;
	}
	return (int)syscall(SYS_openat2, directory, path, &how, sizeof(how));
}

/* @as: as of open_to_look. */
static int check_and_open(int directory, const char *path, int flags, const struct file_rights *as,
			  bool pipes)
{
	_cleanup_close_ int fd = open_to_look(directory, path, flags, as);
	char link[64];
	struct statfs fs;
	struct stat st;
	int file;

	if (fd < 0 || fstat(fd, &st) < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	if (!(S_ISREG(st.st_mode) || (pipes && S_ISFIFO(st.st_mode))) || is_kernels(&fs))
		return -ENOEXEC;
	/* Any user can mount FUSE in a namespace, and an overlay over it. FUSE refuses root then,
	 * but the overlay opens files with its maker's rights: we would wait for that user's
	 * process, and to close such a file is a wait that nothing ends. */
	if (fs.f_type == OVERLAYFS_SUPER_MAGIC && says_nothing(fd)) {
		dev_t unused;
		bool is_users;
		int r = is_on_users_mount(fd, path, &unused, &is_users);

		if (r < 0 || is_users)
			return r < 0 ? r : -EREMOTE;
	}
	/* The same file, whatever has the name by now. O_NONBLOCK: a lease on the file must not
	 * delay us. A pipe's writer is waited for. */
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	file = open(link, O_RDONLY | O_CLOEXEC | O_NOCTTY | (S_ISREG(st.st_mode) ? O_NONBLOCK : 0));
	return file < 0 ? -errno : file;
}

/* Of this thread alone: the C library's functions would change all threads. */
static bool set_rights(const struct file_rights *r)
{
	if (syscall(SYS_setgroups, (size_t)r->n_groups, r->groups) < 0)
		return false;
	(void)setfsgid(r->gid);
	(void)setfsuid(r->uid);
	return (gid_t)setfsgid((gid_t)-1) == r->gid && (uid_t)setfsuid((uid_t)-1) == r->uid;
}

static int open_as(const char *path, const struct file_rights *as)
{
	struct file_rights own = {.uid = geteuid(), .gid = getegid()};
	int n = getgroups(FILE_RIGHTS_GROUPS, own.groups), r;

	if (n < 0) /* more, which could not be restored */
		return -EPERM;
	own.n_groups = (uint32_t)n;
	r = set_rights(as) ? check_and_open(AT_FDCWD, path, 0, as, false) : -EPERM;
	if (!set_rights(&own))
		abort(); /* all that follows would be done as somebody else */
	return r;
}

int open_file(const char *path, const struct file_rights *as)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3}; /* of this thread */
	struct __user_cap_data_struct own[_LINUX_CAPABILITY_U32S_3], less[_LINUX_CAPABILITY_U32S_3];
	bool root = geteuid() == 0;
	int r;

	if (!as || (root && as->uid == 0))
		return check_and_open(AT_FDCWD, path, 0, as, false);
	if (syscall(SYS_capget, &header, own) < 0)
		return -EPERM;
	memcpy(less, own, sizeof(less));
	/* Not CAP_SYS_PTRACE: the way to /proc/PID/root needs it, if the process has changed its
	 * user. */
	less[0].effective &= ~(1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH);
	if (syscall(SYS_capset, &header, less) < 0)
		return -EPERM;
	r = root ? open_as(path, as) : check_and_open(AT_FDCWD, path, 0, as, false);
	if (syscall(SYS_capset, &header, own) < 0)
		abort();
	return r;
}

int open_file_or_pipe(const char *path)
{
	return check_and_open(AT_FDCWD, path, 0, NULL, true);
}

int open_file_at(int directory, const char *name)
{
	return check_and_open(directory, name, O_NOFOLLOW, NULL, false);
}

/* Of such a file system the kernel tells others the type, and nothing else; below its root not even
 * that. */
bool file_is_anothers_fuse(const char *path)
{
	_cleanup_free_ char *at = strdup(path);
	char *slash;
	struct statfs fs;

	while (at && statfs(at, &fs) < 0) {
		slash = strrchr(at, '/');
		if (errno != EACCES || !slash || slash == at)
			return false;
		*slash = '\0';
	}
	return at && fs.f_type == FUSE_SUPER_MAGIC && !fs.f_bsize;
}

char *file_path(int fd)
{
	char link[64], path[PATH_MAX];
	ssize_t n;

	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path));
	return n > 0 && *path == '/' ? strndup(path, (size_t)n) : NULL;
}

int file_look_at_open(int fd, struct statx *ret)
{
	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_BASIC_STATS | STATX_BTIME,
		     ret);
}

int64_t file_size(int fd)
{
	off_t end = lseek(fd, 0, SEEK_END);

	return end < 0 ? -errno : end;
}

/* The fourth number behind @key in /proc/PID/status: the one that files are opened with. */
static bool fourth(const char *line, const char *key, unsigned int *ret)
{
	size_t n = strlen(key);

	return !strncmp(line, key, n) && sscanf(line + n, "%*u %*u %*u %u", ret) == 1;
}

static uint32_t read_groups(const char *at, gid_t *groups)
{
	uint32_t n = 0;

	for (char *end; n < FILE_RIGHTS_GROUPS; at = end) {
		groups[n] = (gid_t)strtoul(at, &end, 10);
		if (end == at)
			break;
		n++;
	}
	return n;
}

int file_rights_of_process(pid_t pid, struct file_rights *ret)
{
	_cleanup_fclose_ FILE *f = NULL;
	_cleanup_free_ char *line = NULL;
	struct file_rights r = {0};
	bool uid = false, gid = false;
	size_t room = 0;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	if (!f)
		return errno == ENOENT ? -ESRCH : -errno;
	while (getline(&line, &room, f) > 0) {
		uid = uid || fourth(line, "Uid:", &r.uid);
		gid = gid || fourth(line, "Gid:", &r.gid);
		if (!strncmp(line, "Groups:", 7))
			r.n_groups = read_groups(line + 7, r.groups);
	}
	if (!uid || !gid)
		return -ESRCH;
	*ret = r;
	return 0;
}

static void set_rights_of(struct file_rights *r, uid_t uid, gid_t gid, const gid_t *groups,
			  size_t n_groups)
{
	*r = (struct file_rights){.uid = uid, .gid = gid};
	r->n_groups = n_groups < FILE_RIGHTS_GROUPS ? (uint32_t)n_groups : FILE_RIGHTS_GROUPS;
	if (r->n_groups)
		memcpy(r->groups, groups, r->n_groups * sizeof(*groups));
}

void file_rights_set_usual(uid_t uid, gid_t gid, const gid_t *groups, size_t n_groups)
{
	set_rights_of(&usual, uid, gid, groups, n_groups);
}

void file_rights_set_invoker(uid_t uid, gid_t gid, const gid_t *groups, size_t n_groups)
{
	set_rights_of(&invoker, uid, gid, groups, n_groups);
	has_invoker = true;
}

const struct file_rights *file_rights_invoker(void)
{
	gid_t groups[FILE_RIGHTS_GROUPS];
	int n = has_invoker ? 0 : getgroups(FILE_RIGHTS_GROUPS, groups);

	if (!has_invoker)
		file_rights_set_invoker(geteuid(), getegid(), groups, n > 0 ? (size_t)n : 0);
	return &invoker;
}

const struct file_rights *file_rights_reader(void)
{
	static const struct file_rights nobody = {.uid = NOBODY, .gid = NOBODY, .plain_path = true};

	if (file_rights_invoker()->uid == 0)
		return &nobody;
	reader = invoker;
	reader.plain_path = true;
	return &reader;
}

const struct file_rights *file_rights_usual(void)
{
	return &usual;
}
