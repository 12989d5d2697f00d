/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel side of a run: BPF programs, sampling events, probes. It holds all BPF descriptors;
 * when they close, by whatever end of the process, every effect on the program ends. */
#pragma once

#include "points/points.h"

#include <stdbool.h>
#include <sys/types.h>

struct code_map;
struct elf_object;
struct error;
struct feature;
struct session;

struct session_options {
	/* The caller's are payer, signo, sync, many, all_execs, kernel_base (code_kernel_base),
	 * inclusive, slows, waits and slopes; session_open sets the rest. Of many, the scope is
	 * what session_take enters, and what comes from that. Waits take task work and
	 * ABI_SYNC_SCHED; that for a CPU takes ABI_PAY_HOLD, too. */
	struct abi_config config;
	unsigned int
		rate_hz; /* samples a second and CPU; 0: as the program needs (session/rate.h) */
	bool light;	 /* ... or as often as nobody notices (rate_light) */
	uint64_t seed;	 /* of the sampling periods */
	bool one_only;	 /* of many: children of the process that session_attach names are not
			    followed */
	struct points_options points; /* sample_ns is set by session_open; disabled is for all of
				       * the session */
	const char *trace; /* a new file to write every stop to that is booked (trace.c), or NULL */
	bool calibrate;	   /* anew, whatever an earlier run has found */
};

/* May this user load BPF programs? -EPERM, with what is missing. A run asks before all else that
 * takes privileges, since what that says of a missing one helps nobody who lacks these. */
int session_check_rights(struct error *e);
/* Opens and loads the programs. Nothing is attached. On success *ret is the caller's
 * (session_close). */
int session_open(const struct session_options *o, struct session **ret, struct error *e);
void session_close(struct session *s); /* NULL is allowed */
/* To be called before a fork whose child is to close it: waits for the thread that opening it may
 * have left, which the child does not have. */
void session_settle(struct session *s);
/* Tries every feature for real, and loads what runs would load. The caller's (free).
 * @disabled: comma list of features to treat as missing, or NULL. */
struct feature *session_probe(const char *disabled, size_t *ret_n);
/* Has payments and hits cost what they really do: measures it (half a second, on two CPUs), unless
 * an earlier run since boot has. Before session_attach. Without it payments are only a little less
 * exact. */
void session_calibrate(struct session *s);

/* The map of payment slots, for the shim to map. Owned by the session. */
int session_slots_fd(const struct session *s);
/* Names @pid as the scope (of many: as one process of it; 0: none yet), attaches the scheduler's
 * edges and starts sampling. */
int session_attach(struct session *s, pid_t pid, struct error *e);
/* Names and intervals of samples come from @map, and it defines which addresses are in scope and
 * how stacks are walked; it must outlive the session. Call again when its mappings changed. Takes
 * the unwinding tables out of the map. */
int session_set_code(struct session *s, struct code_map *map, struct error *e);

/* @pid has a handler of the payment signal now, the one that handler and numbers of @h say (0: the
 * library's), and its children inherit it; NULL: it has none after all. A child that has
 * session_processes_fd may call it, and session_flags, too. */
void session_set_handler(struct session *s, pid_t pid, const struct abi_proc *h);

/* A scope of many processes. What is entered leaves by itself when it ends. */
struct session_process {
	pid_t pid;
	unsigned int flags; /* ABI_PROC_* */
	unsigned int space; /* its address space, or ABI_SPACE_NONE */
};
/* The smallest CPU quota of a control group with processes in scope, in CPUs, and the group's
 * directory, which is the session's; 0: there is none, as far as is known. */
double session_quota(struct session *s, const char **ret_path);
/* Enters @pid, or changes what it is: @flags ABI_PROC_IN: in scope; ABI_PROC_FOLLOW: so will its
 * children be, as it is. */
int session_take(struct session *s, pid_t pid, unsigned int flags, struct error *e);
/* The flags of @pid; -ENOENT: it is not entered. */
int session_flags(const struct session *s, pid_t pid, unsigned int *ret);
void session_leave(struct session *s, pid_t pid);
/* The map that they are in. */
int session_processes_fd(const struct session *s);
/* All that are entered now. The array is the caller's. */
int session_processes(const struct session *s, struct session_process **ret, size_t *ret_n);
/* Reads what @pid has mapped, if that is not what it was. To be called after an exec, and now and
 * then. */
