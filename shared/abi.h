/* SPDX-License-Identifier: BSD-2-Clause */
/* Everything that the BPF programs and the controller share. Fixed-width fields, no unnamed
 * padding, every size asserted. Times are nanoseconds of CLOCK_MONOTONIC unless said otherwise. */
#pragma once

#include "shared/namespace.h"
#include "shared/shim_abi.h"

typedef unsigned int abi_u32;
typedef unsigned long long abi_u64;
typedef long long abi_s64;

#define ABI_MAX_CPUS 256
#define ABI_MAX_INTERVALS 64
#define ABI_MAX_POINTS 64
#define ABI_MAX_SAMPLES 65536 /* different addresses between two drains */
#define ABI_MAX_FRAMES 256    /* of a call chain. Each costs some 0.2 us of the interrupt */
#define ABI_MAX_MODULES 2048  /* executable mappings of an address space that can be unwound */
#define ABI_MODULE_POOL 32768 /* ... of all address spaces */
#define ABI_MAX_SPACES 1024
#define ABI_SPACE_NONE 0xffffffffU /* nothing is known of it yet */
#define ABI_MAX_PROCESSES 8192	   /* followed at one time */
#define ABI_CHAIN_SITES \
	64 /* of those in scope, where all count; before Linux 5.13 no key could be longer */
#define ABI_MAX_CHAINS 8192 /* different ones between two drains */
#define ABI_MAX_ROWS \
	(1U << 22) /* of all unwinding tables; clang with all its libraries has 2.5 million */
#define ABI_ROW_CHUNK (1U << 16)
#define ABI_PAUSE_LATENCY_BUCKETS \
	128 /* quarter octaves: ABI_PAUSE_LATENCY_BUCKETS / 4 octaves of nanoseconds */

/* Who stops the threads that owe. */
enum abi_payer {
	ABI_PAY_NONE,
	ABI_PAY_SLEEP, /* the shim, by nanosleep */
	ABI_PAY_HOLD,  /* the kernel, by a task-work callback that keeps the CPU */
	ABI_PAY_SPIN,  /* the shim, by a loop */
};

/* How it is known who waits for whom. */
enum abi_sync {
	ABI_SYNC_SCHED,	  /* from the scheduler's events */
	ABI_SYNC_PTHREAD, /* from the C library's calls that wake and block */
};

/* What such a call does: the cookie of its probe. */
#define ABI_CALL_WAKES 1  /* may end another thread's wait: all that is owed is paid before */
#define ABI_CALL_BLOCKS 2 /* may wait for another thread: credit on return */

/* --trace-payments: a stop, or a tick of the sampling clock, which is one as well. */
enum abi_trace_kind {
	ABI_TRACE_TICK,
	ABI_TRACE_HOLD,	  /* a payment by the kernel */
	ABI_TRACE_SHIM,	  /* a payment by the shim, from the raising of the signal on */
	ABI_TRACE_ASKING, /* a selected sample's asking others to pay */
};

struct abi_trace {
	abi_u64 at;
	abi_s64 paid_ns; /* of a tick: what its thread has paid so far in this experiment */
	abi_u32 tid, kind;
};
_Static_assert(sizeof(struct abi_trace) == 24, "abi_trace");
#define ABI_TRACE_BYTES (4 << 20)

