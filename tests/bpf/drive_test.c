// SPDX-License-Identifier: BSD-2-Clause
/* The programs at work on a real process: a child with threads whose hot loops, wake-ups and exits
 * make every program run. */
#include "tests/bpf/driven.h"

#include "experiment/session/internal.h"
#include "cozbpf.skel.h" /* after abi.h */

#include <bpf/bpf.h>
#include <errno.h>
#include <sys/syscall.h>

static void start(struct driven *d, enum abi_payer payer, const char *disabled)
{
	struct session_options o = {.config.payer = payer,
				    .config.signo = SIGRTMAX - 3,
				    .rate_hz = 1000,
				    .seed = 1,
				    .points.disabled = disabled,
				    .config.slows = true,
				    .points.needs = POINTS_NEED_PROBES};
	struct point_site site = {0};
	size_t point;
	struct elf_symbol sym;
	struct error e = {.text = ""};

	driven_open(d, &o);
	session_calibrate(d->session);
	driven_fork(d, driven_hand_over);
	site.object = code_map_main(d->code);
	assert_int_equal(elf_object_find_function(site.object, "driven_item_done", &sym), 0);
	site.vaddr = sym.addr;
	if (points_add(session_points(d->session), "item", &point, &e) < 0 ||
	    points_attach_sites(session_points(d->session), point, &site, 1, &e) < 0)
		fail_msg("%s", e.text);
	driven_go(d);
}

static void samples_name_the_hot_function(void **state)
{
	struct backend_sample *s;
	uint64_t in_produce = 0, all = 0;
	struct driven d;
	size_t n;

	(void)state;
	REQUIRE_BPF();
	start(&d, ABI_PAY_NONE, NULL);
	(void)usleep(300000);
	assert_int_equal(session_backend.samples(d.session, &s, &n), 0);
	for (size_t i = 0; i < n; i++) {
		const char *line, *function;

		if (session_backend.name(d.session, s[i].addr, &line, &function) < 0)
			continue;
		all += s[i].count;
		if (strcmp(line, "produce") == 0)
			in_produce += s[i].count;
	}
	free(s);
	driven_stop(&d);
	assert_true(all > 20);
	assert_true(in_produce * 10 > all * 3); /* about two thirds of the pair's work */
}

/* As many visits of the point as there are, and their times. */
static void point_is_visited(struct driven *d)
{
	struct backend_totals a, b;
	struct profile_experiment owed;

	driven_experiment(d, 0, &a, &b, &owed);
	assert_true(b.points[0].visits > a.points[0].visits);
	assert_true(b.points[0].last_ns >= b.points[0].first_ns &&
		    b.points[0].first_ns >= a.time_ns - NSEC_PER_MSEC);
	assert_true(b.busy_ns > a.busy_ns);
}

static void hold_books_balance(void **state)
{
	struct backend_totals a, b;
	struct profile_experiment owed;
	struct driven d;

	(void)state;
	REQUIRE_FEATURE("task_work", "BPF task work");
	start(&d, ABI_PAY_HOLD, NULL);
	point_is_visited(&d);
	driven_books_balance(&d, true);
	/* Several threads hit, hand over to each other on whatever CPU, and end: still nothing but
	 * hits raises G. */
	d.function = "consume";
	driven_experiment(&d, 1, &a, &b, &owed);
	assert_true(b.growth > a.growth);
	assert_true(b.growth - a.growth <= b.hit_ns - a.hit_ns + NSEC_PER_MSEC);
	assert_int_equal(owed.imbalance, 0);
	driven_stop(&d);
}

/* Slowed by half, each sample stops its own thread for half of what it stands for, and nobody else
 * for anything. */
