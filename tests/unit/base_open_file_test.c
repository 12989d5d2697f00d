// SPDX-License-Identifier: BSD-2-Clause
/* Files that a program names: what is no regular file of a disk is never opened, and none is read
 * with rights that the program lacks. */
#include "base/open_file.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/securebits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "rights.h"

#define GROUP 54321 /* nobody's */

static char dir[] = "/tmp/cozbpf-open.XXXXXX";

static int make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) && chmod(dir, 0755) == 0 ? 0 : -1;
}

static int remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

/* Has the watched file been opened since the last call? */
static bool was_opened(int watch)
{
	char events[4096];

	return read(watch, events, sizeof(events)) > 0;
}

static int watch_file(const char *path)
{
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	assert_true(watch >= 0 && inotify_add_watch(watch, path, IN_OPEN) >= 0);
	return watch;
}

static void make_file(char path[64], const char *name, mode_t mode)
{
	_cleanup_close_ int fd = -1;

	(void)snprintf(path, 64, "%s/%s", dir, name);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

/* A FIFO stands for a device: opening either has effects. */
static void test_not_opened(void **state)
{
	char fifo[64], file[64];
	_cleanup_close_ int watch = -1, other = -1, fd = -1;

	(void)state;
	(void)snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	assert_int_equal(mkfifo(fifo, 0666), 0);
	make_file(file, "file", 0644);
	watch = watch_file(fifo);
	other = watch_file(file);
	assert_int_equal(open_file(fifo, NULL), -ENOEXEC);
	assert_false(was_opened(watch));
	fd = open_file(file, NULL);
	assert_true(fd >= 0);
	assert_true(was_opened(other)); /* the watch would have told */
	(void)unlink(fifo);
	(void)unlink(file);
}

static void test_kernels_files(void **state)
{
	(void)state;
	assert_int_equal(open_file("/proc/self/status", NULL), -ENOEXEC);
	assert_int_equal(open_file("/sys/kernel/uevent_seqnum", NULL), -ENOEXEC);
	assert_int_equal(open_file("/dev/zero", NULL), -ENOEXEC);
	assert_int_equal(open_file_or_pipe("/proc/self/status"), -ENOEXEC);
	assert_int_equal(open_file_or_pipe("/dev/zero"), -ENOEXEC);
	assert_int_equal(open_file(dir, NULL), -ENOEXEC);
	assert_int_equal(open_file("/no/such/file", NULL), -ENOENT);
}

/* Links of a directory that is taken for the root lead to what is in it; the last is none. */
static void test_in_root(void **state)
{
	struct file_rights as = {.uid = geteuid(), .gid = getegid()};
	char target[64], inner[64], absolute[64], last[64], path[128];
	_cleanup_close_ int fd = -1;

	(void)state;
	make_file(target, "target", 0644);
	(void)snprintf(inner, sizeof(inner), "%s/inner", dir);
	(void)snprintf(absolute, sizeof(absolute), "%s/inner/up", dir);
	(void)snprintf(last, sizeof(last), "%s/inner/last", dir);
	assert_int_equal(mkdir(inner, 0755), 0);
	assert_int_equal(symlink("/", absolute), 0);
	assert_int_equal(symlink("../target", last), 0);
	as.root = (uint32_t)strlen(dir);
	(void)snprintf(path, sizeof(path), "%s/inner/up/target", dir);
	fd = open_file(path, &as);
	assert_true(fd >= 0);
	(void)snprintf(path, sizeof(path), "%s/inner/up/etc/passwd", dir);
	assert_int_equal(open_file(path, &as), -ENOENT);
	(void)snprintf(path, sizeof(path), "%s/inner/../../../target", dir);
	(void)close(fd);
	fd = open_file(path, &as);
	assert_true(fd >= 0);
	assert_int_equal(open_file(last, &as), -ELOOP);
	as.root = (uint32_t)strlen(target);
	(void)snprintf(path, sizeof(path), "%s/x", target);
	assert_int_equal(open_file(path, &as), -ENOTDIR);
	(void)unlink(absolute);
	(void)unlink(last);
	(void)unlink(target);
	(void)rmdir(inner);
}

static void test_rights(void **state)
{
	const struct file_rights user = {.uid = 65534, .gid = 65534}, member = {.uid = 65534,
										.gid = 65534,
										.n_groups = 1,
										.groups = {GROUP}};
	char secret[64], shared[64], plain[64];
	_cleanup_close_ int a = -1, b = -1, c = -1, watch = -1;

	(void)state;
	if (geteuid() != 0) {
		print_message("only root can open files as another user\n");
		skip();
	}
	make_file(secret, "secret", 0600);
	make_file(shared, "shared", 0640);
	make_file(plain, "plain", 0644);
	assert_int_equal(chown(shared, 0, GROUP), 0);
	watch = watch_file(secret);
	assert_int_equal(open_file(secret, &user), -EACCES);
	assert_false(was_opened(watch));
	assert_int_equal(open_file(shared, &user), -EACCES);
	a = open_file(shared, &member);
	b = open_file(plain, &user);
	/* And we are who we were. */
	c = open_file(secret, NULL);
	assert_true(a >= 0 && b >= 0 && c >= 0);
	(void)unlink(secret);
	(void)unlink(shared);
	(void)unlink(plain);
}

static const char *secret_path;

/* As a user whose executable was given CAP_DAC_READ_SEARCH. */
static int open_with_capability(void)
{
	const struct file_rights root = {.uid = 0}, user = {.uid = 65534, .gid = 65534};
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];

	if (prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setgid(65534) < 0 || setuid(65534) < 0 ||
	    syscall(SYS_capget, &header, caps) < 0)
		return 1;
	caps[0].effective |= 1U << CAP_DAC_READ_SEARCH;
	if (syscall(SYS_capset, &header, caps) < 0)
		return 2;
	if (open_file(secret_path, NULL) < 0)
		return 3;
	if (open_file(secret_path, &user) != -EACCES)
		return 4;
	if (open_file(secret_path, &root) != -EACCES)
		return 5;
	return open_file(secret_path, NULL) < 0 ? 6 : 0;
}

