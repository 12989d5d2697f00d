// SPDX-License-Identifier: BSD-2-Clause
/* Every BPF program loads in every configuration that a run can ask for, within its budget of
 * verified instructions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernel/probe.h"
#include "kernel/programs.h"
#include "kernel/uprobes.h"
#include "experiment/session/session.h"
#include "shared/abi.h"
#include "shared/latency.h"

#include "cozbpf.skel.h"
#include "cozbpf_impl.skel.h"
#include "probe_work.skel.h"
#include "probe_work_impl.skel.h"
#include "tests/bpf/require.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
	const char *program;
	unsigned int insns;
} budget[] = {
#define BUDGET(program, insns) {#program, insns},
#include "tests/bpf/budget.def"
#undef BUDGET
};

static unsigned int budget_of(const char *program)
{
	for (size_t i = 0; i < sizeof(budget) / sizeof(*budget); i++)
		if (strcmp(budget[i].program, program) == 0)
			return budget[i].insns;
	return 0;
}

/* Which programs take part is what the session decides (session/sync.c): either kind of events. */
static void choose(struct cozbpf_bpf *skel, enum abi_sync sync)
{
	struct bpf_program *p;

	bpf_object__for_each_program (p, skel->obj) {
		if (strncmp(bpf_program__name(p), "edge_", 5) == 0)
			assert_int_equal(bpf_program__set_autoload(p, sync == ABI_SYNC_SCHED), 0);
		if (strncmp(bpf_program__name(p), "sync_", 5) == 0)
			assert_int_equal(bpf_program__set_autoload(p, sync == ABI_SYNC_PTHREAD), 0);
	}
}

static void check_budgets(struct cozbpf_bpf *skel)
{
	struct bpf_program *p;

	bpf_object__for_each_program (p, skel->obj) {
		struct bpf_prog_info info = {0};
		unsigned int size = sizeof(info), allowed = budget_of(bpf_program__name(p));

		if (allowed == 0)
			fail_msg("%s has no line in budget.def", bpf_program__name(p));
		if (!bpf_program__autoload(p))
			continue;
		assert_int_equal(bpf_obj_get_info_by_fd(bpf_program__fd(p), &info, &size), 0);
		if (info.verified_insns > allowed)
			fail_msg("%s: %u instructions verified, %u allowed", bpf_program__name(p),
				 info.verified_insns, allowed);
		print_message("%s: %u of %u\n", bpf_program__name(p), info.verified_insns, allowed);
	}
}

/* As in a PID namespace of its own, in which numbers of processes are not the kernel's. */
static bool contained;
/* As with --slopes-only. */
static bool with_slopes;

