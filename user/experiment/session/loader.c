// SPDX-License-Identifier: BSD-2-Clause
/* Libraries that come and go while the program runs, as the dynamic linker tells
 * (bpf/loader.bpf.c). */
#include "experiment/session/internal.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "cozbpf.skel.h"
#include "program/elf/code_place.h"
#include "program/elf/object.h"
#include "kernel/uprobes.h"

#include <errno.h>
#include <string.h>

/* Of glibc and musl: what r_debug.r_brk points to (the protocol of link.h). Both export it, so it
 * is there in stripped ones as well. */
#define HOOK "_dl_debug_state"

static int note(void *arg, void *data, size_t size)
{
	(void)data, (void)size;
	*(bool *)arg = true;
	return 0;
}

int session_watch_loader(struct session *s, const struct elf_object *program, struct error *e)
{
	_cleanup_elf_object_ struct elf_object *loader = NULL;
	_cleanup_(code_places_close) struct code_places places = {0};
	struct uprobe probe = {0};
	struct uprobes all = {
		.places = &places, .pid = (pid_t)s->skel->bss->control.main, .all = &probe, .n = 1};
	_cleanup_free_ char *path = elf_object_interpreter(program);
	struct elf_symbol hook;
	int r;

	if (!all.pid)
		return fail(e, ESRCH,
			    "there is no one process whose dynamic linker could be watched");
	if (!path)
		return fail(e, ENOENT, "%s: loads no libraries", elf_object_path(program));
	r = elf_object_open_named(program, path, &loader, e);
	if (r < 0)
		return r;
	r = elf_object_find_function(loader, HOOK, &hook);
	if (r < 0)
		return fail(e, -r, "%s: has no %s", path, HOOK);
	s->loads = ring_buffer__new(bpf_map__fd(s->skel->maps.loads), note, &s->loaded, NULL);
	if (!s->loads)
		return fail(e, errno, "cannot map the ring of loads: %s", strerror(errno));
	places.o = loader;
	probe.vaddr = hook.addr;
	return uprobe_attach(&all, 0, s->skel->progs.loader_state, &s->loader, e);
}

int session_loader_fd(const struct session *s)
{
	return s->loads ? ring_buffer__epoll_fd(s->loads) : -1;
}

bool session_loader_pending(struct session *s)
{
	s->loaded = false;
	if (s->loads)
		(void)ring_buffer__consume(s->loads);
	return s->loaded;
}

void loader_close(struct session *s)
{
	(void)bpf_link__destroy(s->loader);
	ring_buffer__free(s->loads);
}
