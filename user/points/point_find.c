// SPDX-License-Identifier: BSD-2-Clause
#include "points/point_find.h"

#include "base/array.h"
#include "base/cleanup.h"
#include "base/error.h"
#include "program/code/map.h"
#include "program/dwarf/lines.h"
#include "program/elf/code_place.h"
#include "program/elf/names.h"
#include "program/elf/object.h"
#include "program/elf/similar.h"
#include "program/elf/usdt.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NAMESAKES 6
#define MAX_MOVED 32 /* places of a point: each takes a search of the whole object for jumps */

bool point_may_be_in(const struct code_map *code, const struct point_spec *p, size_t i)
{
	if (p->binary)
		return code_map_is_called(code, i, p->binary);
	if (p->kind == POINT_FILE_LINE || p->kind == POINT_SAMPLED_LINE)
		return code_map_is_main(code, i) || code_map_in_scope(code, i);
	return code_map_is_main(code, i) || p->kind == POINT_USDT;
}

void point_sites_free(struct point_sites *s)
{
	free(s->all);
	free(s->exits);
	free(s->code);
	free(s->shared);
	*s = (struct point_sites){0};
}

int point_no_function(const struct elf_object *o, const struct point_spec *p, int err,
		      struct error *e)
{
	char *similar[3] = {NULL, NULL, NULL};
	struct elf_symbol cold;
	size_t n;

	if (err == -EINVAL)
		return fail(e, EINVAL, "%s is data in %s, not a function", p->function,
			    elf_object_path(o));
	if (!elf_object_has_symbols(o))
		return fail(e, ENOENT,
			    "%s has no symbols (it was stripped); use an unstripped build",
			    elf_object_path(o));
	if (elf_object_find_function(o, p->function, &cold) == 0)
		return fail(e, ENOENT,
			    "%s was inlined everywhere but for cold code (%s), which is never "
			    "entered; use FILE:LINE",
			    p->function, cold.name);
	n = elf_object_similar_functions(o, p->function, similar, 3);
	(void)fail(e, ENOENT, "no function %s in %s%s%s%s%s%s%s; `cozbpf list functions` shows all",
		   p->function, elf_object_path(o), n ? "; did you mean " : "", n ? similar[0] : "",
		   n > 1 ? " or " : "", n > 1 ? similar[1] : "", n > 2 ? " or " : "",
		   n > 2 ? similar[2] : "");
	for (size_t i = 0; i < n; i++)
		free(similar[i]);
	return -ENOENT;
}

int point_find_line(const struct elf_object *o, struct line_table *t, const struct point_spec *p,
		    uint64_t **ret, size_t *ret_n, struct error *e)
{
	const char *near[2];
	uint32_t nearest;
	size_t n;
	int err;

	if (!t)
		return fail(e, ENODATA,
			    "%s has no line information; build it with -g, or name a function",
			    elf_object_path(o));
	err = line_table_statements(t, p->file, p->line, ret, ret_n, &nearest);
	if (err == -ENOENT && nearest)
		return fail(e, ENOENT,
			    "line %u of %s has no code; the nearest line that has is %s:%u",
			    p->line, p->file, p->file, nearest);
	if (err == -ENOENT)
		return fail(e, ENOENT, "no line of %s has code in %s", p->file, elf_object_path(o));
	if (err == -ENXIO) {
		n = line_table_similar_files(t, p->file, near, 2);
		return fail(e, ENXIO,
			    "no source file %s in %s%s%s%s%s; `cozbpf list lines` shows all",
			    p->file, elf_object_path(o), n ? "; did you mean " : "",
			    n ? near[0] : "", n > 1 ? " or " : "", n > 1 ? near[1] : "");
	}
	if (err == -ENOTUNIQ)
		return fail(
			e, ENOTUNIQ,
			"%s have code for line %u; write more of the path of the one that you mean",
			line_table_several(t), p->line);
	if (err < 0)
		return fail(e, -err, "cannot read the line information of %s: %s",
			    elf_object_path(o), strerror(-err));
	return 0;
}

