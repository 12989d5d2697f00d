// SPDX-License-Identifier: BSD-2-Clause
/* cozbpf list points: what --progress could count, for those who do not know the program: probes
 * that its author put in, functions that others call, and a line of each loop. */
#include "cli/cmd/cmd_list.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "cli/cmd/commands.h"
#include "program/code/map.h"
#include "program/code/loops.h"
#include "kernel/counting/candidates.h"
#include "program/elf/object.h"
#include "program/elf/usdt.h"
#include "kernel/probe.h"
#include "kernel/uprobes.h"
#include "target/process.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define MOST_RATES 20

/* One executable or library. */
struct listed {
	struct listing *l;
	const char *kind; /* of what comes next, for its heading; NULL: said */
	const struct code_listed *o;
	struct elf_symbol function;
};

/* @text is what --progress takes, for a place in the function at or around @vaddr. What --progress
 * takes only with --shared-code is a note. */
static int print(struct listed *x, const char *text, const char *word, uint64_t vaddr, bool is_line)
{
	struct elf_symbol f;
	int r;

	if (x->l->glob && fnmatch(x->l->glob, text, 0) != 0 && fnmatch(x->l->glob, word, 0) != 0)
		return 0;
	r = elf_object_function_at(x->o->elf, vaddr, &f) == 0
		    ? list_note_sharers(x->l, x->o->elf, f.addr, is_line)
		    : 0;
	if (r)
		return r < 0 ? r : 0;
	if (!list_is_new(x->l, text))
		return 0;
	if (x->kind) {
		(void)printf("# %s of ", x->kind);
		list_print_name(x->o->path);
		x->kind = NULL;
	}
	x->l->printed++;
	list_print_name(text);
	return ferror(stdout) ? -EIO : 0;
}

static int print_probe(const struct usdt_probe *p, void *arg)
{
	struct listed *x = arg;
	_cleanup_free_ char *text =
		xasprintf("usdt:%s%s%s:%s", x->o->is_main ? "" : basename(x->o->path),
			  x->o->is_main ? "" : ":", p->provider, p->name);

	return print(x, text, p->name, p->vaddr, false);
}

static int print_function(const struct elf_symbol *s, const char *readable, void *arg)
{
	struct listed *x = arg;
	_cleanup_free_ char *text = NULL;

	/* No call gets to code that only chooses another. */
	if (s->is_indirect)
		return 0;
	/* What the C library's startup files bring. */
	if (code_map_source_out_of_scope(x->l->code, x->o, s->addr) || !strcmp(readable, "_init") ||
	    !strcmp(readable, "_start") || !strcmp(readable, "_fini"))
		return 0;
	text = xasprintf("%s%s%s", x->o->is_main ? "" : basename(x->o->path),
			 x->o->is_main ? "" : ":", readable);
	return print(x, text, readable, s->addr, false);
}

static int print_loop(const struct code_loop *loop, void *arg)
{
	struct listed *x = arg;
	_cleanup_free_ char *text = NULL;

	if (loop->line.file && !code_map_has_source(x->l->code, loop->line.file))
		return 0;
	if (loop->line.file)
		text = xasprintf("%s:%u", loop->line.file, loop->line.line);
	else
		text = xasprintf("%s:%s+%llu", basename(x->o->path), x->function.name,
				 (unsigned long long)(loop->jump - x->function.addr));
	return print(x, text, loop->line.file ? basename(text) : x->function.function,
		     x->function.addr, loop->line.file != NULL);
}

static int print_loops(const struct elf_symbol *s, void *arg)
{
	struct listed *x = arg;

	if (code_map_source_out_of_scope(x->l->code, x->o, s->addr))
		return 0;
	x->function = *s;
	return code_each_loop(x->o->elf, x->o->lines, s, print_loop, x);
}

