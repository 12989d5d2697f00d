// SPDX-License-Identifier: BSD-2-Clause
#include "base/error.h"
#include "profile/reader.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static int read_text(struct profile *p, const char *text)
{
	struct error e = {0};

	return profile_read_buffer(p, text, strlen(text), "test", &e);
}

static void native_keys(void **state)
{
	static const char text[] =
		"{\"type\":\"startup\",\"time\":7,\"cozbpf\":{\"version\":\"1\",\"command\":\"./a "
		"b\",\"pay\":\"hold\",\"seed\":42,"
		"\"period_ns\":1000000,\"unknown\":[1]}}\n"
		"{\"type\":\"experiment\",\"selected\":\"a.c:1\",\"speedup\":0.25,\"duration\":500,"
		"\"selected_samples\":3,"
		"\"function\":\"f\",\"elapsed\":600,\"credited\":-5,\"foreign\":0.125,\"unknown\":{"
		"}}\n"
		"{\"type\":\"throughput-point\",\"name\":\"p\",\"delta\":4,\"first_ns\":10,\"last_"
		"ns\":410,\"effective_ns\":"
		"390,\"timed_visits\":3}\n"
		"{\"type\":\"throughput-point\",\"name\":\"r\",\"delta\":4,\"first_ns\":10,\"last_"
		"ns\":410,\"effective_ns\":"
		"390,\"timed_visits\":5}\n"
		"{\"type\":\"throughput-point\",\"name\":\"q\",\"delta\":1,\"first_ns\":10,\"last_"
		"ns\":10,\"effective_ns\":"
		"0}\n"
		"{\"type\":\"latency-point\",\"name\":\"l\",\"arrivals\":5,\"departures\":4,"
		"\"difference\":-1}\n"
		"{\"type\":\"runtime\",\"time\":900}\n"
		"{\"type\":\"samples\",\"location\":\"a.c:1\",\"count\":12}\n";
	struct profile p = {0};
	const struct profile_run_experiment *x;

	(void)state;
	assert_int_equal(read_text(&p, text), 0);
	assert_int_equal(p.bad_lines, 0);
	assert_int_equal(p.n_runs, 1);
	assert_int_equal(p.runs[0].time, 7);
	assert_string_equal(p.runs[0].command, "./a b");
	assert_string_equal(p.runs[0].pay, "hold");
	assert_null(p.runs[0].fallback);
	assert_int_equal(p.runs[0].seed, 42);
	assert_int_equal(p.n_experiments, 1);
	x = &p.experiments[0];
	assert_string_equal(x->x.selected, "a.c:1");
	assert_true(x->x.speedup == 0.25);
	assert_int_equal(x->x.duration, 500);
	assert_int_equal(x->x.selected_samples, 3);
	assert_string_equal(x->x.function, "f");
	assert_int_equal(x->x.elapsed, 600);
	assert_int_equal(x->x.credited, -5);
	assert_true(x->x.foreign == 0.125);
	assert_int_equal(x->n_points, 4);
	assert_true(x->points[0].timed);
	assert_int_equal(x->points[0].effective_ns, 390);
	assert_int_equal(x->points[0].timed_visits, 3);
	assert_int_equal(x->points[1].timed_visits, 4); /* no more than there were */
	assert_false(x->points[2].timed);		/* one visit spans nothing */
	assert_int_equal(x->points[3].kind, PROFILE_LATENCY);
	assert_int_equal(x->points[3].departures, 4);
	assert_int_equal(x->points[3].difference, -1);
	assert_int_equal(p.runtime_ns, 900);
	assert_int_equal(p.n_samples, 1);
	profile_free(&p);
	profile_free(&p); /* harmless */
}

