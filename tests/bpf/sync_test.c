// SPDX-License-Identifier: BSD-2-Clause
/* --sync pthread at work on a real process: a child whose threads wait for each other, are made and
 * joined, and pass places as the shim has them in its wrappers. */
#include "tests/bpf/driven.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define SITE(name)                                                                     \
	void _cozbpf_site_##name(unsigned long credit);                                \
	__attribute__((noinline, used)) void _cozbpf_site_##name(unsigned long credit) \
	{                                                                              \
		__asm__ volatile("" : : "r"(credit));                                  \
	}
SITE(wakes)
SITE(blocks)
SITE(back)

static void *producer(void *arg)
{
	for (;;) {
		produce();
		_cozbpf_site_wakes(0);
		sem_post(&full);
		_cozbpf_site_blocks(0);
		sem_wait(&empty);
		_cozbpf_site_back(1);
	}
	return arg;
}

static void *consumer(void *arg)
{
	for (;;) {
		_cozbpf_site_blocks(0);
		sem_wait(&full);
		_cozbpf_site_back(1);
		consume();
		driven_item_done();
		_cozbpf_site_wakes(0);
		sem_post(&empty);
	}
	return arg;
}

static void hand_over(void)
{
	pthread_t t;

	sem_init(&full, 0, 0);
	sem_init(&empty, 0, 0);
	pthread_create(&t, NULL, producer, NULL);
	pthread_create(&t, NULL, consumer, NULL);
	for (;;) {
		_cozbpf_site_wakes(0);
		pthread_create(&t, NULL, driven_short_lived, NULL);
		_cozbpf_site_blocks(0);
		pthread_join(t, NULL);
		_cozbpf_site_back(1);
		usleep(1000);
	}
}

/* Probes on the places, which this program has itself. */
static void watch_sites(struct driven *d)
{
	struct error e = {.text = ""};
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *image;

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(image, MAP_FAILED);
	if (session_sync_shim(d->session, image, (size_t)st.st_size, "/proc/self/exe", &e) < 0)
		fail_msg("%s", e.text);
	(void)munmap(image, (size_t)st.st_size);
	(void)close(fd);
}

/* With pauses, for which no sample must stand. */
static void work_and_rest(void)
{
	for (;;) {
		for (int i = 0; i < 20; i++)
			produce();
		usleep(1000);
	}
}

/* @calls: with probes on the places of its calls. */
static void start(struct driven *d, enum abi_payer payer, const char *disabled, void (*body)(void),
		  bool calls)
{
	struct session_options o = {.config.payer = payer,
				    .config.sync = ABI_SYNC_PTHREAD,
				    .config.signo = SIGRTMAX - 3,
				    .rate_hz = 2000,
				    .seed = 1,
				    .points.disabled = disabled};

	driven_open(d, &o);
	driven_fork(d, body);
	if (calls)
		watch_sites(d);
	driven_go(d);
}

static void hold_books_balance(void **state)
{
	struct driven d;

	(void)state;
	REQUIRE_FEATURE("task_work", "BPF task work");
	start(&d, ABI_PAY_HOLD, NULL, hand_over, true);
	driven_books_balance(&d, true);
	assert_true(session_control(d.session)->exit_ns > 0);
	driven_no_complaint(&d);
	driven_stop(&d);
}

static void books_balance_without_the_scheduler(void **state)
{
	struct driven d;

	(void)state;
	REQUIRE_BPF();
	start(&d, ABI_PAY_NONE, "task_work,send_signal_task,sched_switch,sched_waking,switch_raw",
	      hand_over, true);
	driven_books_balance(&d, false);
	driven_no_complaint(&d);
	driven_stop(&d);
}

/* What the samples in the line stand for, against the CPU time of a thread that does nothing else.
 */
static void samples_stand_for_cpu_time(const char *disabled, double tolerance)
{
	struct backend_totals a, b;
	struct profile_experiment owed;
	struct driven d;
	uint64_t cpu;
	double ratio;

	start(&d, ABI_PAY_NONE, disabled, work_and_rest, false);
	cpu = driven_cpu_ns(&d);
	driven_experiment(&d, 0, &a, &b, &owed);
	cpu = driven_cpu_ns(&d) - cpu;
	ratio = (double)(b.selected_ns - a.selected_ns) / (double)cpu;
	driven_stop(&d);
	print_message("%.3f of %.0f ms\n", ratio, (double)cpu / NSEC_PER_MSEC);
	assert_true(ratio > 1 - tolerance && ratio < 1 + tolerance);
}

static void time_is_exact_with_switches(void **state)
{
	(void)state;
	REQUIRE_FEATURE("switch_raw", "raw tracepoints");
	samples_stand_for_cpu_time(NULL, 0.1);
}

/* Some hundred samples: the error of their number is a few percent. */
static void time_is_estimated_without(void **state)
{
	(void)state;
	REQUIRE_BPF();
	samples_stand_for_cpu_time("switch_raw", 0.3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hold_books_balance),
		cmocka_unit_test(books_balance_without_the_scheduler),
		cmocka_unit_test(time_is_exact_with_switches),
		cmocka_unit_test(time_is_estimated_without),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
