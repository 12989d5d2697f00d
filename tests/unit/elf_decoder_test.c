// SPDX-License-Identifier: BSD-2-Clause
/* Decoders: what they say is what reading here says; they have no rights; one that takes too long is given up, and only its object's
 * information with it; and what a decoder that somebody has taken over may answer is refused. */
#include "elf/cfi.h"
#include "elf/decoder_private.h"
#include "elf/lines_private.h"
#include "elf/object_private.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/rng.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

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
	return fprintf(out, "%llx %llu %s %s\n", (unsigned long long)s->addr, (unsigned long long)s->size, s->name, s->function) < 0;
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
	for (size_t i = 0; i < n; i++)
		(void)fprintf(out, "%llx-%llx %s:%u\n", (unsigned long long)all[i].range.lo, (unsigned long long)all[i].range.hi,
			      all[i].call.file ? all[i].call.file : "?", all[i].call.line);
}

static void print_lines(FILE *out, const struct elf_object *o)
{
	_cleanup_free_ struct addr_range *covered = NULL;
	_cleanup_free_ uint64_t *statements = NULL;
	struct line_table *t = NULL;
	struct error e = {.text = ""};
	uint32_t nearest = 0;
	size_t n = 0;

	if (line_table_open(o, &t, &e) < 0)
		fail_msg("%s", e.text);
	(void)fprintf(out, "of %s, warning %s\n", line_table_debug_path(t), line_table_warning(t) ? line_table_warning(t) : "none");
	assert_int_equal(line_table_covered(t, &covered, &n), 0);
	for (size_t i = 0; i < n; i++) {
		struct line_location where;

		(void)fprintf(out, "%llx-%llx\n", (unsigned long long)covered[i].lo, (unsigned long long)covered[i].hi);
		for (uint64_t at = covered[i].lo; at < covered[i].hi; at += 97)
			if (line_table_at(t, at, &where) == 0)
				(void)fprintf(out, "%llx %s:%u\n", (unsigned long long)at, where.file, where.line);
		print_inlined(out, t, covered[i].lo, covered[i].hi);
	}
	assert_int_equal(line_table_statements(t, "elf_decoder_test.c", __LINE__, &statements, &n, &nearest), 0);
	for (size_t i = 0; i < n; i++)
		(void)fprintf(out, "statement %llx\n", (unsigned long long)statements[i]);
	assert_int_equal(line_table_statements(t, "elf_decoder_test.c", 1, &statements, &n, &nearest), -ENOENT);
	(void)fprintf(out, "nearest %u\n", nearest);
	assert_int_equal(line_table_statements(t, "no_such_file.c", 1, &statements, &n, &nearest), -ENXIO);
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
	assert_int_equal(decoder_serves(o), remote);
	assert_int_equal(elf_object_each_function(o, print_symbol, out), 0);
	(void)fprintf(out, "problem %s\n", elf_object_symbol_problem(o) ? elf_object_symbol_problem(o) : "none");
	if (cfi_table_read(o, MAX_ROWS, &t, &e) < 0)
		fail_msg("%s", e.text);
	for (size_t i = 0; i < t.n; i++)
		(void)fprintf(out, "%llx %d %d %d\n", (unsigned long long)(t.base + t.rows[i].pc), t.rows[i].kind, t.rows[i].cfa_offset,
			      t.rows[i].rbp_slot);
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

	if (elf_decoder_start(limits, &e) < 0)
		fail_msg("%s", e.text);
}

static void test_same_as_here(void **state)
{
	_cleanup_free_ char *here = describe(false), *there = NULL;

	(void)state;
	start(NULL);
	there = describe(true);
	elf_decoder_stop();
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
		long long up = x->d_name[0] >= '0' && x->d_name[0] <= '9' ? status_of(x->d_name, "PPid", 10) : -1;

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

static void has_no_rights(const char *pid, bool decoder)
{
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
	assert_int_equal(each_descendant(has_no_rights), 2);
	elf_object_close(o);
	elf_decoder_stop();
	assert_int_equal(each_descendant(NULL), 0);
}

static void write_all(int fd, const void *bytes, size_t n)
{
	assert_int_equal(write(fd, bytes, n), n);
}

/* This executable without its debug information, but with a link to a file of seven gigabytes, whose checksum must be taken. */
static void make_slow(const char *path, const char *other)
{
	char command[1024];
	Elf64_Ehdr h = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT}, .e_type = ET_DYN, .e_machine = EM_X86_64,
			.e_version = EV_CURRENT, .e_ehsize = sizeof(h)};
	_cleanup_close_ int fd = open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	write_all(fd, &h, sizeof(h));
	(void)snprintf(command, sizeof(command), "objcopy --strip-debug --add-gnu-debuglink='%s' /proc/%d/exe '%s'", other, getpid(), path);
	if (system(command) != 0)
		fail_msg("%s", command);
	assert_int_equal(ftruncate(fd, 7LL << 30), 0);
}

