// SPDX-License-Identifier: BSD-2-Clause
/* Decoders: what they say is what reading here says; they have no rights; one that takes too long
 * is given up, and only its object's information with it. */
#include "program/elf/cfi.h"
#include "program/decoder/private.h"
#include "program/elf/demangle.h"
#include "program/dwarf/lines.h"
#include "program/elf/object_private.h"
#include "program/elf/perf_map.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX_ROWS (1U << 22)

static struct elf_object *open_self(void)
{
	struct elf_object *o = NULL;
	struct error e = {.text = ""};

	if (elf_object_open("/proc/self/exe", &o, &e) < 0)
		fail_msg("%s", e.text);
	return o;
}

static int print_symbol(const struct elf_symbol *s, void *out)
{
	return fprintf(out, "%llx %llu %s %s\n", (unsigned long long)s->addr,
		       (unsigned long long)s->size, s->name, s->function) < 0;
}

static int print_line(const char *file, uint32_t line, void *out)
{
	return fprintf(out, "%s:%u\n", file, line) < 0;
}

static void print_inlined(FILE *out, struct line_table *t, uint64_t lo, uint64_t hi)
{
	const struct line_inlined *all;
	size_t n;

	if (line_table_inlined(t, lo, hi, &all, &n) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		struct line_location call = line_inlined_call(t, &all[i]);

		(void)fprintf(out, "%llx-%llx %s:%u\n", (unsigned long long)all[i].range.lo,
			      (unsigned long long)all[i].range.hi, call.file ? call.file : "?",
			      call.line);
	}
}

static void print_lines(FILE *out, const struct elf_object *o)
{
	_cleanup_free_ struct addr_range *covered = NULL;
	_cleanup_free_ uint64_t *statements = NULL;
	struct line_table *t = NULL;
	struct error e = {.text = ""};
	uint32_t nearest = 0;
	size_t n = 0;

	if (line_table_open(o, NULL, &t, &e) < 0)
		fail_msg("%s", e.text);
	(void)fprintf(out, "of %s, warning %s\n", line_table_debug_path(t),
		      line_table_warning(t) ? line_table_warning(t) : "none");
	assert_int_equal(line_table_covered(t, &covered, &n), 0);
	for (size_t i = 0; i < n; i++) {
		struct line_location where;

		(void)fprintf(out, "%llx-%llx\n", (unsigned long long)covered[i].lo,
			      (unsigned long long)covered[i].hi);
		for (uint64_t at = covered[i].lo; at < covered[i].hi; at += 97)
			if (line_table_at(t, at, &where) == 0)
				(void)fprintf(out, "%llx %s:%u\n", (unsigned long long)at,
					      where.file, where.line);
		print_inlined(out, t, covered[i].lo, covered[i].hi);
	}
	assert_int_equal(line_table_statements(t, "decoder_process_test.c", __LINE__, &statements,
					       &n, &nearest),
			 0);
	for (size_t i = 0; i < n; i++)
		(void)fprintf(out, "statement %llx\n", (unsigned long long)statements[i]);
	assert_int_equal(
		line_table_statements(t, "decoder_process_test.c", 1, &statements, &n, &nearest),
		-ENOENT);
	(void)fprintf(out, "nearest %u\n", nearest);
	assert_int_equal(line_table_statements(t, "no_such_file.c", 1, &statements, &n, &nearest),
			 -ENXIO);
	assert_int_equal(line_table_each(t, print_line, out), 0);
	line_table_close(t);
}

