// SPDX-License-Identifier: BSD-2-Clause
/* Probes on instructions: all of an object's with one link where the kernel has such, else each
 * with its own. */
#include "points/private.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "base/memory.h"
#include "cozbpf.skel.h"
#include "program/elf/code_place.h"
#include "kernel/text.h"
#include "kernel/uprobes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(CODE_MAX_PARTS == ABI_EXIT_PARTS, "parts of a function");

/* Which word of the kernel's struct pt_regs has a register of the CPU's number. */
static unsigned char word_of(int reg)
{
	static const unsigned char words[] = {10, 11, 12, 5, 19, 4, 13, 14, 9, 8, 7, 6, 3, 2, 1, 0};

	return reg < 0 || (size_t)reg >= sizeof(words) ? ABI_NO_REGISTER : words[reg];
}

/* Tells BPF when the instruction leaves its function: *ret_number is for the upper half of a
 * probe's cookie. -E2BIG */
static int add_exit(struct points *ps, const struct code_exit *x, uint64_t *ret_number,
		    struct error *e)
{
	struct abi_exit a = {.by_flags = x->when == CODE_BY_FLAGS,
			     .condition = (unsigned char)x->condition};

	*ret_number = 0;
	if (x->when == CODE_ALWAYS)
		return 0;
	if (ps->n_exits == ABI_MAX_EXITS)
		return fail(e, E2BIG,
			    "more than %d branches and jumps may leave the functions of all points",
			    ABI_MAX_EXITS);
	if (x->when == CODE_BY_TARGET) {
		a.displacement = (uint64_t)x->target.displacement;
		a.memory = x->target.memory;
		a.base = word_of(x->target.base);
		a.index = word_of(x->target.index);
		a.scale = (unsigned char)x->target.scale;
	}
	for (size_t i = 0; i < x->n_parts; i++) {
		a.low[i] = x->parts[i].lo - x->vaddr;
		a.size[i] = x->parts[i].hi - x->parts[i].lo;
	}
	ps->skel->bss->exits[ps->n_exits++] = a;
	*ret_number = ps->n_exits;
	return 0;
}

static int attach_each(struct point *p, const struct point_probes *u, const struct uprobes *all,
		       struct error *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < all->n; i++) {
		struct bpf_link *link;

		r = uprobe_attach(all, i, u->program, &link, e);
		if (r == 0)
			point_keep(p, link);
	}
	return r;
}

/* Sites of one object. */
static int attach_object(struct points *ps, struct point *p, const struct point_probes *u,
			 const struct point_site *sites, size_t n, struct error *e)
{
	_cleanup_free_ struct uprobe *probes = xcalloc(n, sizeof(*probes));
	_cleanup_(code_places_close) struct code_places places = {.o = sites[0].object};
	const struct uprobes all = {.places = &places, .pid = u->pid, .all = probes, .n = n};
	int r = 0;

	for (size_t i = 0; r == 0 && i < n; i++) {
		uint64_t exit = 0;

		r = sites[i].exit ? add_exit(ps, sites[i].exit, &exit, e) : 0;
		probes[i] = (struct uprobe){.vaddr = sites[i].vaddr,
					    .semaphore = sites[i].semaphore,
					    .cookie = exit << 32 | u->cookie};
	}
	if (r < 0)
		return r;
	if (!ps->multi)
		return attach_each(p, u, &all, e);
	r = uprobes_link(&all, u->program, e);
	if (r < 0)
		return r;
	point_keep_fd(p, r);
	return 0;
}

int points_attach_probes(struct points *ps, struct point *p, const struct point_probes *u,
			 const struct point_site *sites, size_t n, struct error *e)
{
	struct error why = {0};
	int r = 0;

	if (!ps->text_tried)
		ps->text = bpf_program__attach(ps->skel->progs.text_trap);
	ps->text_tried = true;
	for (size_t i = 0; i < n && ps->text; i++)
		text_add(ps->skel, sites[i].object, sites[i].vaddr);
	for (size_t i = 0, end; r == 0 && i < n; i = end) {
		for (end = i + 1; end < n && sites[end].object == sites[i].object;)
			end++;
		r = attach_object(ps, p, u, &sites[i], end - i, &why);
	}
	return r < 0 ? fail(e, -r, "%s: %s", u->what, why.text) : 0;
}

struct point_probes points_probes_of(const struct points *ps, size_t index, pid_t pid,
				     const char *what)
{
	return (struct point_probes){
		.program = ps->skel->progs.progress_visit,
		.cookie = index,
		.pid = pid,
		.what = what,
	};
}
