// SPDX-License-Identifier: BSD-2-Clause
#include "target/inject.h"
#include "target/inject_private.h"

#include "base/clock.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "target/process.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TRIES 50
#define EXECS 5 /* a program that starts others as we look */
#define STUCK 3 /* threads that cannot be stopped now, until we give up */
#define BETWEEN_NS 2000000
#define LEAVE_NS                                                                              \
	(3 * NSEC_PER_SEC) /* a payment takes 10 ms at most; who has the CPU meanwhile may be \
			      others */

#define LEAVE_LAST_NS (30 * NSEC_PER_SEC) /* less than the watching process allows */

static void pause_a_little(void)
{
	const struct timespec t = {.tv_nsec = BETWEEN_NS};

	(void)nanosleep(&t, NULL);
}

static int refuse(pid_t pid, int signo, int err, struct error *e)
{
	static const struct {
		int err, errnum;
		const char *before, *after; /* the process */
	} reasons[] = {
		{EPERM, EPERM, "not allowed to inject a payment handler into ",
		 ": run as root or give cozbpf CAP_SYS_PTRACE, and see kernel.yama.ptrace_scope "
		 "(sysctl); Linux 6.18 needs none"},
		{ENOEXEC, ENOEXEC, "",
		 " runs 32-bit code; only 64-bit x86 programs can be profiled"},
		{ENOENT, ENOENT, "cannot inject a payment handler into ",
		 ": there is no system call instruction in its code"},
		{EOPNOTSUPP, EPERM, "",
		 " filters its system calls (seccomp), which only root may suspend: no payment "
		 "handler can be injected into it"},
		{EFAULT, ESTALE, "",
		 " started another program while a payment handler was injected into it; try "
		 "again"},
		{EUSERS, EAGAIN, "",
		 " may not start another process, which takes a moment of one to inject a payment "
		 "handler (RLIMIT_NPROC, or pids.max of its control group)"},
		{EAGAIN, EBUSY, "no thread of ",
		 " could be stopped for the payment handler to be injected: they are blocked in "
		 "the kernel; try again"},
	};
	struct process_facts f = {.comm = "?"};

	(void)process_read(pid, &f);
	if (err == -ESRCH)
		return fail(e, ESRCH, "process %d ended while we attached", (int)pid);
	if (err == -EBUSY)
		return fail(e, EBUSY,
			    "process %d (%s) uses signal %d itself: name another one for pauses "
			    "with --signal",
			    (int)pid, f.comm, signo);
	err = err == -EACCES ? -EPERM : err == -ETIMEDOUT ? -EAGAIN : err;
	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (err == -reasons[i].err)
			return fail(e, reasons[i].errnum, "%sprocess %d (%s)%s", reasons[i].before,
				    (int)pid, f.comm, reasons[i].after);
	return fail(e, -err, "cannot inject a payment handler into process %d (%s): %s", (int)pid,
		    f.comm, strerror(-err));
}

/* Stops the thread that notices least. */
static int stop_one(pid_t pid, int pidfd, int signo, struct remote *ret)
{
	int err = -ESRCH, stuck = 0;
	uint64_t at;

	for (int i = 0; i < TRIES; i++) {
		_cleanup_free_ struct inject_thread *threads = NULL;
		size_t n;

		err = inject_syscall_of(pid, &at);
		if (err == 0)
			err = inject_threads(pid, signo, &threads, &n);
		if (err < 0)
			return err;
		for (size_t k = 0; k < n; k++) {
			err = threads[k].rank < 5 ? remote_stop(pid, pidfd, threads[k].tid, at, ret)
						  : -EAGAIN;
			if (err == 0 || err == -EPERM || err == -ENOEXEC)
				return err;
			stuck += err == -ETIMEDOUT;
			if (stuck == STUCK)
				return err;
		}
		pause_a_little();
	}
	return err;
}

