// SPDX-License-Identifier: BSD-2-Clause
/* `cozbpf collect`'s program: every tick is in the database once, or told to be lost. */
#include "base/clock.h"
#include "base/error.h"
#include "collect/private.h"
#include "collect/database/database.h"
#include "require.h"

#include "collect.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static char directory[64];

static int setup(void **state)
{
	(void)state;
	(void)snprintf(directory, sizeof(directory), "/tmp/cozbpf-collect-XXXXXX");
	assert_non_null(mkdtemp(directory));
	return 0;
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command);
}

__attribute__((noinline)) static void work(uint64_t ns)
{
	uint64_t end = clock_monotonic_ns() + ns;

	/* The clock is read in the vDSO: seldom. */
	do
		for (volatile int i = 0; i < 20000; i++)
			;
	while (clock_monotonic_ns() < end);
}

struct found {
	uint64_t samples, ticks, lost, outside, idle, ours, of_process;
	const char *image, *process;
};

static int look(struct counts *c, void *arg)
{
	struct found *f = arg;

	for (size_t i = 0; i < c->n_rows; i++) {
		const struct counts_row *row = &c->rows[i];
		const char *event = c->events[row->event].name;

		if (c->image.kind == COUNTS_SAMPLER) {
			f->ticks += strcmp(event, "ticks") == 0 ? row->count : 0;
			f->lost += strcmp(event, "lost") == 0 ? row->count : 0;
			f->outside += strcmp(event, "outside") == 0 ? row->count : 0;
			continue;
		}
		f->samples += row->count;
		f->idle += c->image.kind == COUNTS_IDLE ? row->count : 0;
		f->ours += f->image && strstr(c->image.path, f->image) && *c->image.build_id
				   ? row->count
				   : 0;
		f->of_process += f->process && strcmp(c->who[row->who].process, f->process) == 0
					 ? row->count
					 : 0;
	}
	return 0;
}

static struct found what_is_in(const char *image, const char *process)
{
	struct found f = {.image = image, .process = process};
	struct database *d = NULL;

	assert_int_equal(database_open(directory, NULL, NULL, &d, NULL), 0);
	assert_int_equal(database_each(d, 0, UINT64_MAX, look, &f, NULL), 0);
	database_close(d);
	return f;
}

/* How often the kernel itself says that the program ran. */
static uint64_t runs(struct collect_bpf *skel)
{
	struct bpf_prog_info info = {0};
	uint32_t size = sizeof(info);

	assert_int_equal(
		bpf_obj_get_info_by_fd(bpf_program__fd(skel->progs.collect_tick), &info, &size), 0);
	return info.run_cnt;
}

static void crowd(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		pid_t child = fork();

		if (child == 0) {
			char name[16];

			(void)snprintf(name, sizeof(name), "crowd-%u", i % 300);
			(void)prctl(PR_SET_NAME, name);
			work(NSEC_PER_MSEC);
			_exit(0);
		}
		assert_true(child > 0);
		assert_int_equal(waitpid(child, NULL, 0), child);
	}
}

/* At 4 kHz, with a thousand processes that come and go: as many as the kernel says. */
static void every_tick_counts_once(void **state)
{
	const struct collect_settings s = {.rate_hz = 4000};
	struct collector *c = NULL;
	struct database *d = NULL;
	struct error e = {0};
	struct found f;
	uint64_t ran;
	size_t kept;
	int stats;

	(void)state;
	REQUIRE_BPF();
	assert_int_equal(database_open_writer(directory, (gid_t)-1, NULL, NULL, &d, NULL), 0);
	stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	assert_true(stats >= 0);
	if (collector_open(&s, NULL, NULL, &c, &e) < 0)
		fail_msg("%s", e.text);
	/* While a process has it mapped, its build is found out. */
	work(50 * NSEC_PER_MSEC);
	collector_serve(c);
	for (unsigned int i = 0; i < 10; i++) {
		crowd(100);
		collector_redraw(c);
		if (i % 3 == 0)
			assert_int_equal(collector_flush(c, d, 7200, &kept, NULL), 0);
	}
	collector_stop(c);
	ran = runs(c->skel);
	assert_int_equal(collector_flush(c, d, 7200, &kept, NULL), 0);
	assert_int_equal(kept, 0);
	collector_close(c);
	database_close(d);
	(void)close(stats);
	f = what_is_in("collect_test", "crowd-7");
	assert_true(f.ticks > 2000);
	assert_int_equal(f.ticks, ran);
	assert_int_equal(f.samples + f.lost + f.outside, f.ticks);
	assert_true(f.lost < f.ticks / 1000 + 1);
	assert_true(f.ours > 500);
	assert_true(f.of_process > 0);
}

