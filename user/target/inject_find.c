// SPDX-License-Identifier: BSD-2-Clause
/* What has to be known of a process before a handler is put into it. */
#include "target/inject.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "base/proc.h"
#include "shared/shim_abi.h"
#include "target/maps.h"
#include "target/process.h"
#include "target/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PIECE 65536
#define VDSO_ROOM 8192
#define SLOTS_NAME "anon_inode:bpf-map"

int inject_find_syscall(const unsigned char *code, size_t size, size_t *ret)
{
	static const unsigned char instruction[] = {0x0f, 0x05};
	const unsigned char *found = memmem(code, size, instruction, sizeof(instruction));

	if (!found)
		return -ENOENT;
	*ret = (size_t)(found - code);
	return 0;
}

/* Of @size bytes from @start; they may be fewer. */
static int search(pid_t pid, uint64_t start, uint64_t size, uint64_t *ret)
{
	_cleanup_free_ unsigned char *code = malloc(PIECE);
	size_t at;

	if (!code)
		return -ENOMEM;
	/* One that lies across two pieces is missed: there are others. */
	for (uint64_t done = 0; done < size; done += PIECE) {
		ssize_t n = process_read_memory(pid, start + done, code,
						size - done < PIECE ? size - done : PIECE);

		if (n <= 0)
			return n < 0 ? -errno : -ENOENT;
		if (inject_find_syscall(code, (size_t)n, &at) == 0) {
			*ret = start + done + at;
			return 0;
		}
	}
	return -ENOENT;
}

int inject_syscall_of(pid_t pid, uint64_t *ret)
{
	struct map_list maps = {0};
	pid_t tid = proc_thread(pid);
	uint64_t vdso = process_vdso(tid);
	int r;

	if (!process_is_live(tid))
		return -ESRCH;
	/* The vDSO makes system calls where it cannot do without. */
	if (vdso && search(tid, vdso, VDSO_ROOM, ret) == 0)
		return 0;
	r = map_list_read(tid, &maps, NULL);
	if (r < 0)
		return r;
	r = -ENOENT;
	for (size_t i = 0; r < 0 && i < maps.n; i++)
		r = search(tid, maps.entries[i].start, maps.entries[i].end - maps.entries[i].start,
			   ret);
	map_list_free(&maps);
	return r;
}

int inject_numbers_of(pid_t pid, unsigned int *ret)
{
	struct stat there, here;
	char link[64];

	(void)snprintf(link, sizeof(link), "/proc/%d/ns/pid", (int)pid);
	if (stat(link, &there) < 0 || stat("/proc/self/ns/pid", &here) < 0)
		return -ESRCH;
	*ret = there.st_ino == here.st_ino ? 0 : SHIM_NAMESPACE(there.st_ino);
	return 0;
}

/* Does a line of @maps begin at @start, with these rights, and name this and no more? A file can be
 * called anything, but its path begins with a slash. */
static bool has_mapping(const char *maps, uint64_t start, const char *rights, const char *name)
{
	char begin[32];
	size_t n = (size_t)snprintf(begin, sizeof(begin), "%llx-", (unsigned long long)start);

	for (const char *line = maps; line && *line;
	     line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		const char *end = strchrnul(line, '\n'),
			   *space = memchr(line, ' ', (size_t)(end - line));
		size_t length = (size_t)(end - line), named = name ? strlen(name) : 0;

		if (strncmp(line, begin, n) != 0)
			continue;
		return space && strncmp(space + 1, rights, strlen(rights)) == 0 &&
		       (!name ||
			(length > named && end[-(ptrdiff_t)named - 1] == ' ' &&
			 strncmp(end - named, name, named) == 0 && !memchr(line, '/', length)));
	}
	return false;
}

/* A program that was injected has a say in the addresses: they could be those of others' code. */
static bool has_blob(pid_t pid, const struct inject_layout *l)
{
	struct shim_blob head;

	return process_read_memory(pid, l->blob, &head, sizeof(head)) == (ssize_t)sizeof(head) &&
	       head.magic == SHIM_BLOB_MAGIC && head.slots == l->slots;
}

const struct inject_layout *inject_layout_in(pid_t pid, const char *maps,
					     const struct inject_layout *known, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (has_mapping(maps, known[i].blob, "r-xp", NULL) &&
		    has_mapping(maps, known[i].slots, "rw-s", SLOTS_NAME) &&
		    has_blob(pid, &known[i]))
			return &known[i];
	return NULL;
}

const struct inject_layout *inject_layout_of(pid_t pid, const struct inject_layout *known, size_t n)
{
	pid_t tid = n ? proc_thread(pid) : 0;
	_cleanup_free_ char *maps = tid ? process_text(tid, "maps") : NULL;

	return maps ? inject_layout_in(tid, maps, known, n) : NULL;
}