static void test_time(void **state)
{
	const struct decoder_limits limits = {.memory_bytes = 1ULL << 30, .cpu_s = 0, .wall_s = 60};
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
	assert_int_equal(line_table_open(o, &t, &e), -EIO);
	assert_non_null(strstr(e.text, path));
	assert_non_null(strstr(e.text, "time"));
	/* What is known stays, and other objects have their own. */
	assert_true(elf_object_has_symbols(o));
	sound = open_self();
	if (line_table_open(sound, &t, &e) < 0)
		fail_msg("%s", e.text);
	line_table_close(t);
	elf_object_close(sound);
	elf_object_close(o);
	elf_decoder_stop();
	(void)unlink(path);
	(void)unlink(other);
	(void)rmdir(dir);
}

/* An object whose decoder is this test: what it will answer has been written to the other end already. */
struct forged {
	struct elf_object *object;
	int other;
};

static struct forged forge(void)
{
	struct forged f;
	int ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	f.object = open_self();
	f.other = ends[1];
	assert_int_equal(decoder_adopt(f.object, ends[0]), 0);
	return f;
}

static void forge_end(struct forged *f)
{
	elf_object_close(f->object);
	(void)close(f->other);
}

static void answer(struct forged *f, uint64_t a, const void *const blobs[DECODER_BLOBS], const size_t sizes[DECODER_BLOBS])
{
	struct decoder_head h = {.kind = DECODER_RESULT, .a = a};

	for (int i = 0; i < DECODER_BLOBS; i++)
		h.size[i] = sizes[i];
	write_all(f->other, &h, sizeof(h));
	for (int i = 0; i < DECODER_BLOBS; i++)
		write_all(f->other, blobs[i], sizes[i]);
}
#define ANSWER(f, a, array, array_size, more, more_size, names, names_size) \
	answer(f, a, (const void *[]){array, more, names, ""}, (size_t[]){array_size, more_size, names_size, 0})

static void refuse_symbols(const void *array, size_t size, const char *strings, size_t strings_size)
{
	struct forged f = forge();

	ANSWER(&f, 0, array, size, strings, strings_size, "", 0);
	assert_false(elf_object_has_symbols(f.object));
	assert_non_null(strstr(elf_object_symbol_problem(f.object), "impossible"));
	forge_end(&f);
}

static void test_forged_symbols(void **state)
{
	_cleanup_elf_object_ struct elf_object *o = open_self();
	const uint64_t code = elf_object_code_base(o);
	struct wire_symbol s[2] = {{.addr = code, .size = 16, .name = 0, .own = 0}, {.addr = code + 16, .size = 16, .name = 2, .own = 2}}, bad[2];
	struct forged f = forge();
	struct elf_symbol found;

	(void)state;
	ANSWER(&f, 0, s, sizeof(s), "a\0b", 4, "", 0);
	assert_int_equal(elf_object_function_at(f.object, code + 20, &found), 0);
	assert_string_equal(found.name, "b");
	forge_end(&f);
	f = forge();
	ANSWER(&f, 0, s, sizeof(s), "a\0b", 3, "", 0); /* unended: the end is ours */
	assert_true(elf_object_has_symbols(f.object));
	forge_end(&f);
#define REFUSE(change)                                         \
	do {                                                   \
		memcpy(bad, s, sizeof(s));                     \
		change;                                        \
		refuse_symbols(bad, sizeof(bad), "a\0b", 4);   \
	} while (0)
	REFUSE(bad[1].name = 4);
	REFUSE(bad[1].own = UINT32_MAX);
	REFUSE(bad[0].name = 1);
	REFUSE(bad[1].addr = code - 4096 * 4096ULL);
	REFUSE(bad[1].addr = 0x7fffffffffff);
	REFUSE(bad[1].size = UINT64_MAX);
	REFUSE(bad[1].kind = 77);
	REFUSE(bad[0].addr = code + 17);
#undef REFUSE
	refuse_symbols(s, sizeof(s) - 1, "a\0b", 4);
	refuse_symbols(s, sizeof(s), "", 0);
}

