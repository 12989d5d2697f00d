// SPDX-License-Identifier: BSD-2-Clause
/* --sync pthread: the probes that say who waits for whom, on the C library's calls or on the shim's
 * own places in its wrappers of them. */
#include "session/internal.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "cozbpf.skel.h"
#include "elf/code_place.h"
#include "elf/object.h"
#include "kernel/probe.h"
#include "kernel/uprobes.h"
#include "target/maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MAX_PLACES 128
#define SITE "_cozbpf_site_"

#ifndef ENOTSUPP
#define ENOTSUPP 524 /* the kernel's own */
#endif

struct sync {
	struct shim_slot *slots; /* all of the map */
	struct bpf_link **links;
	size_t n_links;
};

/* What the C library's functions do. A thread's own end is in none of the documented ones. Its
 * beginning is a function without a name for others, seen in executables that have it linked in;
 * elsewhere a thread begins when it is first seen. sigwait and sigwaitinfo are done by
 * sigtimedwait. */
static const struct {
	const char *function;
	unsigned int does;
} calls[] = {
	{"pthread_mutex_unlock", ABI_CALL_WAKES},
	{"pthread_rwlock_unlock", ABI_CALL_WAKES},
	{"pthread_spin_unlock", ABI_CALL_WAKES},
	{"pthread_cond_signal", ABI_CALL_WAKES},
	{"pthread_cond_broadcast", ABI_CALL_WAKES},
	{"sem_post", ABI_CALL_WAKES},
	{"pthread_create", ABI_CALL_WAKES},
	{"pthread_cancel", ABI_CALL_WAKES},
	{"pthread_kill", ABI_CALL_WAKES},
	{"pthread_sigqueue", ABI_CALL_WAKES},
	{"kill", ABI_CALL_WAKES},
	{"tgkill", ABI_CALL_WAKES},
	{"sigqueue", ABI_CALL_WAKES},
	{"__call_tls_dtors", ABI_CALL_WAKES},
	{"start_thread", 0},
	{"pthread_cond_wait", ABI_CALL_WAKES | ABI_CALL_BLOCKS},
	{"pthread_cond_timedwait", ABI_CALL_WAKES | ABI_CALL_BLOCKS},
	{"pthread_cond_clockwait", ABI_CALL_WAKES | ABI_CALL_BLOCKS},
	{"pthread_barrier_wait", ABI_CALL_WAKES | ABI_CALL_BLOCKS},
	{"pthread_mutex_lock", ABI_CALL_BLOCKS},
	{"pthread_mutex_timedlock", ABI_CALL_BLOCKS},
	{"pthread_mutex_clocklock", ABI_CALL_BLOCKS},
	{"pthread_rwlock_rdlock", ABI_CALL_BLOCKS},
	{"pthread_rwlock_timedrdlock", ABI_CALL_BLOCKS},
	{"pthread_rwlock_clockrdlock", ABI_CALL_BLOCKS},
	{"pthread_rwlock_wrlock", ABI_CALL_BLOCKS},
	{"pthread_rwlock_timedwrlock", ABI_CALL_BLOCKS},
	{"pthread_rwlock_clockwrlock", ABI_CALL_BLOCKS},
	{"pthread_spin_lock", ABI_CALL_BLOCKS},
	{"pthread_join", ABI_CALL_BLOCKS},
	{"pthread_timedjoin_np", ABI_CALL_BLOCKS},
	{"pthread_clockjoin_np", ABI_CALL_BLOCKS},
	{"sem_wait", ABI_CALL_BLOCKS | ABI_CALL_MINUS},
	{"sem_timedwait", ABI_CALL_BLOCKS | ABI_CALL_MINUS},
	{"sem_clockwait", ABI_CALL_BLOCKS | ABI_CALL_MINUS},
	{"sigtimedwait", ABI_CALL_BLOCKS | ABI_CALL_MINUS | ABI_CALL_SIGNAL},
};

struct place {
	const char *function;
	uint64_t vaddr;
	unsigned int does;
};

struct places {
	struct place all[MAX_PLACES];
	size_t n;
};