static void text_form_of_all_ages(void **state)
{
	static const char text[] =
		"startup\ttime=5\r\n"
		"experiment\tselected=/a=b/x.c:1\tspeedup=0.75\tduration=1000\tselected-samples=2\n"
		"throughput-point\tname=p\tdelta=3\n"
		"progress-point\tname=q\ttype=source\tdelta=4\n"
		"throughput_point\tname=r\tdelta=5\n"
		"latency_point\tname=l\tarrivals=2\tdepartures=1\tdifference=1\n"
		"\n"
		"experiment\tselected=y.c:2\tspeedup=1.00\tduration=10\tselected_samples=9\n"
		"runtime\ttime=77\n"
		"samples\tlocation=y.c:2\tcount=8\n"
		"shutdown\ttime=99\tsamples=8\n";
	struct profile p = {0};

	(void)state;
	assert_int_equal(read_text(&p, text), 0);
	assert_int_equal(p.bad_lines, 0);
	assert_int_equal(p.n_experiments, 2);
	assert_string_equal(p.experiments[0].x.selected, "/a=b/x.c:1");
	assert_true(p.experiments[0].x.speedup == 0.75);
	assert_int_equal(p.experiments[0].n_points, 4);
	assert_string_equal(p.experiments[0].points[1].name, "q");
	assert_int_equal(p.experiments[0].points[2].delta, 5);
	assert_int_equal(p.experiments[0].points[3].difference, 1);
	assert_int_equal(p.experiments[1].x.selected_samples, 9);
	assert_int_equal(p.experiments[1].n_points, 0);
	assert_int_equal(p.runtime_ns, 77);
	profile_free(&p);
}

/* A run's logs are cumulative: the last one counts, and runs add up. */
static void logs_supersede_within_a_run(void **state)
{
	static const char text[] =
		"startup\ttime=1\n"
		"runtime\ttime=10\nsamples\tlocation=a\tcount=1\nsamples\tlocation=b\tcount=1\n"
		"addresses\tpath=a\tcounts=1:5\n"
		"runtime\ttime=20\tunattributed=4\nsamples\tlocation=b\tcount=5\nsamples\tlocation="
		"a\tcount=3\n"
		"addresses\tpath=a\tcounts=1:7\naddresses\tpath=a\n"
		"startup\ttime=2\n"
		"runtime\ttime=100\tunattributed=30\nsamples\tlocation=a\tcount="
		"1000\naddresses\tpath=a\tcounts=1:1000\n";
	struct profile p = {0};

	(void)state;
	assert_int_equal(read_text(&p, text), 0);
	assert_int_equal(p.n_runs, 2);
	assert_int_equal(p.runtime_ns, 120);
	assert_int_equal(p.sampled, 1008); /* not said: as many as the locations have */
	assert_int_equal(p.unattributed, 34);
	assert_int_equal(p.n_samples, 2);
	assert_string_equal(p.samples[0].location, "a");
	assert_int_equal(p.samples[0].count, 1003);
	assert_int_equal(p.samples[1].count, 5);
	assert_int_equal(p.n_addresses, 2);
	assert_string_equal(p.addresses[0].counts, "1:7");
	assert_string_equal(p.addresses[1].counts, "1:1000");
	assert_int_equal(p.bad_lines, 1); /* the one without counts */
	profile_free(&p);
}

static char *rename_a(const char *line, void *arg)
{
	(void)arg;
	return strdup(strncmp(line, "a.c:", 4) ? line : line[4] == '1' ? "b.c:1" : "c.c:1");
}

/* Of two runs' copies those of the larger one are kept; names in them are renamed as the lines are.
 */
