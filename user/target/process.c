// SPDX-License-Identifier: BSD-2-Clause
#include "target/process.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/open_file.h"
#include "base/proc.h"
#include "base/sandbox/opener.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* include/linux/sched.h; in the flags of /proc/PID/stat. */
#define PF_EXITING 0x00000004
#define PF_KTHREAD 0x00200000
#define CAPABILITY_PTRACE 19
#define LARGEST_TEXT (64U * 1024 * 1024)
#define END_MS                                                                                    \
	1000 /* who is killed or has nothing left to do ends in this time, or does not end at all \
	      */

int process_open_file(pid_t pid, const char *name)
{
	char path[PROC_PATH];

	proc_path(path, pid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

/* Closes @file. */
static char *read_text(int file)
{
	_cleanup_close_ int fd = file;
	_cleanup_free_ char *text = NULL;
	size_t have = 0, room = 0;

	while (fd >= 0) {
		ssize_t n;

		if (room - have < 3) {
			char *grown =
				room < LARGEST_TEXT ? realloc(text, room ? 2 * room : 8192) : NULL;

			if (!grown)
				return NULL;
			text = grown;
			room = room ? 2 * room : 8192;
		}
		n = TEMP_FAILURE_RETRY(read(fd, text + have, room - have - 2));
		if (n < 0)
			return NULL;
		if (n == 0) {
			text[have] = text[have + 1] = '\0';
			return TAKE_PTR(text);
		}
		have += (size_t)n;
	}
	return NULL;
}

char *process_text(pid_t pid, const char *name)
{
	return read_text(process_open_file(pid, name));
}

uint64_t process_field(const char *status, const char *name, int base)
{
	const char *at = strstr(status, name);

	return at ? strtoull(at + strlen(name), NULL, base) : 0;
}

static int read_stat(pid_t tid, struct process_facts *f)
{
	char path[PROC_PATH], *begin, *close;
	_cleanup_free_ char *text = NULL;
	unsigned int flags;
	int parent, fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM))
		return -EMFILE;
	text = read_text(fd);
	if (!text)
		return -ESRCH;
	/* The name may hold anything, parentheses too: it ends at the last one. */
	begin = strchr(text, '(');
	close = strrchr(text, ')');
	if (!begin || !close || close < begin ||
	    sscanf(close + 1, " %c %d %*d %*d %*d %*d %u", &f->state, &parent, &flags) != 3)
		return -ESRCH;
	*close = '\0';
	(void)snprintf(f->comm, sizeof(f->comm), "%s", begin + 1);
	f->parent = parent;
	f->kernel = flags & PF_KTHREAD;
	f->exiting = flags & PF_EXITING;
	return 0;
}

static bool is_dead(const struct process_facts *f)
{
	return f->state == 'Z' || f->state == 'X';
}

/* The name and the parent are those of the first thread, also when it has ended. Whether the
 * process lives, the others say then. */
static int read_stats(pid_t pid, struct process_facts *f)
{
	struct process_facts other;
	int r = read_stat(pid, f);
	pid_t living;

	if (r < 0 || !(is_dead(f) || f->exiting))
		return r;
	living = proc_thread(pid);
	if (living != pid && read_stat(living, &other) == 0) {
		f->state = other.state;
		f->exiting = other.exiting;
	}
	return 0;
}

ssize_t process_read_memory(pid_t pid, uint64_t at, void *to, size_t size)
{
	struct iovec here = {to, size}, there = {(void *)(uintptr_t)at, size};

	return process_vm_readv(pid, &here, 1, &there, 1, 0);
}

int process_read(pid_t pid, struct process_facts *ret)
{
	struct process_facts f = {.state = '?'};
	_cleanup_free_ char *text = read_stats(pid, &f) == 0 ? process_text(pid, "status") : NULL;
	const char *uids = text ? strstr(text, "\nUid:") : NULL;

	if (!uids || sscanf(uids + 5, "%u %u %u", &f.real, &f.effective, &f.saved) != 3)
		return -ESRCH;
	*ret = f;
	return 0;
}

bool process_is_live(pid_t pid)
{
	struct process_facts f;
	int r = read_stats(pid, &f);

	/* Who cannot be looked at lives, for all that is known. */
	return r == -EMFILE || (r == 0 && !f.kernel && !is_dead(&f));
}