/* Calls that begin again by themselves, with what is left of their time. */
static bool restarts(long number)
{
	static const long calls[] = {SYS_futex, SYS_nanosleep, SYS_clock_nanosleep, SYS_poll,
				     SYS_ppoll, SYS_wait4,     SYS_waitid,	    SYS_pause};

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (calls[i] == number)
			return true;
	return false;
}

void inject_thread_place(char state, const char *syscall, struct inject_thread *ret)
{
	unsigned long long sp, pc;
	long number = -1;

	ret->known = false;
	ret->rank = state == 'R' || state == 'T' || state == 't' ? 1 : state == 'S' ? 4 : 5;
	if (sscanf(syscall, "%ld %*x %*x %*x %*x %*x %*x %llx %llx", &number, &sp, &pc) != 3 ||
	    number < 0)
		return;
	/* In a call, and not on its way out of it into a handler: those signals are raised while
	 * threads compute. */
	ret->known = state == 'S' || state == 'T' || state == 'D';
	ret->at = pc;
	if (state == 'S')
		ret->rank = restarts(number) ? 0 : remote_begins_again(number) ? 2 : 3;
}

/* Would the call go on by restart_syscall? A filter that was not written for that ends the program.
 */
static bool restarts_by_another(const char *syscall)
{
	unsigned long long fourth;
	long number;

	return sscanf(syscall, "%ld %*x %*x %*x %llx", &number, &fourth) == 2 &&
	       (number == SYS_nanosleep || number == SYS_clock_nanosleep || number == SYS_poll ||
		(number == SYS_futex && fourth /* a time-out */));
}

struct threads {
	pid_t pid;
	int signo;
	struct inject_thread *all;
	size_t n;
};

static int add_thread(pid_t tid, void *arg)
{
	struct threads *t = arg;
	_cleanup_free_ char *status = NULL, *call = NULL;
	struct inject_thread *new;
	const char *state;
	char name[64];

	if (array_room(t->all, t->n) < 0)
		return -ENOMEM;
	(void)snprintf(name, sizeof(name), "task/%d/syscall", (int)tid);
	call = process_text(t->pid, name);
	(void)snprintf(name, sizeof(name), "task/%d/status", (int)tid);
	status = process_text(t->pid, name);
	state = status ? strstr(status, "\nState:\t") : NULL;
	if (!state || state[8] == 'Z' || state[8] == 'X')
		return 0;
	new = &t->all[t->n++];
	*new = (struct inject_thread){
		.tid = tid,
		.blocking = process_field(status, "\nSigBlk:", 16) >> (t->signo - 1) & 1,
		.filtered = process_field(status, "\nSeccomp:", 10) != 0};
	inject_thread_place(state[8], call ? call : "", new);
	if (new->filtered && call &&restarts_by_another(call))
		new->rank = 5;
	return 0;
}

static int by_rank(const void *a, const void *b)
{
	const struct inject_thread *x = a, *y = b;

	return x->filtered != y->filtered ? x->filtered - y->filtered : x->rank - y->rank;
}

int inject_threads(pid_t pid, int signo, struct inject_thread **ret, size_t *ret_n)
{
	struct threads t = {.pid = pid, .signo = signo};
	char path[64];
	int r;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	r = proc_each_number(path, add_thread, &t);
	if (r < 0 || !t.n) {
		free(t.all);
		return r == -ENOENT || r == 0 ? -ESRCH : r;
	}
	qsort(t.all, t.n, sizeof(*t.all), by_rank);
	*ret = t.all;
	*ret_n = t.n;
	return 0;
}

static bool all_filter(pid_t pid, int signo)
{
	_cleanup_free_ struct inject_thread *threads = NULL;
	size_t n;

	return inject_threads(pid, signo, &threads, &n) == 0 && threads[0].filtered;
}

int inject_allowed(pid_t pid, int signo, bool ours, struct error *e)
{
	_cleanup_free_ char *status = process_text(pid, "status");
	char name[64] = "";
	uint64_t tracer;

	if (!status || sscanf(status, "Name: %63[^\n]", name) != 1)
		return fail(e, ESRCH, "process %d ended while we attached", (int)pid);
	tracer = process_field(status, "\nTracerPid:", 10);
	if (tracer)
		return fail(e, EPERM,
			    "process %d (%s) is traced by process %llu, perhaps a debugger: no "
			    "payment handler can be injected into it "
			    "meanwhile",
			    (int)pid, name, (unsigned long long)tracer);
	/* Others are left alone by the kernel's side (bpf/pay.h). */
	if (all_filter(pid, signo))
		return fail(e, EPERM,
			    "process %d (%s) filters its system calls (seccomp): a payment handler "
			    "that is injected into it could be its "
			    "death; Linux 6.18 needs none",
			    (int)pid, name);
	if (!ours && process_field(status, "\nSigCgt:", 16) >> (signo - 1) & 1)
		return fail(e, EBUSY,
			    "process %d (%s) uses signal %d itself: name another one for pauses "
			    "with --signal",
			    (int)pid, name, signo);
	return 0;
}