static void inlined_copies_are_kept(void **state)
{
	static const char text[] =
		"{\"type\":\"startup\",\"time\":1}\n"
		"{\"type\":\"runtime\",\"time\":5,\"samples\":7}\n"
		"{\"type\":\"samples\",\"location\":\"a.c:1\",\"count\":4,\"inlined\":\"4\\ta.c:"
		"2\\ta.c:1\"}\n"
		"{\"type\":\"samples\",\"location\":\"d.c:1\",\"count\":4}\n"
		"{\"type\":\"startup\",\"time\":1}\n"
		"{\"type\":\"runtime\",\"time\":5}\n"
		"{\"type\":\"samples\",\"location\":\"a.c:1\",\"count\":9,\"inlined\":\"5\\ta.c:"
		"1\\tx.c:9\\n4\\ta.c:1\\ta.c:2\"}\n"
		"{\"type\":\"samples\",\"location\":\"d.c:1\",\"count\":1,\"inlined\":\"junk\"}\n";
	struct profile p = {0};

	(void)state;
	assert_int_equal(read_text(&p, text), 0);
	assert_int_equal(p.sampled, 7 + 10);
	assert_string_equal(p.samples[0].inlined, "5\ta.c:1\tx.c:9\n4\ta.c:1\ta.c:2");
	assert_string_equal(p.samples[1].inlined, "junk");
	profile_rename_lines(&p, rename_a, NULL);
	assert_string_equal(p.samples[0].location, "b.c:1");
	assert_string_equal(p.samples[0].inlined, "5\tb.c:1\tx.c:9\n4\tb.c:1\tc.c:1");
	profile_free(&p);
}

static void bad_lines_are_skipped_and_counted(void **state)
{
	static const char text[] =
		"startup\ttime=1\n"
		"throughput-point\tname=early\tdelta=3\n" /* of no experiment */
		"experiment\tselected=a\tspeedup=0.50\tduration=1\n"
		"throughput-point\tname=p\tdelta=-3\n"
		"throughput-point\tname=p\tdelta=3x\n"
		"throughput-point\tname=p\tdelta=18446744073709551616\n"
		"throughput-point\tdelta=3\n"
		"experiment\tselected=a\tspeedup=1.01\tduration=1\n"
		"throughput-point\tname=of-the-bad-one\tdelta=3\n"
		"{\"type\":\"experiment\",\"selected\":5,\"speedup\":0,\"duration\":1}\n"
		"{\"type\":\"experiment\",\"selected\":\"a\",\"speedup\":NaN,\"duration\":1}\n"
		"{\"type\":\"experiment\",\"selected\":\"a\\u0000b\",\"speedup\":0,\"duration\":1}"
		"\n"
		"{\"type\":\"experiment\",\"selected\":\"a\",\"speedup\":0,\"duration\":1} "
		"trailing\n"
		"{\"type\":\"exper\n"
		"{}\n"
		"nonsense\n";
	struct profile p = {0};

	(void)state;
	assert_int_equal(read_text(&p, text), 0);
	assert_int_equal(p.n_experiments, 1);
	assert_int_equal(p.experiments[0].n_points, 0);
	assert_int_equal(p.bad_lines, 14);
	assert_int_equal(p.first_bad_line, 2);
	profile_free(&p);
}

static void refusals_leave_the_profile(void **state)
{
	struct profile p = {0};
	struct error e = {0};

	(void)state;
	assert_int_equal(read_text(&p, "experiment\tselected=a\tspeedup=0.00\tduration=1\n"), 0);
	assert_int_equal(read_text(&p, "dear diary\n"), -EINVAL);
	assert_int_equal(profile_read_buffer(&p, "", 0, "void", &e), -EINVAL);
	assert_non_null(strstr(e.text, "'void' is empty"));
	assert_int_equal(profile_read_buffer(&p, "\0\0\n\377", 4, "bin", NULL), -EINVAL);
	assert_int_equal(profile_read(&p, "/nonexistent/x", &e), -ENOENT);
	assert_non_null(strstr(e.text, "/nonexistent/x"));
	assert_int_equal(profile_read(&p, "/", &e), -EISDIR);
	assert_int_equal(profile_read(&p, "/dev/null", &e), -EINVAL);
	assert_int_equal(p.n_experiments, 1);
	assert_int_equal(p.n_runs, 1);
	assert_int_equal(p.bad_lines, 0);
	profile_free(&p);
}

