// SPDX-License-Identifier: BSD-2-Clause
/* The steps before the program runs. */
#include "cmd/run.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "cmd/commands.h"
#include "elf/lines.h"
#include "experiment/runner.h"
#include "session/code_map.h"
#include "session/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

int run_choose_payer(struct run *r, struct error *e)
{
	static const enum abi_payer payers[] = {
		[RUN_PAY_SLEEP] = ABI_PAY_SLEEP, [RUN_PAY_HOLD] = ABI_PAY_HOLD, [RUN_PAY_SPIN] = ABI_PAY_SPIN};
	bool work = feature_usable("task_work", r->options.disabled);
	/* Held, a thread keeps a CPU from those that wait for it, which only the scheduler knows of. */
	bool keep_cpu = work && (r->options.sync == RUN_SYNC_SCHED || !r->dynamic);

	if (r->options.kind != RUN_LAUNCH && !work)
		return fail(e, EOPNOTSUPP, "this kernel cannot pause a process that runs already: that takes BPF task work (Linux 6.18); start the "
			    "program with cozbpf run instead");
	r->preload = r->dynamic && r->options.kind == RUN_LAUNCH;
	/* By the truth suite hold is the most exact payer, so it is the default wherever the kernel has it. */
	r->payer = r->options.pay != RUN_PAY_AUTO ? payers[r->options.pay] : keep_cpu ? ABI_PAY_HOLD : ABI_PAY_SLEEP;
	if (r->payer == ABI_PAY_HOLD && !work)
		return fail(e, EOPNOTSUPP, "--pay hold needs BPF task work (Linux 6.18), which this kernel lacks; use --pay sleep");
	if (r->payer != ABI_PAY_HOLD && !r->dynamic && r->options.kind == RUN_LAUNCH)
		return fail(e, EOPNOTSUPP, "%s is a static executable: the payer's library cannot be loaded into it; %s", r->path,
			    work ? "use --pay hold" : "Linux 6.18 can hold its threads, this kernel cannot");
	if (!work)
		(void)snprintf(r->fallback, sizeof(r->fallback),
			       "no BPF task work on this kernel: threads start paying at their own next tick in user mode");
	else if (r->payer != ABI_PAY_HOLD && r->options.sync == RUN_SYNC_SCHED && !feature_usable("send_signal_task", r->options.disabled))
		(void)snprintf(r->fallback, sizeof(r->fallback),
			       "no bpf_send_signal_task on this kernel: payment signals by bpf_send_signal_thread");
	return 0;
}

int run_open_page(struct run *r, struct error *e)
{
	r->page_fd = memfd_create("cozbpf-page", MFD_CLOEXEC);
	if (r->page_fd < 0 || ftruncate(r->page_fd, sizeof(*r->page)) < 0)
		return fail(e, errno, "cannot make the page shared with the program: %s", strerror(errno));
	r->page = mmap(NULL, sizeof(*r->page), PROT_READ | PROT_WRITE, MAP_SHARED, r->page_fd, 0);
	if (r->page == MAP_FAILED) {
		r->page = NULL;
		return fail(e, errno, "cannot map the page shared with the program: %s", strerror(errno));
	}
	r->page->magic = SHIM_MAGIC;
	r->page->signo = (unsigned int)r->options.signo;
	/* Under hold, threads that were woken from outside sleep off what accrued while they slept (R6). */
	r->page->pay = r->payer == ABI_PAY_SPIN ? SHIM_PAY_SPIN : SHIM_PAY_SLEEP;
	return 0;
}

/* Does the program come with the system, as shells and interpreters do? Such a one may only start what is to be profiled. */
static bool of_the_system(const char *path)
{
	static const char *const places[] = {"/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/lib/", "/usr/libexec/"};
	_cleanup_free_ char *real = realpath(path, NULL);

	for (size_t i = 0; real && i < sizeof(places) / sizeof(*places); i++)
		if (strncmp(real, places[i], strlen(places[i])) == 0)
			return true;
	return false;
}

static bool may_be_wrapper(const struct run *r)
{
	const struct scope_options *o = &r->options.scope;

	if (r->options.kind != RUN_LAUNCH)
		return true;
	return r->scope && o->follow == FOLLOW_ALL && (o->follow_given || o->only || of_the_system(r->path));
}