/* Fixed at load; the verifier removes what it switches off. */
struct abi_config {
	abi_u32 nr_cpus;
	abi_u32 payer;	       /* enum abi_payer */
	abi_u32 signo;	       /* payment signal (sleep, spin) */
	abi_u32 has_task_work; /* bpf_task_work_schedule_resume_impl */
	abi_u32 has_send_signal_task;
	abi_u32 has_preempt_disable;
	abi_u32 rq_edges;   /* rule R4 (payers that keep the CPU) */
	abi_u32 many;	    /* the scope is the map of processes, not abi_control.tgid alone */
	abi_u32 all_execs;  /* report every exec on the machine, not only those of processes in the
			       map */
	abi_u32 sync;	    /* enum abi_sync */
	abi_u32 has_switch; /* --sync pthread: the kernel reports switches all the same: execution
			       times are exact */
	abi_u32 max_frames; /* of a call chain that are looked at: ABI_MAX_FRAMES, or 1 to go
			       without unwinding */
	abi_u32 slows;	    /* experiments may slow the line instead (abi_setup.slow_q16) */
	abi_s64 threshold_ns;	    /* smaller debts wait for more */
	abi_s64 unused_wait_ns;	    /* most unused blocked time a thread keeps as credit */
	abi_s64 unused_wait_age_ns; /* ... and how long until it has forgotten all of it */
	abi_u64 slice_ns;	    /* hold: at most this long between two looks of the scheduler */
	abi_u64 max_pay_ns;	    /* one payment at most */
	abi_u32 inclusive; /* a sample belongs to all frames in scope, not to the first one only */
	abi_u32 has_sampled; /* some points count samples */
	abi_u32 event_point; /* of progress_event: which point it counts */
	abi_u32 traces;	     /* --trace-payments */
	abi_u32 waits;	     /* a bit for each kind of wait that is sampled, too: enum abi_wait */
	abi_u32 slopes;	     /* vectors are carried along */
	abi_u64 kernel_base; /* samples in the kernel are its functions', from here on; 0: they are
				the caller's */
};
_Static_assert(sizeof(struct abi_config) == 128, "abi_config");

/* What a thread waited for; ABI_WAIT_NONE: it executed. */
enum abi_wait {
	ABI_WAIT_NONE,
#define WAIT(name, text) ABI_WAIT_##name,
#include "shared/waits.def"
#undef WAIT
	ABI_WAITS
};

/* A process that is in scope, or whose children may be. */
#define ABI_PROC_IN 1	  /* in scope */
#define ABI_PROC_FOLLOW 2 /* its children are entered as it is */
#define ABI_PROC_SIGNALS \
	4		/* a handler of the payment signal is in place; BPF clears it at an exec */
#define ABI_PROC_TREE 8 /* below the process of --pid-tree: for the controller alone */
#define ABI_PROC_HELD \
	16 /* BPF: a thread of it was held for what it should have slept; cleared at an exec */
struct abi_proc {
	abi_u32 flags;
	abi_u32 space;	  /* its address space; BPF: ABI_SPACE_NONE after an exec */
	abi_u64 handler;  /* the address of the handler; 0: that of the library, which lets no other
			     replace it */
	abi_u32 numbers;  /* of the PID namespace whose numbers it knows: SHIM_NAMESPACE */
	abi_u32 reserved; /* 0 */
};
_Static_assert(sizeof(struct abi_proc) == 24, "abi_proc");

/* Where code is, whichever process runs it: the object's number + 1 above, the distance from the
 * object's base below. So samples of all processes add up, and a line has the same intervals in
 * every address space. The three bits on top say what a thread waited for there. */
#define ABI_CODE(object, pc) (((abi_u64)(object) + 1) << 32 | (abi_u32)(pc))
#define ABI_CODE_OBJECT(code) (((abi_u32)((code) >> 32) & 0x1fffffffU) - 1)
#define ABI_KERNEL_OBJECT 0x0fffffffU
#define ABI_NO_OBJECT 0x0ffffffeU /* memory of no file that is known */
#define ABI_CODE_PC(code) ((abi_u32)(code))
#define ABI_CODE_WAITS(kind, code) \
	((abi_u64)(kind) << 61 |   \
	 (code)) /* of a code of no wait; code 0: at a place that is in no scope */
#define ABI_CODE_WAIT(code) ((abi_u32)((code) >> 61))
#define ABI_CODE_PLACE(code) ((code) & ((1ULL << 61) - 1))
_Static_assert(ABI_WAITS <= 7, "three bits, and one more is the end of the last one's places");