static void refused(const char *path)
{
	struct profile p = {0};
	struct error e = {0};

	assert_int_equal(profile_read(&p, path, &e), -EINVAL);
	assert_non_null(strstr(e.text, "is not a regular file"));
}

/* A link stands where a user's "*" finds it. Opening a socket fails, and otherwise than by what it
 * is: it was not opened. */
static void devices_are_not_opened(void **state)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	char dir[] = "/tmp/cozbpf-reader-XXXXXX", link[64];
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(name.sun_path, sizeof(name.sun_path), "%s/socket", dir);
	(void)snprintf(link, sizeof(link), "%s/link", dir);
	assert_int_equal(bind(s, (struct sockaddr *)&name, sizeof(name)), 0);
	assert_int_equal(symlink("socket", link), 0);
	refused(link);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink("/dev/null", link), 0);
	refused(link);
	/* The kernel makes it when it is read. */
	refused("/proc/self/status");
	(void)close(s);
	(void)unlink(name.sun_path);
	(void)unlink(link);
	(void)rmdir(dir);
}

static void write_profile(int fd)
{
	static const char text[] =
		"startup\ttime=1\nexperiment\tselected=a.c:1\tspeedup=0.50\tduration=7\n";

	assert_int_equal(write(fd, text, sizeof(text) - 1), sizeof(text) - 1);
	(void)close(fd);
}

static void read_profile(const char *path)
{
	struct profile p = {0};
	struct error e = {0};

	assert_int_equal(profile_read(&p, path, &e), 0);
	assert_int_equal(p.n_experiments, 1);
	profile_free(&p);
}

