// SPDX-License-Identifier: BSD-2-Clause
/* A scope of many processes: BPF enters and removes them (bpf/edges.h), here their address spaces
 * are found out. Processes that were forked from one another share a space for as long as their
 * mappings are the same. */
#include "experiment/session/internal.h"

#include "base/error.h"
#include "base/memory.h"
#include "program/code/tables.h"
#include "cozbpf.skel.h"
#include "kernel/map_call.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int session_processes_fd(const struct session *s)
{
	return bpf_map__fd(s->skel->maps.procs);
}

/* Of what is read and written back: the process that hands on the library writes, too, until it is
 * killed. */
static int make_lock(struct session *s)
{
	pthread_mutexattr_t a;
	void *p = mmap(NULL, sizeof(*s->procs_lock), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return -errno;
	s->procs_lock = p;
	(void)pthread_mutexattr_init(&a);
	(void)pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	(void)pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	return -pthread_mutex_init(s->procs_lock, &a);
}

static void lock(const struct session *s)
{
	if (pthread_mutex_lock(s->procs_lock) == EOWNERDEAD)
		(void)pthread_mutex_consistent(s->procs_lock);
}

static void unlock(const struct session *s)
{
	(void)pthread_mutex_unlock(s->procs_lock);
}

static int on_exec(void *arg, void *data, size_t size)
{
	struct session *s = arg;
	unsigned int tgid;

	if (size != sizeof(tgid))
		return 0;
	memcpy(&tgid, data, sizeof(tgid));
	s->execs[s->n_execs++] = (pid_t)tgid;
	return s->n_execs < sizeof(s->execs) / sizeof(*s->execs)
		       ? 0
		       : -EAGAIN; /* the rest is asked for again */
}

int processes_open(struct session *s, struct error *e)
{
	int r;

	if (!s->options.config.many)
		return 0;
	r = make_lock(s);
	if (r < 0)
		return fail(e, -r, "out of memory");
	s->ring = ring_buffer__new(bpf_map__fd(s->skel->maps.execs), on_exec, s, NULL);
	return s->ring ? 0
		       : fail(e, errno, "cannot read what programs are started: %s",
			      strerror(errno));
}

void processes_close(struct session *s)
{
	ring_buffer__free(s->ring);
	if (s->procs_lock)
		(void)munmap(s->procs_lock, sizeof(*s->procs_lock));
	s->procs_lock = NULL;
	s->ring = NULL;
}

int session_execs_fd(const struct session *s)
{
	return s->ring ? ring_buffer__epoll_fd(s->ring) : -1;
}

size_t session_execs(struct session *s, const pid_t **ret)
{
	s->n_execs = 0;
	if (s->ring)
		(void)ring_buffer__consume(s->ring);
	*ret = s->execs;
	return s->n_execs;
}

static int get(const struct session *s, pid_t pid, struct abi_proc *ret)
{
	unsigned int tgid = (unsigned int)pid;

	return bpf_map_lookup_elem(session_processes_fd(s), &tgid, ret) < 0 ? -errno : 0;
}

static int put(const struct session *s, pid_t pid, const struct abi_proc *p, unsigned long long how)
{
	unsigned int tgid = (unsigned int)pid;

	return bpf_map_update_elem(session_processes_fd(s), &tgid, p, how) < 0 ? -errno : 0;
}

#define QUOTAS_EACH_TIME 16

void quotas_follow(struct session *s)
{
	unsigned int next;

	if (!s->options.config.many) {
		quotas_look(s->quotas, (pid_t)s->skel->bss->control.tgid);
		return;
	}
	for (int i = 0; i < QUOTAS_EACH_TIME; i++) {
		if (bpf_map_get_next_key(session_processes_fd(s),
					 s->quotas_at ? &s->quotas_at : NULL, &next) < 0) {
			s->quotas_at = 0;
			return;
		}
		s->quotas_at = next;
		quotas_look(s->quotas, (pid_t)next);
	}
}

double session_quota(struct session *s, const char **ret_path)
{
	quotas_follow(s);
	return quotas_smallest(s->quotas, ret_path);
}

int session_take(struct session *s, pid_t pid, unsigned int flags, struct error *e)
{
	struct abi_proc p = {.space = ABI_SPACE_NONE};
	int r;

	lock(s);
	if (get(s, pid, &p) == 0)
		flags |= p.flags & (ABI_PROC_SIGNALS | ABI_PROC_HELD);
	p.flags = flags;
	if ((pid_t)s->skel->bss->control.tgid == pid && !(flags & ABI_PROC_IN))
		s->skel->bss->control.tgid = 0;
	r = put(s, pid, &p, BPF_ANY);
	unlock(s);
	if (r == -E2BIG)
		return fail(e, E2BIG, "too many processes are in scope; at most %d",
			    ABI_MAX_PROCESSES);
	return r < 0 ? fail(e, -r, "cannot enter process %d into the scope: %s", (int)pid,
			    strerror(-r))
		     : 0;
}

int session_flags(const struct session *s, pid_t pid, unsigned int *ret)
{
	struct abi_proc p;
	int r = get(s, pid, &p);

	if (r == 0)
		*ret = p.flags;
	return r;
}

void processes_allow_signals(struct session *s, pid_t pid, const volatile unsigned long long *execs)
{
	unsigned long long before = *execs;

	session_set_handler(s, pid, &(struct abi_proc){0});
	if (*execs != before)
		session_set_handler(s, pid, NULL);
}

void session_set_handler(struct session *s, pid_t pid, const struct abi_proc *h)
{
	struct abi_control *c = &s->skel->bss->control;
	struct abi_proc p;

	if (!s->options.config.many) {
		c->handler = h ? h->handler : 0;
		c->signals_ok = h != NULL;
		return;
	}
	lock(s);
	if (get(s, pid, &p) < 0) {
		unlock(s);
		return;
	}
	p.flags = h ? p.flags | ABI_PROC_SIGNALS : p.flags & ~(unsigned int)ABI_PROC_SIGNALS;
	p.handler = h ? h->handler : 0;
	p.numbers = h ? h->numbers : 0;
	(void)put(s, pid, &p, BPF_EXIST);
	unlock(s);
}

void processes_calibrate(struct session *s, bool begins)
{
	struct abi_proc p = {.flags = ABI_PROC_SIGNALS, .space = ABI_SPACE_NONE};

	if (!s->options.config.many)
		return;
	if (begins)
		(void)put(s, getpid(), &p, BPF_ANY);
	else
		session_leave(s, getpid());
}

void session_leave(struct session *s, pid_t pid)
{
	unsigned int tgid = (unsigned int)pid;

	if ((pid_t)s->skel->bss->control.tgid == pid)
		s->skel->bss->control.tgid = 0;
	(void)bpf_map_delete_elem(session_processes_fd(s), &tgid);
}

int session_processes(const struct session *s, struct session_process **ret, size_t *ret_n)
{
	_cleanup_free_ unsigned int *keys = xcalloc(ABI_MAX_PROCESSES, sizeof(*keys));
	_cleanup_free_ struct abi_proc *values = xcalloc(ABI_MAX_PROCESSES, sizeof(*values));
	unsigned int batch, n = ABI_MAX_PROCESSES;
	struct session_process *all;
	_map_call_ bool raised = map_call_begin();

	if (bpf_map_lookup_batch(session_processes_fd(s), NULL, &batch, keys, values, &n, NULL) <
		    0 &&
	    errno != ENOENT)
		return -errno;
	all = xcalloc(n, sizeof(*all));
	for (unsigned int i = 0; i < n; i++)
		all[i] = (struct session_process){(pid_t)keys[i], values[i].flags, values[i].space};
	*ret = all;
	*ret_n = n;
	return 0;
}

/* How many processes run in @space. */
static size_t users(const struct session *s, unsigned int space)
{
	struct session_process *all;
	size_t n, used = 0;

	if (session_processes(s, &all, &n) < 0)
		return SIZE_MAX;
	for (size_t i = 0; i < n; i++)
		used += all[i].space == space;
	free(all);
	return used;
}

int session_look(struct session *s, pid_t pid, struct error *e)
{
	struct abi_proc p;
	size_t space;
	bool changed, fresh;
	int r = get(s, pid, &p);

	if (r < 0)
		return fail(e, ESRCH, "process %d is not in scope", (int)pid);
	if (p.space != ABI_SPACE_NONE && code_map_same_space(s->points.code, p.space, pid))
		return session_refresh_code(s);
	fresh = p.space == ABI_SPACE_NONE || users(s, p.space) > 1;
	space = p.space;
	if (fresh) {
		r = code_map_add_space(s->points.code, &space);
		if (r < 0) {
			s->n_without_space++;
			return fail(e, -r,
				    "too many processes that differ in what they map; at most %d",
				    ABI_MAX_SPACES);
		}
	}
	r = code_map_refresh(s->points.code, space, pid, &changed, e);
	if (r == 0)
		r = unwind_set(s, space, e);
	if (r < 0) {
		if (fresh)
			code_map_drop_space(s->points.code, space);
		return r;
	}
	if (!fresh)
		return 0;
	/* What BPF has changed since is of another program: that one's exec is still to be read. */
	lock(s);
	r = get(s, pid, &p);
	p.space = (unsigned int)space;
	if (r == 0)
		r = put(s, pid, &p, BPF_EXIST);
	unlock(s);
	return r < 0 && r != -ENOENT
		       ? fail(e, -r, "cannot enter process %d: %s", (int)pid, strerror(-r))
		       : 0;
}

int session_refresh_code(struct session *s)
{
	bool changed = false;

	code_map_cut(s->points.code, &changed);
	return changed ? unwind_set(s, SIZE_MAX, NULL) : 0;
}

void session_maintain(struct session *s)
{
	struct session_process *all;
	size_t n, n_spaces = s->points.code ? s->points.code->n_spaces : 0;
	_cleanup_free_ unsigned char *used = xcalloc(n_spaces, 1);

	if (session_processes(s, &all, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		if (all[i].space < n_spaces)
			used[all[i].space] = 1;
	/* A child that was entered while we looked is seen the next time. */
	for (size_t i = 0; i < n_spaces; i++) {
		s->space_idle[i] = (unsigned char)(used[i] || !s->points.code->spaces[i].used
							   ? 0
							   : s->space_idle[i] + 1);
		if (s->space_idle[i] < 2)
			continue;
		unwind_drop(s, i);
		code_map_drop_space(s->points.code, i);
		s->space_idle[i] = 0;
	}
	free(all);
}

void session_cpu_times(struct session *s, uint64_t *ret_scope_ns, uint64_t *ret_outside_ns)
{
	struct abi_totals t;
	uint64_t ns = 0;

	for (unsigned int cpu = 0; cpu < s->nr_cpus; cpu++)
		ns += s->skel->bss->cpus[cpu].outside_ns;
	*ret_outside_ns = ns;
	*ret_scope_ns = session_totals(s, &t) < 0 ? 0 : t.run_ns;
}