/* What threads executed instead of the place that their samples belong to: code that it called.
 */
struct abi_elsewhere {
	abi_u64 code;	/* ABI_CODE of the place; 0: nothing in scope had called it */
	abi_u32 object; /* a number as in ABI_CODE, ABI_KERNEL_OBJECT or ABI_NO_OBJECT */
	abi_u32 reserved;
};
_Static_assert(sizeof(struct abi_elsewhere) == 16, "no padding");

/* Samples of one place, or of one chain. */
struct abi_sample_sum {
	abi_u64 count;
	abi_u64 ns; /* execution that they stand for */
};

/* How to find the caller's frame. */
enum abi_row_kind {
	ABI_ROW_NONE,	/* not known: by frame pointer, if there is one */
	ABI_ROW_RSP,	/* the CFA, which is the caller's rsp, is rsp + cfa_offset */
	ABI_ROW_RBP,	/* ... rbp + cfa_offset */
	ABI_ROW_PLT,	/* ... rsp + 8, and 8 more from the cfa_offset'th byte of a stub of 16 on */
	ABI_ROW_SIGNAL, /* all registers are in the ucontext at rsp */
	ABI_ROW_END,	/* there is no caller */
	ABI_ROW_DRAP,	/* the CFA is in memory at rbp + cfa_offset, the caller's rbp at rbp */
};
#define ABI_ROW_KIND 0x3f
/* In abi_row.kind: code of CPython, whose functions are in a list of its own (bpf/python.h); with
 * ABI_ROW_IN_SCOPE, memory that such functions are in, which no thread executes. */
#define ABI_ROW_PYTHON 0x40
#define ABI_ROW_IN_SCOPE 0x80 /* in abi_row.kind */

/* Holds from pc up to the next row's. The return address is at CFA - 8. */
struct abi_row {
	abi_u32 pc; /* from the module's base */
	short cfa_offset;
	signed char rbp_slot; /* the caller's rbp is at CFA + 8 * rbp_slot; 0: it has not changed */
	unsigned char kind;   /* enum abi_row_kind, ABI_ROW_PYTHON, ABI_ROW_IN_SCOPE */
};
_Static_assert(sizeof(struct abi_row) == 8, "abi_row");

/* An executable mapping. */
struct abi_module {
	abi_u64 start, end;	/* in the process, half-open */
	abi_u64 base;		/* what the rows' pc is relative to */
	abi_u32 row_lo, row_hi; /* its rows; several mappings of a file share them */
	abi_u32 object;		/* its number */
	abi_u32 pad;
};
_Static_assert(sizeof(struct abi_module) == 40, "abi_module");

/* Where CPython's state of threads is in an address space: offsets in its structures. */
struct abi_python {
	abi_u64 interpreter; /* the address of the pointer to the main interpreter; 0: no CPython */
	abi_u32 threads;     /* of an interpreter: its first thread's state */
	abi_u32 next, thread_id, frame; /* of a thread's state */
	abi_u32 is_indirect, current;	/* the frame is that which @frame points to a pointer to */
	abi_u32 instr, previous;	/* of a frame */
};
_Static_assert(sizeof(struct abi_python) == 40, "abi_python");

/* Which modules an address space has, in one word: how many, and from where on in the map. */
#define ABI_MODULES(first, n) ((abi_u64)(first) << 32 | (n))
#define ABI_MODULES_FIRST(m) ((abi_u32)((m) >> 32))
#define ABI_MODULES_N(m) ((abi_u32)(m))

struct abi_interval {
	abi_u64 lo, hi; /* half-open; of ABI_CODE */
};