/* As `cozbpf report <(...)` and /dev/stdin have it. Of a named pipe the writer comes late. */
static void pipes_are_read(void **state)
{
	char path[] = "/tmp/cozbpf-reader-XXXXXX", name[32];
	int ends[2], fd = mkstemp(path);
	pid_t child;

	(void)state;
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	(void)snprintf(name, sizeof(name), "/dev/fd/%d", ends[0]);
	write_profile(ends[1]);
	read_profile(name);
	(void)close(ends[0]);
	(void)close(fd);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	(void)alarm(60);
	child = fork();
	if (child == 0) {
		(void)usleep(100000);
		write_profile(open(path, O_WRONLY | O_CLOEXEC));
		_exit(0);
	}
	read_profile(path);
	(void)alarm(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	(void)unlink(path);
}

static void several_files_are_one_profile(void **state)
{
	struct profile p = {0};

	(void)state;
	assert_int_equal(read_text(&p, "startup\ttime=1\nexperiment\tselected=a\tspeedup=0."
				       "00\tduration=1\nsamples\tlocation=z\tcount=1\n"),
			 0);
	assert_int_equal(
		read_text(
			&p,
			"{\"type\":\"startup\",\"time\":2}\n{\"type\":\"experiment\",\"selected\":"
			"\"b\",\"speedup\":0,"
			"\"duration\":1}\n{\"type\":\"samples\",\"location\":\"z\",\"count\":2}\n"),
		0);
	assert_int_equal(p.n_runs, 2);
	assert_int_equal(p.n_experiments, 2);
	assert_int_equal(p.experiments[1].run, 1);
	assert_int_equal(p.n_samples, 1);
	assert_int_equal(p.samples[0].count, 3);
	profile_free(&p);
}

/* "src/a.c:1" and "old/a.c:1" become one. */
static char *without_directory(const char *line, void *arg)
{
	const char *slash = strrchr(line, '/');

	(void)arg;
	return strdup(slash ? slash + 1 : line);
}

static void lines_are_renamed(void **state)
{
	static const char text[] =
		"startup\ttime=1\n"
		"experiment\tselected=src/a.c:1\tspeedup=0.5\tduration=10\tselected-samples=1\n"
		"throughput-point\tname=p\tdelta=1\n"
		"runtime\ttime=5\n"
		"samples\tlocation=src/a.c:1\tcount=2\n"
		"samples\tlocation=old/a.c:1\tcount=3\n"
		"samples\tlocation=ns/f::g\tcount=4\n";
	struct profile p = {0};
	struct error e = {0};

	(void)state;
	assert_int_equal(profile_read_buffer(&p, text, sizeof(text) - 1, "x", &e), 0);
	assert_int_equal(p.n_samples, 3);
	profile_rename_lines(&p, without_directory, NULL);
	assert_string_equal(p.experiments[0].x.selected, "a.c:1");
	assert_int_equal(p.n_samples, 2);
	assert_string_equal(p.samples[0].location, "a.c:1");
	assert_int_equal(p.samples[0].count, 5);
	assert_string_equal(p.samples[1].location, "ns/f::g");
	profile_free(&p);
}

static void huge_inputs_are_bounded(void **state)
{
	const size_t size = 3u << 20;
	char *text = malloc(size);
	struct profile p = {0};

	(void)state;
	assert_non_null(text);
	/* One line longer than any record, and deep nesting. */
	memset(text, 'x', size);
	assert_int_equal(profile_read_buffer(&p, text, size, "long", NULL), -EINVAL);
	memset(text, '[', size);
	memcpy(text, "{\"type\":", 8);
	assert_int_equal(profile_read_buffer(&p, text, size / 4, "deep", NULL), -EINVAL);
	/* A name beyond any path. */
	memcpy(text, "startup\nexperiment\tspeedup=0.00\tduration=1\tselected=", 52);
	memset(text + 52, 'y', 5000);
	assert_int_equal(profile_read_buffer(&p, text, 5052, "name", NULL), 0);
	assert_int_equal(p.n_experiments, 0);
	assert_int_equal(p.bad_lines, 1);
	profile_free(&p);
	free(text);
}

/* Nobody's days of experiments are refused for their size: only what is kept of a file takes
 * memory. */
static void large_files_are_read(void **state)
{
	static const char experiment[] =
		"experiment\tselected=a.c:1\tspeedup=0.50\tduration=7\tnote=",
			  point[] = "\nthroughput-point\tname=p\tdelta=3\n";
	const size_t note = 1u << 19, lines = 280; /* 140 MiB in all */
	char path[] = "/tmp/cozbpf-reader-XXXXXX", *text = malloc(note);
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");
	struct profile p = {0};
	struct error e = {0};

	(void)state;
	assert_true(text && f);
	memset(text, 'x', note);
	for (size_t i = 0; i < lines; i++) {
		assert_true(fputs(experiment, f) >= 0);
		assert_int_equal(fwrite(text, 1, note, f), note);
		assert_true(fputs(point, f) >= 0);
	}
	/* The last line lacks its end. */
	assert_true(fputs("experiment\tselected=b.c:1\tspeedup=0.50\tduration=7", f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(profile_read(&p, path, &e), 0);
	(void)unlink(path);
	assert_int_equal(p.bad_lines, 0);
	assert_int_equal(p.n_experiments, lines + 1);
	for (size_t i = 0; i < lines; i++) {
		assert_string_equal(p.experiments[i].x.selected, "a.c:1");
		assert_int_equal(p.experiments[i].n_points, 1);
		assert_int_equal(p.experiments[i].points[0].delta, 3);
	}
	assert_string_equal(p.experiments[lines].x.selected, "b.c:1");
	profile_free(&p);
	free(text);
}

/* Sparse files: nothing that can be read for hours, or take memory. */
static void endless_rubbish_is_refused(void **state)
{
	static const char record[] = "experiment\tselected=a.c:1\tspeedup=0.50\tduration="
				     "7\nthroughput-point\tname=p\tdelta=3\n";
	char path[] = "/tmp/cozbpf-reader-XXXXXX";
	int fd = mkstemp(path);
	struct profile p = {0};
	struct error e = {0};

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 1l << 42), 0);
	assert_int_equal(profile_read(&p, path, &e), -EINVAL);
	assert_non_null(strstr(e.text, "is not a profile"));
	assert_int_equal(pwrite(fd, record, strlen(record), 0), strlen(record));
	assert_int_equal(profile_read(&p, path, &e), -EFBIG);
	assert_non_null(strstr(e.text, "more than 128 MiB that are no profile records"));
	assert_int_equal(p.n_experiments, 0);
	/* A hole that is one bad line, and what comes after it. */
	assert_int_equal(ftruncate(fd, 5l << 20), 0);
	assert_int_equal(pwrite(fd, "\n", 1, 5l << 20), 1);
	assert_int_equal(pwrite(fd, record, strlen(record), (5l << 20) + 1), strlen(record));
	assert_int_equal(profile_read(&p, path, &e), 0);
	assert_int_equal(p.n_experiments, 2);
	assert_int_equal(p.experiments[0].n_points, 1);
	assert_int_equal(p.bad_lines, 1);
	assert_int_equal(p.first_bad_line, 3);
	profile_free(&p);
	(void)close(fd);
	(void)unlink(path);
}

/* Reads a head, @n times @each, and "runtime" before each of them if @logs. */
/* By the last read_many. */
static size_t kept;

static int read_many(const char *each, size_t n, bool logs, struct error *e)
{
	char *text = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&text, &size);
	struct profile p = {0};
	int r;

	assert_non_null(f);
	assert_true(fputs("startup\ttime=1\nexperiment\tselected=a.c:1\tspeedup=0.50\tduration=7\n",
			  f) >= 0);
	for (size_t i = 0; i < n; i++)
		assert_true(fprintf(f, "%s%s\n", logs ? "runtime\ttime=1\n" : "", each) > 0);
	assert_int_equal(fclose(f), 0);
	r = profile_read_buffer(&p, text, size, "many", e);
	kept = p.kept;
	/* What several files have is added up. */
	if (r == 0)
		assert_int_equal(profile_read_buffer(&p, text, size, "again", e), 0);
	assert_int_equal(p.kept, 2 * kept);
	profile_free(&p);
	free(text);
	return r;
}