int session_look(struct session *s, pid_t pid, struct error *e);
/* Takes in what naming has found out of the code that all have mapped. */
int session_refresh_code(struct session *s);
/* Readable when processes have started other programs; -1: not a scope of many. */
int session_execs_fd(const struct session *s);
/* Which have, since the last call; owned by the session. Call until there are none. */
size_t session_execs(struct session *s, const pid_t **ret);
/* Forgets the address spaces in which no process runs any more, at the second call that finds none:
 * a few times a second. */
void session_maintain(struct session *s);
/* CPU time since session_attach of what is in scope, pauses by hold included, and of all else but
 * the idle time. */
void session_cpu_times(struct session *s, uint64_t *ret_scope_ns, uint64_t *ret_outside_ns);
/* Has what our programs in the kernel take be measured from now on, between experiments; where the
 * kernel does not let us it is not known. */
void session_measure_own(struct session *s);
/* CPUs that they kept busy, so far: 0.01 is a hundredth of one. The kernel's way to them,
 * interrupts above all, is not in it, nor are pauses. NaN: not known. */
double session_own_share(struct session *s);
/* --sync pthread: probes on the shim's own places in its wrappers of the C library's calls, after
 * session_attach. @image are the library's bytes, @path a file of them that the program maps (it
 * can be one in /proc/PID/fd). */
int session_sync_shim(struct session *s, const void *image, size_t size, const char *path,
		      struct error *e);
/* Has the dynamic linker of @program, which is about to run (in the process of session_attach
 * only), tell when it has mapped or unmapped libraries: after session_attach. Without it they must
 * be looked for. -ENOENT: a static executable, or a linker that does not tell. */
int session_watch_loader(struct session *s, const struct elf_object *program, struct error *e);
/* Readable when it has; -1: not watched. Owned by the session. */
int session_loader_fd(const struct session *s);
/* Has it, since the last call? */
bool session_loader_pending(struct session *s);

/* From now on the sampling clocks of CPUs where no thread in scope runs are stopped. After
 * session_attach. The caller must then call session_serve_clocks whenever session_clocks_fd is
 * readable: that starts the clocks of CPUs where such a thread has come. A session_clocks_fd of -1
 * says that no clock is stopped, as after a failure, which costs CPU time and nothing else. */
int session_idle_clocks(struct session *s, struct error *e);
int session_clocks_fd(const struct session *s);
void session_serve_clocks(struct session *s);

/* Its progress points, to add to. Owned by the session. */
struct points *session_points(struct session *s);
/* The end of the program that session_attach named is a visit of @point, as slopes have it. */
void session_slopes_end_point(struct session *s, size_t point);
/* Called often: takes in coz.h points that have appeared, and lets payment signals be used once the
 * shim is in place. */
void session_find_counters(struct session *s);

/* The calls of experiment/backend.h; the backend pointer is the session. */
extern const struct backend_ops session_backend;

/* What BPF and the controller tell each other of a run: the last exit, for example, and what
 * payments and samples cost. */
const struct abi_control *session_control(const struct session *s);
/* The counters of all CPUs. Negative errno: *ret is left alone. */
int session_totals(struct session *s, struct abi_totals *ret);
/* What threads executed instead of the place that their samples belong to, since the last call. */
struct session_elsewhere {
	uint64_t code;	 /* of the place; 0: of none */
	uint32_t object; /* as in struct abi_elsewhere */
	uint64_t count;	 /* samples */
};
int session_elsewhere(struct session *s, struct session_elsewhere **ret, size_t *ret_n);
/* Non-zero outcome counters in words, one a line; "" if all is well. The caller frees. */
char *session_counters(struct session *s);
/* Gives sampling clocks new random periods where that is due at @now. Returns when to call next.
 * All times ns, CLOCK_MONOTONIC. */
uint64_t session_vary_clocks(struct session *s, uint64_t now);
/* The mean period of a sampling event divided by events per CPU: nanoseconds a sample stands for on
 * average, as it is now. */
uint64_t session_period_ns(const struct session *s);