static int enter_stopped(const struct inject_options *o, struct remote *r,
			 const struct inject_layout *has, struct inject_layout *l)
{
	struct remote helper;
	pid_t number;
	int err = 0;

	if (has) {
		*l = *has;
	} else {
		err = remote_helper(r, &helper, &number);
		if (err < 0)
			return err == -EAGAIN ? -EUSERS : err;
		err = inject_numbers_of(helper.tid, &l->numbers);
		if (err == 0)
			err = inject_map(o, &helper, l);
		remote_end(&helper, r, number);
	}
	if (err == 0)
		err = inject_install(o, r, l);
	/* What was there before us stays, whatever it is. */
	if (err < 0 && !has)
		(void)inject_unmap(r, l);
	return err;
}

static int enter(const struct inject_options *o, pid_t pid, int pidfd,
		 const struct inject_layout *has, struct inject_layout *ret)
{
	struct inject_layout l = {.pid = pid};
	struct remote r;
	int err = stop_one(pid, pidfd, o->signo, &r), gone;

	if (err < 0)
		return err;
	err = enter_stopped(o, &r, has, &l);
	gone = remote_release(&r);
	if (err < 0 || gone < 0)
		return err < 0 ? err : gone;
	*ret = l;
	return 0;
}

int inject_enter(const struct inject_options *o, pid_t pid, int pidfd,
		 const struct inject_layout *known, size_t n_known, struct inject_layout *ret,
		 struct injected *ret_injected, struct error *e)
{
	_cleanup_free_ struct inject_thread *threads = NULL;
	size_t n = 0;
	int err = 0;

	for (int i = 0; i < EXECS; i++) {
		const struct inject_layout *has = inject_layout_of(pid, known, n_known);

		err = inject_allowed(pid, o->signo, has, e);
		/* In the middle of an exec the memory is gone, and our handler not yet. */
		if (err == -EBUSY && i + 1 < EXECS) {
			pause_a_little();
			continue;
		}
		if (err < 0)
			return err;
		err = enter(o, pid, pidfd, has, ret);
		/* An exec takes away what was there, the thread as well. */
		if ((err != -EFAULT && err != -ESRCH && err != -ENOENT) || process_has_ended(pidfd))
			break;
		pause_a_little();
	}
	if (err < 0)
		return refuse(pid, o->signo, err, e);
	if (inject_threads(pid, o->signo, &threads, &n) < 0)
		n = 0;
	*ret_injected = (struct injected){.handler = inject_own_action(o, ret).handler,
					  .numbers = ret->numbers,
					  .threads = (unsigned int)n};
	for (size_t i = 0; i < n; i++) {
		ret_injected->blocking += threads[i].blocking;
		ret_injected->filtered += threads[i].filtered;
	}
	return 0;
}

/* The process has its former action back, and signals that were not delivered yet are gone. */
static int withdraw(const struct inject_options *o, struct remote *r, const struct inject_layout *l)
{
	const struct inject_action ignore = {
		.handler = 1, .flags = l->former.flags, .restorer = l->former.restorer};
	struct inject_action there;
	int err = inject_set_action(o, r, l, NULL, &there);

	/* The program may have put another in its place. */
	if (err == 0 && there.handler == inject_own_action(o, l).handler) {
		err = inject_set_action(o, r, l, &ignore, &there);
		if (err == 0)
			err = inject_set_action(o, r, l, &l->former, &there);
	}
	return err;
}

static bool inside(const struct inject_layout *l, uint64_t at)
{
	return at >= l->blob && at < l->end;
}

/* Is no thread in the handler any more? Only threads that run have to be stopped to be asked. */
static bool is_quiet(const struct inject_options *o, pid_t pid, const struct inject_layout *l)
{
	_cleanup_free_ struct inject_thread *threads = NULL;
	size_t n;
	int err = inject_threads(pid, o->signo, &threads, &n);

	for (size_t i = 0; err == 0 && i < n; i++) {
		struct remote r;

		if (threads[i].known) {
			if (inside(l, threads[i].at))
				return false;
			continue;
		}
		err = remote_stop(pid, -1, threads[i].tid, 0, &r);
		if (err == 0) {
			err = remote_release(&r);
			if (inside(l, r.regs.rip))
				return false;
		}
		/* In a restartable sequence it is in the program's own code. */
		if (err == -ESRCH || err == -EAGAIN)
			err = 0;
	}
	return err == 0 || err == -ESRCH;
}

