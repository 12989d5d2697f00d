// SPDX-License-Identifier: BSD-2-Clause
#include "target/remote.h"

#include "base/clock.h"
#include "target/process.h"

#include <errno.h>
#include <linux/audit.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* clone's stack for the helper: an address where nothing can be. */
#define NO_STACK 8
#define STOP_NS (500 * NSEC_PER_MSEC)
#define CALL_NS \
	(20 * NSEC_PER_SEC) /* the thread is not as it was: there is no giving up before it is */
#define LOOK_NS 2000000
#define CODE_SEGMENT_64 0x33
#define SYSCALL_LENGTH 2 /* of the instruction */
#define SYSCALL_STOP (SIGTRAP | 0x80)
#define OPTIONS (PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEEXEC)
#define RESTART_WITHOUT_HANDLER 514 /* ERESTARTNOHAND of include/linux/errno.h */

static volatile uint64_t *steps_taken;

void remote_count_steps(volatile uint64_t *steps)
{
	steps_taken = steps;
}

/* A fault with its signal blocked would take the program's handler of it away. */
static uint64_t all_but_faults(void)
{
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
	uint64_t mask = ~0ULL;

	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		mask &= ~(1ULL << (faults[i] - 1));
	return mask;
}

static int trace(enum __ptrace_request request, pid_t tid, uintptr_t address, uintptr_t data)
{
	long r;

	errno = 0;
	r = ptrace(request, tid, address, data);
	return r == -1 && errno ? -errno : 0;
}

/* Until @tid (-1: any) stops or ends: its status. -ESRCH: there is none; -ETIMEDOUT. */
static int await(pid_t tid, uint64_t patience_ns, int *ret_status, pid_t *ret_tid)
{
	const struct timespec look = {.tv_nsec = LOOK_NS};
	uint64_t until = clock_monotonic_ns() + patience_ns;
	sigset_t child;

	(void)sigemptyset(&child);
	(void)sigaddset(&child, SIGCHLD);
	for (;;) {
		pid_t r = waitpid(tid, ret_status, __WALL | WNOHANG);

		if (r > 0) {
			*ret_tid = r;
			if (steps_taken)
				(*steps_taken)++;
			return 0;
		}
		if (r < 0 && errno != EINTR)
			return -ESRCH;
		if (clock_monotonic_ns() > until)
			return -ETIMEDOUT;
		(void)sigtimedwait(&child, NULL, &look);
	}
}

/* Lets it go until a stop of the wanted kind: SYSCALL_STOP, or that of PTRACE_EVENT_STOP (SIGTRAP).
 * Stopped and continued processes, and signals that cannot be blocked, take their course. */
static int run_until(struct remote *r, enum __ptrace_request how, int wanted)
{
	int status, sig = 0, err;
	pid_t who;

	for (;;) {
		bool event;

		err = how ? trace(how, r->tid, 0, (uintptr_t)sig) : 0;
		if (err == 0)
			err = await(r->tid, how == PTRACE_SYSCALL || r->calling ? CALL_NS : STOP_NS,
				    &status, &who);
		if (err < 0)
			return err;
		if (!WIFSTOPPED(status)) {
			r->ended = true;
			return -ESRCH;
		}
		/* Another program, perhaps with other rights, which must not get the registers of
		 * the old one. */
		if (status >> 16 == PTRACE_EVENT_EXEC) {
			r->ended = true;
			(void)trace(PTRACE_DETACH, r->tid, 0, 0);
			return -ESRCH;
		}
		event = status >> 16 == PTRACE_EVENT_STOP;
		if (event ? wanted == SIGTRAP
			  : WSTOPSIG(status) == wanted && wanted == SYSCALL_STOP)
			return 0;
		sig = event || status >> 16 ? 0 : WSTOPSIG(status);
		if (sig == SYSCALL_STOP)
			sig = 0;
		if (how == PTRACE_SYSCALL && sig && sig != SIGSTOP) {
			siginfo_t info = {0};

			/* One of ours, a fault, is not the program's; any other it gets when it
			 * goes on. */
			(void)trace(PTRACE_GETSIGINFO, r->tid, 0, (uintptr_t)&info);
			r->signal = info.si_code > 0 ? 0 : sig;
			r->calling = false;
			return -EFAULT;
		}
		if (!how)
			how = PTRACE_CONT;
	}
}

bool remote_begins_again(long number)
{
	static const long calls[] = {
		SYS_epoll_wait,
		SYS_epoll_pwait,
		SYS_epoll_pwait2,
		SYS_semop,
		SYS_semtimedop,
		SYS_rt_sigtimedwait,
		SYS_io_getevents,
		SYS_io_pgetevents,
		SYS_io_uring_enter,
		/* with SO_RCVTIMEO or SO_SNDTIMEO */
		SYS_read,
		SYS_readv,
		SYS_recvfrom,
		SYS_recvmsg,
		SYS_recvmmsg,
		SYS_accept,
		SYS_accept4,
		SYS_write,
		SYS_writev,
		SYS_sendto,
		SYS_sendmsg,
	};

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (calls[i] == number)
			return true;
	return false;
}