static int list_object(const struct code_listed *o, void *arg)
{
	struct listing *l = arg;
	struct listed x = {.l = l, .o = o};
	int r;

	if (!o->elf) {
		if (!l->glob || o->in_scope)
			list_note(l, o->why);
		return 0;
	}
	x.kind = "functions that others can call,";
	r = elf_object_each_readable(o->elf, true, print_function, &x);
	x.kind = "lines that are passed once a round of a loop,";
	if (r == 0 && o->lines)
		r = elf_object_each_function(o->elf, print_loops, &x);
	else if (r == 0 && o->why)
		list_note(l, o->why);
	return r;
}

/* Probes are of any object: out of scope means that it is not sped up, not that it cannot count. */
static int list_probes(struct listing *l, size_t i)
{
	struct code_listed o = {.elf = code_map_elf(l->code, i, NULL), .is_main = i == 0};
	struct listed x = {.l = l, .kind = "USDT probes", .o = &o};
	int r;

	if (!o.elf)
		return 0;
	o.path = code_map_path(l->code, i);
	r = usdt_each(o.elf, print_probe, &x);
	code_map_let_go(l->code, i);
	return r;
}

static int has_child(pid_t pid, void *arg)
{
	struct process_facts f;

	return process_read(pid, &f) == 0 && f.parent == *(const int *)arg;
}

/* Counts until all is known. The caller's; NULL: *ret_status is that of a failure, which was said.
 */
static struct candidates *count(struct listing *l, int pid, int *ret_status)
{
	const struct candidates_scope scope = {
		.pid = pid,
		.children = true,
		.code = l->code,
		/* Those of children would come too late, or never. */
		.probed = process_each(has_child, &pid) == 1 ? 0 : pid,
		.all = true,
	};
	struct candidates *c = NULL;
	struct error e = {};
	struct timespec until;
	uint64_t next = 0;
	int r = candidates_begin(&scope, &c, &e);

	while (r == 0) {
		r = candidates_step(c, clock_monotonic_ns(), &next, &e);
		until = clock_timespec(next);
		if (r == 0)
			(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	}
	if (r > 0)
		return c;
	candidates_end(c);
	*ret_status = log_error("list: %s", e.text);
	return NULL;
}

static void note_uncounted(struct listing *l, const struct candidates *c, int pid)
{
	_cleanup_free_ char *some = NULL;
	size_t counted, n = candidates_functions(c, &counted);

	if (!uprobes_alone_in(pid))
		list_note(l, "system calls alone: the first thread has ended, so probes could "
			     "not be put into this process alone, and would slow down all "
			     "that run the same files");
	else if (!feature_usable("uprobe_multi", NULL))
		list_note(l, "system calls alone: to count at many places takes links of many "
			     "probes (Linux 6.6), and root");
	if (counted == n)
		return;
	some = xasprintf("%zu of %zu functions, the largest, were looked at", counted, n);
	list_note(l, some);
}

int list_rates(struct listing *l, int pid)
{
	const struct candidate *all;
	int status;
	struct candidates *c = count(l, pid, &status);
	size_t n = c ? candidates_found(c, &all) : 0;

	if (!c)
		return status;
	for (size_t i = 0; i < n && l->printed < MOST_RATES && choice_serves(&all[i]); i++) {
		if (l->glob && fnmatch(l->glob, all[i].point, 0) != 0)
			continue;
		if (!l->printed++)
			(void)puts("# visits per second, how even, point");
		(void)printf("%10.1f  %-9s  ", all[i].per_s, choice_evenness(&all[i]));
		list_print_name(all[i].point);
	}
	note_uncounted(l, c, pid);
	candidates_end(c);
	return list_end(l, "nothing is passed evenly, 5 times a second or more");
}

int list_points(struct listing *l)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < code_map_count(l->code); i++)
		r = list_probes(l, i);
	if (r == 0)
		r = code_map_each(l->code, list_object, l);
	if (r < 0)
		return log_error("list: %s", strerror(-r));
	return list_end(l, l->glob ? "nothing matches the pattern"
				   : "no USDT probe, no function and no line");
}