bool process_thread_filters(pid_t pid, pid_t tid)
{
	_cleanup_free_ char *text = NULL;
	char file[32];

	(void)snprintf(file, sizeof(file), "task/%d/status", (int)tid);
	text = process_text(pid, file);
	/* Without seccomp in the kernel there is no such line. */
	return !text || process_field(text, "\nSeccomp:", 10) != 0;
}

int process_check_numbers(struct error *e)
{
	_cleanup_free_ char *text = read_text(open("/proc/self/status", O_RDONLY | O_CLOEXEC));
	/* The numbers of a process from the namespace of /proc on, down to its own. A kernel
	 * without PID namespaces has no such line. */
	const char *numbers = text ? strstr(text, "\nNSpid:") : NULL;
	int first, second;

	if (text && (!numbers || sscanf(numbers, "\nNSpid:%d %d", &first, &second) == 1))
		return 0;
	return fail(e, EXDEV,
		    "/proc is that of another PID namespace than the one that cozbpf runs in: "
		    "mount one there (unshare --mount-proc does, and containers have it)");
}

static bool may_trace_others(void)
{
	_cleanup_free_ char *text = process_text(getpid(), "status");

	return text && process_field(text, "\nCapEff:", 16) >> CAPABILITY_PTRACE & 1;
}

static int check_rights(pid_t pid, const struct process_facts *f, struct error *e)
{
	const struct passwd *pw;
	char number[16];

	if (geteuid() == 0)
		return 0;
	if (f->real != f->effective || f->real != f->saved)
		return fail(e, EPERM,
			    "process %d (%s) runs with changed rights (set-uid); only root may "
			    "profile it: sudo cozbpf attach %d",
			    (int)pid, f->comm, (int)pid);
	if (f->real == getuid() || may_trace_others())
		return 0;
	pw = getpwuid(f->real);
	(void)snprintf(number, sizeof(number), "%u", f->real);
	return fail(e, EPERM,
		    "process %d (%s) belongs to user %s; sudo cozbpf attach %d, or give "
		    "cozbpf CAP_SYS_PTRACE",
		    (int)pid, f->comm, pw ? pw->pw_name : number, (int)pid);
}

static int refuse_reading(pid_t pid, const struct process_facts *f, bool fuse, struct error *e)
{
	if (fuse)
		return fail(e, EPERM,
			    "the executable of process %d (%s) is on a FUSE file system that only "
			    "the user who mounted it can read: mount it with "
			    "-o allow_other, or run a copy of the program that is elsewhere",
			    (int)pid, f->comm);
	return fail(e, EPERM,
		    "not allowed to read the executable of process %d (%s): run as root or give "
		    "cozbpf CAP_SYS_PTRACE",
		    (int)pid, f->comm);
}

/* The processor's mode cannot be seen from outside; the executable's header says it. */
static int check_architecture(pid_t pid, const struct process_facts *f, struct error *e)
{
	char path[PROC_PATH];
	Elf64_Ehdr head;
	ssize_t n;
	int fd;

	proc_path(path, pid, "exe");
	fd = opener_open(path, NULL);
	if (fd == -EACCES || fd == -EPERM || fd == -EREMOTE)
		return refuse_reading(pid, f, fd == -EREMOTE || file_is_anothers_fuse(path), e);
	if (fd == -ETIMEDOUT)
		return fail(e, ETIMEDOUT,
			    "the file system that the executable of process %d (%s) is on does not "
			    "answer",
			    (int)pid, f->comm);
	if (fd < 0)
		return fail(e, fd == -ENOENT ? ESRCH : -fd,
			    "cannot read the executable of process %d (%s): %s", (int)pid, f->comm,
			    fd == -ENOENT ? "it has ended" : strerror(-fd));
	n = read(fd, &head, sizeof(head));
	opener_close(fd);
	if (n != (ssize_t)sizeof(head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
		return fail(e, ENOEXEC, "the executable of process %d (%s) is no ELF file",
			    (int)pid, f->comm);
	if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_machine != EM_X86_64)
		return fail(e, ENOEXEC,
			    "process %d (%s) is %s; only 64-bit x86 programs can be profiled",
			    (int)pid, f->comm,
			    head.e_machine == EM_386 || head.e_ident[EI_CLASS] == ELFCLASS32
				    ? "a 32-bit program"
				    : "of another architecture");
	return 0;
}

int process_open(pid_t pid, int *ret_pidfd, struct error *e)
{
	_cleanup_close_ int fd = -1;
	struct process_facts f;
	int r = process_check_numbers(e);

	if (r < 0)
		return r;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd < 0 && (errno == EINVAL || errno == ENOENT)) /* the latter since Linux 6.15 */
		return fail(e, EINVAL,
			    "%d is a thread of a process, not a process; attach takes all threads "
			    "of the process that you name",
			    (int)pid);
	if (fd < 0 && errno == ESRCH)
		return fail(e, ESRCH, "there is no process %d", (int)pid);
	if (fd < 0)
		return fail(e, errno, "cannot open process %d: %s", (int)pid, strerror(errno));
	if (pid == getpid())
		return fail(e, EINVAL, "%d is cozbpf itself", (int)pid);
	r = process_read(pid, &f);
	if (r < 0)
		return fail(e, ESRCH, "process %d ended", (int)pid);
	if (f.kernel)
		return fail(e, EINVAL, "%d (%s) is a kernel thread; only programs can be profiled",
			    (int)pid, f.comm);
	if (is_dead(&f))
		return fail(e, ESRCH,
			    "process %d (%s) has ended already: it is a zombie, which its parent "
			    "has not waited for",
			    (int)pid, f.comm);
	r = check_rights(pid, &f, e);
	if (r == 0)
		r = check_architecture(pid, &f, e);
	if (r < 0)
		return r;
	/* What was read is of this process, and of none that took its number. */
	if (process_has_ended(fd))
		return fail(e, ESRCH, "process %d (%s) ended", (int)pid, f.comm);
	*ret_pidfd = TAKE_FD(fd);
	return 0;
}

