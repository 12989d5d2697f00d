// SPDX-License-Identifier: BSD-2-Clause
#include "program/dwarf/unit.h"

#include "base/cleanup.h"

#include <libdwarf/dwarf.h>
#include <stdlib.h>

/* Of .debug_abbrev for one root; compilers sort by use, so that the root's description may be the
 * last of some hundreds. */
#define MAX_ABBREV_SEARCH (1 << 20)
/* Root entries have offsets instead of strings; only odd ones are longer than the first piece. */
#define PIECE 512
#define BIG_PIECE (1 << 16)

uint64_t debug_length(struct reader *r, unsigned int *ret_word)
{
	uint64_t length = fixed(r, 4);

	*ret_word = length == 0xffffffff ? 8 : 4;
	return *ret_word == 8 ? fixed(r, 8) : length;
}

bool debug_unit_read(struct debug_file *f, uint64_t at, struct debug_unit *ret)
{
	struct debug_section *s = &f->sections[DEBUG_INFO];
	unsigned char buf[48];
	size_t n = debug_section_read(s, at, buf, sizeof(buf));
	struct reader r = {.at = buf, .end = buf + n};
	struct debug_unit u = {.at = at};
	uint64_t length = debug_length(&r, &u.word);

	if (r.bad || length > s->size - at - (size_t)(r.at - buf))
		return false;
	u.end = at + (uint64_t)(r.at - buf) + length;
	u.version = (unsigned int)fixed(&r, 2);
	if (u.version < 2 || u.version > 5)
		return false;
	if (u.version == 5) {
		u.kind = (unsigned int)fixed(&r, 1);
		u.address_size = (unsigned int)fixed(&r, 1);
		u.abbrev = fixed(&r, u.word);
		if (u.kind == DW_UT_skeleton || u.kind == DW_UT_split_compile)
			u.dwo_id = fixed(&r, 8);
		else if (u.kind == DW_UT_type || u.kind == DW_UT_split_type)
			r.at += (size_t)(r.end - r.at) < 8 + u.word ? 0 : 8 + u.word;
	} else {
		u.abbrev = fixed(&r, u.word);
		u.address_size = (unsigned int)fixed(&r, 1);
	}
	u.root = at + (uint64_t)(r.at - buf);
	if (r.bad || u.root > u.end || u.address_size != 8)
		return false;
	*ret = u;
	return true;
}

/* Past the tag's attributes. */
static void skip_attributes(struct reader *r)
{
	uint64_t name, form;

	do {
		name = leb(r, false);
		form = leb(r, false);
		if (form == DW_FORM_implicit_const)
			(void)leb(r, true);
	} while ((name || form) && !r->bad);
}

/* The reader at the tag of description @code of @u's table. */
static bool find_abbrev(struct debug_roots *roots, const struct debug_unit *u, uint64_t code,
			struct reader *ret)
{
	struct known_abbrev *known =
		&roots->known[(u->abbrev * 31 + code) %
			      (sizeof(roots->known) / sizeof(roots->known[0]))];
	size_t n;
	const unsigned char *all = debug_section_bytes(&roots->file->sections[DEBUG_ABBREV], &n),
			    *start;
	uint64_t limit = 16ULL * n + (64ULL << 20);

	if (!all || u->abbrev >= n)
		return false;
	*ret = (struct reader){.at = all + u->abbrev, .end = all + n};
	if (known->at && known->table == u->abbrev && known->code == code) {
		ret->at = all + known->at;
		return true;
	}
	start = ret->at;
	while (!ret->bad && ret->at - start < MAX_ABBREV_SEARCH &&
	       roots->work + (uint64_t)(ret->at - start) < limit) {
		uint64_t c = leb(ret, false);

		if (!c)
			break;
		if (c == code && !ret->bad) {
			roots->work += (uint64_t)(ret->at - start);
			*known = (struct known_abbrev){u->abbrev, code, (uint64_t)(ret->at - all)};
			return true;
		}
		(void)leb(ret, false);
		(void)fixed(ret, 1);
		skip_attributes(ret);
	}
	roots->work += (uint64_t)(ret->at - start);
	return false;
}

static bool skip(struct reader *r, uint64_t n)
{
	(void)take_part(r, n);
	return !r->bad;
}

bool debug_form_read(struct reader *r, const unsigned char *from, uint64_t start,
		     const struct debug_unit *u, unsigned int form, struct debug_value *ret)
{
	/* Numbers of so many bytes, in any unit. */
	static const unsigned char sizes[] = {
		[DW_FORM_data1] = 1,	[DW_FORM_flag] = 1,	[DW_FORM_ref1] = 1,
		[DW_FORM_strx1] = 1,	[DW_FORM_addrx1] = 1,	[DW_FORM_data2] = 2,
		[DW_FORM_ref2] = 2,	[DW_FORM_strx2] = 2,	[DW_FORM_addrx2] = 2,
		[DW_FORM_strx3] = 3,	[DW_FORM_addrx3] = 3,	[DW_FORM_data4] = 4,
		[DW_FORM_ref4] = 4,	[DW_FORM_strx4] = 4,	[DW_FORM_addrx4] = 4,
		[DW_FORM_ref_sup4] = 4, [DW_FORM_addr] = 8,	[DW_FORM_data8] = 8,
		[DW_FORM_ref8] = 8,	[DW_FORM_ref_sig8] = 8, [DW_FORM_ref_sup8] = 8};
	const unsigned char *end;

	*ret = (struct debug_value){.form = form};
	if (form < sizeof(sizes) && sizes[form]) {
		ret->v = fixed(r, sizes[form]);
		return !r->bad;
	}
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const: /* the caller has it */
		return true;
	case DW_FORM_data16:
		return skip(r, 16);
	case DW_FORM_sdata:
		ret->v = leb(r, true);
		break;
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		ret->v = leb(r, false);
		break;
	case DW_FORM_ref_addr:
		ret->v = fixed(r, u->version == 2 ? u->address_size : u->word);
		break;
	case DW_FORM_sec_offset:
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_GNU_ref_alt:
		ret->v = fixed(r, u->word);
		break;
	case DW_FORM_string:
		ret->v = start + (uint64_t)(r->at - from);
		end = memchr(r->at, 0, (size_t)(r->end - r->at));
		return end ? skip(r, (uint64_t)(end - r->at) + 1) : (r->bad = true, false);
	case DW_FORM_block1:
		return skip(r, fixed(r, 1));
	case DW_FORM_block2:
		return skip(r, fixed(r, 2));
	case DW_FORM_block4:
		return skip(r, fixed(r, 4));
	case DW_FORM_block:
	case DW_FORM_exprloc:
		return skip(r, leb(r, false));
	case DW_FORM_indirect:
		form = (unsigned int)leb(r, false);
		return form != DW_FORM_indirect && form != DW_FORM_implicit_const &&
		       debug_form_read(r, from, start, u, form, ret);
	default:
		return false;
	}
	return !r->bad;
}

