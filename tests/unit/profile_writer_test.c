// SPDX-License-Identifier: BSD-2-Clause
#include "base/error.h"
#include "profile/addresses.h"
#include "profile/reader.h"
#include "profile/writer.h"

#include "profile_writer_file.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct profile_experiment experiment = {.selected = "/a/b.c:12",
					       .speedup = 0.25,
					       .duration = 500000000,
					       .selected_samples = 17,
					       .function = "f",
					       .elapsed = UINT64_MAX,
					       .hits = 3,
					       .credited = -4,
					       .oversleep = INT64_MIN,
					       .foreign = 0.1};
static struct profile_point points[] = {
	{.kind = PROFILE_THROUGHPUT,
	 .name = "p",
	 .delta = 5,
	 .timed = true,
	 .first_ns = 1,
	 .last_ns = 9,
	 .effective_ns = 7,
	 .timed_visits = 4},
	{.kind = PROFILE_THROUGHPUT, .name = "q\t\"\n\x1b\xff", .delta = 1},
	{.kind = PROFILE_LATENCY, .name = "l", .arrivals = 3, .departures = 2, .difference = -2},
};
static struct profile_samples samples[] = {
	{"/a/b.c:12", 40, "30\ta.h:1\t/a/b.c:12\n10\t/a/b.c:12\tb.c:4", .function = "g"},
	{"c.c:1", 2, NULL, 7000000}};
static struct profile_addresses addresses[] = {
	{.path = "/a/b", .build = "0f", .inode = 7, .changed_ns = 9, .counts = "10:3 1f4:39"}};
static const struct profile logged = {
	.samples = samples, .n_samples = 2, .addresses = addresses, .n_addresses = 1};

static void write_all(void)
{
	struct profile_startup s = {.time = 123,
				    .version = "1",
				    .command = "./a \"b\"",
				    .pay = "sleep",
				    .attribution = "inclusive",
				    .seed = 1ull << 51};
	struct profile_writer *w = NULL;
	struct error e = {0};

	assert_int_equal(open_writer(&w, &e), 0);
	assert_int_equal(profile_write_startup(w, &s), 0);
	assert_int_equal(profile_write_experiment(w, &experiment, points, 3), 0);
	assert_int_equal(
		profile_write_log(
			w, &(struct profile_runtime){.time = 777, .samples = 41, .unattributed = 3},
			&logged),
		0);
	assert_int_equal(profile_writer_close(w), 0);
}

static void json_is_as_specified(void **state)
{
	const char *text;

	(void)state;
	write_all();
	text = get_file();
	assert_ptr_equal(strstr(text, "{\"type\":\"startup\",\"time\":123,\"cozbpf\":{\"version\":"
				      "\"1\",\"command\":\"./a \\\"b\\\"\""),
			 text);
	assert_non_null(strstr(text, "\n{\"type\":\"experiment\",\"selected\":\"/a/"
				     "b.c:12\",\"speedup\":0.25,\"duration\":500000000,"
				     "\"selected_samples\":17,"));
	assert_non_null(strstr(text, ",\"function\":\"f\",\"elapsed\":18446744073709551615,"));
	assert_non_null(strstr(text, "\"foreign\":0.1}\n"));
	assert_non_null(strstr(text, "{\"type\":\"throughput-point\",\"name\":\"p\",\"delta\":5,"
				     "\"first_ns\":1,\"last_ns\":9,"
				     "\"effective_ns\":7,\"timed_visits\":4}\n"));
	assert_non_null(strstr(
		text,
		"{\"type\":\"throughput-point\",\"name\":\"q\\t\\\"\\n\\u001b?\",\"delta\":1}\n"));
	assert_non_null(strstr(text, "{\"type\":\"latency-point\",\"name\":\"l\",\"arrivals\":3,"
				     "\"departures\":2,\"difference\":-2}\n"));
	assert_non_null(strstr(
		text,
		"{\"type\":\"runtime\",\"time\":777,\"samples\":41,\"unattributed\":3}\n{\"type\":"
		"\"samples\",\"location\":\"/a/"
		"b.c:12\",\"count\":40,\"function\":\"g\",\"ns\":0,"
		"\"inlined\":\"30\\ta.h:1\\t/a/b.c:12\\n10\\t/a/b.c:12\\tb.c:4\"}\n"
		"{\"type\":\"samples\",\"location\":\"c.c:1\",\"count\":2,\"ns\":7000000}\n"
		"{\"type\":\"addresses\",\"path\":\"/a/"
		"b\",\"build\":\"0f\",\"inode\":7,\"changed_ns\":9,\"counts\":\"10:3 1f4:39\"}\n"));
}

