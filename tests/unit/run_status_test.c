// SPDX-License-Identifier: BSD-2-Clause
#include "base/clock.h"
#include "run/status.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void whole_line(void **state)
{
	const struct status_facts f = {
		.elapsed_ns = 12 * NSEC_PER_SEC,
		.duration_ns = 60 * NSEC_PER_SEC,
		.experiments = 23,
		.lines = 4,
		.visits_per_s = 1234.4,
		.selected = "/home/x/src/barrier.c:33",
		.speedup = 0.35,
		.best = "/home/x/src/barrier.c:30",
		.best_effect = 0.043,
		.best_low = 0.031,
		.best_high = 0.055,
		.missing_s = 40,
		.until_ci = 0.02,
	};
	char line[256];

	(void)state;
	status_format(&f, 0, line, sizeof(line));
	assert_string_equal(line, "12/60 s, 23 experiments on 4 lines, 1234 visits/s, best barrier.c:30 +4.3 % [3.1, 5.5] at 50 %, "
				  "about 40 s more to +-2 points, now barrier.c:33 at 35 %");
	status_format(&f, 10, line, sizeof(line));
	assert_string_equal(line, "12/60 s, 2");
	status_format(&f, 0, line, 5);
	assert_string_equal(line, "12/6");
	status_format(&f, 0, line, 1);
	assert_string_equal(line, "");
}

static void unknowns_left_out(void **state)
{
	const struct status_facts f = {
		.elapsed_ns = NSEC_PER_SEC, .experiments = 1, .lines = 1, .visits_per_s = NAN, .missing_s = NAN, .best = "a\033[31m.c:1"};
	struct status_facts g = f;
	char line[256];

	(void)state;
	status_format(&f, 0, line, sizeof(line));
	assert_string_equal(line, "1 s, 1 experiment on 1 line, best a?[31m.c:1 +0.0 % [0.0, 0.0] at 50 %");
	g.best = "a\xc2\x9b"
		 "31m\xe2\x80\xae.c:1";
	status_format(&g, 0, line, sizeof(line));
	assert_non_null(strstr(line, "best a?31m?.c:1 "));
	g.best = NULL;
	g.visits_per_s = 2.5;
	status_format(&g, 0, line, sizeof(line));
	assert_string_equal(line, "1 s, 1 experiment on 1 line, 2.5 visits/s");
}

static void plain_every_ten_seconds(void **state)
{
	const struct status_facts f = {.visits_per_s = NAN, .missing_s = NAN};
	FILE *out = tmpfile();
	char text[256] = "";
	struct status s, quiet;
	size_t n;

	(void)state;
	assert_non_null(out);
	status_init(&s, out, false, 0);
	assert_false(status_due(&s, 9 * NSEC_PER_SEC));
	status_update(&s, 9 * NSEC_PER_SEC, &f);
	assert_true(status_due(&s, 10 * NSEC_PER_SEC));
	status_update(&s, 10 * NSEC_PER_SEC, &f);
	assert_false(status_due(&s, 19 * NSEC_PER_SEC));
	status_clear(&s);
	status_init(&quiet, out, true, 0);
	assert_false(status_due(&quiet, 1000 * NSEC_PER_SEC));
	rewind(out);
	n = fread(text, 1, sizeof(text) - 1, out);
	text[n] = '\0';
	assert_string_equal(text, "cozbpf: 0 s, 0 experiments on 0 lines\n");
	assert_int_equal(fclose(out), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_line),
		cmocka_unit_test(unknowns_left_out),
		cmocka_unit_test(plain_every_ten_seconds),
	};

	return cmocka_run_group_tests_name("cmd status", tests, NULL, NULL);
}
