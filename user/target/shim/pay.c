// SPDX-License-Identifier: BSD-2-Clause
/* Paying: the handler of the payment signal stops its thread for what the ledger wrote into the
 * thread's slot.
 *
 * One rule about oversleep, kept on one side only. The handler credits what the thread was really
 * stopped for, from the raising of the signal to the handler's exit, oversleep included. The ledger
 * adds that to the thread's local, which is signed against G, so a surplus is already part of the
 * next G - local that it writes into owed_ns. Were the handler to carry the surplus too and
 * subtract it from the next payment, it would be taken off twice. So the handler keeps no account:
 * it pays exactly owed_ns and reports the truth.
 *
 * What it does keep per thread is an estimate of how late the kernel wakes it (tens of microseconds
 * in a virtual machine). It sleeps to that much before the deadline and spins the rest: a payment
 * of 50 us that takes 120 is exact in the books, but the thread would then run ahead of everybody
 * else until the next hit.
 *
 * Only raw system calls are used, and the vDSO's clock: libc's functions may be those of another
 * preloaded library, and its clock_nanosleep is a cancellation point. Whatever the clock says and
 * whatever is in the slot, each sleep, each wait that keeps the CPU and all of a payment end:
 * SHIM_MAX_PAY_NS, MOST_LOOKS and MOST_PARTS bound them.
 *
 * Of this file a second thing is made, the handler that is injected into processes that run already
 * (blob.c): there is neither libc nor thread-local storage. */
#include "libc.h"
#include "shim.h"
#include "shared/raw_call.h"

#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>

#define USEC 1000LL
/* Below this a sleep is mostly wake-up latency: spin. */
#define SPIN_BELOW_NS (80 * USEC)
/* The running median of the wake-up latency moves by one step a sleep towards the side it was seen
 * on: robust against the rare long preemption. The margin covers the spread around the median, so
 * that most sleeps end before the deadline. */
#define LATENCY_START_NS (50 * USEC)
#define LATENCY_STEP_NS (2 * USEC)
#define LATENCY_MIN_NS (4 * USEC)
#define LATENCY_MAX_NS (150 * USEC)
#define LATENCY_MARGIN_NS (10 * USEC)
/* A sleep shorter than this is not worth its system calls. */
#define SHORTEST_SLEEP_NS (20 * USEC)
/* Looks at the clock during one part of a payment: 10 ms of them at 5 ns, which none is faster
 * than. A clock that stands still, as one can under ptrace, ends the part. */
#define MOST_LOOKS (SHIM_MAX_PAY_NS / 5)
/* Parts of one payment, a second: another process that shares the slots can write into ours without
 * end. The ledger asks again. */
#define MOST_PARTS 100

/* The ledger may give a slot away and put the thread elsewhere: whoever keeps what is found has to
 * look at its `tid` again. */
static struct shim_slot *find_slot(struct shim_slot *slots, unsigned int tid)
{
	for (unsigned int i = 0; i < SHIM_PROBES; i++) {
		struct shim_slot *s = &slots[(tid + i) % SHIM_SLOTS];

		if (__atomic_load_n(&s->tid, __ATOMIC_RELAXED) == tid)
			return s;
	}
	return NULL;
}

#ifdef SHIM_BLOB
/* What the library has of libc and in thread-local storage. Nothing here may need a relocation. */

/* The injector fills in what it has to. */
extern struct shim_blob blob_head;

#define payer ((enum shim_pay)blob_head.pay)

/* By slot, in place of by thread; 0: not known yet. */
static long long wake_latency_ns[SHIM_SLOTS];

