// SPDX-License-Identifier: BSD-2-Clause
/* What a program's files name is opened with care, in a process that is given up when a file system
 * does not answer. A decoder gives up its rights or does not start, and cannot disturb others. */
#include "program/elf/debug_find.h"
#include "program/decoder/private.h"
#include "program/elf/libraries.h"
#include "program/dwarf/lines.h"
#include "program/elf/object_private.h"
#include "base/sandbox/confine.h"
#include "base/sandbox/opener.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/message.h"
#include "base/open_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cmocka.h>

static const struct decoder_limits limits = {.memory_bytes = 1ULL << 30,
					     .cpu_s = 10,
					     .wall_s = 2,
					     .total_s = 300,
					     .total_bytes = 1ULL << 30};

static void start(void)
{
	struct error e = {.text = ""};

	if (decoder_start(&limits, &e) < 0)
		fail_msg("%s", e.text);
}

struct files {
	char dir[64], program[96], debug[96];
	int watch;
};

/* This executable without its line information, and with a link to another file, which @make makes.
 */
static void link_to(struct files *f, void (*make)(const char *path))
{
	char command[512];

	(void)snprintf(f->dir, sizeof(f->dir), "/tmp/cozbpf-opener.XXXXXX");
	assert_non_null(mkdtemp(f->dir));
	assert_int_equal(chmod(f->dir, 0755), 0);
	(void)snprintf(f->program, sizeof(f->program), "%s/program", f->dir);
	(void)snprintf(f->debug, sizeof(f->debug), "%s/program.debug", f->dir);
	(void)snprintf(
		command, sizeof(command),
		"objcopy --only-keep-debug /proc/%d/exe '%s' && objcopy --strip-debug "
		"--remove-section=.note.gnu.build-id --add-gnu-debuglink='%s' /proc/%d/exe '%s'",
		getpid(), f->debug, f->debug, getpid(), f->program);
	if (system(command) != 0)
		fail_msg("%s", command);
	make(f->debug);
	f->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	assert_true(f->watch >= 0 && inotify_add_watch(f->watch, f->debug, IN_OPEN) >= 0);
}

static void remove_files(struct files *f)
{
	(void)close(f->watch);
	(void)unlink(f->debug);
	(void)unlink(f->program);
	(void)rmdir(f->dir);
}

static struct debug_options options;

/* Is the debug file found, and is it opened at all? */
static void look(struct files *f, bool *ret_found, bool *ret_opened)
{
	struct elf_object *o = NULL;
	struct line_table *t = NULL;
	struct error e = {.text = ""};
	char events[4096];

	start();
	if (elf_object_open(f->program, &o, &e) < 0)
		fail_msg("%s", e.text);
	*ret_found = line_table_open(o, &options, &t, &e) == 0;
	line_table_close(t);
	elf_object_close(o);
	decoder_stop();
	*ret_opened = read(f->watch, events, sizeof(events)) > 0;
}

static void leave(const char *path)
{
	(void)path;
}

static void be_fifo(const char *path)
{
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0666), 0);
}

static void be_secret(const char *path)
{
	assert_int_equal(chmod(path, 0600), 0);
}

static void test_debug_link(void **state)
{
	struct files f;
	bool found, opened;

	(void)state;
	link_to(&f, leave);
	look(&f, &found, &opened);
	assert_true(found && opened);
	remove_files(&f);
	link_to(&f, be_fifo);
	look(&f, &found, &opened);
	assert_false(found || opened);
	remove_files(&f);
}

static void test_debug_link_of_others(void **state)
{
	struct files f;
	bool found, opened;

	(void)state;
	if (geteuid() != 0) {
		print_message("only root can open files as another user\n");
		skip();
	}
	link_to(&f, be_secret);
	look(&f, &found, &opened);
	assert_true(found && opened);
	file_rights_set_usual(65534, 65534, NULL, 0);
	look(&f, &found, &opened);
	file_rights_set_usual(0, 0, NULL, 0);
	assert_false(found || opened);
	remove_files(&f);
}

static bool is_found(struct files *f, uid_t program, uid_t debug, gid_t group, mode_t mode)
{
	bool found, opened;

	assert_int_equal(chown(f->program, program, program), 0);
	assert_int_equal(chown(f->debug, debug, group), 0);
	assert_int_equal(chmod(f->debug, mode), 0);
	look(f, &found, &opened);
	assert_true(opened);
	return found;
}

