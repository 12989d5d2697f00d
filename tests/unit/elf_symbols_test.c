// SPDX-License-Identifier: BSD-2-Clause
/* Which symbols are one function, by symbols that this file defines as compilers would; and symbols
 * that come packed. */
#include "program/elf/demangle.h"
#include "program/dwarf/lines.h"
#include "program/elf/names.h"
#include "program/elf/object.h"
#include "program/elf/symbols_private.h"

#include "base/cleanup.h"
#include "base/error.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <lzma.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "elf_forged.h"

#define FUNCTION(name)                                                              \
	".type \"" name "\", @function\n\"" name "\":\n\tnop\n\tret\n.size \"" name \
	"\", .-\"" name "\"\n"

__asm__(".text\n"
	/* whole, with a copy, a part and cold code */
	FUNCTION("symbols_full") FUNCTION("symbols_full.constprop.0")
		FUNCTION("symbols_full.part.0") FUNCTION("symbols_full.cold")
			FUNCTION("symbols_full.constprop.0.cold")
	/* copies only, parts only, cold only */
	FUNCTION("symbols_copies.isra.0") FUNCTION("symbols_copies.constprop.1.isra.2")
		FUNCTION("symbols_copies.part.0") FUNCTION("symbols_parts.part.0")
			FUNCTION("symbols_parts.part.1") FUNCTION("symbols_parts.part.1.cold")
				FUNCTION("symbols_frozen.cold.3")
					FUNCTION("symbols_private.lto_priv.0")
	/* C++, two instances of a generic function of Rust by each scheme, Go */
	FUNCTION("_ZN7symbols3runEi") FUNCTION("_ZN7symbols3runEi.isra.0")
		FUNCTION("_ZN7symbols3runEi.cold") FUNCTION("_ZN7symbols4rust17h0123456789abcdefE")
			FUNCTION("_ZN7symbols4rust17hfedcba9876543210E")
				FUNCTION("_ZN7symbols4rust17hfedcba9876543210E.llvm.123")
					FUNCTION("_RINvC7symbols3newlEB2_") FUNCTION(
						"_RNvXCs1234_7symbolsNtB2_1TNtB2_5Trait1m")
						FUNCTION("_ZN45_$LT$symbols..T$u20$as$u20$symbols.."
							 "Trait$GT$4call17h0123456789abcdefE")
							FUNCTION("main.(*T).Method") FUNCTION(
								"main.main.func1")
								FUNCTION("example.com/mod/pkg.Run")
	/* two functions that were folded, with aliases of the first; a class's two constructors */
	".globl symbols_folded, __symbols_folded, symbols_other\n.weak symbols_by_hand\n"
	".type symbols_folded, @function\n.type __symbols_folded, @function\n.type symbols_other, "
	"@function\n"
	".type symbols_by_hand, @function\n.type symbols_folded64, @function\n"
	"symbols_folded: __symbols_folded: symbols_other: symbols_by_hand: symbols_folded64: ret\n"
	".type _ZN7symbols1CC1Ev, @function\n.type _ZN7symbols1CC2Ev, @function\n"
	"_ZN7symbols1CC1Ev: _ZN7symbols1CC2Ev: ret\n"
	/* two instances of a template that were folded */
	".type _ZN7symbols4turnIiEEvT_, @function\n.type _ZN7symbols4turnIjEEvT_, @function\n"
	"_ZN7symbols4turnIiEEvT_: _ZN7symbols4turnIjEEvT_: ret\n"
	/* overloaded, and static in two files */
	FUNCTION("_ZN7symbols4overEi") FUNCTION("_ZN7symbols4overEd")
		FUNCTION("symbols_twice.lto_priv.0") FUNCTION("symbols_twice.lto_priv.1")
	/* a hundred that were folded */
	".irp a,0,1,2,3,4,5,6,7,8,9\n.irp b,0,1,2,3,4,5,6,7,8,9\n"
	".type symbols_many_\\a\\()x\\b, @function\nsymbols_many_\\a\\()x\\b:\n"
	".endr\n.endr\nret\n"
	/* one that only chooses another */
	FUNCTION("symbols_chosen") ".type symbols_chosen, %gnu_indirect_function\n");

static struct elf_object *open_object(const char *path)
{
	struct elf_object *o;
	struct error e = {0};

	if (elf_object_open(path, &o, &e) < 0)
		fail_msg("%s", e.text);
	return o;
}