/* A table that is too small for what it meets gives entries away, and none is forgotten. */
static void evicted_entries_count(void **state)
{
	const struct collect_settings s = {.rate_hz = 4000};
	struct collector *c = NULL;
	struct database *d = NULL;
	struct collect_totals t;
	struct found f;
	size_t kept;

	(void)state;
	REQUIRE_BPF();
	assert_int_equal(database_open_writer(directory, (gid_t)-1, NULL, NULL, &d, NULL), 0);
	assert_int_equal(collector_open(&s, NULL, NULL, &c, NULL), 0);
	/* All processes share these places: what fills buckets are names. */
	crowd(300);
	collector_stop(c);
	t = collector_totals(c);
	assert_true(t.hits > 0);
	assert_int_equal(collector_flush(c, d, 7200, &kept, NULL), 0);
	collector_close(c);
	database_close(d);
	f = what_is_in(NULL, NULL);
	assert_int_equal(f.samples + f.lost, t.ticks);
}

/* Who is below a control group is in scope, everybody else is counted as outside. */
static void a_control_group_alone(void **state)
{
	struct collect_settings s = {.rate_hz = 1000,
				     .cgroup = access("/sys/fs/cgroup/unified", F_OK) == 0
						       ? "/sys/fs/cgroup/unified"
						       : "/sys/fs/cgroup"};
	struct collector *c = NULL;
	struct database *d = NULL;
	struct error e = {0};
	struct found f;
	size_t kept;

	(void)state;
	REQUIRE_BPF();
	assert_int_equal(database_open_writer(directory, (gid_t)-1, NULL, NULL, &d, NULL), 0);
	assert_int_equal(collector_open(&s, NULL, NULL, &c, &e), 0);
	work(300 * NSEC_PER_MSEC);
	collector_stop(c);
	assert_int_equal(collector_flush(c, d, 7200, &kept, NULL), 0);
	collector_close(c);
	f = what_is_in("collect_test", NULL);
	assert_true(f.ours > 50);
	assert_int_equal(f.samples + f.outside + f.lost, f.ticks);
	/* A directory that is none is refused. */
	s.cgroup = directory;
	assert_true(collector_open(&s, NULL, NULL, &c, &e) < 0);
	assert_non_null(strstr(e.text, "no control group"));
	database_close(d);
}

static void events_are_checked(void **state)
{
	struct collect_event v;
	struct error e;

	(void)state;
	assert_int_equal(collect_event_parse("page-faults=7", &v, NULL), 0);
	assert_int_equal(v.every, 7);
	assert_int_equal(collect_event_parse("page-fault", &v, &e), -EINVAL);
	assert_non_null(strstr(e.text, "did you mean page-faults"));
	assert_int_equal(collect_event_parse("page-faults=0", &v, &e), -EINVAL);
	assert_int_equal(collect_event_parse("cpu-clock=1", &v, &e), -EINVAL);
}

/* Nothing is told to be written that is not: what cannot be is there the next time. */
static void what_cannot_be_written_stays(void **state)
{
	const struct collect_settings s = {.rate_hz = 1000};
	char read_only[128], command[256];
	struct collector *c = NULL;
	struct database *d = NULL;
	struct error e = {0};
	struct found f;
	size_t kept = 0;

	(void)state;
	REQUIRE_BPF();
	assert_int_equal(database_open_writer(directory, (gid_t)-1, NULL, NULL, &d, NULL), 0);
	assert_int_equal(collector_open(&s, NULL, NULL, &c, &e), 0);
	work(200 * NSEC_PER_MSEC);
	/* A file is in the way of the epoch's directory. */
	(void)snprintf(read_only, sizeof(read_only), "%s/19700101T020000Z-3600", directory);
	(void)snprintf(command, sizeof(command), "touch %s", read_only);
	assert_int_equal(system(command), 0);
	assert_true(collector_flush(c, d, 7200, &kept, &e) < 0);
	assert_true(kept > 0);
	assert_int_equal(unlink(read_only), 0);
	collector_stop(c);
	assert_int_equal(collector_flush(c, d, 7200, &kept, &e), 0);
	assert_int_equal(kept, 0);
	collector_close(c);
	database_close(d);
	f = what_is_in("collect_test", NULL);
	assert_int_equal(f.samples + f.lost, f.ticks);
	assert_true(f.ours > 50);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(every_tick_counts_once),	      TEST(evicted_entries_count),
		TEST(a_control_group_alone),	      TEST(what_cannot_be_written_stays),
		cmocka_unit_test(events_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
