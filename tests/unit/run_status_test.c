// SPDX-License-Identifier: BSD-2-Clause
#include "base/clock.h"
#include "base/log.h"
#include "cli/run/status.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct status_point points[] = {{"requests", 14813}, {"src/io.c:7", 0}};
static const struct certainty known = {
	.top = {{"/home/x/src/barrier.c:30", 0.043, 0.031, 0.055, "helps"},
		{"barrier.c:33", -0.2, -0.25, -0.15, "hurts"}},
	.n_top = 2,
};
static const struct status_facts facts = {
	.elapsed_ns = 12 * NSEC_PER_SEC,
	.duration_ns = 60 * NSEC_PER_SEC,
	.experiments = 23,
	.lines = 4,
	.points = points,
	.n_points = 2,
	.selected = "/home/x/src/barrier.c:33",
	.speedup = 0.35,
	.certainty = &known,
	.missing_s = 40,
	.until_ci = 0.02,
};

static void whole_line(void **state)
{
	char line[256];

	(void)state;
	status_format(&facts, line, sizeof(line));
	assert_string_equal(line, "12/60 s, 23 experiments on 4 lines, 1234 visits/s, best "
				  "barrier.c:30 +4.3 % [3.1, 5.5] at 50 %, "
				  "about 40 s more to +-2 points, now barrier.c:33 at 35 %");
	status_format(&facts, line, 5);
	assert_string_equal(line, "12/6");
	status_format(&facts, line, 1);
	assert_string_equal(line, "");
}

static void unknowns_left_out(void **state)
{
	struct certainty hostile = {.top = {{"a\033[31m.c:1", 0, 0, 0, "helps"}}, .n_top = 1};
	struct status_facts f = {.elapsed_ns = NSEC_PER_SEC,
				 .experiments = 1,
				 .lines = 1,
				 .missing_s = NAN,
				 .certainty = &hostile};
	char line[256];

	(void)state;
	status_format(&f, line, sizeof(line));
	assert_string_equal(
		line, "1 s, 1 experiment on 1 line, best a?[31m.c:1 +0.0 % [0.0, 0.0] at 50 %");
	(void)snprintf(hostile.top[0].selected, sizeof(hostile.top[0].selected),
		       "a\xc2\x9b"
		       "31m\xe2\x80\xae.c:1");
	status_format(&f, line, sizeof(line));
	assert_non_null(strstr(line, "best a?31m?.c:1 "));
	f.certainty = NULL;
	f.points = points;
	f.n_points = 1;
	f.elapsed_ns = 10000 * NSEC_PER_SEC;
	f.run = 3;
	status_format(&f, line, sizeof(line));
	assert_string_equal(line, "run 3, 10000 s, 1 experiment on 1 line, 1.5 visits/s");
}

static void plain_every_ten_seconds(void **state)
{
	const struct status_facts f = {.missing_s = NAN};
	FILE *out = tmpfile();
	char text[256] = "";
	struct status s, quiet;
	size_t n;

	(void)state;
	assert_non_null(out);
	status_init(&s, out, STATUS_PLAIN, false, 0);
	assert_false(status_due(&s, 9 * NSEC_PER_SEC));
	status_update(&s, 9 * NSEC_PER_SEC, &f);
	assert_true(status_due(&s, 10 * NSEC_PER_SEC));
	status_update(&s, 10 * NSEC_PER_SEC, &f);
	assert_false(status_due(&s, 19 * NSEC_PER_SEC));
	status_end(&s);
	status_init(&quiet, out, STATUS_NONE, false, 0);
	assert_false(status_due(&quiet, 1000 * NSEC_PER_SEC));
	rewind(out);
	n = fread(text, 1, sizeof(text) - 1, out);
	text[n] = '\0';
	assert_string_equal(text, "cozbpf: 0 s, 0 experiments on 0 lines\n");
	assert_int_equal(fclose(out), 0);
}

static void a_view_has_what_matters(void **state)
{
	struct status_facts f = facts;
	struct view v;

	(void)state;
	f.warnings[f.n_warnings++] = "\033[2Jnot visited";
	view_format(&f, 79, 23, &v);
	assert_int_equal(v.n, 8);
	assert_string_equal(v.lines[0].text,
			    "cozbpf: 12/60 s, 23 experiments on 4 lines, now barrier.c:33 at 35 %");
	assert_string_equal(v.lines[1].text, "warning: ?[2Jnot visited");
	assert_int_equal(v.lines[1].style, VIEW_WARNING);
	assert_string_equal(v.lines[2].text, "about 40 s more to +-2 points");
	assert_string_equal(v.lines[3].text, "    1234 visits/s  requests");
	assert_string_equal(v.lines[4].text, "     0.0 visits/s  io.c:7");
	assert_string_equal(v.lines[5].text,
			    "if the line were 50 % faster       effect  95 % interval     verdict");
	assert_string_equal(v.lines[6].text,
			    "barrier.c:30                       +4.3 %  [3.1, 5.5]        helps");
	assert_string_equal(v.lines[7].text,
			    "barrier.c:33                      -20.0 %  [-25.0, -15.0]    hurts");
	/* Nothing wraps and nothing scrolls, whatever the size. */
	for (size_t columns = 1; columns < 300; columns += 7)
		for (size_t rows = 1; rows < 40; rows += 3) {
			view_format(&f, columns, rows, &v);
			assert_true(v.n <= rows && v.n >= 1);
			for (size_t i = 0; i < v.n; i++)
				assert_true(strlen(v.lines[i].text) <= columns);
		}
}