static void what_is_written_reads_back(void **state)
{
	struct profile p = {0};
	const struct profile_experiment *x;

	(void)state;
	write_all();
	write_all(); /* appended */
	assert_int_equal(profile_read(&p, path, NULL), 0);
	assert_int_equal(p.bad_lines, 0);
	assert_int_equal(p.n_runs, 2);
	assert_int_equal(p.runs[1].seed, 1ull << 51);
	assert_int_equal(p.n_experiments, 2);
	x = &p.experiments[1].x;
	assert_int_equal(x->elapsed, UINT64_MAX);
	assert_int_equal(x->oversleep, INT64_MIN);
	assert_int_equal(x->credited, -4);
	assert_true(x->foreign == 0.1 && x->speedup == 0.25);
	assert_int_equal(p.experiments[1].n_points, 3);
	assert_true(p.experiments[1].points[0].timed);
	assert_false(p.experiments[1].points[1].timed);
	assert_int_equal(p.runtime_ns, 2 * 777);
	assert_int_equal(p.sampled, 2 * 41);
	assert_string_equal(p.runs[1].attribution, "inclusive");
	assert_int_equal(p.samples[0].count, 80);
	assert_string_equal(p.samples[0].inlined, samples[0].inlined);
	assert_string_equal(p.samples[0].function, "g");
	assert_null(p.samples[1].inlined);
	assert_int_equal(p.n_addresses, 2);
	assert_string_equal(p.addresses[1].counts, "10:3 1f4:39");
	profile_free(&p);
}

struct places {
	size_t n;
	uint64_t offsets, counts; /* their sums */
};

static int add_place(const struct profile_place *at, void *arg)
{
	struct places *all = arg;

	all->n++;
	all->offsets += at->offset;
	all->counts += at->count;
	return all->n == 1000 ? 7 : 0;
}

/* In as many records as a reader takes. */
static void places_read_back(void **state)
{
	struct profile_addresses of = {.path = "/a/b", .inode = 7},
				 broken = {.counts = "10:3 11:x 12:5"};
	struct profile_place places[900];
	struct places all = {0};
	struct profile made = {0}, p = {0};
	struct profile_writer *w = NULL;

	(void)state;
	for (size_t i = 0; i < 900; i++)
		places[i] = (struct profile_place){0x7fff00001000 + 16 * i,
						   i ? i : UINT64_MAX - 900ull * 899 / 2};
	profile_addresses_add(&made, &of, places, 900);
	assert_true(made.n_addresses > 1);
	assert_int_equal(open_writer(&w, NULL), 0);
	assert_int_equal(profile_write_log(w, &(struct profile_runtime){.time = 5}, &made), 0);
	assert_int_equal(profile_writer_close(w), 0);
	assert_int_equal(profile_read(&p, path, NULL), 0);
	assert_int_equal(p.bad_lines, 0);
	assert_int_equal(p.n_addresses, made.n_addresses);
	for (size_t i = 0; i < p.n_addresses; i++) {
		assert_string_equal(p.addresses[i].path, "/a/b");
		assert_null(p.addresses[i].build);
		assert_int_equal(p.addresses[i].inode, 7);
		assert_int_equal(profile_addresses_each(&p.addresses[i], add_place, &all), 0);
	}
	assert_int_equal(all.n, 900);
	assert_int_equal(all.offsets, 900 * 0x7fff00001000 + 16ull * 900 * 899 / 2);
	assert_true(all.counts == UINT64_MAX);
	/* Up to what is none. */
	all = (struct places){0};
	assert_int_equal(profile_addresses_each(&broken, add_place, &all), 0);
	assert_int_equal(all.n, 1);
	assert_int_equal(all.counts, 3);
	all.n = 999;
	assert_int_equal(profile_addresses_each(&p.addresses[0], add_place, &all), 7);
	profile_free(&made);
	profile_free(&p);
}

static void odd_numbers_stay_json(void **state)
{
	static const double odd[] = {0, 1, 0.05, 1.0 / 3, 0.0 / 0.0, -1, 1e300, 5e-324};
	struct profile_experiment x = {.selected = NULL};
	struct profile_writer *w = NULL;
	struct profile p = {0};

	(void)state;
	assert_int_equal(open_writer(&w, NULL), 0);
	for (size_t i = 0; i < 8; i++) {
		x.speedup = odd[i];
		assert_int_equal(profile_write_experiment(w, &x, NULL, 0), 0);
	}
	assert_int_equal(profile_writer_close(w), 0);
	assert_non_null(strstr(get_file(), "\"speedup\":0.05,"));
	assert_int_equal(profile_read(&p, path, NULL), 0);
	assert_int_equal(p.bad_lines, 0);
	assert_int_equal(p.n_experiments, 8);
	assert_true(p.experiments[3].x.speedup == 1.0 / 3);
	assert_true(p.experiments[4].x.speedup == 0 && p.experiments[6].x.speedup == 1);
	profile_free(&p);
}

