// SPDX-License-Identifier: BSD-2-Clause
/* The parent's side of starting the program. */
#include "target/launch.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "target/internal.h"
#include "target/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* How long after exec the kernel may take to map the program. Far above what it needs; the wait
 * ends with the program. */
#define MAPPED_TIMEOUT_NS (1 * NSEC_PER_SEC)
/* How long the child may take for an answer after the user has asked us to end. */
#define END_MS 1000
#define HELD_POLL_MS 5

struct target {
	pid_t pid;
	int pidfd;
	int socket;
	int image_fd; /* the shim; -1: none */
	char *path;
	bool execed;
	bool held;    /* traced: at its exec it stops ... */
	bool at_exec; /* ... where it is */
	bool reaped;
	bool stopped; /* when last asked */
	int status;
};

/* What a failure of the child's means to the person at the terminal. */
static int explain(const struct target *t, const struct child_report *r,
		   const struct target_spec *spec, struct error *e)
{
	int errnum = r->errnum > 0 ? r->errnum : EIO;

	switch (r->stage) {
	case CHILD_IDENTITY:
		return fail(e, errnum,
			    "cannot become user %s: %s; --keep-root runs the program as root",
			    spec && spec->identity && spec->identity->name ? spec->identity->name
									   : "?",
			    strerror(errnum));
	case CHILD_OUTPUT:
		return fail(e, EIO, "--output-to %s: %s", spec ? spec->output_to : "?",
			    errnum == ELOOP ? "is a symbolic link" : strerror(errnum));
	case CHILD_PRELOAD:
		if (errnum == EMFILE)
			return fail(e, errnum,
				    "no three consecutive file descriptors are free for the "
				    "program; raise ulimit -n");
		return fail(e, errnum, "cannot hand the preloaded library over: %s",
			    strerror(errnum));
	case CHILD_EXEC:
		if (errnum == ENOEXEC)
			return fail(e, errnum, "%s: not an executable of this machine", t->path);
		if (errnum == ENOENT)
			return fail(e, errnum, "%s: its interpreter does not exist", t->path);
		return fail(e, errnum, "%s: %s", t->path, strerror(errnum));
	default:
		return fail(e, errnum, "cannot start %s: %s", t->path, strerror(errnum));
	}
}

/* The child's end, or of a traced one the next stop: a signal stops it before it gets it. @flags:
 * of waitpid. */
static void take_change(struct target *t, int flags)
{
	pid_t pid = TEMP_FAILURE_RETRY(waitpid(t->pid, &t->status, flags));

	if (pid == 0)
		return;
	if (pid < 0 || !WIFSTOPPED(t->status))
		t->reaped = true;
	else if (t->status >> 8 == (SIGTRAP | PTRACE_EVENT_EXEC << 8))
		t->at_exec = true;
	else
		(void)ptrace(PTRACE_CONT, t->pid, NULL, (long)WSTOPSIG(t->status));
}

static void reap(struct target *t)
{
	while (!t->reaped)
		take_change(t, 0);
}

void target_hold(struct target *t)
{
	t->held = ptrace(PTRACE_SEIZE, t->pid, NULL, (long)PTRACE_O_TRACEEXEC) == 0;
}

void target_release(struct target *t)
{
	if (t->held && !t->reaped)
		(void)ptrace(PTRACE_DETACH, t->pid, NULL, NULL);
	t->held = false;
}

/* Only before exec. */
static void kill_child(struct target *t)
{
	if (t->reaped)
		return;
	(void)kill(t->pid, SIGKILL);
	process_reap_soon(t->pid);
	t->reaped = true;
}

/* A file system that does not answer keeps the child in the kernel for ever. The signals are
 * blocked, and stay pending. */
static int await_report(struct target *t)
{
	_cleanup_close_ int signals = -1;
	struct pollfd fds[2];
	sigset_t ends;

	(void)sigemptyset(&ends);
	(void)sigaddset(&ends, SIGINT);
	(void)sigaddset(&ends, SIGTERM);
	(void)sigaddset(&ends, SIGHUP);
	(void)sigaddset(&ends, SIGQUIT);
	signals = signalfd(-1, &ends, SFD_CLOEXEC);
	fds[0] = (struct pollfd){.fd = t->socket, .events = POLLIN};
	fds[1] = (struct pollfd){.fd = signals, .events = POLLIN};
	for (;;) {
		int n = poll(fds, 2, t->held ? HELD_POLL_MS : -1);

		if (n > 0)
			break;
		if (n < 0 && errno != EINTR)
			return -errno;
		/* Nobody else has a traced child go on that a signal has stopped. */
		if (t->held && !t->reaped)
			take_change(t, WNOHANG);
	}
	return fds[0].revents || poll(fds, 1, END_MS) > 0 ? 0 : -EINTR;
}

/* 1 and a report, 0 when the child's end is closed, or a negative errno with @e. */
static int receive(struct target *t, struct child_report *ret, struct error *e)
{
	int r = await_report(t);
	ssize_t n = r < 0 ? r : TEMP_FAILURE_RETRY(recv(t->socket, ret, sizeof(*ret), 0));

	if (n == (ssize_t)sizeof(*ret))
		return 1;
	/* ECONNRESET: it ended with our byte unread. */
	if (r == 0 && (n == 0 || (n < 0 && errno == ECONNRESET)))
		return 0;
	r = r < 0 ? -r : n < 0 ? errno : EPROTO;
	return fail(e, r, "no answer from the child process: %s", strerror(r));
}