static void refuse_cfi(const struct cfi_row *rows, size_t size, size_t max)
{
	struct forged f = forge();
	struct error e = {.text = ""};
	struct cfi_table t;

	ANSWER(&f, 0, rows, size, "", 0, "", 0);
	assert_int_equal(cfi_table_read(f.object, max, &t, &e), -EIO);
	assert_non_null(strstr(e.text, "impossible"));
	assert_int_equal(cfi_table_read(f.object, max, &t, &e), -EIO); /* it is not asked again */
	forge_end(&f);
}

static void test_forged_cfi(void **state)
{
	const struct cfi_row good[] = {{.pc = 0, .kind = CFI_RSP}, {.pc = 4, .kind = CFI_NONE}};
	const struct cfi_row late[] = {{.pc = 1, .kind = CFI_RSP}, {.pc = 4, .kind = CFI_NONE}};
	const struct cfi_row fallen[] = {{.pc = 0, .kind = CFI_RSP}, {.pc = 0, .kind = CFI_NONE}};
	const struct cfi_row unknown[] = {{.pc = 0, .kind = 99}, {.pc = 4, .kind = CFI_NONE}};
	const struct cfi_row open_ended[] = {{.pc = 0, .kind = CFI_RSP}, {.pc = 4, .kind = CFI_RSP}};
	struct forged f = forge();
	struct error e = {.text = ""};
	struct cfi_table t;

	(void)state;
	ANSWER(&f, 0, good, sizeof(good), "", 0, "", 0);
	assert_int_equal(cfi_table_read(f.object, 10, &t, &e), 0);
	assert_int_equal(t.n, 2);
	cfi_table_free(&t);
	forge_end(&f);
	refuse_cfi(late, sizeof(late), 10);
	refuse_cfi(fallen, sizeof(fallen), 10);
	refuse_cfi(unknown, sizeof(unknown), 10);
	refuse_cfi(open_ended, sizeof(open_ended), 10);
	refuse_cfi(good, sizeof(good) - 1, 10);
	refuse_cfi(good, sizeof(good), 1);
	refuse_cfi(good, 0, 10);
}

/* A table with one unit over the first sixteen bytes of code. */
static struct line_table *open_forged(struct forged *f)
{
	const uint64_t code = elf_object_code_base(f->object);
	const struct wire_range index = {code, code + 16, 0};
	struct line_table *t = NULL;
	struct error e = {.text = ""};