static int check_offset(const struct elf_object *o, const struct elf_symbol *s,
			const struct point_spec *p, struct error *e)
{
	unsigned long long at = p->offset;
	uint64_t before, behind;

	if (at >= s->size)
		return fail(e, EINVAL, "offset %llu is outside of %s, which has %llu bytes", at,
			    p->function, (unsigned long long)s->size);
	if (code_check_offset(o, s, at, &before, &behind) == 0)
		return 0;
	if (!behind)
		return fail(
			e, EINVAL,
			"offset %llu is in the middle of an instruction; the nearest is %s+%llu",
			at, p->function, (unsigned long long)before);
	return fail(e, EINVAL,
		    "offset %llu is in the middle of an instruction; the nearest are %s+%llu and "
		    "%s+%llu",
		    at, p->function, (unsigned long long)before, p->function,
		    (unsigned long long)behind);
}

/* The function that is called in its place has another name, or none that is left. */
static int is_indirect(const struct elf_object *o, const struct point_spec *p, struct error *e)
{
	return fail(e, ENOTSUP,
		    "%s of %s is an indirect function: the code there only chooses, when it is "
		    "loaded, which of several is called by that name; use a function that calls it",
		    p->function, elf_object_path(o));
}

/* A function can be called after its place, "libz.so.1+0x2f40", which reads like an offset: one
 * that has no name, or none of its own. */
static bool find_place(const struct elf_object *o, const struct point_spec *p,
		       struct elf_symbol *ret)
{
	if (!p->offset || elf_object_function_at(o, p->offset, ret) < 0 || ret->addr != p->offset)
		return false;
	/* The object is called as its file, or by a link to it (libz.so.1 for libz.so.1.2.13). */
	return strcmp(elf_object_base_name(o), p->function) == 0 ||
	       (p->binary && strcmp(basename(p->binary), p->function) == 0);
}

/* A path and a line for each of the functions, as can be written for one of them; else its address.
 */
static int say_namesakes(const struct elf_object *o, struct line_table *lines,
			 const struct point_spec *p, struct error *e)
{
	struct elf_symbol all[MAX_NAMESAKES];
	int n = elf_object_namesakes(o, p->function, all, MAX_NAMESAKES);
	char text[sizeof(e->text)] = "";
	size_t used = 0;

	for (int i = 0; i < n && used < sizeof(text); i++) {
		_cleanup_free_ char *name = elf_demangle(all[i].function);
		struct line_location at;

		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? ", " : "",
					 name ? name : all[i].function);
		if (used >= sizeof(text))
			break;
		if (lines && line_table_at(lines, all[i].addr, &at) == 0)
			used += (size_t)snprintf(text + used, sizeof(text) - used, " at %s:%u",
						 at.file, at.line);
		else
			used += (size_t)snprintf(text + used, sizeof(text) - used, " at %s+0x%llx",
						 elf_object_base_name(o),
						 (unsigned long long)all[i].addr);
	}
	if (n <= 0)
		return n < 0 ? fail(e, -n, "out of memory") : 0;
	return fail(e, ENOTUNIQ,
		    "several functions are called so; name one by its arguments or its place: %s",
		    text);
}

/* What is said of a point in code that several functions share. */
static int find_sharers(const struct elf_object *o, const struct point_spec *p, bool by_source,
			uint64_t addr, struct point_sites *sites, struct error *e)
{
	_cleanup_elf_names_ struct elf_names names = {0};
	struct elf_symbol s;
	int r;

	if (sites->shared || elf_object_function_at(o, addr, &s) < 0)
		return 0;
	r = elf_object_sharers(o, s.addr, by_source, &names);
	if (r == 0 && names.n)
		sites->shared = elf_names_join(&names, p->function);
	return r < 0 || (names.n && !sites->shared) ? fail(e, ENOMEM, "out of memory") : 0;
}

/* Where the function is entered. *ret_offset: what was written behind its name, and is no part of
 * it. */
static int find_entries(const struct elf_object *o, struct line_table *lines,
			const struct point_spec *p, struct elf_symbol **ret, size_t *ret_n,
			uint64_t *ret_offset, struct error *e)
{
	_cleanup_free_ struct elf_symbol *entries = NULL;
	struct elf_symbol place;
	int r = 0;

	*ret_offset = p->offset;
	if (find_place(o, p, &place)) {
		entries = xmemdup(&place, 1, sizeof(place));
		*ret_n = 1;
		*ret_offset = 0;
	} else {
		r = say_namesakes(o, lines, p, e);
		if (r < 0)
			return r;
		r = elf_object_find_entries(o, p->function, &entries, ret_n);
	}
	if (r == -ENOMEM)
		return fail(e, ENOMEM, "out of memory");
	if (r < 0)
		return point_no_function(o, p, r, e);
	if (entries[0].is_indirect)
		return is_indirect(o, p, e);
	*ret = TAKE_PTR(entries);
	return 0;
}