/* Most calls begin again by themselves when nothing but a stop interrupted them; some say EINTR
 * (signal(7)). The kernel can be told to treat them alike: begin again, unless there is a handler
 * to be run after all. Their time-outs begin again, too. */
static void spare_interruption(struct user_regs_struct *regs)
{
	if ((int64_t)regs->rax == -EINTR && (int64_t)regs->orig_rax >= 0 &&
	    remote_begins_again((long)regs->orig_rax))
		regs->rax = (unsigned long long)-RESTART_WITHOUT_HANDLER;
}

/* Moved out of one, a thread would be put back into the middle of it, where the kernel has to have
 * it start over. */
static bool in_restartable_sequence(const struct remote *r)
{
	struct __ptrace_rseq_configuration c = {0};
	struct {
		uint32_t version, flags;
		uint64_t start, length, abort;
	} section;
	uint64_t at = 0;

	/* The result is a size. */
	if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, r->tid, sizeof(c), &c) < 0 || !c.rseq_abi_pointer)
		return false;
	if (remote_read(r, c.rseq_abi_pointer + 8, &at, sizeof(at)) < 0 || !at ||
	    remote_read(r, at, &section, sizeof(section)) < 0)
		return false;
	return r->regs.rip - section.start < section.length;
}

/* The process may have started another program since somebody looked. */
static bool has_instruction(const struct remote *r)
{
	unsigned char there[SYSCALL_LENGTH];

	return !r->at || (remote_read(r, r->at, there, sizeof(there)) == 0 && there[0] == 0x0f &&
			  there[1] == 0x05);
}

static int prepare(struct remote *r)
{
	uint64_t blocked = all_but_faults();
	int err = trace(PTRACE_GETREGS, r->tid, 0, (uintptr_t)&r->regs);

	if (err < 0)
		return err;
	if (r->regs.cs != CODE_SEGMENT_64)
		return -ENOEXEC;
	spare_interruption(&r->regs);
	if (!has_instruction(r) || in_restartable_sequence(r))
		return -EAGAIN;
	err = trace(PTRACE_GETSIGMASK, r->tid, sizeof(r->mask), (uintptr_t)&r->mask);
	return err == 0 ? trace(PTRACE_SETSIGMASK, r->tid, sizeof(blocked), (uintptr_t)&blocked)
			: err;
}

/* Filters are in force whenever the program runs its own code: they are suspended once it has
 * stopped, for our calls alone. Without CAP_SYS_ADMIN, or CONFIG_CHECKPOINT_RESTORE, they stay in
 * force. */
static void suspend_filters(struct remote *r)
{
	r->unfiltered =
		trace(PTRACE_SETOPTIONS, r->tid, 0, OPTIONS | PTRACE_O_SUSPEND_SECCOMP) == 0;
}

/* Numbers are given again: what is stopped now is looked at again. */
static int check(pid_t pid, int pidfd, const struct remote *r)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)pid, (int)r->tid);
	if (access(path, F_OK) < 0 || (pidfd >= 0 && process_has_ended(pidfd)))
		return -ESRCH;
	return r->at && !r->unfiltered && process_thread_filters(pid, r->tid) ? -EOPNOTSUPP : 0;
}

int remote_stop(pid_t pid, int pidfd, pid_t tid, uint64_t at, struct remote *ret)
{
	struct remote r = {.tid = tid, .at = at};
	int err = trace(PTRACE_SEIZE, tid, 0, OPTIONS);

	if (err == 0)
		err = trace(PTRACE_INTERRUPT, tid, 0, 0);
	if (err == 0)
		err = run_until(&r, 0, SIGTRAP);
	if (err < 0)
		return err;
	if (at)
		suspend_filters(&r);
	err = check(pid, pidfd, &r);
	if (err == 0)
		err = prepare(&r);
	if (err < 0) {
		/* With what a call that said EINTR is told instead. */
		if (err == -EAGAIN)
			(void)trace(PTRACE_SETREGS, tid, 0, (uintptr_t)&r.regs);
		(void)trace(PTRACE_DETACH, tid, 0, 0);
		return err;
	}
	*ret = r;
	return 0;
}

/* Who shares the program's memory can put other code there, which makes another call: is the one
 * that begins ours? */
static bool is_ours(const struct remote *r, long number, const uint64_t arguments[6])
{
	struct __ptrace_syscall_info i = {0};

	return ptrace(PTRACE_GET_SYSCALL_INFO, r->tid, sizeof(i), &i) > 0 &&
	       i.op == PTRACE_SYSCALL_INFO_ENTRY && i.arch == AUDIT_ARCH_X86_64 &&
	       i.instruction_pointer == r->at + SYSCALL_LENGTH && i.entry.nr == (uint64_t)number &&
	       memcmp(i.entry.args, arguments, sizeof(i.entry.args)) == 0;
}