/* What the experiment selected. Double-buffered: index (epoch >> 1) & 1. */
struct abi_setup {
	abi_u64 speedup_q16; /* 65536 = 100 % */
	abi_u64 quantum_ns;  /* not 0: what a thread earns is booked in multiples of this */
	abi_u64 slow_q16;    /* not 0: the line is really slowed by this, and speedup_q16 is 0 */
	abi_u64 settled_ns;  /* when the program has got used to it, CLOCK_MONOTONIC; 0: unknown */
	abi_u64 begun_ns;    /* when the experiment began, CLOCK_MONOTONIC */
	abi_u64 stretch_q16; /* by how much longer samples make everything that executes */
	abi_s64 begun_g;     /* the global delay then */
	abi_u64 for_cpu;     /* waiting for a CPU is selected */
	abi_u64 n_intervals;
	struct abi_interval intervals[ABI_MAX_INTERVALS];
};
_Static_assert(sizeof(struct abi_setup) == 72 + 16 * ABI_MAX_INTERVALS, "abi_setup");

/* A cost that nothing can measure where it arises, but which goes with one that can be: @ns when
 * that was @beside_ns, and @slope_q8 / 256 for each ns that it is more or less. Calibrated before
 * the program starts. */
struct abi_unseen {
	abi_s64 ns, beside_ns, slope_q8;
};
struct abi_costs {
	struct abi_unseen
		pay; /* what a payment stops its thread for beside what it measures itself; beside:
		      * the signal's way to its handler, 0 where the kernel pays */
	struct abi_unseen hit; /* what a selected sample that asks another to pay stops its own
				  thread for; beside: the asking */
	abi_s64 tick_ns;       /* what any other tick stops its thread for; 0: not known */
};

/* Written by the controller, and by BPF where it says so. */
struct abi_control {
	abi_u64 epoch; /* odd: an experiment runs; it changes by 1 at each begin and end */
	abi_u64 tgid;  /* the scope: one process; 0: nothing yet. Of many, one that is in scope and
			  so need not be looked up, or 0 */
	abi_u64 main;  /* the process whose execs are counted */
	abi_u64 execs; /* BPF: so far */
	abi_u64 signals_ok; /* a handler of the payment signal is in place; BPF clears it at an
			       exec. Of many: of each process, in abi_proc */
	abi_u64 handler;    /* ... as in abi_proc */
	abi_u64 exit_ns;    /* BPF: the last exit of a thread in scope */
	struct abi_costs costs;
	abi_u64 spacing_ns; /* between the ticks of a CPU, mean */
	abi_u64 resting; /* no experiment for a while: clocks are stopped, waits are not sampled */
	abi_u64 rested_ns; /* until when; no sample stands for what was executed before */
	struct abi_setup setups[2];
};
_Static_assert(sizeof(struct abi_control) == 136 + 2 * sizeof(struct abi_setup), "abi_control");

/* Two threads of the controller measure what a selected sample and a payment cost
 * (bpf/calibrate.h). */
struct abi_calibration {
	abi_u32 asker, payer; /* thread ids; payer 0: off */
	abi_u64 ticks;	      /* BPF: of the asker */
	abi_u64 kicks;	      /* BPF: those that had the payer pay */
	abi_u64 asking_ns; /* BPF: what those took of its own time, which it can measure by itself
			    */
};
_Static_assert(sizeof(struct abi_calibration) == 32, "abi_calibration");

/* G, on a cache line of its own: every CPU reads it all the time. */
struct abi_global {
	abi_s64 g;
	abi_s64 most;	 /* how far it may grow in this experiment; 0: without bounds */
	abi_u64 bounded; /* BPF: the experiment in which it would have grown further */
	abi_u64 pad[5];
};
_Static_assert(sizeof(struct abi_global) == 64, "abi_global");

/* The sampling clocks of a CPU are stopped while no thread in scope runs there. */
enum abi_idle {
	ABI_IDLE_RUNNING,
	ABI_IDLE_STOPPED, /* set by the controller */
	ABI_IDLE_CALLED,  /* by BPF: a thread in scope has come, the controller has been told */
	ABI_IDLE_WOKEN,	  /* by the controller: the clocks go, none has ticked yet */
};
#define ABI_IDLE_LOOPBACK                                                                          \
	0xffffffffU /* among the CPUs' numbers: the events that follow loopback packets are needed \
		       again */

