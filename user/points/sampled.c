// SPDX-License-Identifier: BSD-2-Clause
/* Points whose visits are samples in a line or a function. A line's samples stand for the time that
 * its execution takes, and a visit of it always takes the same: the samples' weight is proportional
 * to the visits, which is all that effects need, being relative. */
#include "points/private.h"

#include "base/error.h"
#include "base/memory.h"
#include "program/code/map.h"
#include "cozbpf.skel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void add(struct abi_sampled *all, struct addr_range r, size_t point)
{
	if (all->n < ABI_MAX_SAMPLED)
		all->intervals[all->n++] = (struct abi_sampled_interval){r.lo, r.hi, point};
}

static void add_functions(const struct points *ps, struct abi_sampled *all)
{
	struct addr_range r;

	for (size_t i = 0; i < ps->n; i++)
		for (size_t j = 0; j < ps->all[i].n_codes; j++)
			if (code_map_place(ps->code, ps->all[i].codes[j].object,
					   ps->all[i].codes[j].range, &r))
				add(all, r, i);
	all->n_functions = all->n;
}

static void add_lines(struct points *ps, struct abi_sampled *all)
{
	struct addr_range ranges[ABI_MAX_SAMPLED];
	size_t n;

	for (size_t i = 0; i < ps->n; i++) {
		if (!ps->all[i].sampled || code_map_intervals(ps->code, ps->all[i].sampled, ranges,
							      ABI_MAX_SAMPLED, &n) < 0)
			continue;
		for (size_t j = 0; j < n; j++)
			add(all, ranges[j], i);
	}
}

void points_update_sampled(struct points *ps)
{
	struct abi_sampled *a = &ps->skel->bss->sampled, all = {0};

	if (!ps->skel->rodata->config.has_sampled || !ps->code)
		return;
	add_functions(ps, &all);
	add_lines(ps, &all);
	if (all.n == a->n && all.n_functions == a->n_functions &&
	    !memcmp(all.intervals, a->intervals, all.n * sizeof(*all.intervals)))
		return;
	/* A sample in between finds none. */
	__atomic_store_n(&a->n, 0, __ATOMIC_SEQ_CST);
	__atomic_store_n(&a->n_functions, 0, __ATOMIC_SEQ_CST);
	memcpy(a->intervals, all.intervals, all.n * sizeof(*all.intervals));
	__atomic_store_n(&a->n, all.n, __ATOMIC_SEQ_CST);
	__atomic_store_n(&a->n_functions, all.n_functions, __ATOMIC_SEQ_CST);
}

void points_attach_line(struct points *ps, size_t point, const char *line)
{
	ps->all[point].is_sampled = true;
	ps->all[point].sampled = xstrdup(line);
	points_update_sampled(ps);
}

int points_attach_code(struct points *ps, size_t point, size_t object,
		       const struct elf_symbol *parts, size_t n, struct error *e)
{
	struct point *p = &ps->all[point];
	size_t taken = n;

	for (size_t i = 0; i < ps->n; i++)
		taken += ps->all[i].n_codes;
	if (taken > ABI_MAX_SAMPLED)
		return fail(e, E2BIG,
			    "-p %s: this function and those of other sampled points have %zu parts "
			    "and copies, of which %d can be "
			    "counted",
			    p->name, taken, ABI_MAX_SAMPLED);
	p->codes = xreallocarray(p->codes, p->n_codes + n, sizeof(*p->codes));
	for (size_t i = 0; i < n; i++)
		p->codes[p->n_codes++] = (struct sampled_code){
			object, {parts[i].addr, parts[i].addr + parts[i].size}};
	p->is_sampled = true;
	points_update_sampled(ps);
	return 0;
}