/* All that is known of this executable. */
static char *describe(bool remote)
{
	_cleanup_elf_object_ struct elf_object *o = open_self();
	struct error e = {.text = ""};
	struct cfi_table t;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	assert_int_equal(o->readers != &elf_readers_here, remote);
	assert_int_equal(elf_object_each_function(o, print_symbol, out), 0);
	(void)fprintf(out, "problem %s\n",
		      elf_object_symbol_problem(o) ? elf_object_symbol_problem(o) : "none");
	if (cfi_table_read(o, MAX_ROWS, &t, &e) < 0)
		fail_msg("%s", e.text);
	for (size_t i = 0; i < t.n; i++)
		(void)fprintf(out, "%llx %d %d %d\n", (unsigned long long)(t.base + t.rows[i].pc),
			      t.rows[i].kind, t.rows[i].cfa_offset, t.rows[i].rbp_slot);
	cfi_table_free(&t);
	assert_int_equal(cfi_table_read(o, 10, &t, &e), -E2BIG);
	(void)fprintf(out, "%s\n", e.text);
	print_lines(out, o);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void start(const struct decoder_limits *limits)
{
	struct error e = {.text = ""};

	if (decoder_start(limits, &e) < 0)
		fail_msg("%s", e.text);
}

static void test_same_as_here(void **state)
{
	_cleanup_free_ char *here = describe(false), *there = NULL;

	(void)state;
	start(NULL);
	there = describe(true);
	decoder_stop();
	assert_string_equal(here, there);
	assert_true(strlen(here) > 10000);
}

/* A number of /proc/PID/status; -1: none. */
static long long status_of(const char *pid, const char *key, int base)
{
	char path[300], line[256];
	_cleanup_fclose_ FILE *f = NULL;

	(void)snprintf(path, sizeof(path), "/proc/%s/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, key, strlen(key)) && line[strlen(key)] == ':')
			return strtoll(line + strlen(key) + 1, NULL, base);
	return -1;
}

/* Calls @check of each process below this one; returns how many. */
static size_t each_descendant(void (*check)(const char *pid, bool decoder))
{
	DIR *d = opendir("/proc");
	size_t n = 0;

	assert_non_null(d);
	for (struct dirent *x; (x = readdir(d));) {
		char parent[32];
		long long up = x->d_name[0] >= '0' && x->d_name[0] <= '9'
				       ? status_of(x->d_name, "PPid", 10)
				       : -1;

		(void)snprintf(parent, sizeof(parent), "%lld", up);
		if (up <= 0 || (up != getpid() && status_of(parent, "PPid", 10) != getpid()))
			continue;
		n++;
		if (check)
			check(x->d_name, up != getpid());
	}
	(void)closedir(d);
	return n;
}

/* Files are opened by processes with our rights: one maker and one that it makes. */
static size_t openers;

static void has_no_rights(const char *pid, bool decoder)
{
	if (status_of(pid, "NoNewPrivs", 10) == 0) {
		openers++;
		return;
	}
	assert_int_equal(status_of(pid, "CapEff", 16), 0);
	assert_int_equal(status_of(pid, "CapPrm", 16), 0);
	assert_int_equal(status_of(pid, "NoNewPrivs", 10), 1);
	if (geteuid() == 0)
		assert_int_equal(status_of(pid, "Uid", 10), 65534);
	if (decoder)
		assert_int_equal(status_of(pid, "Seccomp", 10), 2);
}

static void test_no_rights(void **state)
{
	struct elf_object *o;

	(void)state;
	start(NULL);
	o = open_self();
	assert_true(elf_object_has_symbols(o));
	free(elf_demangle("_ZN2ns1fEi"));
	assert_int_equal(each_descendant(has_no_rights) - openers,
			 3); /* the maker, the object's and that of names */
	assert_true(openers <= 2);
	elf_object_close(o);
	decoder_stop();
	assert_int_equal(each_descendant(NULL), 0);
}

static void write_all(int fd, const void *bytes, size_t n)
{
	assert_int_equal(write(fd, bytes, n), n);
}

/* This executable without its debug information, but with a link to a file of seven gigabytes,
 * whose checksum must be taken. */
static void make_slow(const char *path, const char *other)
{
	char command[1024];
	Elf64_Ehdr h = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				    EV_CURRENT},
			.e_type = ET_DYN,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_ehsize = sizeof(h)};
	_cleanup_close_ int fd = open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	write_all(fd, &h, sizeof(h));
	(void)snprintf(command, sizeof(command),
		       "objcopy --strip-debug --add-gnu-debuglink='%s' /proc/%d/exe '%s'", other,
		       getpid(), path);
	if (system(command) != 0)
		fail_msg("%s", command);
	assert_int_equal(ftruncate(fd, 7LL << 30), 0);
}

static void test_time(void **state)
{
	const struct decoder_limits limits = {.memory_bytes = 1ULL << 30,
					      .cpu_s = 0,
					      .wall_s = 60,
					      .total_s = 300,
					      .total_bytes = 1ULL << 30};
	char dir[] = "/tmp/cozbpf-decoder.XXXXXX", path[64], other[64];
	struct error e = {.text = ""};
	struct line_table *t = NULL;
	struct elf_object *o, *sound;

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/slow", dir);
	(void)snprintf(other, sizeof(other), "%s/slow.debug", dir);
	make_slow(path, other);
	start(&limits);
	if (elf_object_open(path, &o, &e) < 0)
		fail_msg("%s", e.text);
	assert_true(elf_object_has_symbols(o)); /* which are not dear */
	assert_int_equal(line_table_open(o, NULL, &t, &e), -EIO);
	assert_non_null(strstr(e.text, path));
	assert_non_null(strstr(e.text, "time"));
	/* What is known stays, and other objects have their own. */
	assert_true(elf_object_has_symbols(o));
	sound = open_self();
	if (line_table_open(sound, NULL, &t, &e) < 0)
		fail_msg("%s", e.text);
	line_table_close(t);
	elf_object_close(sound);
	elf_object_close(o);
	decoder_stop();
	(void)unlink(path);
	(void)unlink(other);
	(void)rmdir(dir);
}