int run_open_code(struct run *r, struct error *e)
{
	int err;
	struct code_scope scope = {
		.sources = r->options.sources,
		.n_sources = r->options.n_sources,
		.binaries = r->options.binaries,
		.n_binaries = r->options.n_binaries,
		.inclusive = r->options.attribution == RUN_INCLUSIVE,
		.functions = r->options.granularity == RUN_BY_FUNCTION,
		.automatic = r->options.granularity == RUN_BY_EITHER,
		.lines = &r->options.lines,
	};

	scope.lenient = may_be_wrapper(r);
	err = code_map_open(r->path, &scope, &r->code, e);
	if (err < 0 || !scope.lenient || r->options.kind != RUN_LAUNCH)
		return err;
	r->wrapper = !code_map_main_lines(r->code);
	if (r->wrapper)
		return 0;
	code_map_close(r->code);
	r->code = NULL;
	scope.lenient = false;
	return code_map_open(r->path, &scope, &r->code, e);
}

void run_say_granularity(const struct run *r)
{
	const struct elf_object *o = code_map_main(r->code);

	if (r->wrapper)
		return;
	if (r->options.granularity == RUN_BY_EITHER && code_map_by_function(r->code))
		(void)complain("%s: no line information: trying functions instead of lines; build it with -g for lines", r->path);
	if (code_map_by_function(r->code) && elf_object_symbol_problem(o))
		(void)complain("%s", elf_object_symbol_problem(o));
}

/* The object and its line table for a point; the table may be NULL. */
static int point_object(struct run *r, const struct point_spec *p, const struct elf_object **ret, struct line_table **ret_lines,
			struct error *e)
{
	if (p->kind == POINT_BINARY_FUNCTION)
		return code_map_object(r->code, p->binary, ret, ret_lines, e);
	*ret = r->in_object ? r->in_object : code_map_main(r->code);
	*ret_lines = r->in_object ? r->in_lines : code_map_main_lines(r->code);
	return 0;
}

/* May points be in executables that are not known yet? */
static bool points_may_come(const struct run *r)
{
	return r->wrapper || r->options.kind != RUN_LAUNCH;
}

static int no_function(const struct elf_object *o, const struct point_spec *p, const char *option, int err, struct error *e)
{
	char *similar[3] = {NULL, NULL, NULL};
	struct elf_symbol cold;
	size_t n;

	if (err == -EINVAL)
		return fail(e, EINVAL, "%s %s: %s is data in %s, not a function", option, p->name, p->function, elf_object_path(o));
	if (!elf_object_has_symbols(o))
		return fail(e, ENOENT, "%s %s: %s has no symbols (it was stripped); use an unstripped build", option,
			    p->name, elf_object_path(o));
	if (elf_object_find_function(o, p->function, &cold) == 0)
		return fail(e, ENOENT, "%s %s: %s was inlined everywhere but for cold code (%s), which is never entered; use FILE:LINE",
			    option, p->name, p->function, cold.name);
	n = elf_object_similar_functions(o, p->function, similar, 3);
	(void)fail(e, ENOENT, "%s %s: no function %s in %s%s%s%s%s%s%s; `cozbpf list functions` shows all", option, p->name, p->function,
		   elf_object_path(o), n ? "; did you mean " : "", n ? similar[0] : "", n > 1 ? " or " : "", n > 1 ? similar[1] : "",
		   n > 2 ? " or " : "", n > 2 ? similar[2] : "");
	for (size_t i = 0; i < n; i++)
		free(similar[i]);
	return -ENOENT;
}

static int line_sites(const struct elf_object *o, struct line_table *t, const struct point_spec *p, const char *option,
		      uint64_t **ret, size_t *ret_n, struct error *e)
{
	const char *near[2];
	uint32_t nearest;
	size_t n;
	int err;

	if (!t)
		return fail(e, ENODATA, "%s %s: %s has no line information; build it with -g, or name a function", option, p->name,
			    elf_object_path(o));
	err = line_table_statements(t, p->file, p->line, ret, ret_n, &nearest);
	if (err == -ENOENT && nearest)
		return fail(e, ENOENT, "%s %s: line %u of %s has no code; the nearest line that has is %s:%u", option, p->name, p->line,
			    p->file, p->file, nearest);
	if (err == -ENOENT)
		return fail(e, ENOENT, "%s %s: no line of %s has code in %s", option, p->name, p->file, elf_object_path(o));
	if (err == -ENXIO) {
		n = line_table_similar_files(t, p->file, near, 2);
		return fail(e, ENOENT, "%s %s: no source file %s in %s%s%s%s%s; `cozbpf list lines` shows all", option, p->name, p->file,
			    elf_object_path(o), n ? "; did you mean " : "", n ? near[0] : "", n > 1 ? " or " : "",
			    n > 1 ? near[1] : "");
	}
	if (err < 0)
		return fail(e, -err, "%s %s: cannot read the line information of %s: %s", option, p->name, elf_object_path(o), strerror(-err));
	return 0;
}

