// SPDX-License-Identifier: BSD-2-Clause
/* How long runs took: in the file, without pauses, outliers, and in both reports. */
#include "base/error.h"
#include "profile/reader.h"
#include "profile/writer.h"

#include "report_print.h"

#include <json-c/json.h>
#include <json-c/json_pointer.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#define MSEC 1000000.0

/* Appends a run to the text: a log with that time in ms, after an experiment that paused for so
 * long. */
static void add_run(FILE *f, double ms, double paused_ms)
{
	(void)fprintf(
		f,
		"{\"type\":\"startup\",\"time\":1}\n"
		"{\"type\":\"experiment\",\"selected\":\"a.c:1\",\"speedup\":0.5,\"duration\":"
		"1000000,\"selected_samples\":1,\"growth\":%.0f}\n"
		"{\"type\":\"throughput-point\",\"name\":\"p\",\"delta\":1}\n"
		"{\"type\":\"runtime\",\"time\":10,\"run_ns\":%.0f,\"user_ns\":%.0f,"
		"\"system_ns\":1000000}\n",
		paused_ms * MSEC, ms * MSEC, ms * MSEC / 2);
}

/* @ms ends with 0. */
static void make_profile(const double *ms, double paused_ms, struct profile *p)
{
	struct error e = {.text = ""};
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	for (; *ms > 0; ms++)
		add_run(f, *ms, paused_ms);
	assert_int_equal(fclose(f), 0);
	*p = (struct profile){0};
	if (profile_read_buffer(p, text, size, "test", &e) < 0)
		fail_msg("%s", e.text);
	free(text);
}

static struct analysis_run_times times_of(const double *ms, double paused_ms)
{
	struct analysis_run_times t;
	struct profile p;
	struct analysis a;

	make_profile(ms, paused_ms, &p);
	analyse(&p, 1, &a);
	t = a.run_times;
	analysis_free(&a);
	profile_free(&p);
	return t;
}

static void pauses_are_taken_out(void **state)
{
	struct analysis_run_times t = times_of((double[]){110, 120, 130, 0}, 10);

	(void)state;
	assert_int_equal(t.n, 3);
	assert_true(t.mean_ns == 110 * MSEC && t.least_ns == 100 * MSEC);
	assert_true(t.most_ns == 120 * MSEC);
	assert_true(fabs(t.deviation_ns - 10 * MSEC) < 1);
	assert_true(t.user_ns == 60 * MSEC && t.system_ns == MSEC);
	assert_int_equal(t.outliers, 0);
}

/* The median is 101, the median distance from it 1: what is more than 14.826 away is an outlier. */
static void outliers_are_told(void **state)
{
	struct analysis_run_times t = times_of((double[]){100, 102, 101, 100, 102, 115, 0}, 0);

	(void)state;
	assert_int_equal(t.outliers, 0);
	t = times_of((double[]){100, 102, 101, 101, 100, 102, 117, 0}, 0);
	assert_int_equal(t.outliers, 1);
	assert_false(t.first_is_slow);
	t = times_of((double[]){117, 102, 101, 101, 100, 102, 100, 0}, 0);
	assert_int_equal(t.outliers, 1);
	assert_true(t.first_is_slow);
	t = times_of((double[]){100, 0}, 0);
	assert_true(t.n == 1 && isnan(t.deviation_ns) && !t.outliers);
}

/* One that failed or was ended has no time, nor has one whose log lacks a part of it. */
static void runs_without_an_end_do_not_count(void **state)
{
	static const char *const logs[] = {
		"{\"type\":\"startup\",\"time\":1}\n{\"type\":\"runtime\",\"time\":10}\n",
		"{\"type\":\"startup\",\"time\":1}\n{\"type\":\"runtime\",\"time\":10,\"run_ns\":5}"
		"\n",
		"{\"type\":\"startup\",\"time\":1}\n{\"type\":\"runtime\",\"time\":10,\"run_ns\":-"
		"5,"
		"\"user_ns\":1,\"system_ns\":1}\n"};
	struct error e = {.text = ""};

	(void)state;
	for (size_t i = 0; i < sizeof(logs) / sizeof(*logs); i++) {
		struct profile p = {0};
		struct analysis a;

		assert_int_equal(profile_read_buffer(&p, logs[i], strlen(logs[i]), "test", &e), 0);
		assert_int_equal(p.runtime_ns, 10);
		analyse(&p, 1, &a);
		assert_int_equal(a.run_times.n, 0);
		analysis_free(&a);
		profile_free(&p);
	}
}

static void files_keep_them(void **state)
{
	struct profile_startup s = {.time = 1};
	struct profile_runtime t = {.time = 10, .run_ns = 9, .user_ns = 8, .system_ns = 7};
	char dir[] = "/tmp/cozbpf-times.XXXXXX", path[64];
	struct profile_writer *w = NULL;
	struct profile p = {0};
	struct error e = {.text = ""};

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/p", dir);
	if (profile_writer_open(path, getuid(), getgid(), &w, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(profile_write_startup(w, &s), 0);
	assert_int_equal(profile_write_log(w, &t, &(struct profile){0}), 0);
	assert_int_equal(profile_writer_close(w), 0);
	assert_int_equal(profile_read(&p, path, &e), 0);
	assert_int_equal(p.runs[0].run_ns, 9);
	assert_int_equal(p.runs[0].user_ns, 8);
	assert_int_equal(p.runs[0].system_ns, 7);
	profile_free(&p);
	(void)unlink(path);
	(void)rmdir(dir);
}

static void reports_have_them(void **state)
{
	struct report_options o = {.width = 200};
	struct report_hints h = {0};
	struct profile p;
	struct analysis a;
	struct json_object *root, *mean;
	char *text;
	size_t size;
	FILE *f;

	(void)state;
	make_profile((double[]){110, 112, 111, 111, 110, 112, 211, 0}, 10, &p);
	text = print(&p, &o, &h);
	says(text, "Run time: 115.3 ms +- 37.8 ms (mean +- sigma of 7 runs, without pauses), "
		   "100.0 ms to 201.0 ms; user 62.6 ms, system 1.0 ms.");
	says(text, "1 of 7 run times is an outlier");
	free(text);
	f = open_memstream(&text, &size);
	assert_non_null(f);
	analyse(&p, 1, &a);
	report_json(f, &p, &a);
	assert_int_equal(fclose(f), 0);
	root = json_tokener_parse(text);
	assert_int_equal(json_pointer_get(root, "/run_time/mean_ns", &mean), 0);
	assert_int_equal((int64_t)(json_object_get_double(mean) / MSEC), 115);
	json_object_put(root);
	free(text);
	f = open_memstream(&text, &size);
	assert_non_null(f);
	assert_int_equal(report_html(f, &p, &a, &h), 0);
	assert_int_equal(fclose(f), 0);
	says(text, "<br>Run time: 115.3 ms");
	free(text);
	analysis_free(&a);
	profile_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pauses_are_taken_out),
		cmocka_unit_test(outliers_are_told),
		cmocka_unit_test(runs_without_an_end_do_not_count),
		cmocka_unit_test(files_keep_them),
		cmocka_unit_test(reports_have_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
