// SPDX-License-Identifier: BSD-2-Clause
/* Latency points on a real process: a child that begins and ends what the parent asks for, step by
 * step, so that every count is known; and what virtual time makes of intervals while one thread
 * hits and another pays. */
#include "base/error.h" /* before cmocka, whose macro fail() would hit it */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "analysis/stats.h"
#include "program/code/map.h"
#include "points/points.h"
#include "experiment/session/session.h"
#include "tests/bpf/latency_child.h"
#include "tests/bpf/require.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct driven {
	struct session *session;
	struct code_map *code;
	pid_t pid;
	int commands, answers;
};

static void add_point(struct driven *d, const char *function, const char *name)
{
	struct point_site site = {.object = code_map_main(d->code)};
	struct error e = {.text = ""};
	struct elf_symbol sym;
	size_t point;

	assert_int_equal(elf_object_find_function(site.object, function, &sym), 0);
	site.vaddr = sym.addr;
	if (points_add(session_points(d->session), name, &point, &e) < 0 ||
	    points_attach_sites(session_points(d->session), point, &site, 1, &e) < 0)
		fail_msg("%s", e.text);
}

/* The next two points, the first of them being number @n. */
static void add_latency(struct driven *d, size_t n, const char *begin, const char *end,
			unsigned int begin_argument, unsigned int end_argument)
{
	struct error e = {.text = ""};

	add_point(d, begin, begin);
	add_point(d, end, end);
	if (points_pair(session_points(d->session), n, begin_argument, n + 1, end_argument, &e) < 0)
		fail_msg("%s", e.text);
}