static long long now_ns(void)
{
	struct timespec t = {0};

	(void)raw_call(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

struct shim_slot *shim_own_slot(void)
{
	return find_slot((struct shim_slot *)blob_head.slots,
			 (unsigned int)raw_call(SYS_gettid) + (unsigned int)blob_head.numbers);
}

static long long *own_latency(const struct shim_slot *slot)
{
	long long *latency = &wake_latency_ns[slot - (const struct shim_slot *)blob_head.slots];

	if (!*latency)
		*latency = LATENCY_START_NS;
	return latency;
}

/* It pays nothing then; the ledger goes on asking, and sees it. */
static void note_no_slot(void)
{
}
#else
static enum shim_pay payer;

/* Initial-exec TLS (a build flag): the first access in a thread must not call the allocator from a
 * signal handler. */
static __thread struct {
	long tid;
	struct shim_slot *slot;
	long long latency_ns;
} self = {.latency_ns = LATENCY_START_NS};

/* The vDSO's, which makes no system call as a rule. NULL: there is none. */
static int (*vdso_clock)(clockid_t clock, struct timespec *ret);

static long long now_ns(void)
{
	struct timespec t = {0};

	if (!vdso_clock || vdso_clock(CLOCK_MONOTONIC, &t) != 0)
		(void)raw_call(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* The thread id is asked for every time: after fork the child's TLS still holds the parent's, and
 * the slots are shared. */
struct shim_slot *shim_own_slot(void)
{
	long tid = raw_call(SYS_gettid);

	if (!shim_slots)
		return NULL;
	/* The ledger may have given the slot away meanwhile: look again if it is no longer ours. */
	if (self.slot && self.tid == tid &&
	    __atomic_load_n(&self.slot->tid, __ATOMIC_RELAXED) == (unsigned int)tid)
		return self.slot;
	self.tid = tid;
	self.slot = find_slot(shim_slots, (unsigned int)tid);
	return self.slot;
}

static long long *own_latency(const struct shim_slot *slot)
{
	(void)slot;
	return &self.latency_ns;
}

static void note_no_slot(void)
{
	(void)__atomic_add_fetch(&shim_page->no_slot, 1, __ATOMIC_RELAXED);
}
#endif

static long long at_most(long long ns)
{
	return ns < SHIM_MAX_PAY_NS ? ns : SHIM_MAX_PAY_NS;
}

static void spin_until(long long deadline)
{
	for (int i = 0; i < MOST_LOOKS && now_ns() < deadline; i++)
		__builtin_ia32_pause();
}

/* Sleeps until a latency before @deadline; returns for how long. The timer slack of 50 us that
 * every thread starts with would be added to the wake-up; it is the program's setting, so it is put
 * back. */
static long long sleep_towards(long long deadline, long long *latency_ns)
{
	long long wake = deadline - *latency_ns - LATENCY_MARGIN_NS;
	long long start = now_ns(), slept;
	struct timespec t = {.tv_nsec = at_most(wake - start)};
	long slack, r;

	if (wake - start < SHORTEST_SLEEP_NS)
		return 0;
	slack = raw_call(SYS_prctl, PR_GET_TIMERSLACK);
	if (slack > 1)
		(void)raw_call(SYS_prctl, PR_SET_TIMERSLACK, 1);
	/* For a time, not until one: whatever the clock said, this ends. An interrupted sleep
	 * leaves in @t what is left of it. */
	do
		r = raw_call(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &t, &t);
	while (r == -EINTR);
	slept = now_ns() - start;
	if (r == 0) {
		bool later = start + slept - wake > *latency_ns;

		*latency_ns += later ? LATENCY_STEP_NS : -LATENCY_STEP_NS;
		if (*latency_ns < LATENCY_MIN_NS)
			*latency_ns = LATENCY_MIN_NS;
		if (*latency_ns > LATENCY_MAX_NS)
			*latency_ns = LATENCY_MAX_NS;
	}
	if (slack > 1)
		(void)raw_call(SYS_prctl, PR_SET_TIMERSLACK, slack);
	return slept;
}

/* What the ledger wrote since the last time, 0: nothing; *sleeps: it is to be slept. Taken, not
 * read: real-time signals queue, and while the program blocks ours several may have; the debt is
 * one. */
static long long take_owed(struct shim_slot *slot, bool *sleeps)
{
	long long owed = __atomic_exchange_n(&slot->owed_ns, 0, __ATOMIC_ACQ_REL);

	if (owed)
		*sleeps = owed < 0 || payer == SHIM_PAY_SLEEP;
	if (owed == LLONG_MIN)
		return LLONG_MAX;
	return owed < 0 ? -owed : owed;
}

/* Pays up to SHIM_MAX_PAY_NS of what is @owed since @start, and books that. Returns when this part
 * was over. *ret_left: what is owed beyond it, if the ledger wrote so meanwhile; else nothing,
 * since the ledger may be gone. */
static long long pay_part(struct shim_slot *slot, long long start, long long owed, bool *sleeps,
			  long long *ret_left)
{
	long long slept = 0, before = 0, written = 0, took;

	*ret_left = 0;
	for (long long until = at_most(owed); until > before; until = at_most(written)) {
		if (*sleeps && until - (now_ns() - start) >= SPIN_BELOW_NS)
			slept += sleep_towards(start + until, own_latency(slot));
		spin_until(start + until);
		/* The debt may have grown meanwhile: the ledger then wrote all that is owed since
		 * this part began. */
		before = until;
		written = take_owed(slot, sleeps);
		if (written)
			*ret_left = written;
	}
	took = now_ns() - start;
	(void)__atomic_add_fetch(&slot->spun_ns, (unsigned long long)(took - slept),
				 __ATOMIC_RELEASE);
	(void)__atomic_add_fetch(&slot->paid_ns, (unsigned long long)took, __ATOMIC_RELEASE);
	*ret_left -= took;
	return start + took;
}

/* Has the program got a signal that it does not block, and that waits for the payment's end? */
static bool signal_waits(int signo, const ucontext_t *program)
{
	unsigned long pending = 0;

	(void)raw_call(SYS_rt_sigpending, &pending, sizeof(pending));
	return pending & ~program->uc_sigmask.__val[0] & ~(1UL << (signo - 1));
}

static void handle_payment(int signo, siginfo_t *info, void *context)
{
	long long start = now_ns(), owed;
	struct shim_slot *slot = shim_own_slot();
	bool sleeps = false;
	int parts = 0;

	(void)info;
	if (!slot) {
		note_no_slot();
		return;
	}
	__atomic_store_n(&slot->paying, 1, __ATOMIC_RELEASE);
	start = shim_payment_began(slot, start);
	/* A debt beyond one part is paid in one go: between two payments the thread would run on
	 * until the next tick, and take locks, although it still sleeps in virtual time. */
	owed = take_owed(slot, &sleeps);
	do
		start = pay_part(slot, start, owed, &sleeps, &owed);
	while (owed > 0 && ++parts < MOST_PARTS && !signal_waits(signo, context));
	(void)__atomic_add_fetch(&slot->payments, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&slot->paying, 0, __ATOMIC_RELEASE);
}

/* How the handler is installed. SA_ONSTACK: a thread on a small stack of its own (Go, coroutines)
 * has an alternate one for exactly this. While it runs, all signals are blocked but those of
 * faults: the program's handlers are program code, and a stopped thread runs none; one that jumps
 * out (siglongjmp) would also leave the payment unbooked and the slack low. They run when this part
 * is over, 10 ms at most. So do the two that libc sends itself, for cancellation and for setuid. */
#define PAY_RESTORER 0x04000000UL /* SA_RESTORER, asm/signal.h */
#define PAY_FLAGS (SA_SIGINFO | SA_RESTART | SA_ONSTACK | PAY_RESTORER)
#define PAY_MASK                                                                  \
	(~(1ULL << (SIGSEGV - 1) | 1ULL << (SIGBUS - 1) | 1ULL << (SIGFPE - 1) |  \
	   1ULL << (SIGILL - 1) | 1ULL << (SIGTRAP - 1) | 1ULL << (SIGABRT - 1) | \
	   1ULL << (SIGSYS - 1)))

/* Where the handler returns to: rt_sigreturn, in the form that debuggers know. Unwinders look at
 * the byte before a return address. The rules say where the interrupted registers are, in DWARF's
 * numbers: @offset from rsp. */
void pay_restorer(void);
#define CFI_CFA ".cfi_escape 0x0f, 4, 0x77, 0xa0, 1, 0x06\n" /* *(rsp + 160) */
#define CFI_AT(number, offset) \
	".cfi_escape 0x10, " #number ", 3, 0x77, (" #offset " & 127) | 128, " #offset " >> 7\n"
__asm__(".pushsection .text\n"
	".cfi_startproc\n"
	".cfi_signal_frame\n" CFI_CFA CFI_AT(8, 40) CFI_AT(9, 48) CFI_AT(10, 56) CFI_AT(11, 64)
		CFI_AT(12, 72) CFI_AT(13, 80) CFI_AT(14, 88) CFI_AT(15, 96) CFI_AT(5, 104)
			CFI_AT(4, 112) CFI_AT(6, 120) CFI_AT(3, 128) CFI_AT(1, 136) CFI_AT(0, 144)
				CFI_AT(2, 152) CFI_AT(7, 160)
					CFI_AT(16, 168) "	nop\n"
							".globl pay_restorer\n"
							".hidden pay_restorer\n"
							".type pay_restorer, @function\n"
							"pay_restorer:\n"
							"	movq $15, %rax\n"
							"	syscall\n"
							".size pay_restorer, .-pay_restorer\n"
							".cfi_endproc\n"
							".popsection\n");

#ifndef SHIM_BLOB
void shim_pay_install(enum shim_pay pay, int signo)
{
	const unsigned long long set = 1ULL << (signo - 1);
	const struct {
		void (*handler)(int signo, siginfo_t *info, void *context);
		unsigned long flags;
		void (*restorer)(void);
		unsigned long long mask;
	} action = {handle_payment, PAY_FLAGS, pay_restorer,
		    PAY_MASK}; /* the kernel's struct sigaction */

	payer = pay;
	vdso_clock = (__typeof__(vdso_clock))own_function(SHIM_VDSO, "__vdso_clock_gettime");
	if (raw_call(SYS_rt_sigaction, signo, &action, NULL, sizeof(action.mask)) == 0)
		(void)raw_call(SYS_rt_sigprocmask, SIG_UNBLOCK, &set, NULL, sizeof(set));
}
#endif