/* A CPU's part in telling what a thread's own packets wake from other interrupts. A cache line
 * each. */
struct abi_loopback {
	abi_u32 sender; /* the thread whose own packets the network softirq is about to deliver, in
			   its name; 0: none */
	abi_u32 used;	/* a thread in scope was woken by packets of another one; cleared by the
			   controller */
	abi_u64 raised; /* softirqs seen */
	abi_u32 timer;	/* a timer has interrupted whatever is done there */
	abi_u32 pad[11];
};
_Static_assert(sizeof(struct abi_loopback) == 64, "abi_loopback");

/* What a CPU knows: rule R4's clock, and who runs there. Written by the CPU's own scheduler events.
 */
struct abi_cpu {
	abi_s64 local; /* local delay of the thread in scope that left last, advanced by the time of
			  tasks out of scope (R4) */
	abi_u64 since; /* the last switch */
	abi_u64 epoch;
	abi_u64 outside_ns;  /* cumulative time of tasks out of scope */
	abi_u64 scope_left;  /* when an in-scope thread left last */
	abi_u32 tid;	     /* in-scope thread on the CPU; 0: none */
	unsigned short idle; /* nobody is on the CPU */
	unsigned short
		passed; /* the in-scope thread that left last counts as not having been there */
	abi_s64 exec; /* what in-scope threads executed here since the last sample, without the time
			 they were stopped */
	abi_u64 sampled_at; /* when that was */
};
_Static_assert(sizeof(struct abi_cpu) == 64, "abi_cpu");

/* Outcomes of BPF code paths; names and words in counters.def. */
enum abi_counter {
#define COUNTER(name, text) COUNTER_##name,
#include "shared/counters.def"
#undef COUNTER
	COUNTER_MAX
};

/* Cumulative since load, one copy a CPU. */
#define ABI_SUM_U64 abi_u64
#define ABI_SUM_I64 abi_s64

struct abi_totals {
#define SUM(kind, name, json) ABI_SUM_##kind name;
#include "shared/sums.def"
#undef SUM
	abi_u64 samples_outside;  /* of the process, without an in-scope frame */
	abi_u64 samples_too_deep; /* ... of which the call chain was longer than is looked at */
	abi_u64 samples_cut;	  /* ... could not be followed to its end */
	abi_u64 wakes;		  /* edges of R3 */
	abi_u64 cpu_waits; /* in experiments: a thread got a CPU that another one in scope had kept
			      it waiting for */
	abi_u64 turns;	   /* samples of another thread than the one before, on whatever CPU */
	abi_u64 run_ns, wait_ns, outside_wait_ns; /* of in-scope threads: on a CPU, runnable,
						     runnable behind tasks out of scope */
	abi_u64 stopped_ns; /* of run_ns: in payments, and in asking for them */
	abi_u64 pause_latency[ABI_PAUSE_LATENCY_BUCKETS];
	abi_u64 counters[COUNTER_MAX];
};

/* A progress point's state on one CPU. */
struct abi_point {
	abi_u64 visits; /* of a sampled point: nanoseconds */
	abi_u64 epoch;	/* of the stamps below */
	abi_u64 first_ns, last_ns;
	abi_s64 first_local, last_local;
	abi_u64 first_visits;  /* what visits was at the first of the epoch */
	abi_u64 settled_epoch; /* of the three below: the same of the first one after
				  abi_setup.settled_ns */
	abi_u64 settled_ns;
	abi_s64 settled_local;
	abi_u64 settled_visits;
};
_Static_assert(sizeof(struct abi_point) == 88, "abi_point");

/* After so many visits in an experiment the last one's time is taken of one in so many: what it is
 * off by is less than a thousandth in the mean, the same at every speedup, and to take it is most
 * of what a visit costs. */
#define ABI_POINT_MANY 4096
#define ABI_POINT_SKIP 8