/* A name can be several functions (versions), and a function can have several names. */
static int take_place(const struct elf_symbol *sym, void *arg)
{
	struct places *p = arg;

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		if (strcmp(sym->name, calls[i].function) != 0)
			continue;
		for (size_t j = 0; j < p->n; j++)
			if (p->all[j].vaddr == sym->addr)
				return 0;
		if (p->n == MAX_PLACES)
			return 1;
		p->all[p->n++] = (struct place){calls[i].function, sym->addr, calls[i].does};
		return 0;
	}
	return 0;
}

void sync_configure(struct session *s)
{
	bool calls_only = s->options.sync == ABI_SYNC_PTHREAD;
	struct bpf_program *edges[] = {
		s->skel->progs.edge_newtask, s->skel->progs.edge_exec,	 s->skel->progs.edge_exit,
		s->skel->progs.edge_waking,  s->skel->progs.edge_switch, s->skel->progs.edge_queue,
		s->skel->progs.edge_execute, s->skel->progs.edge_polled,
	};
	struct bpf_program *ours[] = {
		s->skel->progs.sync_enter, s->skel->progs.sync_back, s->skel->progs.sync_returned,
		s->skel->progs.sync_exec,  s->skel->progs.sync_exit,
	};

	for (size_t i = 0; i < sizeof(edges) / sizeof(*edges); i++)
		(void)bpf_program__set_autoload(edges[i], !calls_only);
	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++)
		(void)bpf_program__set_autoload(ours[i], calls_only);
	s->sync_switch = calls_only && feature_usable("switch_raw", s->options.disabled);
	(void)bpf_program__set_autoload(s->skel->progs.sync_switch, s->sync_switch);
}

int sync_open(struct session *s, struct error *e)
{
	if (s->options.sync != ABI_SYNC_PTHREAD)
		return 0;
	s->sync = calloc(1, sizeof(*s->sync));
	if (!s->sync)
		return fail(e, ENOMEM, "out of memory");
	s->sync->slots = mmap(NULL, SHIM_ENTRIES * sizeof(struct shim_slot), PROT_READ | PROT_WRITE,
			      MAP_SHARED, session_slots_fd(s), 0);
	if (s->sync->slots == MAP_FAILED) {
		s->sync->slots = NULL;
		return fail(e, errno, "cannot map the threads' accounts: %s", strerror(errno));
	}
	return 0;
}

void sync_close(struct session *s)
{
	if (!s->sync)
		return;
	sync_active(s, false);
	for (size_t i = 0; i < s->sync->n_links; i++)
		(void)bpf_link__destroy(s->sync->links[i]);
	free(s->sync->links);
	if (s->sync->slots)
		(void)munmap(s->sync->slots, SHIM_ENTRIES * sizeof(struct shim_slot));
	free(s->sync);
	s->sync = NULL;
}

void sync_active(struct session *s, bool active)
{
	struct shim_sync *all;

	if (!s->sync || !s->sync->slots)
		return;
	all = (struct shim_sync *)&s->sync->slots[SHIM_SLOTS];
	__atomic_store_n(&all->active, active, __ATOMIC_RELEASE);
}

/* A probe of @u, which has one. */
static int attach(struct session *s, const struct uprobes *u, const struct bpf_program *prog,
		  struct error *e)
{
	struct sync *sync = s->sync;
	struct bpf_link *link;
	int r = uprobe_attach(u, 0, prog, &link, e);

	if (r < 0)
		return r;
	if (array_room(sync->links, sync->n_links) < 0) {
		(void)bpf_link__destroy(link);
		return fail(e, ENOMEM, "out of memory");
	}
	sync->links[sync->n_links++] = link;
	return 0;
}

int session_sync_shim(struct session *s, const void *image, size_t size, const char *path,
		      struct error *e)
{
	const struct {
		const char *name;
		struct bpf_program *prog;
		unsigned int does;
	} sites[] = {
		{SITE "wakes", s->skel->progs.sync_enter, ABI_CALL_WAKES},
		{SITE "blocks", s->skel->progs.sync_enter, ABI_CALL_BLOCKS},
		{SITE "back", s->skel->progs.sync_back, 0},
	};
	_cleanup_elf_object_ struct elf_object *o = NULL;
	_cleanup_(code_places_close) struct code_places places = {0};
	struct error why = {0};
	int r = elf_object_open_image("the preloaded library", image, size, &o, e);