/* Who can write the debug file places our probes in the program. */
static void test_debug_link_of_forgers(void **state)
{
	struct files f;

	(void)state;
	if (geteuid() != 0) {
		print_message("only root can make files of other users\n");
		skip();
	}
	link_to(&f, leave);
	assert_false(is_found(&f, 0, 65534, 65534, 0644));
	assert_false(is_found(&f, 65533, 65534, 65534, 0644));
	assert_true(is_found(&f, 65534, 65534, 65534, 0644));
	assert_true(is_found(&f, 65534, 0, 0, 0644));
	assert_false(is_found(&f, 0, 0, 0, 0646));
	assert_false(is_found(&f, 0, 0, 65534, 0664));
	assert_true(is_found(&f, 0, 0, 0, 0664));
	assert_true(is_found(&f, 65534, 65534, 65534, 0664));
	/* The user means what lies in a directory of theirs. */
	options = (struct debug_options){.debug_dirs = (const char *[]){f.dir}, .n_debug_dirs = 1};
	assert_true(is_found(&f, 0, 65534, 65534, 0666));
	options.debug_dirs = (const char *[]){"/tmp"};
	assert_true(is_found(&f, 0, 65534, 65534, 0666));
	options.debug_dirs = (const char *[]){f.program};
	assert_false(is_found(&f, 0, 65534, 65534, 0666));
	options = (struct debug_options){0};
	remove_files(&f);
}

/* Nor where there are no decoders, and not by a way out of the user's directory. */
static void test_debug_link_without_decoders(void **state)
{
	struct files f;
	struct elf_object *o;
	struct line_table *t;
	struct error e = {.text = ""};
	const struct debug_options usr = {.debug_dirs = (const char *[]){"/usr"},
					  .n_debug_dirs = 1};
	const struct debug_options nowhere = {.debug_dirs = (const char *[]){""},
					      .n_debug_dirs = 1};
	char path[256];

	(void)state;
	if (geteuid() != 0) {
		print_message("only root can make files of other users\n");
		skip();
	}
	link_to(&f, leave);
	assert_int_equal(chown(f.debug, 65534, 65534), 0);
	assert_int_equal(elf_object_open(f.program, &o, &e), 0);
	(void)snprintf(path, sizeof(path), "/usr/..%s", f.debug);
	assert_int_equal(line_table_open(o, NULL, &t, &e), -ENODATA);
	assert_true(strstr(e.text, f.debug) && strstr(e.text, "chown") &&
		    strstr(e.text, "--debug-dir"));
	assert_int_equal(debug_open_named(o, NULL, f.debug), -EKEYREJECTED);
	assert_int_equal(debug_open_named(o, &usr, path), -EKEYREJECTED);
	assert_int_equal(debug_open_named(o, &nowhere, f.debug), -EKEYREJECTED);
	elf_object_close(o);
	remove_files(&f);
}

/* What a program or a script names: its dynamic linker, its interpreter. */
static void test_named(void **state)
{
	struct files f;
	struct elf_object *program = NULL, *named = NULL;
	struct error e = {.text = ""};
	char events[4096];

	(void)state;
	link_to(&f, be_fifo);
	start();
	assert_int_equal(elf_object_open(f.program, &program, &e), 0);
	assert_int_equal(elf_object_open_named(program, f.debug, &named, &e), -ENOEXEC);
	assert_true(read(f.watch, events, sizeof(events)) < 0);
	elf_object_close(program);
	if (geteuid() == 0) {
		assert_int_equal(chmod(f.program, 0600), 0);
		assert_int_equal(elf_object_open_named(NULL, f.program, &named, &e), 0);
		elf_object_close(named);
		file_rights_set_usual(65534, 65534, NULL, 0);
		assert_int_equal(elf_object_open_named(NULL, f.program, &named, &e), -EACCES);
		file_rights_set_usual(0, 0, NULL, 0);
	}
	decoder_stop();
	remove_files(&f);
}