/* bpf/slopes.h. A vector has an entry for each place that is followed in this window. */
#define ABI_ENTRIES 64
enum abi_entry {
	ABI_ENTRY_REST,			    /* executing elsewhere */
	ABI_ENTRY_OWN,			    /* stopped by the profiler itself */
	ABI_ENTRY_WAITS,		    /* and a kind of wait */
	ABI_ENTRY_BESIDE = ABI_ENTRY_WAITS, /* there is no kind 0: behind tasks out of scope */
	ABI_ENTRY_CPU = ABI_ENTRY_WAITS + ABI_WAIT_CPU,
	ABI_ENTRY_FIRST = ABI_ENTRY_WAITS + ABI_WAITS, /* of places in code */
};
#define ABI_MAX_FOLLOWED (ABI_ENTRIES - ABI_ENTRY_FIRST) /* those places */
#define ABI_TICKED_STEP 8 /* of bpf/slopes.h's slope_ticked: a cache line for each CPU */
#define ABI_D_UNIT 256	  /* ns that 1 stands for: the sum of a window has room in 32 bits */
struct abi_vector {
	abi_u64 window; /* in which it was begun; in any other it is 0 */
	abi_u32 d[ABI_ENTRIES];
};
_Static_assert(sizeof(struct abi_vector) == 8 + 4 * ABI_ENTRIES, "abi_vector");

/* What a thread carries: since the window's begin, and since the begin of the interval that is
 * followed (bpf/latency.h), which is a window of its own. */
enum abi_since { ABI_SINCE_WINDOW, ABI_SINCE_BEGIN, ABI_SINCES };
struct abi_vectors {
	struct abi_vector since[ABI_SINCES];
};

/* What a CPU keeps (S3). */
struct abi_slope_cpu {
	struct abi_vectors left; /* what the thread in scope that left it last, at left_at, had */
	/* What threads that were woken from outside, and have waited for nobody since, executed on
	 * it since passed_from, and since the other one left. They put off who comes next by that
	 * alone: nobody has waited for their past, which is R4's first exception. */
	struct abi_vectors passed;
	abi_u64 left_at, passed_from;
	abi_u64 blocked_at; /* when a thread in scope last blocked on it */
};
_Static_assert(sizeof(struct abi_slope_cpu) == 2 * sizeof(struct abi_vectors) + 24,
	       "abi_slope_cpu");

/* Code that has an entry, sorted by lo: those of one window in the first half of the map, those of
 * the next one in the other. */
#define ABI_MAX_PLACES 4096
struct abi_place {
	abi_u64 lo, hi; /* half-open; of ABI_CODE */
	abi_u32 entry;
	abi_u32 pad;
};
_Static_assert(sizeof(struct abi_place) == 24, "abi_place");

/* Written by the controller. */
struct abi_slopes_control {
	abi_u64 window; /* number of the one that is open; 0: none */
	abi_u64 begun_ns;
	abi_u64 own_q16;   /* which share of intervals was our own so far, in 1/65536 */
	abi_u64 scale_q16; /* inclusive attribution: by what entries of places are multiplied later,
			      waits among them */
	abi_u32 n_places[2];
	abi_u32 half;			  /* which of the two lists of places samples look into */
	abi_u32 end_point;		  /* that the end of the program visits, plus 1; 0: none */
	abi_u32 visit_ns[ABI_MAX_POINTS]; /* what a visit of each point costs the visitor */
};
_Static_assert(sizeof(struct abi_slopes_control) == 48 + 4 * ABI_MAX_POINTS, "abi_slopes_control");

/* The interval of a latency point that is followed. Who finds `busy` 0 and sets it writes the rest;
 * the number is written last, and set to 0 before `busy` is. The controller does that before it
 * opens a window. */
struct abi_slope_interval {
	abi_u64 number; /* that no other one has; 0: none is followed */
	abi_u64 busy;
	abi_u64 last_number;
	abi_u64 begun_ns;
	abi_u64 value, tgid_latency; /* its key (bpf/latency.h) */
};
_Static_assert(sizeof(struct abi_slope_interval) == 48, "abi_slope_interval");

