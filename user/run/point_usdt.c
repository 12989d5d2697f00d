// SPDX-License-Identifier: BSD-2-Clause
#include "run/point_find.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "elf/object.h"
#include "elf/similar.h"
#include "elf/usdt.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

struct search {
	const struct elf_object *o;
	const struct point_spec *p;
	struct point_sites *sites;
	bool any; /* the object has probes */
	unsigned int distance;
	char near[256]; /* "PROVIDER:NAME", the nearest */
};

static void offer(struct search *x, const struct usdt_probe *probe)
{
	unsigned int name = similar_distance(x->p->event, probe->name), provider = similar_distance(x->p->provider, probe->provider);
	unsigned int distance = name == UINT_MAX && provider ? UINT_MAX : (name == UINT_MAX ? 64 : name) + (provider == UINT_MAX ? 16 : provider);

	if (distance >= x->distance)
		return;
	x->distance = distance;
	(void)snprintf(x->near, sizeof(x->near), "%s:%s", probe->provider, probe->name);
}

static int look_at(const struct usdt_probe *probe, void *arg)
{
	struct search *x = arg;
	struct point_sites *s = x->sites;

	x->any = true;
	if (strcmp(probe->provider, x->p->provider) || strcmp(probe->name, x->p->event)) {
		offer(x, probe);
		return 0;
	}
	if (s->n == POINT_MAX_SITES)
		return -E2BIG;
	if (array_room(s->all, s->n) < 0)
		return -ENOMEM;
	s->all[s->n++] = (struct point_site){
		.object = x->o,
		.vaddr = probe->vaddr,
		.semaphore = probe->semaphore,
		.cost = code_cost_at(x->o, probe->vaddr),
	};
	return 0;
}

int point_find_usdt(const struct elf_object *o, const struct point_spec *p, const char *option, struct point_sites *ret, struct error *e)
{
	struct search x = {.o = o, .p = p, .sites = ret, .distance = UINT_MAX};
	int r = usdt_each(o, look_at, &x);

	if (r < 0) {
		point_sites_free(ret);
		return fail(e, -r, "%s %s: %s", option, p->name, r == -E2BIG ? "too many places" : "out of memory");
	}
	if (ret->n)
		return 0;
	if (!x.any)
		return fail(e, ENOENT, "%s %s: %s has no USDT probes; for a library's: usdt:BINARY:PROVIDER:NAME", option, p->name,
			    elf_object_path(o));
	return fail(e, ENOENT, "%s %s: no USDT probe %s:%s in %s%s%s; `cozbpf list points` shows all", option, p->name, p->provider, p->event,
		    elf_object_path(o), x.near[0] ? "; did you mean " : "", x.near);
}