static void slowing_charges_nobody(void **state)
{
	struct backend_totals a, b;
	struct profile_experiment owed;
	uint64_t hit, paid;
	struct driven d;

	(void)state;
	REQUIRE_FEATURE("task_work", "BPF task work");
	start(&d, ABI_PAY_HOLD, NULL);
	driven_experiment(&d, -0.5, &a, &b, &owed);
	hit = b.hit_ns - a.hit_ns;
	paid = b.paid - a.paid;
	assert_int_equal(b.growth, a.growth);
	assert_true(b.hits > a.hits + 20);
	/* What they stand for, rounded for each. */
	assert_true(hit <= (b.selected_ns - a.selected_ns) / 2 &&
		    hit + (b.hits - a.hits) >= (b.selected_ns - a.selected_ns) / 2);
	/* A payment is a step of the clock longer than what was owed; what is owed at the end was
	 * not paid. */
	if (paid + owed.owed + 50000 < hit ||
	    paid > hit + hit / 10 + (b.payments - a.payments) * 5000)
		fail_msg("paid %llu, hits %llu, owed %llu", (unsigned long long)paid,
			 (unsigned long long)hit, (unsigned long long)owed.owed);
	assert_int_equal(b.credited, a.credited);
	assert_int_equal(b.rq_credited, a.rq_credited);
	assert_int_equal(owed.imbalance, 0);
	/* The next one speeds up again. */
	driven_experiment(&d, 0.5, &a, &b, &owed);
	assert_true(b.growth > a.growth);
	driven_stop(&d);
}

static void books_balance_without_payer(void **state)
{
	struct driven d;

	(void)state;
	REQUIRE_BPF();
	start(&d, ABI_PAY_NONE, "task_work,send_signal_task");
	driven_books_balance(&d, false);
	driven_stop(&d);
}

static void exits_are_stamped_and_slots_released(void **state)
{
	struct driven d;

	(void)state;
	REQUIRE_BPF();
	start(&d, ABI_PAY_NONE, NULL);
	(void)usleep(100000);
	assert_true(session_control(d.session)->exit_ns > 0);
	driven_no_complaint(&d);
	driven_stop(&d);
}

/* A thread may leave a CPU unseen and end, and its number be another program's, when a hit asks
 * those that run to pay. */
static void a_hit_asks_only_what_is_in_scope(void **state)
{
	struct backend_totals a, b;
	struct profile_experiment owed;
	struct driven d;
	pid_t stranger;
	void *books;
	int pidfd;

	(void)state;
	REQUIRE_FEATURE("task_work", "BPF task work");
	start(&d, ABI_PAY_HOLD, NULL);
	stranger = fork();
	if (stranger == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			(void)pause();
	}
	pidfd = (int)syscall(SYS_pidfd_open, stranger, 0);
	assert_true(pidfd >= 0);
	books = calloc(1, bpf_map__value_size(d.session->skel->maps.threads));
	assert_non_null(books);
	driven_begin(&d, 0.5, &a);
	for (int i = 0; i < 3000; i++) {
		for (unsigned int cpu = 0; cpu < d.session->nr_cpus; cpu++)
			__atomic_store_n(&d.session->skel->bss->cpus[cpu].tid,
					 (unsigned int)stranger, __ATOMIC_RELAXED);
		(void)usleep(100);
	}
	driven_end(&d, &b, &owed);
	assert_true(b.hits > a.hits + 20);
	assert_int_equal(
		bpf_map_lookup_elem(bpf_map__fd(d.session->skel->maps.threads), &pidfd, books),
		-ENOENT);
	free(books);
	(void)close(pidfd);
	(void)kill(stranger, SIGKILL);
	(void)waitpid(stranger, NULL, 0);
	driven_stop(&d);
}

static int cpus_claimed;
int __real_libbpf_num_possible_cpus(void);
int __wrap_libbpf_num_possible_cpus(void);

int __wrap_libbpf_num_possible_cpus(void)
{
	return cpus_claimed ? cpus_claimed : __real_libbpf_num_possible_cpus();
}

static void a_machine_with_too_many_cpus_is_refused(void **state)
{
	struct session_options o = {.config.payer = ABI_PAY_NONE};
	struct session *s = NULL;
	struct error e = {.text = ""};

	(void)state;
	cpus_claimed = ABI_MAX_CPUS + 1;
	assert_int_equal(session_open(&o, &s, &e), -E2BIG);
	cpus_claimed = 0;
	assert_null(s);
	assert_non_null(strstr(e.text, "257 possible CPUs"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_name_the_hot_function),
		cmocka_unit_test(hold_books_balance),
		cmocka_unit_test(slowing_charges_nobody),
		cmocka_unit_test(books_balance_without_payer),
		cmocka_unit_test(exits_are_stamped_and_slots_released),
		cmocka_unit_test(a_hit_asks_only_what_is_in_scope),
		cmocka_unit_test(a_machine_with_too_many_cpus_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