static void start(struct driven *d, enum abi_payer payer)
{
	struct session_options o = {.config.payer = payer,
				    .config.signo = SIGRTMAX - 3,
				    .rate_hz = 2000,
				    .seed = 1,
				    .points.latencies = 4,
				    .points.needs = POINTS_NEED_PROBES};
	struct code_scope scope = {.functions = true};
	struct error e = {.text = ""};
	int to[2], from[2];
	bool changed;

	said = mmap(NULL, sizeof(*said), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(said != MAP_FAILED);
	assert_int_equal(pipe(to), 0);
	assert_int_equal(pipe(from), 0);
	if (code_map_open("/proc/self/exe", &scope, &d->code, &e) < 0 ||
	    session_open(&o, &d->session, &e) < 0)
		fail_msg("%s", e.text);
	d->pid = fork();
	assert_true(d->pid >= 0);
	if (d->pid == 0) {
		(void)close(to[1]);
		(void)close(from[0]);
		child(to[0], from[1]);
	}
	(void)close(to[0]);
	(void)close(from[1]);
	d->commands = to[1];
	d->answers = from[0];
	if (session_attach(d->session, d->pid, &e) < 0)
		fail_msg("%s", e.text);
	add_latency(d, 0, "lat_req_begin", "lat_req_end", 0, 0);
	add_latency(d, 2, "lat_job_begin", "lat_job_end", 2, 1);
	add_latency(d, 4, "lat_hot_begin", "lat_hot_end", 0, 0);
	add_latency(d, 6, "lat_cold_begin", "lat_cold_end", 0, 0);
	if (code_map_refresh(d->code, 0, d->pid, &changed, &e) < 0 ||
	    session_set_code(d->session, d->code, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(points_count(session_points(d->session)), 4);
	for (size_t i = 0; i < 4; i++)
		assert_true(points_shown(session_points(d->session), i)->latency);
	assert_string_equal(points_shown(session_points(d->session), 1)->name, "lat_job_begin");
}

static void stop_driving(struct driven *d)
{
	(void)kill(d->pid, SIGKILL);
	(void)waitpid(d->pid, NULL, 0);
	session_close(d->session);
	code_map_close(d->code);
	(void)close(d->commands);
	(void)close(d->answers);
	(void)munmap(said, sizeof(*said));
}

static void tell(struct driven *d, const char *steps)
{
	char c;

	for (; *steps; steps++) {
		assert_int_equal(write(d->commands, steps, 1), 1);
		assert_int_equal(read(d->answers, &c, 1), 1);
		assert_int_equal(c, *steps);
	}
}

static void begin(struct driven *d, double speedup, struct backend_totals *before)
{
	struct abi_interval iv[ABI_MAX_INTERVALS];
	struct backend_setup setup = {.intervals = iv, .speedup = speedup};

	assert_int_equal(
		session_backend.intervals(d->session, "lat_hot_work", iv, &setup.n_intervals), 0);
	assert_int_equal(session_backend.begin(d->session, &setup), 0);
	assert_int_equal(session_backend.snapshot(d->session, before), 0);
}

static void end(struct driven *d, struct backend_totals *after)
{
	assert_int_equal(session_backend.end(d->session), 0);
	assert_int_equal(session_backend.snapshot(d->session, after), 0);
}

static uint64_t measured(struct driven *d, size_t index, struct profile_latency *ret)
{
	struct profile_latency *l = NULL;
	uint64_t n = 0;

	assert_int_equal(session_backend.latency(d->session, index, &l), 0);
	assert_non_null(l);
	*ret = *l;
	free(l);
	for (size_t i = 0; i < ret->n_buckets; i++) {
		assert_true(ret->buckets[i].bucket < HISTOGRAM_BUCKETS &&
			    ret->buckets[i].count > 0);
		assert_true(i == 0 || ret->buckets[i].bucket > ret->buckets[i - 1].bucket);
		n += ret->buckets[i].count;
	}
	free(ret->buckets);
	ret->buckets = NULL;
	return n;
}

/* One experiment with these steps in it. */
static uint64_t experiment(struct driven *d, const char *steps, size_t index,
			   struct profile_latency *ret)
{
	struct backend_totals a, b;

	begin(d, 0, &a);
	tell(d, steps);
	end(d, &b);
	return measured(d, index, ret);
}

static void by_thread(void **state)
{
	struct backend_totals a, b;
	struct profile_latency l;
	struct driven d;

	(void)state;
	REQUIRE_BPF();
	start(&d, ABI_PAY_NONE);
	begin(&d, 0, &a);
	tell(&d, "r");
	end(&d, &b);
	assert_int_equal(measured(&d, 0, &l), PAIRS);
	assert_int_equal(b.n_points, 4);
	assert_int_equal(b.points[0].visits - a.points[0].visits, PAIRS);
	assert_int_equal(b.points[0].departures - a.points[0].departures, PAIRS);
	/* What it measures lies between what the program sees from inside and from outside of the
	 * probes. */
	assert_true(l.sum_ns > 0 && (uint64_t)l.sum_ns >= said->inner_ns &&
		    (uint64_t)l.sum_ns <= said->outer_ns);
	assert_int_equal(l.unmatched + l.unended + l.crossed + l.lost, 0);
	assert_true(l.in_flight_begin == 0 && l.in_flight_end == 0);
	/* Nothing of it in the next experiment. */
	assert_int_equal(experiment(&d, "", 0, &l), 0);
	assert_int_equal(l.sum_ns, 0);
	/* Nothing of the requests between experiments, either. */
	tell(&d, "r");
	assert_int_equal(experiment(&d, "r", 0, &l), PAIRS);
	stop_driving(&d);
}

static void odd_ones(void **state)
{
	struct profile_latency l;
	struct driven d;

	(void)state;
	REQUIRE_BPF();
	start(&d, ABI_PAY_NONE);
	assert_int_equal(experiment(&d, "o", 0, &l), 1);
	assert_int_equal(l.unmatched, 2);
	assert_int_equal(l.unended, 1);
	assert_int_equal(l.in_flight_end, 0);
	assert_int_equal(experiment(&d, "xx", 0, &l), 0);
	assert_int_equal(l.unended, 2);
	assert_int_equal(l.in_flight_end, 0);
	/* Begun before the experiment: it has no length; nor has what ends after it, or in the next
	 * one. */
	tell(&d, "b");
	assert_int_equal(experiment(&d, "e", 0, &l), 0);
	assert_int_equal(l.crossed, 1);
	assert_int_equal(l.in_flight_begin, 1);
	assert_int_equal(l.in_flight_end, 0);
	assert_int_equal(experiment(&d, "b", 0, &l), 0);
	assert_int_equal(l.in_flight_end, 1);
	assert_int_equal(experiment(&d, "e", 0, &l), 0);
	assert_int_equal(l.crossed, 1);
	assert_int_equal(l.unmatched + l.unended, 0);
	assert_int_equal(experiment(&d, "bs", 0, &l), 0);
	tell(&d, "e");
	assert_int_equal(experiment(&d, "r", 0, &l), PAIRS);
	assert_int_equal(l.in_flight_begin, 1);
	assert_int_equal(l.in_flight_end, 1);
	stop_driving(&d);
}

static void by_key(void **state)
{
	struct profile_latency l;
	struct driven d;

	(void)state;
	REQUIRE_BPF();
	start(&d, ABI_PAY_NONE);
	assert_int_equal(experiment(&d, "j", 1, &l), JOBS);
	assert_int_equal(l.unmatched, 1);
	assert_int_equal(l.unended + l.lost + l.crossed, 0);
	assert_int_equal(l.in_flight_end, 0);
	assert_true(l.sum_ns > 0);
	stop_driving(&d);
}

static void full(void **state)
{
	struct profile_latency l;
	struct driven d;

	(void)state;
	REQUIRE_BPF();
	start(&d, ABI_PAY_NONE);
	assert_int_equal(experiment(&d, "m", 1, &l), 0);
	assert_int_equal(l.in_flight_end, ABI_MAX_BEGINS);
	assert_int_equal(l.lost, TOO_MANY);
	/* There is no room for anybody now; an end without its begin is one. */
	assert_int_equal(experiment(&d, "be", 0, &l), 0);
	assert_int_equal(l.lost, 1);
	assert_int_equal(l.unmatched, 1);
	stop_driving(&d);
}

/* Mean interval of both threads, in virtual time, and of both by the clock. False if other programs
 * took much of the CPUs. */
static bool means(struct driven *d, double speedup, double virtual[2], double clock[2])
{
	struct backend_totals a, b;
	struct profile_latency l;

	begin(d, speedup, &a);
	(void)usleep(1500000);
	end(d, &b);
	for (size_t i = 0; i < 2; i++) {
		uint64_t n = measured(d, 2 + i, &l);

		assert_true(n > 5);
		virtual[i] = (double)l.sum_ns / (double)n;
		clock[i] = (double)(b.time_ns - a.time_ns) /
			   (double)(b.points[2 + i].departures - a.points[2 + i].departures);
	}
	return 20 * (b.outside_wait_ns - a.outside_wait_ns) < b.busy_ns - a.busy_ns;
}

enum { HOT, COLD, COLD_BY_CLOCK, N_RATIOS, ATTEMPTS = 9 };

/* The thread in the selected line gets as much faster as was asked for; the other pays, which takes
 * time, but none of its intervals: of what it takes more by the clock, at most a fifth is in them
 * (what a pause costs beside, where samples are dear). */
static void payments_do_not_count(void **state)
{
	double plain[2], fast[2], clock_plain[2], clock_fast[2], ratios[N_RATIOS][ATTEMPTS];
	size_t n = 0;
	bool good = false;
	struct driven d;

	(void)state;
	REQUIRE_BPF();
	if (!feature_usable("task_work", NULL)) {
		print_message("skipped: no BPF task work on this kernel\n");
		skip();
	}
	if (sysconf(_SC_NPROCESSORS_ONLN) < 2) {
		print_message("skipped: one CPU\n");
		skip();
	}
	start(&d, ABI_PAY_HOLD);
	tell(&d, "t");
	(void)usleep(100000);
	/* Intervals are by the clock: other programs on these CPUs are in them, and what slows down
	 * a virtual machine for some seconds. So it is the medians of all attempts that have to be
	 * right. */
	for (int attempt = 0; attempt < ATTEMPTS && !good; attempt++) {
		double hot, cold, cold_by_clock;
		bool ours = means(&d, 0, plain, clock_plain) && means(&d, 0.5, fast, clock_fast);

		if (!ours)
			continue;
		print_message("hot %.0f -> %.0f us, cold %.0f -> %.0f us; by the clock cold %.0f "
			      "-> %.0f us\n",
			      plain[0] / 1e3, fast[0] / 1e3, plain[1] / 1e3, fast[1] / 1e3,
			      clock_plain[1] / 1e3, clock_fast[1] / 1e3);
		ratios[HOT][n] = fast[0] / plain[0];
		ratios[COLD][n] = fast[1] / plain[1];
		ratios[COLD_BY_CLOCK][n] = clock_fast[1] / clock_plain[1];
		n++;
		hot = stats_quantile(ratios[HOT], n, 0.5);
		cold = stats_quantile(ratios[COLD], n, 0.5);
		cold_by_clock = stats_quantile(ratios[COLD_BY_CLOCK], n, 0.5);
		good = hot > 0.4 && hot < 0.6 && cold > 0.85 &&
		       cold - 1 < (cold_by_clock - 1) / 5 && cold_by_clock > 1.5;
	}
	stop_driving(&d);
	if (n == 0) {
		print_message("skipped: other programs take the CPUs\n");
		skip();
	}
	assert_true(good);
}

/* The mean of the jobs' lengths by their sum, and by their histogram. */
static void handed_over(struct driven *d, double speedup, unsigned int ms, double *ret_sum,
			double *ret_buckets)
{
	struct backend_totals a, b;
	struct profile_latency *l = NULL;
	uint64_t n = 0;

	begin(d, speedup, &a);
	(void)usleep(1000 * ms);
	end(d, &b);
	assert_int_equal(session_backend.latency(d->session, 1, &l), 0);
	assert_non_null(l);
	*ret_buckets = 0;
	for (size_t i = 0; i < l->n_buckets; i++) {
		n += l->buckets[i].count;
		*ret_buckets += (double)l->buckets[i].count *
				((double)histogram_low(l->buckets[i].bucket) +
				 (double)histogram_width(l->buckets[i].bucket) / 2);
	}
	assert_true(n > 0);
	*ret_sum = (double)l->sum_ns / (double)n;
	free(l->buckets);
	free(l);
	*ret_buckets /= (double)n;
}

/* The sum is of the clocks as they are booked, the histogram of smoothed ones. What one thread
 * begins and another ends, which it woke, is the same by both, and where nothing gets faster there
 * is nothing to smooth, whatever was before. */
static void threads_share_a_clock(void **state)
{
	double sum, buckets;
	struct driven d;

	(void)state;
	REQUIRE_BPF();
	start(&d, ABI_PAY_NONE);
	tell(&d, "h");
	for (int i = 0; i < 3; i++) {
		handed_over(&d, 0.75, 400, &sum, &buckets);
		print_message("hot: %.0f us, %.0f by the histogram\n", sum / 1e3, buckets / 1e3);
		assert_true(buckets < 2 * sum && buckets > sum / 2);
		handed_over(&d, 0, 200, &sum, &buckets);
		print_message("cold: %.0f us, %.0f by the histogram\n", sum / 1e3, buckets / 1e3);
		assert_true(buckets < 1.05 * sum && buckets > 0.95 * sum);
	}
	stop_driving(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_thread),
		cmocka_unit_test(odd_ones),
		cmocka_unit_test(by_key),
		cmocka_unit_test(full),
		cmocka_unit_test(payments_do_not_count),
		cmocka_unit_test(threads_share_a_clock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
