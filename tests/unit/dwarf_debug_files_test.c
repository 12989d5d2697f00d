// SPDX-License-Identifier: BSD-2-Clause
/* Lines of one small program, built in the ways that programs are built, with each compiler at
 * hand.
 * Long: left out where few tests run. */
#include "program/dwarf/lines.h"
#include "program/elf/object.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <cmocka.h>

/* bump, line 3 of bump.h, is inlined twice into work and once into other. */
#define WRITE_SOURCES                                                                            \
	"mkdir -p src\n"                                                                         \
	"printf '%s\\n' 'static inline __attribute__((always_inline)) void bump(volatile int "   \
	"*p)' '{' "                                                                              \
	"'	*p = *p * 3 + 1;' '}' >src/bump.h\n"                                                  \
	"printf '%s\\n' '#include \"bump.h\"' 'int work(volatile int *p);' 'int other(volatile " \
	"int *p);' "                                                                             \
	"'__attribute__((noinline)) int work(volatile int *p)' '{' '	bump(p);' '	*p += "         \
	"1;' '	bump(p);' "                                                                       \
	"'	return *p;' '}' 'int main(void)' '{' '	volatile int x = 1;' '	return work(&x) "       \
	"+ other(&x);' '}' >src/main.c\n"                                                        \
	"printf '%s\\n' '#include \"bump.h\"' 'int other(volatile int *p);' "                    \
	"'__attribute__((noinline)) int other(volatile int *p)' "                                \
	"'{' '	bump(p);' '	return *p + 2;' '}' >src/other.c\n"
#define BUMP_LINE 3
#define N_BUMPS 3

/* One file by a relative name, one by an absolute one. $F: flags. full keeps its symbols, prog is
 * what is opened. */
#define BUILD                                     \
	"$CC $F -c src/../src/main.c -o main.o\n" \
	"$CC $F -c $PWD/src/other.c -o other.o\n" \
	"$CC $F main.o other.o -o full\n"         \
	"cp full prog\n"
#define STRIP "objcopy --only-keep-debug full full.debug\nobjcopy --strip-all full prog\n"

