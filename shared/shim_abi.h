/* SPDX-License-Identifier: BSD-2-Clause */
/* What the controller, the ledger and the preloaded shim share. The target can write all of it:
 * every reader treats it as hostile (bounds, clamps). Fixed-width fields, no unnamed padding. */
#pragma once

#define SHIM_STATIC_ASSERT(c) _Static_assert(c, #c)

/* The target inherits three descriptors, numbered n, n+1, n+2, and LD_PRELOAD ends in
 * "/proc/self/fd/<n>":
 *
 *   n    the shim itself (memfd), with struct shim_launch at its end; sealed
 *
 *   n+1  struct shim_page (memfd), mapped read-write; its length is sealed
 *
 *   n+2  the BPF map of struct shim_slot (array of SHIM_ENTRIES), mapped read-write
 *
 * The shim takes them only if they are those that shim_launch (shared/shim_launch.h) names. It maps
 * n+1 and n+2, then closes all three and takes itself out of LD_PRELOAD, before main. */
#define SHIM_FDS 3

/* What the shim asks the controller, a byte on a socket of its own for each; the answer is a byte.
 */
#define SHIM_SERVER_NAME 24
enum shim_request {
	SHIM_ASK_DESCRIPTORS = 'd', /* the three of above, to be handed to a program that is about
				       to be executed */
	SHIM_ASK_READY = 'r', /* nothing: this process has a handler of the payment signal now */
};

/* How the shim pays. */
enum shim_pay {
	SHIM_PAY_NONE = 0, /* install no handler: the kernel pays, or nobody */
	SHIM_PAY_SLEEP = 1,
	SHIM_PAY_SPIN = 2,
};

/* One thread's account with the payer. Slot index: tid % SHIM_SLOTS, then linear probing over
 * SHIM_PROBES slots for the slot whose `tid` matches. The ledger claims and releases slots; the
 * shim only looks its own up. */
#define SHIM_SLOTS 16384
#define SHIM_PROBES 64
/* Threads of two PID namespaces can have one number: what is added to it, for a namespace with this
 * inode (/proc/PID/ns/pid). In the controller's own namespace, 0. It spreads namespaces over all of
 * 32 bits, of which thread ids take 22 at most. */
#define SHIM_NAMESPACE(inode) ((unsigned int)(inode)*2654435761U)
struct shim_slot {
	unsigned int tid;   /* ledger writes: the thread's id in its own PID namespace, and
			       SHIM_NAMESPACE; 0: free */
	unsigned int asked; /* ledger increments with every payment signal it raises */
	long long owed_ns;  /* ledger writes before the signal what to pay, and while `paying` what
			     * it comes to since this part of it began;  the shim takes it (exchange
			     * with 0). Negative: to be slept, whatever the shim's way is */
	unsigned long long paid_ns; /* shim adds what it was really stopped for; the ledger folds it
				       in, clamped */
	unsigned int payments;	    /* shim increments when a payment is over */
	unsigned int paying;	    /* shim: 1 while it pays */
	/* --sync pthread only: */
	long long level; /* ledger writes: the thread's local without what it has folded in of
			  * paid_ns; so level + paid_ns is what the thread has been delayed by, at
			  * any time */
	unsigned long long spun_ns; /* shim adds: of paid_ns, the time in which it kept the CPU */
	/* any mode: */
	unsigned long long raised_at;	/* ledger writes before the signal: when it raised it, on
					 * CLOCK_MONOTONIC of the thread's time namespace. From
					 * there on the thread executes nothing of its own */
	unsigned long long delivery_ns; /* shim adds: of paid_ns, what passed from there to the
					   handler's first instruction */
};
SHIM_STATIC_ASSERT(sizeof(struct shim_slot) == 64);

/* A signal that is answered later than this was blocked, or its thread lost the CPU: that was not
 * payment. */
#define SHIM_ANSWER_NS 200000

