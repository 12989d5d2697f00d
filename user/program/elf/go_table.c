// SPDX-License-Identifier: BSD-2-Clause
#include "program/elf/go_table.h"
#include "program/elf/symbols_private.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The largest programs (Kubernetes, CockroachDB) have less than a third of it. */
#define MAX_BYTES (256U << 20)
#define MAX_FUNCTIONS (1U << 20)
#define MAX_TEXT (64U << 10) /* of a name; those of generic functions are long */
#define NO_OFFSET UINT32_MAX
/* Of a function's tables of numbers by address, that of inlined calls; and of its other data, these
 * calls. */
#define COPIES_NUMBER 2
#define TREE_NUMBER 3

struct header {
	uint32_t magic;
	uint8_t zero[2], quantum,
		pointer; /* sizes, in bytes, of the least instruction and of a pointer */
	uint64_t functions, files;
	uint64_t more[6]; /* from 1.18 on, where the code begins; offsets of the parts */
};
_Static_assert(sizeof(struct header) == 72, "header");

/* Parts of the table, by their offsets in it. */
enum part { NAMES, FILE_LIST, FILES, NUMBERS, FUNCTIONS, N_PARTS };

struct version {
	uint32_t magic;
	unsigned int place; /* bytes of a place in the code: an address, or 4 from its begin */
	unsigned int extra; /* bytes of a function's entry that older ones do not have */
	unsigned int call, call_name,
		call_at;    /* bytes of an inlined call, and where in it are the
			     * name of what was inlined and where that happened */
	unsigned int trees; /* the word of the module that says where inlined calls are; 0: their
			     * addresses stand with the functions */
};

static const struct version versions[] = {
	{0xfffffffa, 8, 0, 20, 12, 16, 0},  /* Go 1.16 */
	{0xfffffff0, 4, 0, 20, 12, 16, 38}, /* 1.18 */
	{0xfffffff1, 4, 4, 16, 4, 8, 40},   /* 1.20 */
};

struct go_table {
	const struct elf_object *object;
	const struct version *version;
	uint64_t vaddr, text; /* text: what places count from */
	uint64_t trees;	      /* what the distances of inlined calls count from; 0: not known */
	unsigned char *bytes;
	size_t size, n;
	uint64_t parts[N_PARTS];
};

/* Of the run time's record of the program (moduledata), in words of 8 bytes. The first ones point
 * to the parts of this table, each with two sizes behind it. */
#define MODULE_PARTS 1
#define MODULE_PART_WORDS 3
#define MODULE_TEXT 22
#define MODULE_KNOWN (MODULE_PARTS + MODULE_PART_WORDS * (N_PARTS - 1) + 1)

static struct reader reader_at(const struct go_table *g, uint64_t at)
{
	const unsigned char *end = g->bytes + g->size;

	return (struct reader){
		.at = at < g->size ? g->bytes + at : end, .end = end, .bad = at > g->size};
}

/* Adds what is relative to a part; outside of the table it is its end. */
static uint64_t in_part(const struct go_table *g, enum part part, uint64_t offset)
{
	uint64_t at;

	return __builtin_add_overflow(g->parts[part], offset, &at) || at > g->size ? g->size : at;
}

static const char *text_at(const struct go_table *g, uint64_t at)
{
	size_t left = g->size - at;
	const char *text = (const char *)g->bytes + at;

	return memchr(text, 0, left < MAX_TEXT ? left : MAX_TEXT) ? text : NULL;
}

/* Reads the pointer at @vaddr; 0: there is none. In programs that can be loaded anywhere the
 * dynamic linker fills it in: then the entry that tells it to says what with. */
static uint64_t pointer_at(const struct elf_object *o, uint64_t vaddr)
{
	Elf64_Rela all[512];
	Elf_Scn *s = NULL;
	GElf_Shdr h;
	uint64_t value;

	if (elf_object_read(o, vaddr, &value, sizeof(value)) == (int)sizeof(value) && value)
		return value;
	while ((s = elf_object_next_section(o, s, ".rela.dyn", &h)))
		for (uint64_t at = 0; at < h.sh_size && at < o->size; at += sizeof(all)) {
			uint64_t left = h.sh_size - at;
			int n = elf_object_read(o, h.sh_addr + at, all,
						left < sizeof(all) ? left : sizeof(all));

			for (int i = 0; i < n / (int)sizeof(all[0]); i++)
				if (all[i].r_offset == vaddr &&
				    ELF64_R_TYPE(all[i].r_info) == R_X86_64_RELATIVE)
					return (uint64_t)all[i].r_addend;
		}
	return 0;
}

/* The bytes of a section, which the caller frees; NULL: they are not in the file, or too many. */
static unsigned char *section_bytes(const struct elf_object *o, const GElf_Shdr *h)
{
	_cleanup_free_ unsigned char *bytes = NULL;

	if (h->sh_type == SHT_NOBITS || !h->sh_size || h->sh_size > MAX_BYTES ||
	    h->sh_size > o->size)
		return NULL;
	bytes = malloc(h->sh_size);
	if (!bytes || elf_object_read(o, h->sh_addr, bytes, h->sh_size) != (int)h->sh_size)
		return NULL;
	return TAKE_PTR(bytes);
}