static const struct build {
	const char *name, *flags, *script;
	const char *only; /* the one compiler that it is tried with; NULL: each */
} builds[] = {
	{"O0", "-g -O0", BUILD},
	{"O2", "-g -O2", BUILD},
	{"dwarf4", "-gdwarf-4 -O2", BUILD},
	{"dwarf5", "-gdwarf-5 -O2", BUILD},
	{"dwarf2", "-gdwarf-2 -gstrict-dwarf -O2", BUILD},
	{"dwarf3", "-gdwarf-3 -gstrict-dwarf -O2", BUILD},
	{"dwarf64", "-gdwarf-5 -gdwarf64 -O2", BUILD},
	{"g1", "-g1 -O2", BUILD},
	{"function-sections", "-g -O2 -ffunction-sections -Wl,--gc-sections", BUILD},
	{"lto", "-g -O2 -flto", BUILD},
	{"thin-lto", "-g -O2 -flto=thin", BUILD, "clang"},
	{"static-pie", "-g -O2 -static-pie", BUILD},
	{"gz", "-g -O2 -gz=zlib", BUILD},
	{"zdebug", "-g -O2", BUILD "objcopy --compress-debug-sections=zlib-gnu full prog\n"},
	{"dwo4", "-gdwarf-4 -gsplit-dwarf -O2", BUILD},
	{"dwo5", "-gdwarf-5 -gsplit-dwarf -O2", BUILD},
	{"dwo5-sections", "-gdwarf-5 -gsplit-dwarf -O2 -ffunction-sections", BUILD},
	{"dwo-z", "-gdwarf-5 -gsplit-dwarf -gz=zlib -O2", BUILD},
	{"dwo-in-objects", "-gdwarf-5 -gsplit-dwarf=single -O2", BUILD, "clang"},
	{"dwo-moved", "-gdwarf-5 -gsplit-dwarf -O2", BUILD "mkdir root\nmv ./*.dwo root/\n"},
	{"dwp4", "-gdwarf-4 -gsplit-dwarf -O2", BUILD "dwp -e full -o prog.dwp\nrm ./*.dwo\n"},
	{"dwp5", "-gdwarf-5 -gsplit-dwarf -O2", BUILD "llvm-dwp -e full -o prog.dwp\nrm ./*.dwo\n"},
	{"build-id", "-g -O2 -Wl,--build-id",
	 BUILD STRIP "id=$(readelf -n full | sed -n 's/.*Build ID: "
		     "//p')\ntop=root/.build-id/$(echo $id | cut -c1-2)\nmkdir -p $top\n"
		     "mv full.debug $top/$(echo $id | cut -c3-).debug\n"},
	{"debuglink", "-g -O2", BUILD STRIP "objcopy --add-gnu-debuglink=full.debug prog\n"},
	{"debuglink-no-id", "-g -O2 -Wl,--build-id=none",
	 BUILD STRIP "objcopy --add-gnu-debuglink=full.debug prog\n"},
	{"debuglink-.debug", "-g -O2",
	 BUILD STRIP
	 "objcopy --add-gnu-debuglink=full.debug prog\nmkdir .debug\nmv full.debug .debug\n"},
	{"debuglink-root", "-g -O2",
	 BUILD STRIP "objcopy --add-gnu-debuglink=full.debug prog\nmkdir -p root$PWD\nmv "
		     "full.debug root$PWD\n"},
	{"debuglink-z", "-g -O2",
	 BUILD STRIP "objcopy --compress-debug-sections=zlib full.debug\nobjcopy "
		     "--add-gnu-debuglink=full.debug prog\n"},
	{"debuglink-dwo", "-gdwarf-5 -gsplit-dwarf -O2",
	 BUILD STRIP "objcopy --add-gnu-debuglink=full.debug prog\n"},
	{"dwz4", "-gdwarf-4 -O2", BUILD "dwz prog\n", "gcc"},
	{"dwz5", "-gdwarf-5 -O2", BUILD "dwz prog\n", "gcc"},
	{"dwz-alt4", "-gdwarf-4 -O2",
	 BUILD
	 "cp full second\ndwz -m common.alt prog second\nreadelf -SW prog | grep -q debugaltlink\n",
	 "gcc"},
	{"dwz-alt5", "-gdwarf-5 -O2",
	 BUILD
	 "cp full second\ndwz -m common.alt prog second\nreadelf -SW prog | grep -q debugaltlink\n",
	 "gcc"},
	{"dwz-sup5", "-gdwarf-5 -O2",
	 BUILD
	 "cp full second\ndwz -5 -m common.alt prog second\nreadelf -SW prog | grep -q debug_sup\n",
	 "gcc"},
	{"dwz-separate", "-gdwarf-4 -O2",
	 BUILD STRIP "cp full.debug second\nmkdir -p root/.dwz\ndwz -m root/.dwz/common.alt -M "
		     "/usr/lib/debug/.dwz/common.alt full.debug second\n"
		     "objcopy --add-gnu-debuglink=full.debug prog\nreadelf -SW full.debug | grep "
		     "-q debugaltlink\n",
	 "gcc"},
};

static char top[64]; /* the directory that everything is built in */