static int fork_child(struct child_plan *plan, struct target *t, struct error *e)
{
	int pair[2], errnum;
	sigset_t all, before;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return fail(e, errno, "cannot create a socket pair: %s", strerror(errno));
	t->socket = pair[0];
	plan->socket = pair[1];
	plan->parent = getpid();
	/* Our handlers must not run in the child; it gets its own mask when nothing of our setup is
	 * left. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	t->pid = fork();
	if (t->pid == 0)
		child_run(plan);
	errnum = errno;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)close(pair[1]);
	t->reaped = t->pid < 0;
	if (t->reaped)
		return fail(e, errnum, "cannot fork: %s", strerror(errnum));
	t->pidfd = (int)syscall(SYS_pidfd_open, t->pid, 0);
	if (t->pidfd < 0)
		return fail(e, errno, "cannot open a pidfd (Linux 5.3 or later is needed): %s",
			    strerror(errno));
	return 0;
}

int target_spawn(const struct target_spec *spec, struct target **ret, struct error *e)
{
	struct child_plan plan = {.spec = spec};
	struct child_report report = {0};
	struct target *t;
	int r;

	target_save_signals();
	t = calloc(1, sizeof(*t));
	if (!t)
		return fail(e, ENOMEM, "out of memory");
	*t = (struct target){.pidfd = -1, .socket = -1, .image_fd = -1, .reaped = true};
	r = target_find_executable(spec->argv[0], &t->path, e);
	if (r == 0 && spec->shim_size > 0)
		r = target_make_image(spec, &t->image_fd, e);
	if (r == 0) {
		plan.path = t->path;
		plan.image_fd = t->image_fd;
		r = fork_child(&plan, t, e);
	}
	if (r == 0) {
		r = receive(t, &report, e);
		if (r == 0)
			r = fail(e, ECHILD,
				 "%s: the process ended before it could start the program",
				 t->path);
		else if (r > 0)
			r = report.stage == CHILD_READY ? 0 : explain(t, &report, spec, e);
	}
	if (r < 0) {
		target_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

pid_t target_pid(const struct target *t)
{
	return t->pid;
}

int target_pidfd(const struct target *t)
{
	return t->pidfd;
}

int target_image_fd(const struct target *t)
{
	return t->image_fd;
}

static bool has_ended(const struct target *t)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)t->pid, &info, WEXITED | WNOHANG | WNOWAIT) < 0 ||
	       info.si_pid != 0;
}

/* Close-on-exec descriptors close before the kernel maps the program. It writes the auxiliary
 * vector after that; until then the file shows one empty pair. A program that we may not inspect is
 * not waited for. */
static void await_mapped(const struct target *t)
{
	const struct timespec pause = {.tv_nsec = 100 * 1000};
	uint64_t start = clock_monotonic_ns();
	char vector[64];

	while (clock_monotonic_ns() - start < MAPPED_TIMEOUT_NS && !has_ended(t)) {
		_cleanup_close_ int fd = process_open_file(t->pid, "auxv");

		if (fd < 0 || read(fd, vector, sizeof(vector)) > (ssize_t)(2 * sizeof(long)))
			return;
		(void)nanosleep(&pause, NULL);
	}
}

int target_exec(struct target *t, struct error *e)
{
	struct child_report report = {0};
	char go = 1;
	int r;

	if (t->execed || t->reaped)
		return fail(e, EINVAL, "%s was started already", t->path);
	if (TEMP_FAILURE_RETRY(send(t->socket, &go, sizeof(go), MSG_NOSIGNAL)) < 0) {
		r = errno;
		kill_child(t);
		return fail(e, r == EPIPE ? ECHILD : r,
			    "%s: the process ended before it could start the program", t->path);
	}
	r = receive(t, &report, e);
	if (r < 0) {
		kill_child(t);
		return r;
	}
	if (r > 0) {
		reap(t);
		return explain(t, &report, NULL, e);
	}
	t->execed = true;
	while (t->held && !t->at_exec && !t->reaped)
		take_change(t, 0);
	if (!t->held)
		await_mapped(t);
	return 0;
}

bool target_is_stopped(struct target *t, bool *ret_was)
{
	siginfo_t info;

	*ret_was = t->stopped;
	/* The kernel keeps either until it is asked for: that the process is stopped, or that it
	 * goes on after it was. */
	for (;;) {
		info.si_pid = 0;
		if (waitid(P_PID, (id_t)t->pid, &info, WSTOPPED | WCONTINUED | WNOHANG) < 0 ||
		    info.si_pid == 0)
			return t->stopped;
		t->stopped = info.si_code == CLD_STOPPED;
		*ret_was = true;
	}
}

static uint64_t timeval_ns(struct timeval t)
{
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_usec * NSEC_PER_USEC;
}

/* The C library's waitid leaves the usage out. */
bool target_succeeded(const struct target *t, uint64_t *ret_user_ns, uint64_t *ret_system_ns)
{
	struct rusage usage = {0};
	siginfo_t info = {0};

	if (syscall(SYS_waitid, P_PID, t->pid, &info, WEXITED | WNOHANG | WNOWAIT, &usage) < 0 ||
	    info.si_code != CLD_EXITED || info.si_status != 0)
		return false;
	*ret_user_ns = timeval_ns(usage.ru_utime);
	*ret_system_ns = timeval_ns(usage.ru_stime);
	return true;
}

int target_reap(struct target *t, int *ret_status)
{
	reap(t);
	*ret_status = t->status;
	return 0;
}

void target_free(struct target *t)
{
	if (!t)
		return;
	if (!t->execed)
		kill_child(t);
	cleanup_close(&t->socket);
	cleanup_close(&t->pidfd);
	cleanup_close(&t->image_fd);
	free(t->path);
	free(t);
}

int target_exit_code(int wait_status)
{
	return WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}