static const struct version *version_of(const unsigned char *bytes)
{
	struct header h;

	memcpy(&h, bytes, sizeof(h));
	if (h.zero[0] || h.zero[1] || h.quantum != 1 || h.pointer != 8)
		return NULL;
	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++)
		if (h.magic == versions[i].magic)
			return &versions[i];
	return NULL;
}

/* A linker that is not Go's own puts the table of a program that can be loaded anywhere among other
 * data, where it is found by how it begins. */
static bool find_in_data(struct go_table *g)
{
	_cleanup_free_ unsigned char *all = NULL;
	GElf_Shdr h;

	if (!elf_object_next_section(g->object, NULL, ".go.buildinfo", &h) ||
	    !elf_object_next_section(g->object, NULL, ".data.rel.ro", &h))
		return false;
	all = section_bytes(g->object, &h);
	for (uint64_t at = 0; all && at + sizeof(struct header) <= h.sh_size; at += 8) {
		if (!version_of(all + at))
			continue;
		g->size = h.sh_size - at;
		g->vaddr = h.sh_addr + at;
		memmove(all, all + at, g->size);
		g->bytes = TAKE_PTR(all);
		return true;
	}
	return false;
}

/* False: no part of the file looks like it. */
static bool find_table(struct go_table *g)
{
	static const char *const names[] = {".gopclntab", ".data.rel.ro.gopclntab"};
	GElf_Shdr h;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (elf_object_next_section(g->object, NULL, names[i], &h)) {
			g->bytes = section_bytes(g->object, &h);
			g->size = g->bytes ? h.sh_size : 0;
			g->vaddr = h.sh_addr;
			return true;
		}
	return find_in_data(g);
}

/* Does the module that stands in these words know this table by all of its parts? */
static bool is_module(const struct go_table *g, const unsigned char *bytes)
{
	uint64_t words[MODULE_KNOWN];

	memcpy(words, bytes, sizeof(words[0]));
	if (words[0] != g->vaddr)
		return false;
	memcpy(words, bytes, sizeof(words));
	for (int i = 0; i < N_PARTS; i++)
		if (words[MODULE_PARTS + MODULE_PART_WORDS * i] != g->vaddr + g->parts[i])
			return false;
	return true;
}

/* The module has a section of its own as of Go 1.26. Before that it is among other data, with its
 * pointers filled in unless another linker was used and the program can be loaded anywhere. 0: it
 * was not found. */
static uint64_t find_module(const struct go_table *g)
{
	_cleanup_free_ unsigned char *all = NULL;
	GElf_Shdr h;

	if (elf_object_next_section(g->object, NULL, ".go.module", &h))
		return h.sh_addr;
	if (!elf_object_next_section(g->object, NULL, ".noptrdata", &h))
		return 0;
	all = section_bytes(g->object, &h);
	for (uint64_t at = 0; all && at + 8 * MODULE_KNOWN <= h.sh_size; at += 8)
		if (is_module(g, all + at))
			return h.sh_addr + at;
	return 0;
}

/* Sets n, unless the table cannot be read. */
static void read_header(struct go_table *g)
{
	const uint64_t *offsets;
	uint64_t module = 0;
	struct header h;

	if (g->size < sizeof(h))
		return;
	g->version = version_of(g->bytes);
	if (!g->version)
		return;
	memcpy(&h, g->bytes, sizeof(h));
	offsets = &h.more[g->version->place == 4];
	memcpy(g->parts, offsets, sizeof(g->parts));
	if (g->version->place == 4) {
		module = find_module(g);
		g->text = pointer_at(g->object, g->vaddr + offsetof(struct header, more));
		if (!g->text && module)
			g->text = pointer_at(g->object, module + 8 * MODULE_TEXT);
	}
	if (module)
		g->trees = pointer_at(g->object, module + 8 * g->version->trees);
	if (h.functions <= MAX_FUNCTIONS && (g->text || g->version->place == 8))
		g->n = h.functions;
}

const struct go_table *go_table_of(const struct elf_object *o)
{
	struct symbol_index *x = o->symbols;
	struct go_table *g;

	if (x->go_tried)
		return x->go;
	x->go_tried = true;
	g = calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->object = o;
	if (!find_table(g)) {
		go_table_close(g);
		return NULL;
	}
	read_header(g);
	x->go = g;
	return g;
}

void go_table_close(struct go_table *g)
{
	if (!g)
		return;
	free(g->bytes);
	free(g);
}

size_t go_table_count(const struct go_table *g)
{
	return g->n;
}

size_t go_table_size(const struct go_table *g)
{
	return g->size;
}

/* From the arrays behind a function's entry: which table has the numbers of inlined calls, and
 * where these calls are. */