static void test_own_length(void **state)
{
	static const struct {
		const char *name, *own;
		enum symbol_kind kind;
	} cases[] = {
		{"f", "f", SYMBOL_WHOLE},
		{"", "", SYMBOL_WHOLE},
		{".cold", ".cold", SYMBOL_WHOLE},
		{"f.cold", "f", SYMBOL_COLD},
		{"f.cold.12", "f", SYMBOL_COLD},
		{"f.colder", "f.colder", SYMBOL_WHOLE},
		{"f.part.0", "f", SYMBOL_PART},
		{"f.part", "f.part", SYMBOL_WHOLE},
		{"f.part.", "f.part.", SYMBOL_WHOLE},
		{"f.part.0x", "f.part.0x", SYMBOL_WHOLE},
		{"f.isra.0.part.12.cold", "f", SYMBOL_COLD},
		{"f.part.0.constprop.0", "f", SYMBOL_PART},
		{"f.constprop.0.isra.1", "f", SYMBOL_COPY},
		{"f.lto_priv.3", "f", SYMBOL_RENAMED},
		{"f.lto_priv.3.isra.0", "f", SYMBOL_COPY},
		{"f.llvm.8714529385", "f", SYMBOL_RENAMED},
		{"f.localalias", "f", SYMBOL_RENAMED},
		{"f.avx2", "f.avx2", SYMBOL_WHOLE},
		{"f.1", "f.1", SYMBOL_WHOLE},
		{".part.0.cold", ".part.0", SYMBOL_COLD},
		{"1", "1", SYMBOL_WHOLE},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum symbol_kind kind;
		size_t n = symbol_own_length(cases[i].name, &kind);

		if (n != strlen(cases[i].own) || memcmp(cases[i].name, cases[i].own, n) ||
		    kind != cases[i].kind)
			fail_msg("%s: %zu bytes, kind %d", cases[i].name, n, (int)kind);
	}
}

typedef int finder(const struct elf_object *o, const char *name, struct elf_symbol **ret,
		   size_t *ret_n);

/* What @find says of @name: "a b c". Returns whether there is anything. */
static bool expect_names(const struct elf_object *o, finder *find, const char *name,
			 const char *wanted, struct elf_symbol *ret_first)
{
	_cleanup_free_ struct elf_symbol *all = NULL;
	char got[1024] = "";
	size_t n = 0;
	int r = find(o, name, &all, &n);

	assert_int_equal(r, *wanted ? 0 : -ENOENT);
	for (size_t i = 0; i < n; i++)
		snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s", i ? " " : "",
			 all[i].name);
	if (strcmp(got, wanted))
		fail_msg("%s: \"%s\", not \"%s\"", name, got, wanted);
	if (n)
		*ret_first = all[0];
	return n;
}

/* The symbols that are entered for @name, the first one first. */
static void expect_entries(const struct elf_object *o, const char *name, const char *wanted)
{
	struct elf_symbol first, found;

	if (!expect_names(o, elf_object_find_entries, name, wanted, &first))
		return;
	assert_int_equal(elf_object_find_function(o, name, &found), 0);
	assert_string_equal(found.name, first.name);
}

/* All that is the function's code, by address. */
static void test_code(void **state)
{
	static const struct {
		const char *name, *code;
	} cases[] = {
		{"symbols_full", "symbols_full symbols_full.constprop.0 symbols_full.part.0 "
				 "symbols_full.cold symbols_full.constprop.0.cold"},
		{"symbols_full.part.0", "symbols_full.part.0"},
		{"symbols_copies",
		 "symbols_copies.isra.0 symbols_copies.constprop.1.isra.2 symbols_copies.part.0"},
		{"symbols_parts",
		 "symbols_parts.part.0 symbols_parts.part.1 symbols_parts.part.1.cold"},
		{"symbols_frozen", ""},
		{"symbols_frozen.cold.3", "symbols_frozen.cold.3"},
		{"symbols_nothing", ""},
		{"symbols::run",
		 "_ZN7symbols3runEi _ZN7symbols3runEi.isra.0 _ZN7symbols3runEi.cold"},
		{"symbols::new::<i32>", "_RINvC7symbols3newlEB2_"},
	};
	_cleanup_elf_object_ struct elf_object *o = open_object("/proc/self/exe");
	struct elf_symbol first;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		(void)expect_names(o, elf_object_find_code, cases[i].name, cases[i].code, &first);
}

