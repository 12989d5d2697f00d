// SPDX-License-Identifier: BSD-2-Clause
/* --sync pthread: the probes that say who waits for whom, on the shim's own places in its wrappers
 * of the C library's calls. */
#include "experiment/session/internal.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/memory.h"
#include "cozbpf.skel.h"
#include "program/elf/code_place.h"
#include "program/elf/object.h"
#include "kernel/probe.h"
#include "kernel/uprobes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SITE "_cozbpf_site_"

struct sync {
	struct shim_slot *slots; /* all of the map */
	struct point probes;
};

void sync_configure(struct session *s)
{
	bool calls_only = s->options.config.sync == ABI_SYNC_PTHREAD;
	struct bpf_program *p;

	bpf_object__for_each_program (p, s->skel->obj) {
		if (strncmp(bpf_program__name(p), "edge_", 5) == 0)
			(void)bpf_program__set_autoload(p, !calls_only);
		if (strncmp(bpf_program__name(p), "sync_", 5) == 0)
			(void)bpf_program__set_autoload(p, calls_only);
	}
	s->sync_switch = calls_only && feature_usable("switch_raw", s->options.points.disabled);
	(void)bpf_program__set_autoload(s->skel->progs.sync_switch, s->sync_switch);
}

int sync_open(struct session *s, struct error *e)
{
	if (s->options.config.sync != ABI_SYNC_PTHREAD)
		return 0;
	s->sync = xcalloc(1, sizeof(*s->sync));
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
	point_free(&s->sync->probes);
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
		struct bpf_link *link;
		struct elf_symbol sym;

		if (elf_object_find_function(o, sites[i].name, &sym) < 0)
			return fail(e, ENOENT, "--sync pthread: the preloaded library has no %s",
				    sites[i].name);
		probe.vaddr = sym.addr;
		r = uprobe_attach(&u, 0, sites[i].prog, &link, &why);
		if (r < 0)
			return fail(e, -r, "--sync pthread: %s", why.text);
		point_keep(&s->sync->probes, link);
	}
	return r;
}