static void read_tree(const struct go_table *g, struct reader *r, uint32_t n_numbers,
		      uint32_t n_data, struct go_function *ret)
{
	struct reader numbers = take_part(r, 4ULL * n_numbers);
	unsigned int place = g->version->place;
	uint64_t tree;

	if (n_numbers <= COPIES_NUMBER || n_data <= TREE_NUMBER)
		return;
	(void)take_part(&numbers, 4ULL * COPIES_NUMBER);
	/* Addresses stand at addresses that are multiples of 8. */
	if (place == 8 && (g->vaddr + (uint64_t)(r->at - g->bytes)) & 4)
		(void)fixed(r, 4);
	(void)take_part(r, (uint64_t)place * TREE_NUMBER);
	tree = fixed(r, place);
	if (r->bad || (place == 8 ? !tree : tree == NO_OFFSET || !g->trees))
		return;
	ret->copies = (uint32_t)fixed(&numbers, 4);
	ret->tree = place == 8 ? tree : g->trees + tree;
}

bool go_function_read(const struct go_table *g, size_t i, struct go_function *ret)
{
	unsigned int place = g->version->place;
	struct reader r = reader_at(g, in_part(g, FUNCTIONS, 2ULL * place * i));
	uint64_t lo = fixed(&r, place), entry = fixed(&r, place), hi = fixed(&r, place);
	uint32_t name, n_numbers, n_data;

	*ret = (struct go_function){.lo = g->text + lo, .hi = g->text + hi};
	if (r.bad || hi <= lo || hi - lo > elf_object_code_left(g->object, ret->lo))
		return false;
	r = reader_at(g, in_part(g, FUNCTIONS, entry));
	(void)take_part(&r, place);
	name = (uint32_t)fixed(&r, 4);
	/* The size of arguments, a call that runs what was deferred, sizes of frames. */
	(void)take_part(&r, 12);
	ret->files = (uint32_t)fixed(&r, 4);
	ret->lines = (uint32_t)fixed(&r, 4);
	n_numbers = (uint32_t)fixed(&r, 4);
	ret->unit = (uint32_t)fixed(&r, 4);
	(void)take_part(&r, g->version->extra + 3);
	n_data = (uint32_t)fixed(&r, 1);
	if (r.bad)
		return false;
	ret->name = text_at(g, in_part(g, NAMES, name));
	if (ret->name && !*ret->name)
		ret->name = NULL;
	read_tree(g, &r, n_numbers, n_data, ret);
	return true;
}

/* The list ends where the names in it begin. */
size_t go_table_files(const struct go_table *g)
{
	uint64_t end = in_part(g, FILES, 0), at = in_part(g, FILE_LIST, 0);

	return end > at ? (end - at) / 4 : 0;
}

const char *go_table_file(const struct go_table *g, size_t i)
{
	struct reader r = reader_at(g, in_part(g, FILE_LIST, 4ULL * i));
	uint32_t at = (uint32_t)fixed(&r, 4);
	const char *name = r.bad || at == NO_OFFSET ? NULL : text_at(g, in_part(g, FILES, at));

	return name && *name ? name : NULL;
}

void go_numbers_begin(const struct go_table *g, const struct go_function *f, uint32_t table,
		      struct go_numbers *ret)
{
	*ret = (struct go_numbers){.end = table ? f->lo : f->hi,
				   .value = -1,
				   .hi = f->hi,
				   .r = reader_at(g, in_part(g, NUMBERS, table))};
}

/* Each number is a change, whose lowest bit is its sign, and how many bytes it holds for. */
bool go_numbers_next(struct go_numbers *x)
{
	uint32_t change, length;

	if (x->end == x->hi)
		return false;
	change = (uint32_t)leb(&x->r, false);
	if (!change && x->begun)
		return false;
	length = (uint32_t)leb(&x->r, false);
	if (x->r.bad || !length)
		return false;
	x->begun = true;
	change = change & 1 ? ~(change >> 1) : change >> 1;
	x->value = (int32_t)((uint32_t)x->value + change);
	x->end = length < x->hi - x->end ? x->end + length : x->hi;
	return true;
}

static uint32_t number_at(const unsigned char *bytes)
{
	uint32_t v;

	memcpy(&v, bytes, sizeof(v));
	return v;
}

/* Does a name begin there? */
static bool begins_name(const struct go_table *g, uint32_t name)
{
	uint64_t at = in_part(g, NAMES, name);

	return at < g->size && g->bytes[at] && (!name || !g->bytes[at - 1]);
}

bool go_calls_read(const struct go_table *g, const struct go_function *f, size_t n, uint32_t *ret)
{
	const struct version *v = g->version;
	_cleanup_free_ unsigned char *all = f->tree ? calloc(n, v->call) : NULL;

	if (!all || elf_object_read(g->object, f->tree, all, n * v->call) != (int)(n * v->call))
		return false;
	for (size_t i = 0; i < n; i++) {
		const unsigned char *call = all + i * v->call;

		ret[i] = number_at(call + v->call_at);
		/* Of a Go that is not known yet, something else may stand there. */
		if (ret[i] >= f->hi - f->lo || !begins_name(g, number_at(call + v->call_name)))
			return false;
	}
	return true;
}