	ANSWER(f, 1, &index, sizeof(index), "forged", 6, "", 0);
	if (line_table_open(f->object, &t, &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(line_table_debug_path(t), "forged");
	return t;
}

static void refuse_table(uint64_t n_units, const struct wire_range *index, size_t size)
{
	struct forged f = forge();
	struct error e = {.text = ""};
	struct line_table *t = NULL;

	ANSWER(&f, n_units, index, size, "forged", 6, "", 0);
	assert_int_equal(line_table_open(f.object, &t, &e), -EIO);
	assert_non_null(strstr(e.text, "impossible"));
	forge_end(&f);
}

static void refuse_rows(const struct line_row *rows, size_t size, const char *names, size_t names_size)
{
	struct forged f = forge();
	struct line_table *t = open_forged(&f);
	struct line_location where;

	ANSWER(&f, 0, rows, size, "", 0, names, names_size);
	assert_int_equal(line_table_at(t, elf_object_code_base(f.object), &where), -ENOENT);
	assert_non_null(strstr(line_table_warning(t), "impossible"));
	assert_int_equal(line_table_bad_units(t), 1);
	line_table_close(t);
	forge_end(&f);
}

static void test_forged_lines(void **state)
{
	_cleanup_elf_object_ struct elf_object *o = open_self();
	const uint64_t code = elf_object_code_base(o);
	const struct wire_range sound[] = {{code, code + 8, 0}, {code + 8, code + 16, 1}}, overlapping[] = {{code, code + 9, 0}, {code + 8, code + 16, 1}},
		falling[] = {{code + 8, code + 16, 0}, {code, code + 8, 1}}, inverted[] = {{code + 8, code, 0}};
	const struct line_row rows[] = {{.addr = code, .line = 7, .file = 0}, {.addr = code + 16, .end = 1}};
	struct line_row bad[2];
	struct forged f = forge();
	struct line_table *t = open_forged(&f);
	struct line_location where;

	(void)state;
	ANSWER(&f, 0, rows, sizeof(rows), "", 0, "a.c", 4);
	assert_int_equal(line_table_at(t, code, &where), 0);
	assert_string_equal(where.file, "a.c");
	line_table_close(t);
	forge_end(&f);

	refuse_table(1, sound, sizeof(sound)); /* the second unit is one too many */
	refuse_table(UINT64_MAX, sound, sizeof(sound));
	refuse_table(2, sound, sizeof(sound) - 1);
	refuse_table(2, sound, 0);
	refuse_table(2, overlapping, sizeof(overlapping));
	refuse_table(2, falling, sizeof(falling));
	refuse_table(2, inverted, sizeof(inverted));

	refuse_rows(rows, sizeof(rows), "", 0);       /* no such file */
	refuse_rows(rows, sizeof(rows), "a.c", 3);    /* a name without an end */
	refuse_rows(rows, sizeof(rows), "\0a.c", 5);  /* one without a name */
	refuse_rows(rows, sizeof(rows) - 1, "a.c", 4);
	refuse_rows(rows, sizeof(rows[0]), "a.c", 4); /* open-ended */
	memcpy(bad, rows, sizeof(rows));
	bad[1].addr = code - 1;
	refuse_rows(bad, sizeof(bad), "a.c", 4);
	bad[1] = rows[1];
	bad[0].file = 1;
	refuse_rows(bad, sizeof(bad), "a.c", 4);
}

static void refuse_inlined(const struct wire_inlined *all, size_t size)
{
	struct forged f = forge();
	struct line_table *t = open_forged(&f);
	const uint64_t code = elf_object_code_base(f.object);
	const struct line_inlined *found;
	size_t n;

	ANSWER(&f, 0, all, size, "", 0, "a.c", 4);
	assert_int_equal(line_table_inlined(t, code, code + 16, &found, &n), -ENOENT);
	assert_non_null(strstr(line_table_warning(t), "impossible"));
	line_table_close(t);
	forge_end(&f);
}

static void test_forged_inlined(void **state)
{
	_cleanup_elf_object_ struct elf_object *o = open_self();
	const uint64_t code = elf_object_code_base(o);
	const struct wire_inlined sound[] = {{code, code + 16, 0, 5}, {code + 4, code + 8, NO_FILE, 0}}, empty[] = {{code, code, 0, 5}},
		falling[] = {{code + 4, code + 8, 0, 5}, {code, code + 16, 0, 5}}, elsewhere[] = {{code, code + 16, 1, 5}},
		nowhere[] = {{code, code + 16, 0, 0}};
	const uint64_t outside[] = {code, 0x7fffffffffff};
	struct forged f = forge();
	struct line_table *t = open_forged(&f);
	struct line_location calls[4];
	uint32_t nearest = 0;
	uint64_t *all;
	size_t n;

	(void)state;
	ANSWER(&f, 0, sound, sizeof(sound), "", 0, "a.c", 4);
	assert_int_equal(line_table_calls(t, code + 4, UINT64_MAX, calls, 4), 1);
	assert_string_equal(calls[0].file, "a.c");
	assert_int_equal(calls[0].line, 5);
	ANSWER(&f, 0, outside, sizeof(outside), "", 0, "", 0);
	assert_int_equal(line_table_statements(t, "a.c", 5, &all, &n, &nearest), -EIO);
	assert_non_null(strstr(line_table_warning(t), "impossible"));
	line_table_close(t);
	forge_end(&f);
	refuse_inlined(empty, sizeof(empty));
	refuse_inlined(falling, sizeof(falling));
	refuse_inlined(elsewhere, sizeof(elsewhere));
	refuse_inlined(nowhere, sizeof(nowhere));
	refuse_inlined(sound, sizeof(sound) - 1);
}

/* Whatever comes, something is returned, and what is returned can be used. */
static void ask_everything(struct forged *f)
{
	const uint64_t code = elf_object_code_base(f->object);
	struct error e = {.text = ""};
	struct line_table *t = NULL;
	struct line_location where;
	struct elf_symbol s;
	struct cfi_table c;

	(void)shutdown(f->other, SHUT_WR);
	(void)elf_object_function_at(f->object, code + 5, &s);
	if (cfi_table_read(f->object, MAX_ROWS, &c, &e) == 0) {
		(void)cfi_table_at(&c, 100);
		cfi_table_free(&c);
	}
	if (line_table_open(f->object, &t, &e) < 0)
		return;
	(void)line_table_at(t, code, &where);
	(void)line_table_calls(t, code, UINT64_MAX, &where, 1);
	(void)line_table_warning(t);
	line_table_close(t);
}

static void test_garbage(void **state)
{
	struct rng rng;

	(void)state;
	rng_seed(&rng, 7);
	for (int i = 0; i < 300; i++) {
		struct forged f = forge();
		unsigned char bytes[2048];
		struct decoder_head h = {.kind = DECODER_RESULT};

		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (unsigned char)rng_below(&rng, i % 3 ? 256 : 3);
		for (int k = 0; i % 2 && k < 3; k++) {
			for (int b = 0; b < DECODER_BLOBS; b++)
				h.size[b] = rng_below(&rng, 20) ? rng_below(&rng, 20) * 8 : rng_below(&rng, 1ULL << 40);
			h.a = rng_below(&rng, 4);
			write_all(f.other, &h, sizeof(h));
			write_all(f.other, bytes, rng_below(&rng, 640));
		}
		write_all(f.other, bytes, rng_below(&rng, sizeof(bytes)));
		ask_everything(&f);
		forge_end(&f);
	}
}

/* What a decoder gets when it asks for @path; the file's descriptor or a negative errno. */
static int ask_for(const char *path)
{
	struct decoder_head h = {.kind = DECODER_OPEN, .size = {strlen(path)}};
	struct decoder_reply r;
	int32_t status;
	int fd, ends[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	write_all(ends[1], &h, sizeof(h));
	write_all(ends[1], path, strlen(path));
	(void)shutdown(ends[1], SHUT_WR);
	assert_int_equal(decoder_read_reply(ends[0], 0, &r), -EPIPE);
	assert_int_equal(decoder_read_fd(ends[1], &status, sizeof(status), 0, &fd, NULL), 0);
	(void)close(ends[0]);
	(void)close(ends[1]);
	assert_true((fd >= 0) == (status == 0));
	return status ? status : fd;
}

static void test_files(void **state)
{
	char exe[64];
	_cleanup_close_ int fd = -1;

	(void)state;
	(void)snprintf(exe, sizeof(exe), "/proc/%d/exe", getpid());
	fd = ask_for(exe);
	assert_true(fd >= 0);
	assert_int_equal(ask_for("/etc/passwd"), -ENOEXEC);
	assert_int_equal(ask_for("/etc"), -ENOEXEC);
	assert_int_equal(ask_for("/dev/zero"), -ENOEXEC);
	assert_int_equal(ask_for("/no/such/file"), -ENOENT);
	assert_int_equal(ask_for(""), -ENOENT);
}

static void test_silence(void **state)
{
	struct decoder_reply r;
	uint64_t from = clock_monotonic_ns();
	int ends[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	assert_int_equal(decoder_read_reply(ends[0], from + 20 * NSEC_PER_MSEC, &r), -ETIMEDOUT);
	write_all(ends[1], "half", 4);
	assert_int_equal(decoder_read_reply(ends[0], clock_monotonic_ns() + 20 * NSEC_PER_MSEC, &r), -ETIMEDOUT);
	(void)close(ends[1]);
	assert_int_equal(decoder_read_reply(ends[0], 0, &r), -EPIPE);
	(void)close(ends[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_as_here),
		cmocka_unit_test(test_no_rights),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_forged_symbols),
		cmocka_unit_test(test_forged_cfi),
		cmocka_unit_test(test_forged_lines),
		cmocka_unit_test(test_forged_inlined),
		cmocka_unit_test(test_garbage),
		cmocka_unit_test(test_files),
		cmocka_unit_test(test_silence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