static void loads_scope(enum abi_sync sync, enum abi_payer payer, bool task_work, bool send_signal,
			bool many, bool inclusive, unsigned int latencies)
{
	struct cozbpf_bpf *skel = programs_open();
	static const char *const points[] = {"progress_enter",	      "progress_leave",
					     "progress_event",	      "progress_traced",
					     "progress_enter_traced", "progress_leave_traced"};
	struct abi_config *c;
	int r;

	assert_non_null(skel);
	c = &skel->rodata->config;
	*c = (struct abi_config){
		.nr_cpus = 2,
		.payer = payer,
		.signo = 40,
		.has_task_work = task_work,
		.has_send_signal_task = send_signal,
		.has_preempt_disable = programs_preempt_disable(),
		.rq_edges = payer != ABI_PAY_SLEEP && sync == ABI_SYNC_SCHED,
		.sync = sync,
		.has_switch = task_work,
		.many = many,
		.all_execs = many,
		.kernel_base = many ? 1ULL << 63 : 0,
		.threshold_ns = 2000,
		.unused_wait_ns = 3000000,
		.unused_wait_age_ns = 50000000,
		.slice_ns = 1000000,
		.max_pay_ns = SHIM_MAX_PAY_NS,
		.inclusive = inclusive,
		.slopes = with_slopes,
		.slows = 1, /* the larger programs */
		.waits = task_work && sync == ABI_SYNC_SCHED && !inclusive,
		.max_frames = ABI_MAX_FRAMES,
	};
	skel->rodata->n_latencies = latencies;
	skel->rodata->own_namespace.level = contained;
	c->has_sampled = 1;
	choose(skel, sync);
	(void)bpf_program__set_autoload(skel->progs.pay_at_call,
					sync == ABI_SYNC_SCHED && !task_work);
	/* All that some points need; in half of the cases loaded for links of many probes, where
	 * the kernel has such. */
	for (size_t i = 0; i < sizeof(points) / sizeof(*points); i++)
		(void)bpf_program__set_autoload(
			bpf_object__find_program_by_name(skel->obj, points[i]), true);
	if (many && feature_usable("uprobe_multi", NULL))
		(void)bpf_program__set_expected_attach_type(skel->progs.progress_visit,
							    (enum bpf_attach_type)UPROBE_MULTI);
	r = cozbpf_bpf__load(skel);
	if (r == 0)
		check_budgets(skel);
	cozbpf_bpf__destroy(skel);
	if (r != 0)
		fail_msg("sync %d, payer %d, task work %d, many processes %d: %s", sync, payer,
			 task_work, many, strerror(-r));
}

/* For machines that are emulated, where the verifier is slow. In pairs: one process with one
 * attribution, many processes with the other one. One each: for each payer one half of a pair. */
static bool in_pairs, one_each;

static void loads(enum abi_sync sync, enum abi_payer payer, bool task_work, bool send_signal)
{
	for (int inclusive = 0; inclusive < 2; inclusive++)
		for (int many = 0; many < 2; many++) {
			if (sync == ABI_SYNC_PTHREAD &&
			    many) /* the calls are those of one process */
				continue;
			if (in_pairs && sync == ABI_SYNC_SCHED && many != inclusive)
				continue;
			if (one_each && inclusive != (int)payer % 2)
				continue;
			loads_scope(sync, payer, task_work, send_signal, many, inclusive, 0);
		}
}

static void loads_with_latency_points(void **state)
{
	(void)state;
	REQUIRE_BPF();
	loads_scope(ABI_SYNC_SCHED, ABI_PAY_NONE, false, false, true, true, ABI_MAX_LATENCIES);
	loads_scope(ABI_SYNC_SCHED, ABI_PAY_SLEEP, feature_usable("task_work", NULL),
		    feature_usable("send_signal_task", NULL), false, false, 1);
	loads_scope(ABI_SYNC_PTHREAD, ABI_PAY_SLEEP, feature_usable("task_work", NULL), false,
		    false, false, 1);
}

static void loads_in_a_container(void **state)
{
	bool work = feature_usable("task_work", NULL),
	     signal = feature_usable("send_signal_task", NULL);

	(void)state;
	REQUIRE_BPF();
	contained = true;
	loads_scope(ABI_SYNC_SCHED, ABI_PAY_SLEEP, work, signal, true, true, ABI_MAX_LATENCIES);
	loads_scope(ABI_SYNC_SCHED, ABI_PAY_SPIN, false, false, true, false, 0);
	loads_scope(ABI_SYNC_PTHREAD, ABI_PAY_SLEEP, work, false, false, false, 1);
	contained = false;
}

static void loads_with_slopes(void **state)
{
	bool work = feature_usable("task_work", NULL),
	     signal = feature_usable("send_signal_task", NULL);

	(void)state;
	REQUIRE_BPF();
	with_slopes = true;
	loads_scope(ABI_SYNC_SCHED, ABI_PAY_NONE, work, signal, true, true, ABI_MAX_LATENCIES);
	loads_scope(ABI_SYNC_SCHED, ABI_PAY_NONE, false, false, false, false, 0);
	with_slopes = false;
}