/* Records of few bytes must not take all memory. */
static void what_is_kept_is_bounded(void **state)
{
	static const char *const records[] = {
		"startup\ttime=1",
		"experiment\tselected=a.c:1\tspeedup=0.50\tduration=7",
		"throughput-point\tname=p\tdelta=3",
		"samples\tlocation=a.c:1\tcount=1",
		"{\"type\":\"latency-point\",\"name\":\"p\",\"arrivals\":1,\"departures\":1,"
		"\"difference\":0}",
	};
	size_t most = profile_most_kept;
	struct error e = {0};

	(void)state;
	profile_most_kept = 64 << 10;
	for (size_t i = 0; i < sizeof(records) / sizeof(*records); i++) {
		assert_int_equal(read_many(records[i], 20, false, &e), 0);
		assert_true(kept > 20 * sizeof(void *) && kept < profile_most_kept);
		assert_int_equal(read_many(records[i], 2000, false, &e), -E2BIG);
		assert_non_null(strstr(e.text, "'many' has too many records"));
	}
	/* Of logs the last one is kept. */
	assert_int_equal(read_many(records[3], 2000, true, &e), 0);
	profile_most_kept = most;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(native_keys),
		cmocka_unit_test(text_form_of_all_ages),
		cmocka_unit_test(logs_supersede_within_a_run),
		cmocka_unit_test(inlined_copies_are_kept),
		cmocka_unit_test(bad_lines_are_skipped_and_counted),
		cmocka_unit_test(refusals_leave_the_profile),
		cmocka_unit_test(devices_are_not_opened),
		cmocka_unit_test(pipes_are_read),
		cmocka_unit_test(several_files_are_one_profile),
		cmocka_unit_test(lines_are_renamed),
		cmocka_unit_test(huge_inputs_are_bounded),
		cmocka_unit_test(large_files_are_read),
		cmocka_unit_test(endless_rubbish_is_refused),
		cmocka_unit_test(what_is_kept_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