bool process_has_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) != 0;
}

int process_executable(pid_t pid, char **ret)
{
	char link[PROC_PATH];

	proc_path(link, pid, "exe");
	*ret = proc_file(link);
	return *ret ? 0 : -errno;
}

int file_look_at(const char *path, struct statx *ret)
{
	return statx(AT_FDCWD, path, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE | STATX_INO,
		     ret);
}

struct file_life file_life(const struct statx *x)
{
	struct file_life life = {.device = makedev(x->stx_dev_major, x->stx_dev_minor),
				 .inode = x->stx_ino};

	if (x->stx_mask & STATX_BTIME)
		life.ns = (uint64_t)x->stx_btime.tv_sec * NSEC_PER_SEC + x->stx_btime.tv_nsec;
	return life;
}

bool file_life_is_at(const struct file_life *l, const struct statx *x)
{
	return l->inode == x->stx_ino && l->device == makedev(x->stx_dev_major, x->stx_dev_minor);
}

bool file_life_is_of(const struct file_life *l, const struct statx *x)
{
	uint64_t ns = file_life(x).ns;

	return file_life_is_at(l, x) && (!ns || !l->ns || ns == l->ns);
}

bool file_is_same(const struct statx *a, const struct statx *b)
{
	return a->stx_ino == b->stx_ino && a->stx_dev_major == b->stx_dev_major &&
	       a->stx_dev_minor == b->stx_dev_minor;
}

const char *process_file_path(const char *path, const char *link)
{
	struct statx here, there;

	return file_look_at(path, &here) == 0 && file_look_at(link, &there) == 0 &&
			       file_is_same(&here, &there)
		       ? path
		       : link;
}

bool process_path_matches(const char *glob, const char *path)
{
	return fnmatch(glob, path, 0) == 0 || fnmatch(glob, basename(path), 0) == 0;
}

int process_each(int (*cb)(pid_t pid, void *arg), void *arg)
{
	return proc_each_number("/proc", cb, arg);
}

/* The kernel does not let go of everybody who is killed: one that waits for memory of a file system
 * that a program is, it keeps as long as that program likes. Such a child is left alone. */
void process_reap_soon(pid_t pid)
{
	_cleanup_close_ int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd end = {.fd = pidfd, .events = POLLIN};

	(void)TEMP_FAILURE_RETRY(poll(&end, 1, END_MS));
	(void)waitpid(pid, NULL, WNOHANG);
}

uint64_t process_vdso(pid_t pid)
{
	_cleanup_close_ int fd = process_open_file(pid, "auxv");
	Elf64_auxv_t entry;

	while (fd >= 0 && read(fd, &entry, sizeof(entry)) == (ssize_t)sizeof(entry))
		if (entry.a_type == AT_SYSINFO_EHDR)
			return entry.a_un.a_val;
	return 0;
}