static void expect_readable(const char *name, const char *expected)
{
	_cleanup_free_ char *s = elf_demangle(name);

	assert_string_equal(s, expected);
}

/* A name over which the library goes a way that doubles @k times. */
static void make_endless(char *name, size_t size, int k)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t n = (size_t)snprintf(name, size, "_Z1fDp1bI");

	for (int i = 1; i < k; i++)
		n += (size_t)snprintf(name + n, size - n, "S_I");
	n += (size_t)snprintf(name + n, size - n, "1a");
	for (int i = 0; i < k; i++)
		n += i < 36 ? (size_t)snprintf(name + n, size - n, "S%c_E", digits[i])
			    : (size_t)snprintf(name + n, size - n, "S%c%c_E", digits[i / 36],
					       digits[i % 36]);
}

#define N_NAMES (5 * DEMANGLE_BATCH)

static int take_name(const void *item, const char *readable, void *arg)
{
	const char *const *name = item;
	size_t *n = arg;

	if (strcmp(*name, "_ZN2ns1fEi"))
		assert_null(readable);
	else
		assert_string_equal(readable, "ns::f(int)");
	++*n;
	return 0;
}

static void test_names(void **state)
{
	size_t n = 0;
	struct demangle_batch b = {.arguments = true, .result = true, .take = take_name, .arg = &n};
	const char *names[N_NAMES];
	char endless[512];

	(void)state;
	make_endless(endless, sizeof(endless), 60);
	start(NULL);
	(void)alarm(120);
	expect_readable("main", "main");
	assert_int_equal(each_descendant(NULL), 1 + 1); /* nobody was asked */
	expect_readable("_ZN2ns1fEi", "ns::f(int)");
	expect_readable(endless, endless);
	expect_readable("_ZN2ns1fEi", "ns::f(int)");
	/* Of many names asked at once the others are made readable. */
	for (size_t i = 0; i < N_NAMES; i++) {
		names[i] = i % 10 == 9 ? "main" : i == N_NAMES / 2 ? endless : "_ZN2ns1fEi";
		assert_int_equal(demangle_add(&b, names[i], &names[i]), 0);
	}
	assert_int_equal(demangle_end(&b), 0);
	assert_int_equal(n, N_NAMES);
	/* In the end it is not tried any more. */
	for (int i = 0; i < 1000; i++)
		expect_readable(endless, endless);
	expect_readable("_ZN2ns1fEi", "_ZN2ns1fEi");
	(void)alarm(0);
	decoder_stop();
	assert_int_equal(each_descendant(NULL), 0);
	expect_readable("_ZN2ns1fEi", "ns::f(int)"); /* here */
}

/* A file of this process, by the reader in force. */
static int read_map(const char *text, struct perf_map *ret)
{
	char path[] = "/tmp/cozbpf-decoder.XXXXXX";
	_cleanup_close_ int fd = mkstemp(path);

	assert_true(fd >= 0);
	write_all(fd, text, strlen(text));
	(void)unlink(path);
	return elf_readers_current()->perf_map(fd, ret);
}

static void test_perf_maps(void **state)
{
	static const char text[] = "1000 1000 a\n1100 100 b\nnonsense\n3000 10 c d\n";
	struct perf_map here = {0}, there = {0}, none = {0};

	(void)state;
	assert_int_equal(read_map(text, &here), 0);
	assert_int_equal(here.n, 4);
	start(NULL);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(read_map(text, &there), 0);
		assert_int_equal(there.n, here.n);
		assert_memory_equal(there.all, here.all, here.n * sizeof(*here.all));
		assert_int_equal(there.names_size, here.names_size);
		assert_memory_equal(there.names, here.names, here.names_size);
		perf_map_free(&there);
	}
	assert_int_equal(read_map("", &none), 0);
	assert_int_equal(none.n, 0);
	perf_map_free(&none);
	openers = 0;
	/* The maker, and one for all maps. */
	assert_int_equal(each_descendant(has_no_rights) - openers, 2);
	/* What is no file is no map, and the next one is read again. */
	assert_true(elf_readers_current()->perf_map(-1, &none) < 0);
	assert_null(none.all);
	assert_int_equal(read_map(text, &there), 0);
	perf_map_free(&there);
	perf_map_free(&here);
	decoder_stop();
	assert_int_equal(each_descendant(NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_as_here), cmocka_unit_test(test_no_rights),
		cmocka_unit_test(test_time),	     cmocka_unit_test(test_names),
		cmocka_unit_test(test_perf_maps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