/* Of root, to whom a change of user does not matter. */
static int open_with_fixed_capabilities(void)
{
	const struct file_rights user = {.uid = 65534, .gid = 65534};

	if (prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) < 0)
		return 1;
	if (open_file(secret_path, &user) != -EACCES)
		return 2;
	return open_file(secret_path, NULL) < 0 ? 3 : 0;
}

static int in_child(int (*child)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(child());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static void test_capabilities(void **state)
{
	char secret[64];

	(void)state;
	/* Root of a container has not all. */
	if (geteuid() != 0 || prctl(PR_CAPBSET_READ, CAP_DAC_READ_SEARCH, 0, 0, 0) != 1) {
		print_message("only root has capabilities to lose\n");
		skip();
	}
	make_file(secret, "secret", 0600);
	secret_path = secret;
	assert_int_equal(in_child(open_with_capability), 0);
	assert_int_equal(in_child(open_with_fixed_capabilities), 0);
	(void)unlink(secret);
}

static void test_of_process(void **state)
{
	struct file_rights r = {.uid = 12345};

	(void)state;
	assert_int_equal(file_rights_of_process(getpid(), &r), 0);
	assert_int_equal(r.uid, geteuid());
	assert_int_equal(r.gid, getegid());
	assert_int_equal(r.n_groups, getgroups(0, NULL));
	assert_int_equal(file_rights_of_process(0x7fffffff, &r), -ESRCH);
}

/* In namespaces of its own, as any user can make them: opens a file on an overlay, says which
 * descriptor it has, and when that mount has been removed. */
static void use_overlay(int say, const char *options, const char *at)
{
	char path[96];
	int fd;

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("overlay", at, "overlay", 0, options) < 0)
		_exit(1);
	(void)snprintf(path, sizeof(path), "%s/plain", at);
	fd = open(path, O_RDONLY);
	if (fd < 0 || write(say, &fd, sizeof(fd)) != sizeof(fd))
		_exit(1);
	(void)raise(SIGSTOP);
	if (umount2(at, MNT_DETACH) < 0 || write(say, &fd, sizeof(fd)) != sizeof(fd))
		_exit(1);
	(void)pause();
	_exit(0);
}

/* A mount of a user's is known as one, by its own device; once it is in no list of mounts any more
 * it has none, and not that of another line of the list. */
static void test_users_mounts(void **state)
{
	char lower[2][48], at[48], options[128], plain[64], link[64];
	_cleanup_close_ int theirs = -1;
	bool is_users = false;
	dev_t device;
	pid_t child;
	int said[2], fd;

	(void)state;
	for (int i = 0; i < 2; i++) {
		(void)snprintf(lower[i], sizeof(lower[i]), "%s/%d", dir, i);
		assert_int_equal(mkdir(lower[i], 0755), 0);
	}
	(void)snprintf(at, sizeof(at), "%s/at", dir);
	assert_int_equal(mkdir(at, 0755), 0);
	make_file(plain, "0/plain", 0644);
	(void)snprintf(options, sizeof(options), "lowerdir=%s:%s", lower[0], lower[1]);
	assert_int_equal(pipe(said), 0);
	child = fork();
	if (child == 0) {
		(void)close(said[0]);
		use_overlay(said[1], options, at);
	}
	(void)close(said[1]);
	if (read(said[0], &fd, sizeof(fd)) == sizeof(fd)) {
		(void)snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)child, fd);
		theirs = open(link, O_PATH);
		assert_true(theirs >= 0 || !rights_have(CAP_SYS_PTRACE));
	}
	if (theirs >= 0) {
		assert_int_equal(file_is_on_users_mount(theirs, link, OVERLAYFS_SUPER_MAGIC,
							&device, &is_users),
				 0);
		assert_true(is_users && device && !major(device));
		while (waitpid(child, NULL, WUNTRACED) < 0)
			assert_int_equal(errno, EINTR);
		assert_int_equal(kill(child, SIGCONT), 0);
		assert_int_equal(read(said[0], &fd, sizeof(fd)), sizeof(fd));
		assert_int_equal(file_is_on_users_mount(theirs, link, OVERLAYFS_SUPER_MAGIC,
							&device, &is_users),
				 0);
		assert_true(is_users);
		assert_int_equal(device, 0);
	} else {
		print_message("an overlay in a user namespace cannot be mounted, or seen, here\n");
	}
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	(void)close(said[0]);
	(void)unlink(plain);
	(void)rmdir(at);
	(void)rmdir(lower[0]);
	(void)rmdir(lower[1]);
	if (theirs < 0)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_in_root),	      cmocka_unit_test(test_not_opened),
		cmocka_unit_test(test_kernels_files), cmocka_unit_test(test_rights),
		cmocka_unit_test(test_capabilities),  cmocka_unit_test(test_of_process),
		cmocka_unit_test(test_users_mounts),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