/* In $top/@dir, made for it. */
static int shell(const char *dir, const char *script)
{
	_cleanup_free_ char *text = NULL;
	int status;

	assert_true(asprintf(&text, "set -e; mkdir -p %s/%s; cd %s/%s\n%s", top, dir, top, dir,
			     script) > 0);
	status = system(text);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool have(const char *program)
{
	_cleanup_free_ char *text = NULL;

	assert_true(asprintf(&text, "command -v %s >/dev/null", program) > 0);
	return system(text) == 0;
}

static void must(const char *dir, const char *script)
{
	if (shell(dir, script) != 0)
		fail_msg("%s: this failed:\n%s", dir, script);
}

/* The object and its lines, with $top/DIR/root as a further directory. */
struct opened {
	struct elf_object *object, *full;
	struct line_table *lines;
	struct error e;
	int r;
	char root[128];
	const char *roots[1], *prefixes[2];
	struct debug_options options;
};

static void open_at(struct opened *o, const char *dir, const char *prog)
{
	char path[128];

	(void)snprintf(o->root, sizeof(o->root), "%s/%s/root", top, dir);
	o->roots[0] = o->root;
	o->options.debug_dirs = o->roots;
	o->options.n_debug_dirs = 1;
	o->options.prefixes = o->prefixes;
	(void)snprintf(path, sizeof(path), "%s/%s/full", top, dir);
	assert_int_equal(elf_object_open(path, &o->full, &o->e), 0);
	(void)snprintf(path, sizeof(path), "%s/%s/%s", top, dir, prog);
	assert_int_equal(elf_object_open(path, &o->object, &o->e), 0);
	o->r = line_table_open(o->object, &o->options, &o->lines, &o->e);
}

static void close_all(struct opened *o)
{
	line_table_close(o->lines);
	elf_object_close(o->object);
	elf_object_close(o->full);
}

struct files {
	const char *dir;
	size_t n;
	const char *last;
};

/* Every file has one name, and that is where it is. */
static int check_file(const char *file, uint32_t line, void *arg)
{
	struct files *f = arg;
	char expected[256];
	const char *base = strrchr(file, '/');

	assert_true(line > 0);
	if (file == f->last)
		return 0;
	f->last = file;
	f->n++;
	(void)snprintf(expected, sizeof(expected), "%s/%s/src%s", top, f->dir, base ? base : "");
	assert_string_equal(file, expected);
	return 0;
}

static void check_function(const struct opened *o, const char *name, uint32_t first, uint32_t last)
{
	struct elf_symbol s;
	struct line_location where;
	size_t seen = 0;

	assert_int_equal(elf_object_find_function(o->full, name, &s), 0);
	for (uint64_t a = s.addr; a < s.addr + s.size; a++) {
		if (line_table_at(o->lines, a, &where) < 0)
			continue;
		seen++;
		if (line_file_matches("src/bump.h", where.file))
			assert_uint_in_range(where.line, 1, 4);
		else
			assert_uint_in_range(where.line, first, last);
	}
	assert_true(seen * 10 >= s.size * 9); /* the rest is line 0 */
}

static void check_build(const char *dir)
{
	struct opened o = {0};
	struct files files = {.dir = dir};
	uint64_t *all = NULL;
	uint32_t nearest;
	size_t n = 0;

	open_at(&o, dir, "prog");
	if (o.r < 0)
		fail_msg("%s: %s", dir, o.e.text);
	check_function(&o, "work", 4, 10);
	check_function(&o, "other", 3, 7);
	assert_int_equal(line_table_statements(o.lines, "bump.h", BUMP_LINE, &all, &n, &nearest),
			 0);
	if (n != N_BUMPS || line_table_warning(o.lines))
		fail_msg("%s: %zu sites, expected %d (%s)", dir, n, N_BUMPS,
			 line_table_warning(o.lines));
	assert_null(line_table_warning(o.lines));
	assert_int_equal(line_table_each(o.lines, check_file, &files), 0);
	assert_int_equal(files.n, 3);
	free(all);
	close_all(&o);
}

static void build(const char *compiler, const struct build *b, char *dir, size_t size)
{
	_cleanup_free_ char *script = NULL;

	(void)snprintf(dir, size, "%s-%s", compiler, b->name);
	assert_true(asprintf(&script, "CC='%s' F='%s'\n%s%s", compiler, b->flags, WRITE_SOURCES,
			     b->script) > 0);
	must(dir, script);
}

static void test_builds(const char *compiler)
{
	char dir[64];

	if (!have(compiler))
		skip();
	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		if (builds[i].only && strcmp(builds[i].only, compiler) != 0)
			continue;
		print_message("%s %s\n", compiler, builds[i].name);
		build(compiler, &builds[i], dir, sizeof(dir));
		check_build(dir);
	}
}