/* Attributes of a unit's root entry, each with the number that compilers used before it was in the
 * standard; 0: there is none. */
static const unsigned short root_names[N_ROOT_ATTRIBUTES][2] = {
	[ROOT_PROGRAM] = {DW_AT_stmt_list},
	[ROOT_COMP_DIR] = {DW_AT_comp_dir},
	[ROOT_LOW] = {DW_AT_low_pc},
	[ROOT_HIGH] = {DW_AT_high_pc},
	[ROOT_RANGES] = {DW_AT_ranges},
	[ROOT_ADDR_BASE] = {DW_AT_addr_base, DW_AT_GNU_addr_base},
	[ROOT_LISTS_BASE] = {DW_AT_rnglists_base},
	[ROOT_STRINGS_BASE] = {DW_AT_str_offsets_base},
	[ROOT_OLD_RANGES_BASE] = {DW_AT_GNU_ranges_base},
	[ROOT_DWO_NAME] = {DW_AT_dwo_name, DW_AT_GNU_dwo_name},
	[ROOT_DWO_ID] = {DW_AT_GNU_dwo_id},
};

static bool read_root(struct debug_roots *roots, const struct debug_unit *u, unsigned char *buf,
		      size_t size, struct debug_root *ret)
{
	size_t n = u->end - u->root < size ? u->end - u->root : size;
	struct reader r = {.at = buf}, abbrev;
	uint64_t code;

	r.end = buf + debug_section_read(&roots->file->sections[DEBUG_INFO], u->root, buf, n);
	*ret = (struct debug_root){0};
	code = leb(&r, false);
	if (r.bad || !code || !find_abbrev(roots, u, code, &abbrev))
		return false;
	/* Its tag, and whether it has children. */
	(void)leb(&abbrev, false);
	(void)fixed(&abbrev, 1);
	for (;;) {
		uint64_t name = leb(&abbrev, false), form = leb(&abbrev, false);
		uint64_t implicit = form == DW_FORM_implicit_const ? leb(&abbrev, true) : 0;
		struct debug_value v;

		if (abbrev.bad)
			return false;
		if (!name && !form)
			return true;
		if (form > UINT16_MAX ||
		    !debug_form_read(&r, buf, u->root, u, (unsigned int)form, &v))
			return false;
		if (form == DW_FORM_implicit_const)
			v.v = implicit;
		for (size_t i = 0; name && i < N_ROOT_ATTRIBUTES; i++)
			if (name == root_names[i][0] || name == root_names[i][1])
				ret->values[i] = v;
	}
}

bool debug_root_read(struct debug_roots *roots, const struct debug_unit *u, struct debug_root *ret)
{
	_cleanup_free_ unsigned char *big = NULL;
	unsigned char piece[PIECE];

	if (read_root(roots, u, piece, sizeof(piece), ret))
		return true;
	if (u->end - u->root <= PIECE)
		return false;
	big = malloc(BIG_PIECE);
	return big && read_root(roots, u, big, BIG_PIECE, ret);
}

/* The offset in .debug_str of the @index-th string. */
static bool string_offset(struct debug_file *f, const struct debug_unit *u,
			  const struct debug_root *root, uint64_t index, uint64_t *ret)
{
	struct debug_value base = root->values[ROOT_STRINGS_BASE];
	uint64_t v = 0, at;

	if (__builtin_mul_overflow(index, (uint64_t)u->word, &at) ||
	    __builtin_add_overflow(at, base.form ? base.v : 0, &at) ||
	    debug_section_read(&f->sections[DEBUG_STR_OFFSETS], at, &v, u->word) != u->word)
		return false;
	*ret = v;
	return true;
}

bool debug_value_string(struct debug_file *f, const struct debug_unit *u,
			const struct debug_root *root, struct debug_value v, char *buf, size_t size)
{
	switch (v.form) {
	case DW_FORM_string:
		return debug_section_string(&f->sections[DEBUG_INFO], v.v, buf, size);
	case DW_FORM_strp:
		return debug_section_string(&f->sections[DEBUG_STR], v.v, buf, size);
	case DW_FORM_line_strp:
		return debug_section_string(&f->sections[DEBUG_LINE_STR], v.v, buf, size);
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_strp_sup:
		return f->alternate &&
		       debug_section_string(&f->alternate->sections[DEBUG_STR], v.v, buf, size);
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index:
		return string_offset(f, u, root, v.v, &v.v) &&
		       debug_section_string(&f->sections[DEBUG_STR], v.v, buf, size);
	default:
		return false;
	}
}