/* Sends @signo to all processes with the opener's name below this one's children. */
static size_t signal_openers(int signo)
{
	DIR *d = opendir("/proc");
	size_t n = 0;

	assert_non_null(d);
	for (struct dirent *x; (x = readdir(d));) {
		char path[300], text[512] = "", key[64];
		_cleanup_close_ int fd = -1;

		(void)snprintf(path, sizeof(path), "/proc/%s/stat", x->d_name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 ||
		    !strstr(text, "(coz-opener)"))
			continue;
		/* Its parent's parent: of a process group of its own, which is the maker's, and
		 * whose parent we are. */
		(void)snprintf(path, sizeof(path), "/proc/%d/stat",
			       (int)strtol(strrchr(text, ')') + 4, NULL, 10));
		(void)snprintf(key, sizeof(key), " %d ", getpid());
		(void)close(fd);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && read(fd, text, sizeof(text) - 1) > 0 && strstr(text, key))
			n += kill((pid_t)strtol(x->d_name, NULL, 10), signo) == 0;
	}
	(void)closedir(d);
	return n;
}

/* One that did not answer has been killed, which takes a while on a busy machine. */
static void stop_opener(void)
{
	for (int turn = 0; turn < 1000 && signal_openers(0) != 1; turn++)
		(void)usleep(10000);
	assert_int_equal(signal_openers(SIGSTOP), 1);
}

/* A stopped opener is as one that waits for a server. */
static void test_no_answer(void **state)
{
	_cleanup_close_ int first = -1, second = -1, third = -1;

	(void)state;
	start();
	first = opener_open("/etc/passwd", NULL);
	assert_true(first >= 0);
	stop_opener();
	assert_int_equal(opener_open("/etc/passwd", NULL), -ETIMEDOUT);
	second = opener_open("/etc/passwd", NULL);
	assert_true(second >= 0);
	assert_int_equal(opener_open("/no/such/file", NULL), -ENOENT);
	/* Our own file, if it is ours to say so. */
	stop_opener();
	third = opener_open("/proc/self/exe", NULL);
	assert_true(third >= 0);
	assert_int_equal(opener_open("/proc/self/root/etc/passwd", file_rights_usual()),
			 -ETIMEDOUT);
	decoder_stop();
}