#ifndef __BPF__
/* When the payment began that the current thread's handler is entered for at @now (ns,
 * CLOCK_MONOTONIC): the kernel's way into the handler, which takes some microseconds, is part of
 * it. Takes the mark, so that nothing is counted twice. */
static inline long long shim_payment_began(struct shim_slot *slot, long long now)
{
	unsigned long long raised = __atomic_exchange_n(&slot->raised_at, 0, __ATOMIC_RELAXED);
	unsigned long long delivery = (unsigned long long)now - raised;

	if (delivery > SHIM_ANSWER_NS)
		return now;
	(void)__atomic_add_fetch(&slot->delivery_ns, delivery, __ATOMIC_RELAXED);
	return (long long)raised;
}
#endif

/* --sync pthread: what is everybody's, in the entry after the last slot. */
#define SHIM_ENTRIES (SHIM_SLOTS + 1)
struct shim_sync {
	long long g;	     /* ledger writes: what everybody must have been delayed by */
	unsigned int active; /* controller: 1 while an experiment runs, else nobody owes anything */
	unsigned int reserved[13];
};
SHIM_STATIC_ASSERT(sizeof(struct shim_sync) == sizeof(struct shim_slot));
/* Smaller debts wait for more: a payment costs a few microseconds itself. */
#define SHIM_THRESHOLD_NS 2000

/* A payment is paid and booked in parts of at most this. It goes on only if the ledger wrote during
 * a part that more is owed: bounds what a thread can lose when the controller dies. */
#define SHIM_MAX_PAY_NS 10000000LL

/* Counters of the coz.h ABI. The program holds the address of `count` (first field) for ever, so an
 * entry never moves. */
#define SHIM_MAX_COUNTERS 256
#define SHIM_NAME_MAX 112
enum shim_counter_type {
	SHIM_COUNTER_FREE = 0,
	SHIM_COUNTER_THROUGHPUT = 1,
	SHIM_COUNTER_BEGIN = 2,
	SHIM_COUNTER_END = 3
};
struct shim_counter {
	unsigned long long count; /* with backoff: coz_counter_t */
	unsigned long long backoff;
	unsigned int type; /* enum shim_counter_type; written last, with release order */
	unsigned int reserved;
	char name[SHIM_NAME_MAX - 8]; /* NUL-terminated; a longer name is cut */
};
SHIM_STATIC_ASSERT(sizeof(struct shim_counter) == 128);

struct shim_page {
	unsigned int loaded;	   /* shim: 1 once its constructor ran */
	unsigned int slots_mapped; /* shim: 1 if n+2 could be mapped */
	unsigned int n_counters; /* shim: entries claimed in counters[] (atomic add, may exceed the
				    maximum: then the surplus is lost) */
	unsigned int lost_counters;
	unsigned long long no_slot; /* shim: payment signals whose thread had no slot */
	unsigned int serves; /* controller: 1 while it answers on its socket. A hint: the shim
				checks who answers */
	unsigned int reserved[9];
	struct shim_counter counters[SHIM_MAX_COUNTERS];
};
SHIM_STATIC_ASSERT(sizeof(struct shim_page) == 64 + SHIM_MAX_COUNTERS * 128);

/* The payment handler that is injected into a process that runs already begins so. Offsets count
 * from here; data and end are those of whole pages: from data on it is writable and begins as
 * zeros. */
#define SHIM_BLOB_MAGIC 0x3130626f6c625a43ULL /* "CZblob01" */
struct shim_blob {
	unsigned long long magic;
	unsigned long long handler, restorer; /* offsets */
	unsigned long long flags, mask;	      /* as the kernel's sigaction has them */
	unsigned long long data, end;	      /* offsets */
	unsigned long long slots;	      /* injector: the address where the slots are mapped */
	unsigned long long pay;		      /* injector: enum shim_pay */
	unsigned long long numbers;	      /* injector: SHIM_NAMESPACE of the process */
};
SHIM_STATIC_ASSERT(sizeof(struct shim_blob) == 80);