/* The handler or, once no thread is in it, its mappings; by a thread of a process that has the
 * layout, and has it still. */
static int take_out(const struct inject_options *o, pid_t pid, const struct inject_layout *l,
		    bool mappings)
{
	struct remote r;
	int err = mappings && !is_quiet(o, pid, l) ? -EAGAIN : stop_one(pid, -1, o->signo, &r),
	    gone;

	if (err < 0)
		return err;
	if (!inject_layout_of(pid, l, 1))
		err = -ESRCH;
	else if (mappings)
		err = inside(l, r.regs.rip) ? -EAGAIN : inject_unmap(&r, l);
	else
		err = withdraw(o, &r, l);
	gone = remote_release(&r);
	return gone < 0 ? gone : err;
}

struct leaving {
	const struct inject_options *o;
	const struct inject_layout *known;
	size_t n_known;
	bool mappings;	/* is it their turn, or the handler's? */
	bool strangers; /* is it their turn? */
	size_t found, failed;
	bool cut_short;		 /* this round, for want of time */
	pid_t last;		 /* that failed */
	uint64_t until, at_last; /* at_last: whatever comes, so that nobody is let go halfway */
};

/* Neither was it injected, nor is it the child of one that was. */
static bool is_stranger(const struct leaving *x, pid_t pid)
{
	struct process_facts f = {.parent = 0};

	(void)process_read(pid, &f);
	for (size_t i = 0; i < x->n_known; i++)
		if (x->known[i].pid == pid || x->known[i].pid == f.parent)
			return false;
	return true;
}

static bool is_hung(const struct leaving *x, pid_t pid)
{
	for (size_t i = 0; i < x->o->progress->n_hung; i++)
		if (x->o->progress->hung[i] == pid)
			return true;
	return false;
}

static int leave_one(pid_t pid, void *arg)
{
	struct leaving *x = arg;
	const struct inject_layout *l;
	int err;

	/* A process that cannot be stopped takes a second and a half, and somebody may have made a
	 * thousand of them. */
	if (clock_monotonic_ns() > (x->failed ? x->until : x->at_last)) {
		x->last = x->last ? x->last : pid;
		x->cut_short = true;
		return 1;
	}
	if (pid == getpid() || is_hung(x, pid) || is_stranger(x, pid) != x->strangers)
		return 0;
	x->o->progress->at = pid;
	x->o->progress->steps++;
	l = inject_layout_of(pid, x->known, x->n_known);
	if (!l)
		return 0;
	x->found++;
	err = take_out(x->o, pid, l, x->mappings);
	if (err < 0 && err != -ESRCH) {
		x->failed++;
		x->last = pid;
	}
	return 0;
}

/* Strangers last: it can take all our time to look at the processes of some user who has made many.
 */
static void take_step(struct leaving *x, bool mappings)
{
	x->mappings = mappings;
	x->strangers = false;
	(void)process_each(leave_one, x);
	x->strangers = true;
	(void)process_each(leave_one, x);
}

int inject_leave(const struct inject_options *o, const struct inject_layout *known, size_t n_known,
		 struct error *e)
{
	struct leaving x = {.o = o,
			    .known = known,
			    .n_known = n_known,
			    .until = clock_monotonic_ns() + LEAVE_NS,
			    .at_last = clock_monotonic_ns() + LEAVE_LAST_NS};

	/* First everywhere the handler: a child that a process has meanwhile is as its parent was.
	 */
	do {
		x.found = x.failed = 0;
		x.cut_short = false;
		take_step(&x, false);
		if (!x.found && !x.cut_short)
			return 0;
		if (!x.failed)
			take_step(&x, true);
		pause_a_little();
	} while (clock_monotonic_ns() < x.until);
	return fail(e, EBUSY,
		    "the payment handler could not be taken out of process %d%s: its memory stays "
		    "there, and does nothing",
		    (int)x.last, x.failed > 1 ? " and others" : "");
}