/* Refuses a --fixed-line that can never be found, before the program starts. One in another object than the main executable cannot be
 * looked up before it is loaded. */
static int check_fixed_line(struct run *r, struct error *e)
{
	const char *written = r->options.fixed_line, *colon = written ? strrchr(written, ':') : NULL;
	struct point_spec p = {.name = (char *)written, .kind = POINT_FILE_LINE};
	const struct elf_object *o = code_map_main(r->code);
	_cleanup_free_ uint64_t *addrs = NULL;
	_cleanup_free_ char *file = NULL;
	struct elf_symbol sym;
	size_t n;
	int err;

	if (!written || r->options.n_binaries)
		return 0;
	if (r->options.granularity == RUN_BY_FUNCTION) {
		p.function = (char *)written;
		err = elf_object_find_function(o, written, &sym);
		return err < 0 ? no_function(o, &p, "--fixed-line", err, e) : 0;
	}
	file = strndup(written, colon ? (size_t)(colon - written) : strlen(written));
	if (!file)
		return fail(e, ENOMEM, "out of memory");
	p.file = file;
	p.line = colon ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0;
	return line_sites(o, code_map_main_lines(r->code), &p, "--fixed-line", &addrs, &n, e);
}

/* The kernel refuses a probe on an instruction with a lock prefix, and does so only when the program maps the file: silently. */
static bool has_lock_prefix(const struct elf_object *o, uint64_t vaddr)
{
	static const unsigned char prefixes[] = {0x66, 0x67, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65, 0xf2, 0xf3};
	unsigned char code[4];
	int n = elf_object_read(o, vaddr, code, sizeof(code));

	for (int i = 0; i < n; i++) {
		if (code[i] == 0xf0)
			return true;
		if (!memchr(prefixes, code[i], sizeof(prefixes)))
			return false;
	}
	return false;
}

static int find_sites(struct run *r, const struct point_spec *p, const struct elf_object **ret_object, uint64_t **ret,
		       size_t *ret_n, struct error *e)
{
	const struct elf_object *o;
	struct line_table *lines;
	_cleanup_free_ struct elf_symbol *entries = NULL;
	int err = point_object(r, p, &o, &lines, e);

	if (err < 0)
		return err;
	*ret_object = o;
	if (p->kind == POINT_FILE_LINE)
		return line_sites(o, lines, p, "-p", ret, ret_n, e);
	err = elf_object_find_entries(o, p->function, &entries, ret_n);
	if (err < 0)
		return no_function(o, p, "-p", err, e);
	/* The same offset is another place in a copy. */
	if (p->offset)
		*ret_n = 1;
	if (p->offset && p->offset >= entries[0].size)
		return fail(e, EINVAL, "-p %s: offset %llu is outside of %s, which has %llu bytes", p->name,
			    (unsigned long long)p->offset, p->function, (unsigned long long)entries[0].size);
	*ret = calloc(*ret_n, sizeof(**ret));
	if (!*ret)
		return fail(e, ENOMEM, "out of memory");
	for (size_t i = 0; i < *ret_n; i++)
		(*ret)[i] = entries[i].addr + p->offset;
	return 0;
}

/* Addresses of a point, each of which can be probed. *ret is the caller's. */
static int point_sites(struct run *r, const struct point_spec *p, const struct elf_object **ret_object, uint64_t **ret,
		       size_t *ret_n, struct error *e)
{
	int err = find_sites(r, p, ret_object, ret, ret_n, e);

	for (size_t i = 0; err >= 0 && i < *ret_n; i++)
		if (has_lock_prefix(*ret_object, (*ret)[i]))
			return fail(e, ENOTSUP, "-p %s: the kernel cannot probe the atomic instruction (lock prefix) at 0x%llx of %s; use "
				    "the line or FUNCTION+OFFSET of one before or after it", p->name, (unsigned long long)(*ret)[i],
				    elf_object_path(*ret_object));
	return err;
}