	places.o = o;
	for (size_t i = 0; r >= 0 && i < sizeof(sites) / sizeof(*sites); i++) {
		struct uprobe probe = {.cookie = sites[i].does};
		const struct uprobes u = {.places = &places,
					  .path = path,
					  .pid = s->points.pid,
					  .all = &probe,
					  .n = 1};
		struct elf_symbol sym;

		if (elf_object_find_function(o, sites[i].name, &sym) < 0)
			return fail(e, ENOENT, "--sync pthread: the preloaded library has no %s",
				    sites[i].name);
		probe.vaddr = sym.addr;
		r = attach(s, &u, sites[i].prog, &why);
		if (r < 0)
			return fail(e, -r, "--sync pthread: %s", why.text);
	}
	return r;
}

/* The returns of the calls that block are caught by return addresses that the kernel replaces:
 * finding them in the code takes longer than short programs run. */
static int attach_call(struct session *s, struct code_places *places, const struct place *at,
		       struct error *e)
{
	struct uprobe probe = {.vaddr = at->vaddr, .cookie = at->does};
	const struct uprobes u = {.places = places, .pid = s->points.pid, .all = &probe, .n = 1};
	int r = attach(s, &u, s->skel->progs.sync_enter, e);

	/* It begins with a locked instruction, as glibc's pthread_spin_lock does: its waits are not
	 * followed. */
	if (r == -ENOTSUPP)
		return 0;
	if (r < 0 || !(at->does & ABI_CALL_BLOCKS))
		return r;
	probe.replaces_return = true;
	return attach(s, &u, s->skel->progs.sync_returned, e);
}

/* Probes on all of the C library's calls that @o has; *ret_n is how many. */
static int attach_calls(struct session *s, const struct elf_object *o, size_t *ret_n,
			struct error *e)
{
	_cleanup_free_ struct places *p = calloc(1, sizeof(*p));
	_cleanup_(code_places_close) struct code_places places = {.o = o};
	struct error why = {0};
	int r = 0;

	if (!p)
		return fail(e, ENOMEM, "out of memory");
	(void)elf_object_each_function(o, take_place, p);
	for (size_t i = 0; r >= 0 && i < p->n; i++) {
		r = attach_call(s, &places, &p->all[i], &why);
		if (r < 0)
			return fail(e, -r, "--sync pthread: cannot follow %s: %s; use --sync sched",
				    p->all[i].function, why.text);
	}
	*ret_n = p->n;
	return r;
}

int session_sync_executable(struct session *s, const struct elf_object *o, struct error *e)
{
	const char *path = elf_object_path(o);
	size_t n;
	int r;

	if (!elf_object_has_symbols(o))
		return fail(e, ENOENT,
			    "--sync pthread: %s was stripped: its pthread calls cannot be found; "
			    "use --sync sched",
			    path);
	r = attach_calls(s, o, &n, e);
	if (r >= 0 && n == 0)
		return fail(e, ENOENT,
			    "--sync pthread: %s has none of the functions that block or wake "
			    "threads; use --sync sched",
			    path);
	return r;
}

/* libc.so.6, libpthread.so.0, libc.musl-x86_64.so.1, and what they were called before: libc-2.31.so
 */
static bool is_c_library(const char *path)
{
	const char *name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;

	return strncmp(name, "libc.", 5) == 0 || strncmp(name, "libc-", 5) == 0 ||
	       strncmp(name, "libpthread", 10) == 0 || strncmp(name, "ld-musl-", 8) == 0;
}

int session_sync_libraries(struct session *s, struct error *e)
{
	struct map_list l;
	size_t found = 0;
	int r = map_list_read(s->points.pid, &l, e);

	if (r < 0)
		return r;
	for (size_t i = 0; r >= 0 && i < l.n; i++) {
		_cleanup_elf_object_ struct elf_object *o = NULL;
		_cleanup_free_ char *path = NULL;
		size_t n;

		if (!is_c_library(l.entries[i].path))
			continue;
		r = map_entry_open_path(s->points.pid, &l.entries[i], &path, e);
		if (r >= 0)
			r = elf_object_open(path, &o, e);
		if (r >= 0)
			r = attach_calls(s, o, &n, e);
		if (r >= 0)
			found += n;
	}
	map_list_free(&l);
	return r < 0 ? r : found > 0;
}