/* *ret_offset: the places are offsets in the function. */
static int find_function(const struct elf_object *o, struct line_table *lines,
			 const struct point_spec *p, uint64_t **ret, size_t *ret_n,
			 bool *ret_offset, struct error *e)
{
	_cleanup_free_ struct elf_symbol *entries = NULL;
	uint64_t offset;
	int r = find_entries(o, lines, p, &entries, ret_n, &offset, e);

	if (r == 0 && offset)
		r = check_offset(o, &entries[0], p, e);
	if (r < 0)
		return r;
	/* The same offset is another place in a copy. */
	if (offset)
		*ret_n = 1;
	*ret_offset = offset;
	*ret = xcalloc(*ret_n, sizeof(**ret));
	for (size_t i = 0; i < *ret_n; i++)
		(*ret)[i] = entries[i].addr + offset;
	return 0;
}

/* The code of a function whose samples count. */
static int find_sampled(const struct elf_object *o, struct line_table *lines,
			const struct point_spec *p, struct point_sites *ret, struct error *e)
{
	struct elf_symbol place;
	int r;

	if (find_place(o, p, &place)) {
		ret->code = xmemdup(&place, 1, sizeof(place));
		ret->n_code = 1;
		return 0;
	}
	if (p->offset)
		return fail(
			e, EINVAL,
			"samples are counted of a whole function; leave out what stands behind %s",
			p->function);
	r = say_namesakes(o, lines, p, e);
	if (r < 0)
		return r;
	r = elf_object_find_code(o, p->function, &ret->code, &ret->n_code);
	if (r == 0 && ret->code[0].is_indirect)
		return is_indirect(o, p, e);
	return r == -ENOENT || r == -EINVAL ? point_no_function(o, p, r, e) : r;
}

struct usdt_search {
	const struct elf_object *o;
	const struct point_spec *p;
	struct point_sites *sites;
	bool any; /* the object has probes */
	unsigned int distance;
	char near[256]; /* "PROVIDER:NAME", the nearest */
};

static void offer_probe(struct usdt_search *x, const struct usdt_probe *probe)
{
	unsigned int name = similar_distance(x->p->event, probe->name),
		     provider = similar_distance(x->p->provider, probe->provider);
	unsigned int distance =
		name == UINT_MAX && provider
			? UINT_MAX
			: (name == UINT_MAX ? 64 : name) + (provider == UINT_MAX ? 16 : provider);

	if (distance >= x->distance)
		return;
	x->distance = distance;
	(void)snprintf(x->near, sizeof(x->near), "%s:%s", probe->provider, probe->name);
}

static int look_at_probe(const struct usdt_probe *probe, void *arg)
{
	struct usdt_search *x = arg;
	struct point_sites *s = x->sites;

	x->any = true;
	if (strcmp(probe->provider, x->p->provider) || strcmp(probe->name, x->p->event)) {
		offer_probe(x, probe);
		return 0;
	}
	if (s->n == POINT_MAX_SITES)
		return -E2BIG;
	xarray_add(s->all, s->n,
		   (struct point_site){.object = x->o,
				       .vaddr = probe->vaddr,
				       .semaphore = probe->semaphore,
				       .cost = code_cost_at(x->o, probe->vaddr)});
	return 0;
}

static int find_usdt(const struct elf_object *o, const struct point_spec *p,
		     struct point_sites *ret, struct error *e)
{
	struct usdt_search x = {.o = o, .p = p, .sites = ret, .distance = UINT_MAX};
	int r = usdt_each(o, look_at_probe, &x);

	if (r < 0)
		return fail(e, -r, r == -E2BIG ? "too many places" : "out of memory");
	if (ret->n)
		return 0;
	if (!x.any)
		return fail(e, ENOENT,
			    "%s has no USDT probes; for a library's: usdt:BINARY:PROVIDER:NAME",
			    elf_object_path(o));
	return fail(e, ENOENT, "no USDT probe %s:%s in %s%s%s; `cozbpf list points` shows all",
		    p->provider, p->event, elf_object_path(o), x.near[0] ? "; did you mean " : "",
		    x.near);
}