int run_check_points(struct run *r, struct error *e)
{
	for (size_t i = 0; i < r->options.n_points; i++) {
		_cleanup_free_ uint64_t *addrs = NULL;
		const struct elf_object *o;
		size_t n;
		int err = points_may_come(r) ? 0 : point_sites(r, &r->options.points[i], &o, &addrs, &n, e);

		if (err < 0)
			return err;
	}
	return points_may_come(r) ? 0 : check_fixed_line(r, e);
}

/* The sites of point @i as a probe takes them. */
static int probe_sites(struct run *r, size_t i, struct session_site **ret, size_t *ret_n, struct error *e)
{
	_cleanup_free_ uint64_t *addrs = NULL;
	const struct elf_object *o;
	struct session_site *sites;
	int err = point_sites(r, &r->options.points[i], &o, &addrs, ret_n, e);

	if (err < 0)
		return err;
	sites = calloc(*ret_n, sizeof(*sites));
	if (!sites)
		return fail(e, ENOMEM, "out of memory");
	for (size_t j = 0; j < *ret_n; j++)
		sites[j] = (struct session_site){o, addrs[j]};
	*ret = sites;
	return 0;
}

int run_add_points(struct run *r, struct error *e)
{
	for (size_t i = 0; i < r->options.n_points; i++) {
		_cleanup_free_ struct session_site *sites = NULL;
		size_t n = 0;
		int err = probe_sites(r, i, &sites, &n, e);

		if (err < 0 && (!points_may_come(r) || err == -ENOMEM))
			return err;
		if (e)
			e->text[0] = '\0';
		err = session_add_point(r->session, r->options.points[i].name, sites, err < 0 ? 0 : n, e);
		if (err < 0)
			return err;
	}
	return run_pair_points(r, e);
}

int run_extend_points(struct run *r, const struct elf_object *object, struct line_table *lines, struct error *e)
{
	int err = 0;

	r->in_object = object;
	r->in_lines = lines;
	for (size_t i = 0; err == 0 && i < r->options.n_points; i++) {
		_cleanup_free_ struct session_site *sites = NULL;
		size_t n;

		/* By the name of its file it is found once. */
		if (r->options.points[i].kind == POINT_BINARY_FUNCTION && session_point_sites(r->session, i))
			continue;
		if (probe_sites(r, i, &sites, &n, NULL) == 0)
			err = session_extend_point(r->session, i, sites, n, e);
	}
	r->in_object = NULL;
	r->in_lines = NULL;
	return err;
}

int run_require_points(struct run *r, struct error *e)
{
	for (size_t i = 0; i < r->options.n_points; i++) {
		_cleanup_free_ struct session_site *sites = NULL;
		size_t n;
		int err = session_point_sites(r->session, i) ? 0 : probe_sites(r, i, &sites, &n, e);

		if (err < 0)
			return err;
	}
	return 0;
}

int run_open_runner(struct run *r, struct error *e)
{
	const struct run_options *o = &r->options;
	const char *names[ABI_MAX_POINTS];
	enum profile_point_kind kinds[ABI_MAX_POINTS];
	struct runner_options ro = {
		.seed = o->seed,
		.experiment_ns = o->experiment_ns,
		.cool_off_ns = o->cool_off_ns,
		.max_experiment_ns = 16 * o->experiment_ns,
		.min_visits = 5, /* what Coz's viewer asks of a cell */
		.fixed_line = o->fixed_line,
		.fixed_speedup = o->fixed_speedup,
		.grid = o->grid,
		.n_grid = o->n_grid,
		.zero_share = o->zero_share,
		.point_names = names,
		.point_kinds = kinds,
		.n_points = session_points(r->session),
	};
	int err;

	for (size_t i = 0; i < ro.n_points; i++) {
		names[i] = session_point_name(r->session, i);
		kinds[i] = session_point_is_latency(r->session, i) ? PROFILE_LATENCY : PROFILE_THROUGHPUT;
	}
	r->n_runner_points = ro.n_points;
	err = runner_new(&ro, &session_backend, r->session, r->purpose->sink, r, &r->runner);
	return err < 0 ? fail(e, -err, "cannot plan experiments: %s", strerror(-err)) : 0;
}