static void test_gcc(void **state)
{
	(void)state;
	test_builds("gcc");
}

static void test_clang(void **state)
{
	(void)state;
	test_builds("clang");
}

/* The gcc build of @script is opened; it must have no lines, and the error must say @why. */
static void check_refused(const char *name, const char *flags, const char *script, const char *why)
{
	const struct build b = {.name = name, .flags = flags, .script = script};
	struct opened o = {0};
	char dir[64];

	build("gcc", &b, dir, sizeof(dir));
	open_at(&o, dir, "prog");
	assert_true(o.r < 0);
	assert_null(o.lines);
	if (!strstr(o.e.text, why))
		fail_msg("%s: '%s' does not say '%s'", dir, o.e.text, why);
	close_all(&o);
}

static void test_refused(void **state)
{
	(void)state;
	check_refused("stripped", "-g -O2", BUILD STRIP "rm full.debug\n",
		      "no line information; build with -g");
	check_refused("crc", "-g -O2",
		      BUILD STRIP
		      "objcopy --add-gnu-debuglink=full.debug prog\nprintf x >>full.debug\n",
		      "full.debug: of another build or damaged (its checksum is not the one in "
		      ".gnu_debuglink)");
	check_refused("another-id", "-g -O2 -Wl,--build-id",
		      BUILD STRIP "id=$(readelf -n full | sed -n 's/.*Build ID: "
				  "//p')\ntop=root/.build-id/$(echo $id | cut -c1-2)\n"
				  "mkdir -p $top\n$CC $F -DX=1 -O1 main.o other.o "
				  "-Wl,--build-id=0x1234567890 -o another\n"
				  "mv another $top/$(echo $id | cut -c3-).debug\n",
		      "of another build (its build id is 1234567890, not ");
	check_refused("cut", "-g -O2 -Wl,--build-id=none",
		      BUILD STRIP
		      "truncate -s 3000 full.debug\nobjcopy --add-gnu-debuglink=full.debug prog\n",
		      "full.debug: truncated or corrupt");
	/* The field behind the flags of a compressed section's header says how: 2 is zstd. */
	check_refused("zstd", "-g -O2 -gz=zlib",
		      BUILD "at=$((0x$(readelf -SW prog | sed -n 's/.*\\.debug_info *PROGBITS "
			    "*[0-9a-f]* \\([0-9a-f]*\\).*/\\1/p')))\n"
			    "printf '\\002' | dd of=prog bs=1 seek=$at conv=notrunc 2>/dev/null\n",
		      "compressed with zstd is not supported; build with -gz=zlib");
}

/* Where split or alternate files are missing, lines are there all the same; the table says what is
 * not. */
static void check_warned(const char *name, const char *flags, const char *script, const char *why,
			 size_t sites)
{
	const struct build b = {.name = name, .flags = flags, .script = script};
	struct opened o = {0};
	uint64_t *all = NULL;
	uint32_t nearest;
	char dir[64];
	size_t n;

	build("gcc", &b, dir, sizeof(dir));
	open_at(&o, dir, "prog");
	assert_int_equal(o.r, 0);
	check_function(&o, "work", 4, 10);
	assert_int_equal(line_table_statements(o.lines, "bump.h", BUMP_LINE, &all, &n, &nearest),
			 0);
	if (n != sites || !line_table_warning(o.lines))
		fail_msg("%s: %zu sites, expected %zu (%s)", dir, n, sites,
			 line_table_warning(o.lines));
	if (!strstr(line_table_warning(o.lines), why))
		fail_msg("%s: '%s' does not say '%s'", dir, line_table_warning(o.lines), why);
	free(all);
	close_all(&o);
}