int remote_call(struct remote *r, long number, const uint64_t arguments[6], int64_t *ret)
{
	struct user_regs_struct regs = r->regs;
	bool ours;
	int err;

	regs.rip = r->at;
	regs.rax = (unsigned long long)number;
	regs.orig_rax = ~0ULL; /* nothing is to begin again now */
	regs.rdi = arguments[0];
	regs.rsi = arguments[1];
	regs.rdx = arguments[2];
	regs.r10 = arguments[3];
	regs.r8 = arguments[4];
	regs.r9 = arguments[5];
	err = trace(PTRACE_SETREGS, r->tid, 0, (uintptr_t)&regs);
	if (err == 0)
		err = run_until(r, PTRACE_SYSCALL, SYSCALL_STOP);
	if (err < 0)
		return err;
	r->calling = true;
	ours = is_ours(r, number, arguments);
	if (!ours)
		err = trace(PTRACE_POKEUSER, r->tid, offsetof(struct user, regs.orig_rax),
			    ~0ULL); /* no call at all */
	if (err == 0)
		err = run_until(r, PTRACE_SYSCALL, SYSCALL_STOP);
	if (err == 0)
		err = trace(PTRACE_GETREGS, r->tid, 0, (uintptr_t)&regs);
	if (err < 0)
		return err;
	*ret = (int64_t)regs.rax;
	/* From here on our death does not have it go on elsewhere. */
	err = trace(PTRACE_SETREGS, r->tid, 0, (uintptr_t)&r->regs);
	return err == 0 && !ours ? -EFAULT : err;
}

int remote_release(struct remote *r)
{
	int err = r->unfiltered ? trace(PTRACE_SETOPTIONS, r->tid, 0, OPTIONS) : 0;

	r->unfiltered = false;
	/* The kernel begins an interrupted call again only on the way from a stop like the first
	 * one. */
	if (r->calling) {
		err = trace(PTRACE_INTERRUPT, r->tid, 0, 0);
		if (err == 0)
			err = run_until(r, PTRACE_CONT, SIGTRAP);
	}
	r->calling = false;
	if (err == 0)
		err = trace(PTRACE_SETREGS, r->tid, 0, (uintptr_t)&r->regs);
	if (err == 0)
		err = trace(PTRACE_SETSIGMASK, r->tid, sizeof(r->mask), (uintptr_t)&r->mask);
	return err == 0 ? trace(PTRACE_DETACH, r->tid, 0, (uintptr_t)r->signal) : err;
}

int remote_helper(struct remote *r, struct remote *ret, pid_t *ret_number)
{
	/* No signal at its end: nobody waits for it by accident. No stack: were we to die before
	 * the kernel knows that it is to end with us, it would go on in the program's code, and
	 * ends at the first use of the stack, that of the system call's return. */
	const uint64_t arguments[6] = {CLONE_VM | CLONE_PTRACE, NO_STACK};
	const uintptr_t options =
		OPTIONS | PTRACE_O_EXITKILL | (r->unfiltered ? PTRACE_O_SUSPEND_SECCOMP : 0);
	struct remote h = {.at = r->at, .unfiltered = r->unfiltered};
	int64_t number;
	int status, err = remote_call(r, SYS_clone, arguments, &number);

	if (err < 0)
		return err;
	if (number < 0)
		return (int)number;
	err = await(-1, CALL_NS, &status, &h.tid);
	h.ended = err == 0 && !WIFSTOPPED(status);
	if (err == 0 && h.tid != r->tid && !h.ended)
		err = trace(PTRACE_SETOPTIONS, h.tid, 0, options);
	else
		err = -ESRCH;
	if (err == 0)
		err = trace(PTRACE_GETREGS, h.tid, 0, (uintptr_t)&h.regs);
	*ret = h;
	*ret_number = (pid_t)number;
	if (err < 0)
		remote_end(ret, r, *ret_number);
	return err;
}

void remote_end(struct remote *helper, struct remote *parent, pid_t number)
{
	const uint64_t arguments[6] = {(uint64_t)number, 0, __WALL, 0};
	int64_t reaped;
	int status;
	pid_t who;

	/* As long as we have not waited for its end its number is its own. */
	if (helper->tid > 0 && helper->tid != parent->tid && !helper->ended) {
		(void)kill(helper->tid, SIGKILL);
		while (await(helper->tid, CALL_NS, &status, &who) == 0 && WIFSTOPPED(status))
			;
	}
	(void)remote_call(parent, SYS_wait4, arguments, &reaped);
}

int remote_write(const struct remote *r, uint64_t at, const void *from, size_t size)
{
	const unsigned char *bytes = from;
	int err = 0;

	for (size_t i = 0; i < size && err == 0; i += sizeof(long)) {
		size_t n = size - i < sizeof(long) ? size - i : sizeof(long);
		unsigned long word = 0;

		memcpy(&word, bytes + i, n);
		err = trace(PTRACE_POKEDATA, r->tid, at + i, word);
	}
	return err;
}

int remote_read(const struct remote *r, uint64_t at, void *to, size_t size)
{
	unsigned char *bytes = to;

	for (size_t i = 0; i < size; i += sizeof(long)) {
		size_t n = size - i < sizeof(long) ? size - i : sizeof(long);
		long word;

		errno = 0;
		word = ptrace(PTRACE_PEEKDATA, r->tid, at + i, NULL);
		if (errno)
			return -errno;
		memcpy(bytes + i, &word, n);
	}
	return 0;
}