static void make_sites(const struct elf_object *o, const uint64_t *addrs, size_t n, bool exact,
		       struct point_sites *ret)
{
	/* What was named to the byte stays there. */
	bool movable = !exact && n <= MAX_MOVED;

	ret->all = xcalloc(n, sizeof(*ret->all));
	ret->n = n;
	for (size_t i = 0; i < n; i++) {
		struct point_site *s = &ret->all[i];

		*s = (struct point_site){.object = o, .vaddr = addrs[i]};
		if (movable)
			s->vaddr = code_cheap_site(o, addrs[i], &s->cost);
		else
			s->cost = code_cost_at(o, addrs[i]);
	}
}

/* All returns of the function and of its copies. */
static int find_returns(const struct elf_object *o, struct line_table *lines,
			const struct point_spec *p, struct point_sites *ret, struct error *e)
{
	_cleanup_free_ struct elf_symbol *entries = NULL;
	struct error why = {0};
	uint64_t offset;
	size_t n = 0;
	int r = find_entries(o, lines, p, &entries, &n, &offset, e);

	if (r < 0)
		return r;
	for (size_t i = 0; r == 0 && i < n; i++) {
		_cleanup_free_ struct code_exit *exits = NULL;
		size_t more = 0;

		r = code_exits(o, &entries[i], &exits, &more, &why);
		if (r < 0)
			return fail(e, -r,
				    "%s; use a line, or FUNCTION+OFFSET of each ret instruction",
				    why.text);
		if (more > POINT_MAX_SITES - ret->n)
			return fail(e, E2BIG, "too many places");
		ret->exits = xreallocarray(ret->exits, ret->n + more, sizeof(*exits));
		memcpy(ret->exits + ret->n, exits, more * sizeof(*exits));
		ret->n += more;
	}
	ret->all = xcalloc(ret->n, sizeof(*ret->all));
	for (size_t i = 0; i < ret->n; i++)
		ret->all[i] = (struct point_site){.object = o,
						  .vaddr = ret->exits[i].vaddr,
						  .cost = ret->exits[i].cost,
						  .exit = &ret->exits[i]};
	return 0;
}

/* Places where a probe would change what the program does: the point is refused. */
static int check_places(const struct elf_object *o, const struct point_sites *sites,
			struct error *e)
{
	_cleanup_(code_places_close) struct code_places places = {.o = o};
	struct error why = {0};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sites->n; i++)
		r = code_place_check(&places, sites->all[i].vaddr, &why);
	if (r == 0)
		return 0;
	return fail(e, -r, "%s; use sampled:FUNCTION or sampled:FILE:LINE", why.text);
}

/* Places where a probe would do harm, or nothing: one is moved where that changes nothing but the
 * place, else the point is refused. */
static int check_sites(const struct elf_object *o, struct point_sites *sites, struct error *e)
{
	uint64_t at = 0;
	enum code_cost cost = CODE_EMULATED;
	size_t moved = 0;

	for (size_t i = 0; i < sites->n && cost < CODE_NOP5; i++) {
		struct point_site *s = &sites->all[i];

		if (s->cost == CODE_NOP5 && !s->exit && moved++ < MAX_MOVED)
			s->vaddr = code_behind_nop(o, s->vaddr, &s->cost);
		cost = s->cost;
		at = s->vaddr;
	}
	if (cost < CODE_NOP5)
		return check_places(o, sites, e);
	if (cost == CODE_REFUSED)
		return fail(
			e, ENOTSUP,
			"the kernel cannot probe the instruction at 0x%llx of %s (it is atomic, "
			"is a breakpoint itself, or has a segment's prefix); use the line or "
			"FUNCTION+OFFSET of one before or after it",
			(unsigned long long)at, elf_object_path(o));
	return fail(e, ENOTSUP,
		    "at 0x%llx of %s is a nop of five bytes, where a probe makes children that the "
		    "program forks crash (on Linux 6.18), and what is behind it can be reached "
		    "without it; use the line or FUNCTION+OFFSET of one before or after it",
		    (unsigned long long)at, elf_object_path(o));
}

/* A library is opened through a link of the process's, which nobody knows: say its path. */
static void name_object(struct error *e, const char *opened, const char *path)
{
	char *at = strstr(e->text, opened);
	struct error text = {0};

	if (!at || !strcmp(opened, path))
		return;
	(void)fail(&text, EINVAL, "%.*s%s%s", (int)(at - e->text), e->text, path,
		   at + strlen(opened));
	*e = text;
}