static void test_indirect(void **state)
{
	_cleanup_elf_object_ struct elf_object *o = open_object("/proc/self/exe");
	struct elf_symbol s;

	(void)state;
	assert_int_equal(elf_object_find_function(o, "symbols_chosen", &s), 0);
	assert_true(s.is_indirect);
	assert_int_equal(elf_object_find_function(o, "main", &s), 0);
	assert_false(s.is_indirect);
}

static void test_entries(void **state)
{
	_cleanup_elf_object_ struct elf_object *o = open_object("/proc/self/exe");
	struct elf_symbol s;

	(void)state;
	expect_entries(o, "symbols_full", "symbols_full symbols_full.constprop.0");
	expect_entries(o, "symbols_full.constprop.0", "symbols_full.constprop.0");
	expect_entries(o, "symbols_full.part.0", "symbols_full.part.0");
	expect_entries(o, "symbols_copies",
		       "symbols_copies.isra.0 symbols_copies.constprop.1.isra.2");
	expect_entries(o, "symbols_parts", "symbols_parts.part.0 symbols_parts.part.1");
	expect_entries(o, "symbols_frozen", "");
	expect_entries(o, "symbols_frozen.cold.3", "");
	expect_entries(o, "symbols_nothing", "");
	expect_entries(o, "symbols_private", "symbols_private.lto_priv.0");
	assert_int_equal(elf_object_find_function(o, "symbols_frozen", &s), 0);
	assert_string_equal(s.name, "symbols_frozen.cold.3");
	assert_string_equal(s.function, "symbols_frozen");
	assert_int_equal(elf_object_function_at(o, s.addr + 1, &s), 0);
	assert_string_equal(s.function, "symbols_frozen");
}

static void test_languages(void **state)
{
	_cleanup_elf_object_ struct elf_object *o = open_object("/proc/self/exe");

	(void)state;
	expect_entries(o, "symbols::run", "_ZN7symbols3runEi _ZN7symbols3runEi.isra.0");
	expect_entries(o, "symbols::run(int)", "_ZN7symbols3runEi _ZN7symbols3runEi.isra.0");
	expect_entries(o, "symbols::rust",
		       "_ZN7symbols4rust17h0123456789abcdefE _ZN7symbols4rust17hfedcba9876543210E "
		       "_ZN7symbols4rust17hfedcba9876543210E.llvm.123");
	expect_entries(o, "_ZN7symbols4rust17hfedcba9876543210E",
		       "_ZN7symbols4rust17hfedcba9876543210E");
	expect_entries(o, "symbols::new::<i32>", "_RINvC7symbols3newlEB2_");
	expect_entries(o, "<symbols::T as symbols::Trait>::m",
		       "_RNvXCs1234_7symbolsNtB2_1TNtB2_5Trait1m");
	expect_entries(
		o, "<symbols::T as symbols::Trait>::call",
		"_ZN45_$LT$symbols..T$u20$as$u20$symbols..Trait$GT$4call17h0123456789abcdefE");
	expect_entries(o, "main.(*T).Method", "main.(*T).Method");
	expect_entries(o, "main.main.func1", "main.main.func1");
	expect_entries(o, "example.com/mod/pkg.Run", "example.com/mod/pkg.Run");
}