static void loads_with_this_kernels_features(void **state)
{
	bool work = feature_usable("task_work", NULL),
	     signal = feature_usable("send_signal_task", NULL);

	(void)state;
	REQUIRE_BPF();
	for (enum abi_sync sync = ABI_SYNC_SCHED; sync <= ABI_SYNC_PTHREAD; sync++) {
		bool usable = signal && sync == ABI_SYNC_SCHED;

		loads(sync, ABI_PAY_NONE, work, usable);
		loads(sync, ABI_PAY_SLEEP, work, usable);
		loads(sync, ABI_PAY_SPIN, work, usable);
		if (work)
			loads(sync, ABI_PAY_HOLD, work, usable);
	}
}

/* Also a newer kernel is asked for that, by --disable. */
static void loads_without_newer_features(void **state)
{
	(void)state;
	REQUIRE_BPF();
	if (!feature_usable("task_work", NULL) && !feature_usable("send_signal_task", NULL))
		return; /* the same as above */
	for (enum abi_sync sync = ABI_SYNC_SCHED; sync <= ABI_SYNC_PTHREAD; sync++) {
		loads(sync, ABI_PAY_NONE, false, false);
		loads(sync, ABI_PAY_SLEEP, false, false);
		loads(sync, ABI_PAY_SPIN, false, false);
	}
}

static void probes_agree_with_disable(void **state)
{
	struct feature *f;
	size_t n;

	(void)state;
	REQUIRE_BPF();
	f = session_probe("task_work", &n);
	for (size_t i = 0; i < n; i++) {
		/* Also of what a run can do without, all that a command loads can be. */
		if ((f[i].required || strncmp(f[i].name, "programs", 8) == 0) &&
		    f[i].state != FEATURE_OK)
			fail_msg("%s: %s", f[i].name, f[i].detail);
		if (strcmp(f[i].name, "task_work") == 0)
			assert_int_equal(f[i].state, FEATURE_MISSING);
	}
	free(f);
	assert_false(feature_usable("task_work", "send_signal_task,task_work"));
	assert_false(feature_usable("no_such_feature", NULL));
}

#define TASK_WORK "bpf_task_work_schedule_resume"

/* How many arguments @function has there; -1: there is none. */
static int arguments_of(const struct btf *btf, const char *function)
{
	int id = btf__find_by_name_kind(btf, function, BTF_KIND_FUNC);

	return id < 0 ? -1
		      : btf_vlen(
				btf__type_by_id(btf, btf__type_by_id(btf, (unsigned int)id)->type));
}

/* Either variant names one of the functions, as the kernels have it that it is for, and nothing
 * else tells them apart: the skeleton of one serves for both. */
static void variants_differ_in_one_function(void **state)
{
	size_t size, impl_size;
	const void *bytes = cozbpf_bpf__elf_bytes(&size),
		   *impl_bytes = cozbpf_impl_bpf__elf_bytes(&impl_size);
	struct bpf_object *o = bpf_object__open_mem(bytes, size, NULL),
			  *impl = bpf_object__open_mem(impl_bytes, impl_size, NULL);
	struct bpf_program *p, *q = NULL;
	struct bpf_map *m, *n = NULL;

	(void)state;
	assert_non_null(o);
	assert_non_null(impl);
	assert_int_equal(arguments_of(bpf_object__btf(o), TASK_WORK), 4);
	assert_int_equal(arguments_of(bpf_object__btf(o), TASK_WORK "_impl"), -1);
	assert_int_equal(arguments_of(bpf_object__btf(impl), TASK_WORK), -1);
	assert_int_equal(arguments_of(bpf_object__btf(impl), TASK_WORK "_impl"), 5);
	bpf_object__for_each_program (p, o) {
		q = bpf_object__next_program(impl, q);
		assert_non_null(q);
		assert_string_equal(bpf_program__name(p), bpf_program__name(q));
		assert_string_equal(bpf_program__section_name(p), bpf_program__section_name(q));
	}
	assert_null(bpf_object__next_program(impl, q));
	bpf_object__for_each_map (m, o) {
		n = bpf_object__next_map(impl, n);
		assert_non_null(n);
		assert_string_equal(strchr(bpf_map__name(m), '.') ?: bpf_map__name(m),
				    strchr(bpf_map__name(n), '.') ?: bpf_map__name(n));
		assert_int_equal(bpf_map__value_size(m), bpf_map__value_size(n));
		assert_int_equal(bpf_map__max_entries(m), bpf_map__max_entries(n));
	}
	assert_null(bpf_object__next_map(impl, n));
	bpf_object__close(o);
	bpf_object__close(impl);
}

