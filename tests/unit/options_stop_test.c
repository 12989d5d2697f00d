// SPDX-License-Identifier: BSD-2-Clause
#include "base/error.h"
#include "cli/options/stop_spec.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void good_ones(void **state)
{
	static const struct {
		const char *text, *name;
		enum stop_kind kind;
		double quantile, bound;
	} all[] = {
		{"p99(request)>50ms", "request", STOP_LATENCY, 0.99, 50e6},
		{"p99.9(a b)>1.5s", "a b", STOP_LATENCY, 0.999, 1.5e9},
		{"mean(x)>7us", "x", STOP_LATENCY, -1, 7e3},
		{"p50(f(int))>9ns", "f(int)", STOP_LATENCY, 0.5, 9},
		{"load>8", NULL, STOP_LOAD, 0, 8},
		{"psi(cpu)>20", "cpu", STOP_PSI, 0, 20},
		{"psi(io)>2.5%", "io", STOP_PSI, 0, 2.5},
		{"restarts>3", NULL, STOP_RESTARTS, 0, 3},
	};
	struct stop_spec s;

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_int_equal(stop_spec_parse(all[i].text, &s, NULL), 0);
		assert_int_equal(s.kind, all[i].kind);
		assert_ptr_equal(s.text, all[i].text);
		assert_true(s.bound > 0.999 * all[i].bound && s.bound < 1.001 * all[i].bound);
		if (s.kind == STOP_LATENCY)
			assert_true(s.quantile > all[i].quantile - 1e-9 &&
				    s.quantile < all[i].quantile + 1e-9);
		if (all[i].name)
			assert_string_equal(s.name, all[i].name);
		stop_spec_free(&s);
	}
}

static void bad_ones(void **state)
{
	static const char *const all[] = {"",
					  "p99",
					  "p99(request)",
					  "p99(request)>",
					  "p99(request)>50",
					  "p99(request)>50min",
					  "p100(x)>1ms",
					  "p0(x)>1ms",
					  "p(x)>1ms",
					  "p99()>1ms",
					  "q99(x)>1ms",
					  "load>",
					  "load>x",
					  "load(x)>1",
					  "load<1",
					  "psi>1",
					  "psi(disk)>1",
					  "psi(cpu)>1ms",
					  "restarts(x)>1",
					  ">1",
					  "mean(x)>-1ms",
					  "load>1e9",
					  "mean(x)>1ms ",
					  "p99(x)y>1ms"};
	struct stop_spec s;
	struct error e;

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		assert_int_equal(stop_spec_parse(all[i], &s, &e), -EINVAL);
		assert_non_null(strstr(e.text, "allowed are"));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(good_ones), cmocka_unit_test(bad_ones)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