static void test_warned(void **state)
{
	(void)state;
	check_warned(
		"dwo-missing", "-g -gsplit-dwarf -O2", BUILD "rm ./*.dwo\n",
		".dwo: split debug information is missing (give its directory with --debug-dir)",
		2);
	check_warned("dwo-other", "-gdwarf-5 -gsplit-dwarf -O2",
		     BUILD "$CC $F -DX=1 -DY=2 -O1 -c src/main.c -o main.o\n"
			   "$CC $F -O1 -c src/other.c -o other.o\n",
		     ".dwo: of another build", 2);
	check_warned("dwo-cut", "-gdwarf-4 -gsplit-dwarf -O2",
		     BUILD "truncate -s 300 main.dwo\ntruncate -s 300 other.dwo\n",
		     "main.dwo: truncated or corrupt ELF file", 2);
	check_warned("dwp-cut", "-gdwarf-5 -gsplit-dwarf -O2",
		     BUILD "llvm-dwp -e full -o prog.dwp\ntruncate -s 200 prog.dwp\n",
		     "prog.dwp: truncated or corrupt ELF file", 3);
	check_warned("alt-missing", "-gdwarf-5 -O2",
		     BUILD "cp full second\ndwz -5 -m common.alt prog second\nrm common.alt\n",
		     "common.alt is missing", 3);
	check_warned("alt-other", "-gdwarf-5 -O2",
		     BUILD "cp full second\ncp full third\ndwz -5 -m common.alt prog second\n"
			   "$CC $F -DX -g3 -c src/main.c -o main.o\n$CC $F main.o other.o -o "
			   "fourth\ncp fourth fifth\n"
			   "dwz -5 -m common.alt fourth fifth\n",
		     "common.alt: of another build", 3);
}

static void test_prefix(void **state)
{
	const struct build b = {.name = "prefix", .flags = "-g -O0", .script = BUILD};
	struct opened o = {0};
	struct line_location where;
	struct elf_symbol s;
	uint64_t *all = NULL;
	uint32_t nearest;
	char dir[64], first[256], second[256];
	size_t n;

	(void)state;
	build("gcc", &b, dir, sizeof(dir));
	(void)snprintf(first, sizeof(first), "%s/%s/sr=/wrong", top,
		       dir); /* no directory of that name */
	o.prefixes[0] = first;
	(void)snprintf(second, sizeof(second), "%s/%s/=/srv/code/../kept", top, dir);
	o.prefixes[1] = second;
	o.options.n_prefixes = 2;
	open_at(&o, dir, "prog");
	assert_int_equal(o.r, 0);
	assert_int_equal(elf_object_find_function(o.full, "other", &s), 0);
	assert_int_equal(line_table_at(o.lines, s.addr, &where), 0);
	assert_string_equal(where.file, "/srv/kept/src/other.c");
	assert_int_equal(line_table_statements(o.lines, "/srv/kept/src/bump.h", BUMP_LINE, &all, &n,
					       &nearest),
			 0);
	assert_int_equal(n, N_BUMPS);
	free(all);
	close_all(&o);
}

static void test_relative_prefix(void **state)
{
	const struct build b = {.name = "map",
				.flags = "",
				.script = "F=\"-g -O0 -ffile-prefix-map=$PWD=.\"\n" BUILD};
	struct opened o = {0};
	struct line_location where;
	struct elf_symbol s;
	char dir[64];

	(void)state;
	build("gcc", &b, dir, sizeof(dir));
	open_at(&o, dir, "prog");
	assert_int_equal(o.r, 0);
	assert_int_equal(elf_object_find_function(o.full, "other", &s), 0);
	assert_int_equal(line_table_at(o.lines, s.addr, &where), 0);
	assert_string_equal(where.file, "src/other.c");
	close_all(&o);
	o = (struct opened){.prefixes = {".=/srv/code"}, .options.n_prefixes = 1};
	open_at(&o, dir, "prog");
	assert_int_equal(line_table_at(o.lines, s.addr, &where), 0);
	assert_string_equal(where.file, "/srv/code/src/other.c");
	close_all(&o);
}

