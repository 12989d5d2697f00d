// SPDX-License-Identifier: BSD-2-Clause
/* Who had the machine's CPU time: in the file, summed over runs that know different parts of it,
 * and in both reports. */
#include "analysis/analysis.h"
#include "base/error.h"
#include "profile/merge.h"
#include "profile/reader.h"
#include "profile/writer.h"
#include "report/report.h"

#include <json-c/json.h>
#include <json-c/json_pointer.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define RUN(machine)                                                                               \
	"{\"type\":\"startup\",\"time\":1}\n"                                                      \
	"{\"type\":\"experiment\",\"selected\":\"a.c:1\",\"speedup\":0,\"duration\":5,\"selected_" \
	"samples\":1}\n"                                                                           \
	"{\"type\":\"throughput-point\",\"name\":\"p\",\"delta\":1}\n"                             \
	"{\"type\":\"runtime\",\"time\":10" machine "}\n"
/* Of a system run, of one that was launched, of an older version. */
#define ALL                                                                                     \
	RUN(",\"machine_ns\":1000,\"own_cpu_ns\":20,\"kernel_cpu_ns\":50,\"scope_cpu_ns\":400," \
	    "\"foreign_cpu_ns\":100")
#define OWN                                                                                  \
	RUN(",\"machine_ns\":3000,\"own_cpu_ns\":20,\"kernel_cpu_ns\":0,\"scope_cpu_ns\":0," \
	    "\"foreign_cpu_ns\":0")
#define NONE RUN("")

static void read_text(struct profile *p, const char *text)
{
	struct error e = {.text = ""};

	*p = (struct profile){0};
	if (profile_read_buffer(p, text, strlen(text), "test", &e) < 0)
		fail_msg("%s", e.text);
}

static void shares_are_of_runs_that_know(void **state)
{
	struct profile p;
	const struct profile_machine *m = &p.machine;

	(void)state;
	read_text(&p, ALL OWN NONE);
	assert_int_equal(p.n_runs, 3);
	assert_true(profile_machine_share(m->own_ns, m->own_of_ns) == 0.01);
	assert_true(profile_machine_share(m->kernel_ns, m->kernel_of_ns) == 0.05);
	assert_true(profile_machine_share(m->scope_ns, m->scope_of_ns) == 0.4);
	assert_true(profile_machine_share(m->foreign_ns, m->scope_of_ns) == 0.1);
	profile_free(&p);
	read_text(&p, NONE);
	assert_true(isnan(profile_machine_share(m->own_ns, m->own_of_ns)));
	profile_free(&p);
}

/* The last log of a run counts; what is no number is as if it were not there; and what cannot be is
 * cut. */
static void foreign_bytes_do_no_harm(void **state)
{
	struct profile p;

	(void)state;
	read_text(&p,
		  ALL "{\"type\":\"runtime\",\"time\":11,\"machine_ns\":2000,\"own_cpu_ns\":20}\n");
	assert_int_equal(p.machine.own_of_ns, 2000);
	assert_int_equal(p.machine.kernel_of_ns, 0);
	profile_free(&p);
	read_text(&p, RUN(",\"machine_ns\":1000,\"own_cpu_ns\":-1"));
	assert_int_equal(p.bad_lines, 0);
	assert_int_equal(p.runtime_ns, 10);
	assert_int_equal(p.machine.own_of_ns, 0);
	profile_free(&p);
	read_text(&p, RUN(",\"machine_ns\":1,\"own_cpu_ns\":18446744073709551615") ALL);
	assert_true(profile_machine_share(p.machine.own_ns, p.machine.own_of_ns) == 1);
	profile_free(&p);
}

static void runs_add_up(void **state)
{
	struct profile all = {0}, one, two;

	(void)state;
	read_text(&one, ALL);
	read_text(&two, OWN);
	profile_merge(&all, &one);
	profile_merge(&all, &two);
	assert_int_equal(all.machine.own_ns, 40);
	assert_int_equal(all.machine.own_of_ns, 4000);
	assert_int_equal(all.machine.kernel_of_ns, 1000);
	profile_free(&all);
}

static void files_keep_it(void **state)
{
	struct profile_startup s = {.time = 1};
	struct profile_runtime t = {.time = 10,
				    .machine_ns = 1000,
				    .own_cpu_ns = 20,
				    .kernel_cpu_ns = 50,
				    .scope_cpu_ns = 400,
				    .foreign_cpu_ns = 100};
	char dir[] = "/tmp/cozbpf-machine.XXXXXX", path[64];
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
	assert_int_equal(p.machine.own_ns, 20);
	assert_int_equal(p.machine.kernel_ns, 50);
	assert_int_equal(p.machine.scope_ns, 400);
	assert_int_equal(p.machine.foreign_ns, 100);
	assert_int_equal(p.machine.scope_of_ns, 1000);
	profile_free(&p);
	(void)unlink(path);
	(void)rmdir(dir);
}

static char *report(const char *text, bool json)
{
	struct report_options o = {.width = 200, .verbose = true};
	struct report_hints h = {0};
	struct profile p;
	struct analysis a;
	char *out = NULL;
	size_t size;
	FILE *f = open_memstream(&out, &size);

	read_text(&p, text);
	assert_non_null(f);
	analyse(&p, 1, &a);
	if (json)
		report_json(f, &p, &a);
	else
		report_print(f, &p, &a, &o, &h);
	assert_int_equal(fclose(f), 0);
	analysis_free(&a);
	profile_free(&p);
	return out;
}

static void says(const char *text, const char *wanted)
{
	char *out = report(text, false);

	if (!strstr(out, wanted))
		fail_msg("no '%s' in:\n%s", wanted, out);
	free(out);
}

/* NaN: null. */
static void json_says(const char *text, const char *where, double wanted)
{
	char *out = report(text, true);
	struct json_object *root = json_tokener_parse(out), *v;

	assert_non_null(root);
	assert_int_equal(json_pointer_get(root, where, &v), 0);
	if (isnan(wanted))
		assert_null(v);
	else
		assert_true(fabs(json_object_get_double(v) - wanted) < 1e-9);
	json_object_put(root);
	free(out);
}

static void reports_say_it(void **state)
{
	char *out;

	(void)state;
	says(ALL, "Of the machine's CPU time the processes in scope took 40.0 %, their pauses "
		  "included, and the rest of the machine 10.0 %.");
	says(ALL, "cozbpf itself took 2.00 % of the machine's CPU time, and its programs in the "
		  "kernel about 5.00 %, in and out of scope.");
	says(OWN, "cozbpf itself took 0.67 % of the machine's CPU time; its programs in the kernel "
		  "were not timed.");
	out = report(NONE, false);
	assert_null(strstr(out, "of the machine's CPU time"));
	free(out);
	json_says(ALL, "/machine/scope", 0.4);
	json_says(ALL, "/machine/foreign", 0.1);
	json_says(ALL, "/machine/own", 0.02);
	json_says(ALL, "/machine/own_in_kernel", 0.05);
	json_says(OWN, "/machine/own_in_kernel", NAN);
	json_says(NONE, "/machine/own", NAN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shares_are_of_runs_that_know),
		cmocka_unit_test(foreign_bytes_do_no_harm),
		cmocka_unit_test(runs_add_up),
		cmocka_unit_test(files_keep_it),
		cmocka_unit_test(reports_say_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