/* A killed run's half line would stop a viewer. */
static void torn_tails_are_mended(void **state)
{
	struct profile_writer *w = NULL;

	(void)state;
	put_file("{\"type\":\"startup\",\"time\":1}\n{\"type\":\"experiment\",\"sel");
	assert_int_equal(open_writer(&w, NULL), 0);
	assert_int_equal(
		profile_write_log(w, &(struct profile_runtime){.time = 5}, &(struct profile){0}),
		0);
	assert_int_equal(profile_writer_close(w), 0);
	assert_string_equal(get_file(), "{\"type\":\"startup\",\"time\":1}\n{\"type\":\"runtime\","
					"\"time\":5,\"samples\":0,\"unattributed\":0}\n");
	put_file("{\"type\":\"startup\",\"time\":1}"); /* whole, but for its newline */
	assert_int_equal(open_writer(&w, NULL), 0);
	assert_int_equal(
		profile_write_log(w, &(struct profile_runtime){.time = 5}, &(struct profile){0}),
		0);
	assert_int_equal(
		profile_write_log(w, &(struct profile_runtime){.time = 6}, &(struct profile){0}),
		0);
	assert_int_equal(profile_writer_close(w), 0);
	assert_string_equal(get_file(),
			    "{\"type\":\"startup\",\"time\":1}\n{\"type\":\"runtime\",\"time\":5,"
			    "\"samples\":0,\"unattributed\":0}\n"
			    "{\"type\":\"runtime\",\"time\":6,\"samples\":0,\"unattributed\":0}\n");
}

/* A full disk, by way of a limit on file sizes: the torn group is taken back, the file stays
 * readable. */
static void failed_writes_are_undone(void **state)
{
	struct rlimit old, small;
	struct profile_writer *w = NULL;
	struct stat before, after;
	int failure = 0;

	(void)state;
	(void)signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(open_writer(&w, NULL), 0);
	assert_int_equal(profile_write_experiment(w, &experiment, points, 3), 0);
	assert_int_equal(stat(path, &before), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	small = old;
	small.rlim_cur = (rlim_t)before.st_size + 100;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	failure = profile_write_experiment(w, &experiment, points, 3);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(failure, -EFBIG);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(after.st_size, before.st_size);
	assert_int_equal(profile_write_experiment(w, &experiment, points, 3), 0);
	assert_int_equal(profile_writer_close(w), -EFBIG); /* the first error is remembered */
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(after.st_size, 2 * before.st_size);
}

static char *sample_path(const char *name)
{
	const char *src = getenv("SRC");
	const char *const places[] = {src ? src : ".", ".", "..", "../.."};
	static char sample[4096];

	for (size_t i = 0; i < 4; i++) {
		(void)snprintf(sample, sizeof(sample), "%s/tests/data/%s", places[i], name);
		if (access(sample, R_OK) == 0)
			return sample;
	}
	return NULL;
}

/* A file read and written again is the same file: what other tests do with the samples holds for
 * what we write. */
static void samples_survive_unchanged(void **state)
{
	static const char *const files[] = {"exact.jsonl", "noisy.jsonl"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct profile_writer *w = NULL;
		struct profile p = {0};
		char *sample = sample_path(files[i]), command[8192];
		struct profile_runtime t;

		if (!sample)
			skip();
		assert_int_equal(profile_read(&p, sample, NULL), 0);
		assert_int_equal(open_writer(&w, NULL), 0);
		assert_int_equal(profile_write_startup(w, &p.runs[0]), 0);
		for (size_t j = 0; j < p.n_experiments; j++)
			assert_int_equal(profile_write_experiment(w, &p.experiments[j].x,
								  p.experiments[j].points,
								  p.experiments[j].n_points),
					 0);
		t = (struct profile_runtime){.time = p.runtime_ns,
					     .samples = p.sampled,
					     .unattributed = p.unattributed,
					     .too_deep = p.too_deep,
					     .cut_short = p.cut_short,
					     .machine_ns = p.machine.own_of_ns,
					     .own_cpu_ns = p.machine.own_ns,
					     .kernel_cpu_ns = p.machine.kernel_ns,
					     .scope_cpu_ns = p.machine.scope_ns,
					     .foreign_cpu_ns = p.machine.foreign_ns};
		assert_int_equal(profile_write_log(w, &t, &p), 0);
		assert_int_equal(profile_writer_close(w), 0);
		(void)snprintf(command, sizeof(command), "cmp '%s' '%s' >&2", sample, path);
		assert_int_equal(system(command), 0);
		assert_int_equal(unlink(path), 0);
		profile_free(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(json_is_as_specified, remove_files),
		cmocka_unit_test_teardown(what_is_written_reads_back, remove_files),
		cmocka_unit_test_teardown(places_read_back, remove_files),
		cmocka_unit_test_teardown(odd_numbers_stay_json, remove_files),
		cmocka_unit_test_teardown(torn_tails_are_mended, remove_files),
		cmocka_unit_test_teardown(failed_writes_are_undone, remove_files),
		cmocka_unit_test_teardown(samples_survive_unchanged, remove_files),
	};

	return cmocka_run_group_tests(tests, make_directory, remove_directory);
}