/* A row of line 0 is code that no line can be held to. */
static void test_line_zero(void **state)
{
	struct opened o = {0};
	struct line_location where;
	struct elf_symbol s;
	size_t none = 0, seen = 0;

	(void)state;
	if (!have("clang"))
		skip(); /* the other assembler leaves such rows out */
	must("zero", "printf '%s\\n' 'volatile int x;' 'int main(void)' '{' '	x = 1;' '#line 0' "
		     "'	x = 2;' '#line 6' '	x = 3;' "
		     "'	return 0;' '}' >zero.c\nclang -g -O1 -w zero.c -o full\n");
	open_at(&o, "zero", "full");
	assert_int_equal(o.r, 0);
	assert_int_equal(elf_object_find_function(o.full, "main", &s), 0);
	for (uint64_t a = s.addr; a < s.addr + s.size; a++) {
		if (line_table_at(o.lines, a, &where) == -ENOENT) {
			none++;
		} else {
			assert_uint_in_range(where.line, 3, 7);
			seen |= 1U << where.line;
		}
	}
	assert_true(none > 0 && none < 12); /* the one store */
	assert_int_equal(seen & ~(1U << 3), 1U << 4 | 1U << 6 | 1U << 7);
	close_all(&o);
}

/* Bytes that this process has read, from wherever. */
static uint64_t bytes_read(void)
{
	_cleanup_fclose_ FILE *f = fopen("/proc/self/io", "re");
	unsigned long long n = 0;

	return f && fscanf(f, "rchar: %llu", &n) == 1 ? n : 0;
}

/* Opening a table costs the units' roots, not their trees; the first line costs its unit. */
static void test_open_reads_little(void **state)
{
	struct opened o = {0};
	struct elf_symbol s;
	struct line_location where;
	uint64_t before, opened, first;

	(void)state;
	if (!bytes_read())
		skip();
	must("many", "i=0; while [ $i -lt 200 ]; do echo \"struct s$i { int a_$i; long b_$i; }; "
		     "int f$i(struct s$i *p); int f$i(struct s$i *p)"
		     " { return p->a_$i * $i + (int)p->b_$i; }\"; i=$((i + 1)); done >unit.c\n"
		     "echo 'int main(void) { return 0; }' >main.c\n"
		     "gcc -g -O1 -gdwarf-5 -c unit.c\n"
		     "i=0; while [ $i -lt 100 ]; do objcopy --prefix-symbols=u${i}_ unit.o u$i.o; "
		     "i=$((i + 1)); done\n"
		     "gcc -g main.c u*.o -o full\nrm ./*.o\n");
	before = bytes_read();
	open_at(&o, "many", "full");
	opened = bytes_read();
	assert_int_equal(o.r, 0);
	assert_int_equal(elf_object_find_function(o.full, "u50_f100", &s), 0);
	first = bytes_read();
	assert_int_equal(line_table_at(o.lines, s.addr, &where), 0);
	assert_int_equal(where.line, 101);
	/* The units have more than 20 KiB each in .debug_info alone. */
	assert_uint_in_range(opened - before, 1, 400000);
	assert_uint_in_range(bytes_read() - first, 1, 100000);
	close_all(&o);
}

static int make_top(void **state)
{
	(void)state;
	(void)snprintf(top, sizeof(top), "/tmp/cozbpf-debug-XXXXXX");
	return mkdtemp(top) ? 0 : -1;
}

static int remove_top(void **state)
{
	char script[96];

	(void)state;
	(void)snprintf(script, sizeof(script), "rm -rf '%s'", top);
	return system(script);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gcc),	  cmocka_unit_test(test_clang),
		cmocka_unit_test(test_refused),	  cmocka_unit_test(test_warned),
		cmocka_unit_test(test_prefix),	  cmocka_unit_test(test_relative_prefix),
		cmocka_unit_test(test_line_zero), cmocka_unit_test(test_open_reads_little),
	};

	return cmocka_run_group_tests(tests, make_top, remove_top);
}
