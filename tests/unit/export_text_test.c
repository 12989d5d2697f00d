// SPDX-License-Identifier: BSD-2-Clause
/* Names of processes, files and functions are anybody's to choose. Whatever form they are written
 * in, a terminal, a spreadsheet or another tool that shows them is not steered by them. */
#include "base/error.h"
#include "base/utf8.h"
#include "collect/database/database.h"
#include "report/export/export.h"
#include "profile/merge.h"
#include "profile/writer.h"
#include "report/report.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <cmocka.h>

#include "analysis_sample.h"

/* A C0 and a C1 control, DEL, an override, a line separator, and a formula. */
#define HOSTILE             \
	"=a\033[2J\xc2\x9b" \
	"31m\x7f\u202e\u2028\u2066\u00e9"

static char directory[64];

static int setup(void **state)
{
	(void)state;
	(void)snprintf(directory, sizeof(directory), "/tmp/cozbpf-export-XXXXXX");
	return mkdtemp(directory) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[96];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf %s", directory);
	return system(command);
}

static struct database *database_of_hostile_names(void)
{
	static char hostile[] = HOSTILE, id[] = "";
	const struct counts_image image = {COUNTS_FILE, hostile, id, 1, 2, 3};
	struct counts c = {.begin_s = 7200, .seconds = 3600};
	struct database *d = NULL;
	char path[96];

	(void)snprintf(path, sizeof(path), "%s/db", directory);
	assert_int_equal(database_open_writer(path, (gid_t)-1, NULL, NULL, &d, NULL), 0);
	counts_copy_image(&c.image, &image);
	assert_int_equal(counts_who(&c, HOSTILE, HOSTILE, HOSTILE), 0);
	assert_int_equal(counts_event(&c, HOSTILE, 1), 0);
	counts_add(&c, 1, 0, 0, 1);
	assert_int_equal(database_add(d, &c, NULL), 0);
	counts_free(&c);
	return d;
}

static struct profile profile_of_hostile_names(void)
{
	struct profile p = {0};
	const struct profile_samples samples = {.location = (char *)(uintptr_t)HOSTILE ".c:1",
						.count = 7};

	for (int i = 0; i < 8; i++) {
		struct profile_run_experiment *x = sample_visits(
			&p, HOSTILE ".c:1", (i & 1) / 2.0, (uint64_t)(1000 + i) * 1000000, 99);

		x->x.function = strdup(HOSTILE);
		x->x.began = 1 + (uint64_t)i;
		x->x.elapsed = x->x.duration;
		sample_point(x, PROFILE_THROUGHPUT, HOSTILE)->delta = 9;
	}
	p.runs[0].command = strdup(HOSTILE);
	p.runs[0].host = strdup(HOSTILE);
	profile_set_samples(&p, &samples, 1);
	return p;
}

static void steers_nothing(const char *form, const char *text, size_t n)
{
	for (size_t i = 0; i < n;) {
		size_t len = utf8_char(text + i, n - i);

		if (!len)
			fail_msg("%s: a byte of no character", form);
		if (text[i] != '\n' && utf8_steers(text + i, len))
			fail_msg("%s: byte %02x %02x %02x steers", form, (unsigned char)text[i],
				 len > 1 ? (unsigned char)text[i + 1] : 0,
				 len > 2 ? (unsigned char)text[i + 2] : 0);
		i += len;
	}
	assert_true(memmem(text, n, "31m", 3)); /* it is among what was written */
}

enum form { CSV, JSON, TRACE, REPORT_AS_JSON, REPORT_AS_CSV, MARKDOWN, HTML, N_FORMS };
static const char *const names[] = {
	"db export --to csv", "db export --to json", "export --to trace", "report --json",
	"report --csv",	      "report --markdown",   "report --html"};

static int write_form(enum form form, FILE *out, struct database *d, const struct profile *p,
		      const struct analysis *a)
{
	static const struct report_hints no_hints;

	switch (form) {
	case CSV:
	case JSON:
		return export_counts(out, form == CSV, d, 0, UINT64_MAX, NULL);
	case TRACE:
		return export_trace(out, p);
	case REPORT_AS_JSON:
		report_json(out, p, a);
		return 0;
	case REPORT_AS_CSV:
		return report_csv(out, p, a);
	case MARKDOWN:
		return report_markdown(out, p, a);
	default:
		return report_html(out, p, a, &no_hints);
	}
}

static void no_form_steers(void **state)
{
	struct database *d = database_of_hostile_names();
	struct profile p = profile_of_hostile_names();
	struct analysis a;

	(void)state;
	analyse(&p, 1, &a);
	for (enum form form = CSV; form < N_FORMS; form++) {
		char *text = NULL;
		size_t n;
		FILE *f = open_memstream(&text, &n);

		assert_non_null(f);
		assert_int_equal(write_form(form, f, d, &p, &a), 0);
		(void)fclose(f);
		/* A page's own script is indented by tabs. */
		for (size_t i = 0; form == HTML && i < n; i++)
			text[i] = text[i] == '\t' ? ' ' : text[i];
		steers_nothing(names[form], text, n);
		if (form == CSV)
			assert_non_null(strstr(text, "\"'=a"));
		free(text);
	}
	analysis_free(&a);
	profile_free(&p);
	database_close(d);
}

/* pprof's form is binary: its strings are looked for. */
static void names_of_pprof(void **state)
{
	struct profile p = profile_of_hostile_names();
	char path[96], text[4096];
	gzFile packed;
	FILE *f;
	int n;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/pprof", directory);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_int_equal(export_pprof(f, &p, NULL, 0), 0);
	(void)fclose(f);
	packed = gzopen(path, "re");
	assert_non_null(packed);
	n = gzread(packed, text, sizeof(text));
	(void)gzclose(packed);
	assert_true(n > 0);
	assert_non_null(memmem(text, (size_t)n, "31m", 3));
	assert_null(memmem(text, (size_t)n, "\033[", 2));
	assert_null(memmem(text, (size_t)n, "\u202e", 3));
	profile_free(&p);
}

/* A profile's own file is JSON, too, and who reads it gets the names as they are. */
static void profiles_keep_names(void **state)
{
	struct profile p = profile_of_hostile_names(), back = {0};
	const struct profile_runtime t = {.samples = 7};
	struct profile_writer *w;
	char path[96], text[8192];
	size_t n;
	FILE *f;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/profile", directory);
	assert_int_equal(profile_writer_open(path, (uid_t)-1, (gid_t)-1, &w, NULL), 0);
	assert_int_equal(profile_write_startup(w, &p.runs[0]), 0);
	assert_int_equal(
		profile_write_experiment(w, &p.experiments[0].x, p.experiments[0].points, 2), 0);
	assert_int_equal(profile_write_log(w, &t, &p), 0);
	assert_int_equal(profile_writer_close(w), 0);
	f = fopen(path, "re");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text), f);
	(void)fclose(f);
	steers_nothing("the profile", text, n);
	assert_int_equal(profile_read(&back, path, NULL), 0);
	assert_string_equal(back.experiments[0].x.function, HOSTILE);
	assert_string_equal(back.samples[0].location, HOSTILE ".c:1");
	profile_free(&back);
	profile_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_form_steers, setup, teardown),
		cmocka_unit_test_setup_teardown(names_of_pprof, setup, teardown),
		cmocka_unit_test_setup_teardown(profiles_keep_names, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