/* What it says does not name the point yet. */
static int find_places(const struct elf_object *o, struct line_table *lines,
		       const struct point_spec *p, struct point_sites *ret, struct error *e)
{
	bool by_line = p->kind == POINT_FILE_LINE || p->kind == POINT_SAMPLED_LINE;
	_cleanup_free_ uint64_t *addrs = NULL;
	bool offset = false;
	size_t n = 0;
	struct elf_symbol place;
	int r;

	ret->by_address = p->function && find_place(o, p, &place);
	if (p->kind == POINT_USDT)
		r = find_usdt(o, p, ret, e);
	else if (p->kind == POINT_SAMPLED_FUNCTION)
		r = find_sampled(o, lines, p, ret, e);
	else if (p->at_return)
		r = find_returns(o, lines, p, ret, e);
	else if (by_line)
		r = point_find_line(o, lines, p, &addrs, &n, e);
	else
		r = find_function(o, lines, p, &addrs, &n, &offset, e);
	if (r == -ENOENT && p->function && p->kind != POINT_SAMPLED_FUNCTION) {
		int inlined = point_find_inlined(o, lines, p, &addrs, &n, e);

		r = inlined == -ENOENT ? r : inlined;
		ret->n_inlined = r == 0 ? n : 0;
	}
	if (r == 0 && n > POINT_MAX_SITES)
		r = fail(e, E2BIG, "too many places");
	for (size_t i = 0; r == 0 && i < n; i++)
		r = find_sharers(o, p, by_line, addrs[i], ret, e);
	for (size_t i = 0; r == 0 && i < ret->n; i++)
		r = find_sharers(o, p, false, ret->all[i].vaddr, ret, e);
	for (size_t i = 0; r == 0 && i < ret->n_code; i++)
		r = find_sharers(o, p, false, ret->code[i].addr, ret, e);
	if (r == 0 && n && p->kind != POINT_SAMPLED_LINE)
		make_sites(o, addrs, n, p->exact || offset, ret);
	return r == 0 && ret->n ? check_sites(o, ret, e) : r;
}

static int find_in(const struct elf_object *o, struct line_table *lines, const struct point_spec *p,
		   struct point_sites *ret, struct error *e)
{
	struct error why = {.text = "out of memory"};
	int r = find_places(o, lines, p, ret, &why);

	if (r == 0)
		return 0;
	point_sites_free(ret);
	return fail(e, -r, "-p %s: %s", p->name, why.text);
}

/* By what the file itself and files of the host say. @found: with the container's debug file the
 * point was found. */
static int find_strictly(struct code_map *code, size_t i, const struct point_spec *p, bool found,
			 struct point_sites *ret, struct error *e)
{
	struct line_table *lines;
	const struct elf_object *o = code_map_strict(code, i, &lines, e);
	int r = o ? find_in(o, lines, p, ret, e) : -ENOEXEC;

	code_map_strict_done(code, i, r == 0);
	if (r == 0 || !found)
		return r;
	e->text[0] = '\0';
	return fail(e, EPERM,
		    "-p %s: only a debug file of the container says where that is, and its root "
		    "could have chosen any place in a file that other containers have as well; "
		    "use sampled:FUNCTION or sampled:FILE:LINE, or, if you trust it, copy it into "
		    "a directory for --debug-dir",
		    p->name);
}

int point_find(struct code_map *code, size_t i, const struct point_spec *p, struct point_sites *ret,
	       struct error *e)
{
	const struct elf_object *o = code_map_elf(code, i, e);
	struct error why = {0};
	bool probed = p->kind != POINT_SAMPLED_FUNCTION && p->kind != POINT_SAMPLED_LINE;
	int r;

	*ret = (struct point_sites){0};
	if (!o)
		return -ENOEXEC;
	r = find_in(o, p->kind != POINT_USDT ? code_map_lines(code, i, NULL) : NULL, p, ret, &why);
	if (probed && elf_object_has_container_debug(o)) {
		if (r == 0)
			point_sites_free(ret);
		*ret = (struct point_sites){0};
		why = (struct error){0};
		r = find_strictly(code, i, p, r == 0, ret, &why);
	}
	if (r == 0)
		return 0;
	name_object(&why, elf_object_path(o), code_map_path(code, i));
	return fail(e, -r, "%s", why.text);
}