/* Where the kernel has task work under either name, it is found, by the variant that names it so.
 */
static void task_work_is_found(void **state)
{
	struct btf *btf;
	struct cozbpf_bpf *skel;
	bool plain, impl;

	(void)state;
	REQUIRE_BPF();
	btf = btf__load_vmlinux_btf();
	assert_non_null(btf);
	plain = arguments_of(btf, TASK_WORK) == 4;
	impl = !plain && arguments_of(btf, TASK_WORK "_impl") == 5;
	skel = programs_open();
	assert_non_null(skel);
	assert_int_equal(arguments_of(bpf_object__btf(skel->obj), TASK_WORK), plain ? 4 : -1);
	assert_int_equal(feature_usable("task_work", NULL), plain || impl);
	cozbpf_bpf__destroy(skel);
	btf__free(btf);
}

static int set_capabilities(const struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};

	return (int)syscall(SYS_capset, &head, data);
}

static int load_bytes(const void *bytes, size_t size)
{
	struct bpf_object *o = bpf_object__open_mem(bytes, size, NULL);
	int r = o ? bpf_object__load(o) : -errno;

	bpf_object__close(o);
	return r;
}

/* Objects with functions that this kernel lacks, or has with other arguments: one of the two
 * variants, everywhere. What root can load, the three capabilities can. */
static void takes_three_capabilities(void **state)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct all[2], few[2];
	const void *bytes[2];
	size_t sizes[2];
	int loaded = 0;

	(void)state;
	REQUIRE_BPF();
	bytes[0] = probe_work_bpf__elf_bytes(&sizes[0]);
	bytes[1] = probe_work_impl_bpf__elf_bytes(&sizes[1]);
	assert_int_equal(syscall(SYS_capget, &head, all), 0);
	memcpy(few, all, sizeof(few));
	few[0].effective = 1U << CAP_SYS_PTRACE;
	few[1].effective = 1U << (CAP_PERFMON - 32) | 1U << (CAP_BPF - 32);
	for (size_t i = 0; i < 2; i++) {
		int r, as_root = load_bytes(bytes[i], sizes[i]);

		assert_int_equal(set_capabilities(few), 0);
		r = load_bytes(bytes[i], sizes[i]);
		assert_int_equal(set_capabilities(all), 0);
		assert_int_equal(r, as_root);
		loaded += r == 0;
	}
	assert_true(loaded > 0);
}

/* usage: load_test [--pairs | --one-each] [PATTERN]: without the tests that are named so. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loads_with_this_kernels_features),
		cmocka_unit_test(loads_in_a_container),
		cmocka_unit_test(loads_with_slopes),
		cmocka_unit_test(loads_without_newer_features),
		cmocka_unit_test(loads_with_latency_points),
		cmocka_unit_test(probes_agree_with_disable),
		cmocka_unit_test(variants_differ_in_one_function),
		cmocka_unit_test(task_work_is_found),
		cmocka_unit_test(takes_three_capabilities),
	};

	one_each = argc > 1 && strcmp(argv[1], "--one-each") == 0;
	in_pairs = one_each || (argc > 1 && strcmp(argv[1], "--pairs") == 0);
	if (argc > 1 + in_pairs)
		cmocka_set_skip_filter(argv[argc - 1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
