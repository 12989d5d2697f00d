// SPDX-License-Identifier: BSD-2-Clause
/* What the report says of the sample files. */
#include "profile/reader.h"
#include "report/report.h"
#include "report_print.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool read_sample(struct profile *p, const char *name)
{
	const char *src = getenv("SRC");
	const char *const places[] = {src ? src : ".", ".", "..", "../.."};
	char path[4096];

	for (size_t i = 0; i < 4; i++) {
		(void)snprintf(path, sizeof(path), "%s/tests/data/%s", places[i], name);
		if (access(path, R_OK) == 0) {
			assert_int_equal(profile_read(p, path, NULL), 0);
			return true;
		}
	}
	return false;
}

static void sample_files(void **state)
{
	static const char *const exact[] = {"exact.jsonl", "exact.coz", "old.coz"};
	struct profile p = {0};
	char *text;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		if (!read_sample(&p, exact[i]))
			skip();
		text = print(&p, NULL, NULL);
		row_is(text, "hot.c:10 ",
		       i ? "hot.c:10 50.0 % 12.5 +-0.0 25.0 +-0.0 30.0 +-0.0 30.0 +-0.0 helps 10"
			 : "hot.c:10 encode 50.0 % 12.5 +-0.9 25.0 +-1.3 30.0 +-1.4 30.0 +-1.4 "
			   "helps 10");
		says(text, "hurts");
		free(text);
		profile_free(&p);
	}
	assert_true(read_sample(&p, "noisy.jsonl"));
	text = print(&p, &(struct report_options){.verbose = true}, NULL);
	says(text, "Latency point 'request': 6000 departures");
	says(text, "Progress point 'never' never fired.");
	says(text, "Fallback in use: ticks in user mode pay");
	says(text, "Warning: 20 of 60 experiments");
	free(text);
	profile_free(&p);
	assert_true(read_sample(&p, "hostile.jsonl"));
	text = print(&p, NULL, NULL);
	says_not(text, "\033");
	says(text, "were no records and were skipped (the first: line 4)");
	free(text);
	profile_free(&p);
	assert_true(read_sample(&p, "empty.jsonl"));
	text = print(&p, NULL, NULL);
	says(text, "The profile is empty.");
	free(text);
	profile_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sample_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