static void test_readable(void **state)
{
	static const char *const cases[][2] = {
		{"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
		{"_RNCNvC7mycrate4main0", "mycrate::main::{closure#0}"},
		{"_RNvXCs1234_7symbolsNtB2_1TNtB2_5Trait1m", "<symbols::T as symbols::Trait>::m"},
		{"_ZN4main4main28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE",
		 "main::main::{{closure}}"},
		{"_ZN45_$LT$symbols..T$u20$as$u20$symbols..Trait$GT$4call17h0123456789abcdefE",
		 "<symbols::T as symbols::Trait>::call"},
		{"_ZNSt6vectorIiSaIiEE9push_backEOi",
		 "std::vector<int, std::allocator<int> >::push_back(int&&)"},
		{"main.(*T).Method", "main.(*T).Method"},
		{"main.main.func1", "main.main.func1"},
		{"gopkg.in/yaml%2ev3.Unmarshal", "gopkg.in/yaml%2ev3.Unmarshal"},
		{"_Register", "_Register"},
		{"_R", "_R"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_free_ char *s = elf_demangle(cases[i][0]);

		assert_string_equal(s, cases[i][1]);
	}
	assert_true(demangle_is_rust("_ZN4main17h0123456789abcdefE") &&
		    demangle_is_rust("_RNvC1a1b"));
	assert_false(demangle_is_rust("_ZN4main17h0123456789abcdegE") ||
		     demangle_is_rust("_ZN2ns1fEi") || demangle_is_rust("main"));
}

/* A file as strip leaves one that has mini debug information: no .symtab, and @packed in
 * .gnu_debugdata. Made of this executable. */
static int stripped(const void *packed, size_t size, char path[64])
{
	_cleanup_close_ int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	static const char name[] = "\0.gnu_debugdata";
	int fd = memfd_create("stripped", MFD_CLOEXEC);
	size_t old, end;
	Elf64_Shdr *s;
	Elf64_Ehdr *h;
	struct stat st;
	bool placed = false;
	char *p;

	assert_true(in >= 0 && fd >= 0);
	assert_int_equal(fstat(in, &st), 0);
	old = (size_t)st.st_size;
	end = old + sizeof(name) + size;
	assert_int_equal(ftruncate(fd, (off_t)end), 0);
	p = mmap(NULL, end, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(p != MAP_FAILED);
	for (size_t n = 0; n < old;) {
		ssize_t r = pread(in, p + n, old - n, (off_t)n);

		assert_true(r > 0);
		n += (size_t)r;
	}
	memcpy(p + old, name, sizeof(name));
	memcpy(p + old + sizeof(name), packed, size);
	h = (Elf64_Ehdr *)(void *)p;
	s = (Elf64_Shdr *)(void *)(p + h->e_shoff);
	for (size_t i = 1; i < h->e_shnum; i++) {
		if (s[i].sh_type == SHT_SYMTAB)
			s[i].sh_type = SHT_PROGBITS;
		if (!placed && s[i].sh_type == SHT_PROGBITS &&
		    !(s[i].sh_flags & SHF_ALLOC)) { /* .comment */
			s[i].sh_name = 1;
			s[i].sh_offset = old + sizeof(name);
			s[i].sh_size = size;
			placed = true;
		} else {
			s[i].sh_name = 0;
		}
	}
	assert_true(placed);
	s[h->e_shstrndx].sh_offset = old;
	s[h->e_shstrndx].sh_size = sizeof(name);
	assert_int_equal(munmap(p, end), 0);
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

static void *pack(const void *data, size_t size, size_t *ret_n)
{
	size_t bound = lzma_stream_buffer_bound(size);
	uint8_t *out = malloc(bound);

	assert_non_null(out);
	*ret_n = 0;
	assert_int_equal(
		lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, data, size, out, ret_n, bound),
		LZMA_OK);
	return out;
}

static void *pack_self(size_t *ret_n)
{
	_cleanup_close_ int in = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *p, *packed;

	assert_int_equal(fstat(in, &st), 0);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, in, 0);
	assert_true(p != MAP_FAILED);
	packed = pack(p, (size_t)st.st_size, ret_n);
	(void)munmap(p, (size_t)st.st_size);
	return packed;
}

static void test_minidebug(void **state)
{
	size_t n;
	_cleanup_free_ void *packed = pack_self(&n);
	char path[64];
	_cleanup_close_ int fd = stripped(packed, n, path);
	_cleanup_elf_object_ struct elf_object *o = open_object(path),
					       *self = open_object("/proc/self/exe");
	struct elf_symbol a, b;

	(void)state;
	(void)fd;
	assert_true(elf_object_has_symbols(o));
	assert_null(elf_object_symbol_problem(o));
	assert_int_equal(elf_object_find_function(o, "symbols_full", &a), 0);
	assert_int_equal(elf_object_find_function(self, "symbols_full", &b), 0);
	assert_true(a.addr == b.addr && a.size == b.size);
	assert_int_equal(elf_object_function_at(o, a.addr, &b), 0);
	assert_string_equal(b.name, "symbols_full");
	expect_entries(o, "symbols_copies",
		       "symbols_copies.isra.0 symbols_copies.constprop.1.isra.2");
}

static void expect_problem(const void *packed, size_t n, const char *words)
{
	char path[64];
	_cleanup_close_ int fd = stripped(packed, n, path);
	_cleanup_elf_object_ struct elf_object *o = open_object(path);
	struct elf_symbol s;

	(void)fd;
	assert_int_equal(elf_object_find_function(o, "symbols_full", &s), -ENOENT);
	assert_non_null(elf_object_symbol_problem(o));
	if (!strstr(elf_object_symbol_problem(o), words) ||
	    !strstr(elf_object_symbol_problem(o), path))
		fail_msg("%s", elf_object_symbol_problem(o));
}

/* More zeros than may be unpacked. */
static void *pack_bomb(size_t *ret_n)
{
	static const size_t piece = 8 << 20;
	_cleanup_free_ void *zeros = calloc(1, piece);
	size_t n, times = MINIDEBUG_MAX / piece + 1;
	lzma_stream z = LZMA_STREAM_INIT;
	uint8_t *out;

	assert_non_null(zeros);
	n = lzma_stream_buffer_bound(piece);
	out = malloc(n);
	assert_non_null(out);
	assert_int_equal(lzma_easy_encoder(&z, 0, LZMA_CHECK_CRC32), LZMA_OK);
	z.next_out = out;
	z.avail_out = n;
	for (size_t i = 0; i < times; i++) {
		z.next_in = zeros;
		z.avail_in = piece;
		while (z.avail_in)
			assert_int_equal(lzma_code(&z, LZMA_RUN), LZMA_OK);
	}
	assert_int_equal(lzma_code(&z, LZMA_FINISH), LZMA_STREAM_END);
	*ret_n = z.total_out;
	lzma_end(&z);
	return out;
}

static void test_bad_minidebug(void **state)
{
	static const char text[] = "neither packed nor an ELF file";
	size_t n, n_text, n_bomb;
	_cleanup_free_ char *packed = pack_self(&n);
	_cleanup_free_ void *no_elf = pack(text, sizeof(text), &n_text),
			    *empty = pack(text, 0, &n_bomb), *bomb = NULL;

	(void)state;
	expect_problem(empty, n_bomb, "no ELF file");
	bomb = pack_bomb(&n_bomb);
	expect_problem(text, sizeof(text), "corrupt");
	expect_problem(no_elf, n_text, "no ELF file");
	expect_problem(packed, n / 2, "corrupt");
	packed[n / 2] ^= 1;
	expect_problem(packed, n, "corrupt");
	expect_problem(bomb, n_bomb, "256 MiB");
}

/* A function that only the full table has. */
static int find_full(const char *path, const struct debug_options *options, char **ret_problem)
{
	_cleanup_elf_object_ struct elf_object *o = open_object(path),
					       *self = open_object("/proc/self/exe");
	struct elf_symbol a, b;
	int r;

	elf_object_set_options(o, options);
	r = elf_object_find_function(o, "symbols_full", &a);
	if (ret_problem)
		*ret_problem =
			elf_object_symbol_problem(o) ? strdup(elf_object_symbol_problem(o)) : NULL;
	assert_int_equal(elf_object_find_function(self, "symbols_full", &b), 0);
	assert_true(r < 0 || (a.addr == b.addr && a.size == b.size));
	return r;
}

static void must(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void must(const char *fmt, ...)
{
	char command[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	if (system(command) != 0)
		fail_msg("%s", command);
}

static void test_separate(void **state)
{
	char dir[] = "/tmp/cozbpf-symbols.XXXXXX", path[64], elsewhere[64], *problem = NULL;
	const char *dirs[] = {elsewhere};
	const struct debug_options options = {.debug_dirs = dirs, .n_debug_dirs = 1};

	(void)state;
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/prog", dir);
	(void)snprintf(elsewhere, sizeof(elsewhere), "%s/debug", dir);
	must("cd %s && objcopy --only-keep-debug /proc/%d/exe prog.debug && objcopy --strip-all "
	     "/proc/%d/exe prog && "
	     "objcopy --add-gnu-debuglink=prog.debug prog",
	     dir, getpid(), getpid());
	assert_int_equal(find_full(path, NULL, &problem), 0);
	assert_null(problem);
	/* In a directory of the user's. */
	must("cd %s && mkdir debug && mv prog.debug debug", dir);
	assert_int_equal(find_full(path, NULL, &problem), -ENOENT);
	assert_null(problem);
	assert_int_equal(find_full(path, &options, &problem), 0);
	assert_null(problem);
	/* Of another build, and without symbols. */
	must("cd %s && printf x >>debug/prog.debug", dir);
	assert_int_equal(find_full(path, &options, &problem), -ENOENT);
	assert_non_null(strstr(problem, "another build"));
	free(problem);
	must("cd %s && objcopy --strip-all /proc/%d/exe debug/prog.debug && objcopy "
	     "--remove-section=.gnu_debuglink prog && "
	     "objcopy --add-gnu-debuglink=debug/prog.debug prog",
	     dir, getpid());
	assert_int_equal(find_full(path, &options, &problem), -ENOENT);
	assert_non_null(strstr(problem, "no symbols"));
	free(problem);
	must("rm -r %s", dir);
}

static size_t sharers(const struct elf_object *o, const char *name, bool by_source, char **ret)
{
	_cleanup_elf_names_ struct elf_names names;
	struct elf_symbol s;

	assert_int_equal(elf_object_find_function(o, name, &s), 0);
	assert_int_equal(elf_object_sharers(o, s.addr, by_source, &names), 0);
	if (ret)
		*ret = elf_names_join(&names, name);
	return names.n;
}

static void test_sharers(void **state)
{
	_cleanup_elf_object_ struct elf_object *o = open_object("/proc/self/exe");
	_cleanup_free_ char *others = NULL, *of_alias = NULL, *of_many = NULL;

	(void)state;
	assert_int_equal(sharers(o, "symbols_folded", false, &others), 2);
	assert_string_equal(others, "symbols_other");
	assert_int_equal(sharers(o, "__symbols_folded", false, &of_alias), 2);
	assert_string_equal(of_alias, "symbols_other");
	assert_int_equal(sharers(o, "_ZN7symbols1CC1Ev", false, NULL), 0);
	assert_int_equal(sharers(o, "symbols_full", false, NULL), 0);
	assert_int_equal(sharers(o, "_ZN7symbols4turnIiEEvT_", false, NULL), 2);
	assert_int_equal(sharers(o, "_ZN7symbols4turnIiEEvT_", true, NULL), 0);
	assert_int_equal(sharers(o, "symbols_many_4x2", false, &of_many), ELF_MOST_NAMES);
	assert_non_null(strstr(of_many, " and over 28 more"));
}

static void test_namesakes(void **state)
{
	_cleanup_elf_object_ struct elf_object *o = open_object("/proc/self/exe");
	struct elf_symbol all[4];

	(void)state;
	assert_int_equal(elf_object_namesakes(o, "symbols::over", all, 4), 2);
	assert_int_equal(elf_object_namesakes(o, "symbols::over(int)", all, 4), 0);
	assert_int_equal(elf_object_namesakes(o, "_ZN7symbols4overEi", all, 4), 0);
	assert_int_equal(elf_object_namesakes(o, "symbols_twice", all, 4), 2);
	assert_int_equal(elf_object_namesakes(o, "symbols_twice", all, 1), 1);
	assert_int_equal(elf_object_namesakes(o, "symbols_full", all, 4), 0);
	assert_int_equal(elf_object_namesakes(o, "symbols::C::C", all, 4), 0);
	assert_int_equal(elf_object_namesakes(o, "symbols_no_such", all, 4), 0);
}

/* No name is compared with all others. */
static void test_many_namesakes(void **state)
{
	enum { MANY = 1 << 17 };
	_cleanup_free_ unsigned char *code = calloc(1, MANY);
	struct forged_symbols symbols = forge_symbols(MANY);
	_cleanup_elf_object_ struct elf_object *o = NULL;
	_cleanup_close_ int fd = -1;
	struct elf_symbol all[4];
	char path[64];

	(void)state;
	assert_non_null(code);
	for (size_t i = 0; i < MANY; i++) {
		forge_symbol(&symbols, "work", i, 1);
		symbols.all[i + 1].st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC);
	}
	fd = forge_elf(
		(struct forged_section[]){
			{".text", code, {.sh_type = SHT_PROGBITS, .sh_size = MANY}},
			FORGED_SYMBOLS(symbols)},
		3, 0, path);
	o = open_object(path);
	(void)alarm(20);
	assert_int_equal(elf_object_namesakes(o, "work", all, 4), 4);
	(void)alarm(0);
	forge_symbols_free(&symbols);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_namesakes), cmocka_unit_test(test_sharers),
		cmocka_unit_test(test_namesakes),      cmocka_unit_test(test_own_length),
		cmocka_unit_test(test_entries),	       cmocka_unit_test(test_code),
		cmocka_unit_test(test_indirect),       cmocka_unit_test(test_languages),
		cmocka_unit_test(test_readable),       cmocka_unit_test(test_separate),
		cmocka_unit_test(test_minidebug),      cmocka_unit_test(test_bad_minidebug),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