/* Without experiments it is slopes that are known. */
static void slopes(void **state)
{
	struct status_facts f = facts;
	struct certainty c = known;
	struct view v;
	char line[256];

	(void)state;
	c.slopes = true;
	for (size_t i = 0; i < c.n_top; i++)
		c.top[i].verdict = "";
	f.certainty = &c;
	f.slopes_only = true;
	f.experiments = f.lines = 0;
	f.selected = NULL;
	f.until_ci = 0;
	status_format(&f, line, sizeof(line));
	assert_string_equal(line, "12/60 s, no pauses, 1234 visits/s, best barrier.c:30: slope "
				  "4.3 % [3.1, 5.5]");
	view_format(&f, 79, 23, &v);
	assert_int_equal(v.n, 6);
	assert_string_equal(v.lines[0].text, "cozbpf: 12/60 s, no pauses");
	assert_string_equal(v.lines[3].text,
			    "10 % faster is worth a tenth of     slope  95 % interval     ");
	assert_string_equal(v.lines[4].text,
			    "barrier.c:30                        4.3 %  [3.1, 5.5]        ");
	/* Of a latency point alone. */
	c.slopes = false;
	c.shares = true;
	status_format(&f, line, sizeof(line));
	assert_string_equal(line, "12/60 s, no pauses, 1234 visits/s, slowest 1 %: barrier.c:30 "
				  "4.3 % [3.1, 5.5]");
	view_format(&f, 79, 23, &v);
	assert_string_equal(v.lines[3].text,
			    "of the slowest 1 % of intervals     share  95 % interval     ");
	assert_string_equal(v.lines[4].text,
			    "barrier.c:30                        4.3 %  [3.1, 5.5]        ");
	c.slopes = true;
	c.shares = false;
	/* Beside experiments, with what those say. */
	c.top[0].verdict = "helps";
	f.slopes_only = false;
	view_format(&f, 79, 23, &v);
	assert_string_equal(v.lines[0].text, "cozbpf: 12/60 s, 0 experiments on 0 lines");
	assert_string_equal(v.lines[3].text,
			    "10 % faster is worth a tenth of     slope  95 % interval     verdict");
	assert_string_equal(v.lines[4].text,
			    "barrier.c:30                        4.3 %  [3.1, 5.5]        helps");
}

static void a_view_of_little(void **state)
{
	struct status_point many[9];
	struct status_facts f = {
		.elapsed_ns = NSEC_PER_SEC, .missing_s = NAN, .points = many, .n_points = 9};
	struct view v;

	(void)state;
	for (size_t i = 0; i < 9; i++)
		many[i] = (struct status_point){"p", i};
	view_format(&f, 79, 23, &v);
	assert_int_equal(v.n, 9);
	assert_string_equal(v.lines[7].text, "                  3 more points");
	assert_string_equal(v.lines[8].text, "No line is known well enough yet.");
}

/* What is printed meanwhile stands above the view, which is taken away for it. */
static void a_view_makes_room(void **state)
{
	FILE *out = tmpfile();
	char text[4096] = "";
	struct status s;
	size_t n;

	(void)state;
	assert_non_null(out);
	status_init(&s, out, STATUS_VIEW, true, 0);
	status_update(&s, NSEC_PER_SEC, &facts);
	assert_int_equal(s.drawn, 7);
	(void)log_error("something");
	assert_int_equal(s.drawn, 0);
	status_update(&s, 2 * NSEC_PER_SEC, &facts);
	status_resized(&s);
	assert_true(status_due(&s, 2 * NSEC_PER_SEC));
	status_update(&s, 2 * NSEC_PER_SEC, &facts);
	status_end(&s);
	(void)log_error("something else");
	rewind(out);
	n = fread(text, 1, sizeof(text) - 1, out);
	text[n] = '\0';
	assert_int_equal(strncmp(text, "\033[1mcozbpf: 12/60 s", 18), 0);
	assert_non_null(strstr(text, "hurts\033[K\r\n\033[J\r\033[7A\033[J"));
	assert_non_null(strstr(text, "\033[H\033[2J\033[1mcozbpf"));
	assert_string_equal(text + n - 7, "\033[7A\033[J");
	assert_int_equal(fclose(out), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_line),
		cmocka_unit_test(unknowns_left_out),
		cmocka_unit_test(plain_every_ten_seconds),
		cmocka_unit_test(a_view_has_what_matters),
		cmocka_unit_test(slopes),
		cmocka_unit_test(a_view_of_little),
		cmocka_unit_test(a_view_makes_room),
	};

	return cmocka_run_group_tests_name("cmd status", tests, NULL, NULL);
}