/* What visits of a point on one CPU found in a window. Times since its begin and entries are
 * multiplied in coarse units, so that a million visits have room. */
#define ABI_TIME_SHIFT 20 /* of ns */
#define ABI_D_SHIFT 6	  /* of ABI_D_UNIT */
struct abi_slopes {
	abi_u64 window;
	abi_u64 seen;	/* visits */
	abi_u64 visits; /* those that were added up */
	abi_u64 time;	/* ns since the window's begin, summed */
	abi_u64 time2;	/* ... squared, in coarse units */
	abi_u64 coarse; /* time in coarse units, each rounded */
	abi_u64 sum[ABI_ENTRIES];
	abi_u64 product[ABI_ENTRIES]; /* with the time, both in coarse units */
};
_Static_assert(sizeof(struct abi_slopes) == 48 + 16 * ABI_ENTRIES, "abi_slopes");

/* Where the code of sampled points is: samples in it count, by the time that they stand for.
 * Written between experiments. The first n_functions count wherever the walk from the thread's own
 * frame to the first one in scope meets them, the others in that one alone. */
#define ABI_MAX_SAMPLED 64
struct abi_sampled {
	abi_u64 n, n_functions;
	struct abi_sampled_interval {
		abi_u64 lo, hi; /* half-open */
		abi_u64 point;
	} intervals[ABI_MAX_SAMPLED];
};
_Static_assert(ABI_MAX_POINTS <= 64 && sizeof(struct abi_sampled) == 16 + 24 * ABI_MAX_SAMPLED,
	       "abi_sampled");

/* Instructions that leave a function at times only: a branch out of it, or a jump to where a
 * register or memory says. A probe's cookie has the point in its lower half, and the index here and
 * 1 more in its upper one; 0: each visit counts. */
#define ABI_MAX_EXITS 1024
#define ABI_EXIT_PARTS 4
#define ABI_NO_REGISTER 21
struct abi_exit {
	abi_u64 low[ABI_EXIT_PARTS],
		size[ABI_EXIT_PARTS]; /* the function's parts: where they begin, as a distance from
					 the instruction, modulo 2^64 */
	abi_u64 displacement;
	unsigned char by_flags; /* it leaves where this condition holds, numbered as in opcodes;
				   else where the target is in no part */
	unsigned char condition;
	unsigned char memory; /* the target is the word at base + index * scale + displacement; else
				 base has it */
	unsigned char base, index,
		scale; /* registers: words of struct pt_regs, or ABI_NO_REGISTER */
	unsigned char pad[2];
};
_Static_assert(sizeof(struct abi_exit) == 16 * ABI_EXIT_PARTS + 16, "abi_exit");

/* Points that are system calls, by number: the point's index and 1 more; 0: none. */
#define ABI_MAX_SYSCALLS 1024
struct abi_syscalls {
	unsigned char enter[ABI_MAX_SYSCALLS], leave[ABI_MAX_SYSCALLS];
};
_Static_assert(ABI_MAX_POINTS < 255 && sizeof(struct abi_syscalls) == 2 * ABI_MAX_SYSCALLS,
	       "abi_syscalls");

/* What an inclusive sample belongs to: different addresses, innermost first; 0 after the last. */
struct abi_chain {
	abi_u64 sites[ABI_CHAIN_SITES];
};
_Static_assert(sizeof(struct abi_chain) == 512, "abi_chain");

/* One thread's books at the end of an experiment, as the task iterator writes them. */
struct abi_thread_record {
	abi_u32 tid;
	abi_u32 pad;
	abi_s64 owed;	/* G - local */
	abi_s64 change; /* of local since the thread entered the experiment */
	abi_s64 hits, paid, credited, rq_credited;
};
_Static_assert(sizeof(struct abi_thread_record) == 56, "abi_thread_record");