/* Descriptors that the profiler needs itself are not used up by what programs map. */
static void test_spare_descriptors(void **state)
{
	struct rlimit few, before;
	int next, fd;

	(void)state;
	start();
	fd = opener_open("/etc/passwd", NULL);
	assert_true(fd >= 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	next = open("/", O_PATH | O_CLOEXEC);
	assert_true(next >= 0);
	few = (struct rlimit){.rlim_cur = (rlim_t)next + 2, .rlim_max = before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_true(descriptors_are_short());
	assert_int_equal(opener_open("/etc/passwd", NULL), -EMFILE);
	assert_int_equal(opener_dup(fd), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_false(descriptors_are_short());
	(void)close(next);
	(void)close(fd);
	decoder_stop();
}

#define NOTE_AT (8ULL << 20)
#define SECTIONS_AT (16ULL << 20)

/* Is the page at @at of the file in memory? */
static bool is_cached(int fd, uint64_t at)
{
	unsigned char cached = 0;
	void *p = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, (off_t)at);

	assert_true(p != MAP_FAILED);
	assert_int_equal(mincore(p, 4096, &cached), 0);
	(void)munmap(p, 4096);
	return cached & 1;
}

/* What is read of a file here, at once, is in memory: its file system is not waited for. */
static void test_headers_are_read(void **state)
{
	const Elf64_Ehdr h = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3},
			      .e_phoff = sizeof(h),
			      .e_phnum = 1,
			      .e_shoff = SECTIONS_AT,
			      .e_shnum = 64,
			      .e_shentsize = sizeof(Elf64_Shdr)};
	const Elf64_Phdr note = {.p_type = PT_NOTE, .p_offset = NOTE_AT, .p_filesz = 16};
	char path[] = "/var/tmp/cozbpf-opener.XXXXXX"; /* more likely on a disk than /tmp */
	_cleanup_close_ int fd = mkstemp(path), opened = -1;
	static const char page[4096];

	(void)state;
	assert_true(fd >= 0);
	assert_true(pwrite(fd, &h, sizeof(h), 0) == sizeof(h) &&
		    pwrite(fd, &note, sizeof(note), sizeof(h)) == sizeof(note) &&
		    pwrite(fd, page, sizeof(page), NOTE_AT) == sizeof(page) &&
		    pwrite(fd, page, sizeof(page), SECTIONS_AT) == sizeof(page));
	for (int turn = 0; turn < 50 && (is_cached(fd, NOTE_AT) || is_cached(fd, SECTIONS_AT));
	     turn++) {
		assert_true(fsync(fd) == 0 && posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
		(void)usleep(20000);
	}
	if (is_cached(fd, NOTE_AT) || is_cached(fd, SECTIONS_AT)) {
		(void)unlink(path);
		print_message("/var/tmp is in memory\n");
		skip();
	}
	start();
	opened = opener_open(path, NULL);
	decoder_stop();
	(void)unlink(path);
	assert_true(opened >= 0);
	assert_true(is_cached(fd, NOTE_AT));
	assert_true(is_cached(fd, SECTIONS_AT));
}

/* A search for a library waits once. */
static void test_no_answer_to_search(void **state)
{
	_cleanup_elf_object_ struct elf_object *self = NULL;
	_cleanup_close_ int first = -1;
	_cleanup_free_ char *before = NULL, *after = NULL;

	(void)state;
	assert_int_equal(elf_object_open("/proc/self/exe", &self, NULL), 0);
	start();
	first = opener_open("/etc/passwd", NULL);
	assert_true(first >= 0);
	assert_int_equal(signal_openers(SIGSTOP), 1);
	before = library_find(self, "libc.so.6");
	assert_null(before);
	after = library_find(self, "libc.so.6");
	assert_non_null(after);
	decoder_stop();
}

static void test_full_socket(void **state)
{
	_cleanup_free_ char *much = calloc(1, 8 << 20);
	int ends[2];

	(void)state;
	assert_non_null(much);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(
		message_send(ends[0], much, 8 << 20, clock_monotonic_ns() + 20 * NSEC_PER_MSEC),
		-ETIMEDOUT);
	assert_int_equal(message_send_fd(ends[0], ends[1], much, 1,
					 clock_monotonic_ns() + 20 * NSEC_PER_MSEC),
			 -ETIMEDOUT);
	(void)close(ends[1]);
	assert_int_equal(message_send(ends[0], much, 1, clock_monotonic_ns() + 20 * NSEC_PER_MSEC),
			 -EPIPE);
	(void)close(ends[0]);
}

static bool write_file(const char *path, const char *text)
{
	_cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* What @child returns in a process of its own. */
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

/* Root of a user namespace in which there is no other user. */
static int drop_as_lonely_root(void)
{
	char map[64];

	(void)snprintf(map, sizeof(map), "0 %u 1", geteuid());
	if (unshare(CLONE_NEWUSER) < 0 || !write_file("/proc/self/uid_map", map) || geteuid() != 0)
		return 77;
	return sandbox_drop_rights();
}

static void test_rights_are_dropped(void **state)
{
	int r = in_child(drop_as_lonely_root);

	(void)state;
	if (r == 77) {
		print_message("user namespaces are not to be had\n");
		skip();
	}
	assert_int_equal(r, 0);
}

static int disturb(void)
{
	const struct flock lock = {.l_type = F_RDLCK};
	struct rlimit l;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), parent = getppid();

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    !sandbox_confine(limits.memory_bytes, limits.cpu_s))
		return 1;
	if (syscall(SYS_tgkill, parent, parent, 0) == 0 || errno != EPERM)
		return 2;
	if (syscall(SYS_prlimit64, parent, RLIMIT_CORE, NULL, &l) == 0 || errno != EPERM)
		return 3;
	if (syscall(SYS_prlimit64, 0, RLIMIT_CORE, NULL, &l) != 0)
		return 4;
	if (fcntl(fd, F_SETLK, &lock) == 0 || errno != EPERM)
		return 5;
	if (fcntl(fd, F_SETOWN, parent) == 0 || errno != EPERM)
		return 6;
	return fcntl(fd, F_DUPFD_CLOEXEC, 0) < 0 || fcntl(fd, F_GETFD) < 0 ? 7 : 0;
}

static void test_others_are_left_alone(void **state)
{
	(void)state;
	assert_int_equal(in_child(disturb), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_debug_link),
		cmocka_unit_test(test_debug_link_of_others),
		cmocka_unit_test(test_debug_link_of_forgers),
		cmocka_unit_test(test_debug_link_without_decoders),
		cmocka_unit_test(test_named),
		cmocka_unit_test(test_no_answer),
		cmocka_unit_test(test_spare_descriptors),
		cmocka_unit_test(test_headers_are_read),
		cmocka_unit_test(test_no_answer_to_search),
		cmocka_unit_test(test_full_socket),
		cmocka_unit_test(test_rights_are_dropped),
		cmocka_unit_test(test_others_are_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
