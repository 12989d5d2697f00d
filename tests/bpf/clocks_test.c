// SPDX-License-Identifier: BSD-2-Clause
/* Sampling clocks are stopped where nothing in scope runs, and nothing is lost by it: a child is
 * moved from one CPU to another and back, and stays each time until the clocks of the CPU that it
 * left are stopped. */
#include "tests/bpf/driven.h"

#include "experiment/session/internal.h"
#include "cozbpf.skel.h" /* after abi.h */

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <sys/resource.h>

static void work(void)
{
	for (;;)
		produce();
}

static void move(const struct driven *d, unsigned int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	assert_int_equal(sched_setaffinity(d->pid, sizeof(one), &one), 0);
}

/* Two CPUs that the test may use. */
static bool two_cpus(unsigned int cpus[2])
{
	cpu_set_t allowed;
	size_t n = 0;

	assert_int_equal(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	for (unsigned int cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
		if (CPU_ISSET(cpu, &allowed))
			cpus[n++] = cpu;
	return n == 2;
}

static void start(struct driven *d, unsigned int cpu)
{
	struct session_options o = {.config.payer = ABI_PAY_NONE,
				    .config.signo = SIGRTMAX - 3,
				    .rate_hz = 1000,
				    .seed = 1};

	driven_open(d, &o);
	driven_fork(d, work);
	move(d, cpu);
	driven_go(d);
}

/* As the run's loop does: serves the clocks, while an experiment goes on. Returns whether any was
 * to be woken. */
static bool serve(struct driven *d, int ms)
{
	struct pollfd fd = {.fd = session_clocks_fd(d->session), .events = POLLIN};
	uint64_t now = clock_monotonic_ns(), end = now + (uint64_t)ms * NSEC_PER_MSEC;
	bool woken = false;

	for (; now < end; now = clock_monotonic_ns())
		if (poll(&fd, 1, (int)((end - now) / NSEC_PER_MSEC) + 1) > 0) {
			woken = true;
			session_serve_clocks(d->session);
		}
	return woken;
}

struct account {
	uint64_t sampled_ns, cpu_ns;
	bool woken;
};

static void experiment(struct driven *d, struct account *sum)
{
	struct backend_totals a, b;
	struct profile_experiment owed;
	uint64_t cpu;

	driven_begin(d, 0, &a);
	cpu = driven_cpu_ns(d);
	sum->woken |= serve(d, 200);
	cpu = driven_cpu_ns(d) - cpu;
	driven_end(d, &b, &owed);
	sum->sampled_ns += b.selected_ns - a.selected_ns;
	sum->cpu_ns += cpu;
}

/* Until the other CPU's clocks are stopped, which takes a second at least. */
static void stay(struct driven *d, unsigned int other, struct account *sum)
{
	for (int i = 0; i < 50 && !clocks_idle(d->session, other); i++)
		experiment(d, sum);
	assert_true(clocks_idle(d->session, other));
}

/* What the clocks of @cpu have counted that can be stopped altogether. */
static uint64_t ticked_ns(const struct session *s, unsigned int cpu)
{
	uint64_t sum = 0, one;

	for (size_t i = 0; i < s->n_events; i++)
		if (s->events[i].cpu == cpu && s->events[i].kind) {
			assert_int_equal(read(s->events[i].fd, &one, sizeof(one)), sizeof(one));
			sum += one;
		}
	return sum;
}

static void nothing_is_lost_while_clocks_are_stopped(void **state)
{
	struct account sum = {0};
	struct error e = {.text = ""};
	unsigned int cpus[2];
	struct driven d;
	uint64_t ticked;
	double ratio;

	(void)state;
	REQUIRE_FEATURE("switch_raw", "raw tracepoints");
	if (!two_cpus(cpus)) {
		print_message("skipped: one CPU only\n");
		skip();
	}
	start(&d, cpus[0]);
	assert_int_equal(session_idle_clocks(d.session, &e), 0);
	for (int i = 0; i < 3; i++) {
		unsigned int here = cpus[i % 2], there = cpus[!(i % 2)];

		stay(&d, there, &sum);
		assert_false(clocks_idle(d.session, here));
		ticked = ticked_ns(d.session, there);
		experiment(&d, &sum);
		assert_int_equal(ticked_ns(d.session, there), ticked);
		sum.woken = false;
		move(&d, there);
		experiment(&d, &sum);
		/* It was told, and they go again. */
		assert_true(sum.woken);
		assert_false(clocks_idle(d.session, there));
		assert_true(ticked_ns(d.session, there) > ticked);
		assert_int_equal(__atomic_load_n(&d.session->skel->bss->clock_states[there],
						 __ATOMIC_SEQ_CST),
				 ABI_IDLE_RUNNING);
	}
	driven_stop(&d);
	ratio = (double)sum.sampled_ns / (double)sum.cpu_ns;
	print_message("%.3f of %.0f ms\n", ratio, (double)sum.cpu_ns / NSEC_PER_MSEC);
	assert_true(ratio > 0.95 && ratio < 1.05);
}

/* Without the ring that tells of threads in scope no clock is stopped, and all else goes on. */
static void without_a_ring_no_clock_stops(void **state)
{
	struct rlimit limit, none = {0};
	struct account sum = {0};
	struct error e = {.text = ""};
	unsigned int cpus[2];
	struct driven d;

	(void)state;
	REQUIRE_BPF();
	if (!two_cpus(cpus)) {
		print_message("skipped: one CPU only\n");
		skip();
	}
	start(&d, cpus[0]);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none.rlim_max = limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(session_idle_clocks(d.session, &e), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_non_null(strstr(e.text, "idle CPUs"));
	assert_int_equal(session_clocks_fd(d.session), -1);
	for (int i = 0; i < 8; i++)
		experiment(&d, &sum);
	assert_false(clocks_idle(d.session, cpus[1]));
	assert_true(sum.sampled_ns > 0);
	driven_stop(&d);
}

static size_t clocks_of(const struct session *s, unsigned int cpu)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_events; i++)
		n += s->events[i].cpu == cpu;
	return n;
}

/* A CPU that goes and comes back, as the kernel's list says: its clocks tick again. */
static void a_cpu_that_comes_gets_clocks(void **state)
{
	struct account before = {0}, gone = {0}, after = {0};
	unsigned int cpus[2];
	char list[64];
	struct driven d;

	(void)state;
	REQUIRE_BPF();
	if (!two_cpus(cpus)) {
		print_message("skipped: one CPU only\n");
		skip();
	}
	start(&d, cpus[1]);
	experiment(&d, &before);
	assert_int_equal(clocks_of(d.session, cpus[1]), 2);
	(void)snprintf(list, sizeof(list), "%u\n", cpus[0]);
	cpus_follow(d.session, list);
	assert_int_equal(clocks_of(d.session, cpus[1]), 0);
	assert_int_equal(clocks_of(d.session, cpus[0]), 2);
	experiment(&d, &gone);
	assert_int_equal(gone.sampled_ns, 0);
	/* By what the machine has online. */
	(void)session_vary_clocks(d.session, clock_monotonic_ns());
	assert_int_equal(clocks_of(d.session, cpus[1]), 2);
	for (int i = 0; i < 3; i++)
		experiment(&d, &after);
	driven_stop(&d);
	assert_true(before.sampled_ns > 0 && after.sampled_ns > 0);
}

static void lists_are_read(void **state)
{
	bool set[8];

	(void)state;
	cpus_parse("0-1,4,6-100\n", set, 8);
	assert_memory_equal(set, ((bool[8]){true, true, false, false, true, false, true, true}),
			    sizeof(set));
	cpus_parse("\n", set, 8);
	assert_memory_equal(set, (bool[8]){0}, sizeof(set));
	cpus_parse("3-x,1", set, 8);
	assert_false(set[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_lost_while_clocks_are_stopped),
		cmocka_unit_test(without_a_ring_no_clock_stops),
		cmocka_unit_test(a_cpu_that_comes_gets_clocks),
		cmocka_unit_test(lists_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
