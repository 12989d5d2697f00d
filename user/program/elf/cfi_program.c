// SPDX-License-Identifier: BSD-2-Clause
/* Executes call frame instructions (DWARF 5, 6.4.2; the System V ABI's additions for .eh_frame).
 * Only what a row can say is kept: the CFA, rbp and the return address. */
#include "program/elf/cfi_private.h"

#include "base/array.h"

#include <errno.h>
#include <libdwarf/dwarf.h>
#include <string.h>

enum { DWARF_RBP = 6, DWARF_RSP = 7, DWARF_RA = 16 };

struct machine {
	const struct cfi_cie *cie;
	struct reader code;
	struct cfi_state state;
	struct cfi_state remembered[CFI_MAX_REMEMBERED];
	size_t n_remembered;
	/* FDE only. */
	uint64_t pc, hi, base;
	size_t first; /* its first row */
	struct cfi_rows *out;
};

int cfi_add_row(struct cfi_rows *out, size_t first, struct abi_row row)
{
	const struct abi_row *last = out->n > first ? &out->all[out->n - 1] : NULL;

	if (last && last->kind == row.kind && last->cfa_offset == row.cfa_offset &&
	    last->rbp_slot == row.rbp_slot)
		return 0;
	if (out->n == out->max)
		return -E2BIG;
	return array_add(out->all, out->n, row);
}

/* What linkers write for the stubs of .plt: the CFA is rsp + 8 before a stub's push and rsp + 16
 * after it. The push ends at byte 11, or where the stub begins with other instructions (branch
 * tracking, bound registers) at byte 9 or 5. */
static bool is_plt_expression(struct reader x, int64_t *ret_first)
{
	static const uint8_t plt[] = {
		DW_OP_breg7,  8, /* rsp + 8 */
		DW_OP_breg16, 0, /* rip + 0 */
		DW_OP_lit15,  DW_OP_and, DW_OP_lit11, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus,
	};
	const size_t literal = 6;

	if (x.bad || (size_t)(x.end - x.at) != sizeof(plt) || memcmp(x.at, plt, literal) ||
	    memcmp(x.at + literal + 1, plt + literal + 1, sizeof(plt) - literal - 1))
		return false;
	*ret_first = x.at[literal] - DW_OP_lit0;
	return *ret_first == 11 || *ret_first == 9 || *ret_first == 5;
}

/* A function that aligns its stack keeps the CFA, from a register that it may need, in its frame:
 * at a distance from rbp. */
static bool is_drap_expression(struct reader x, int64_t *ret_offset)
{
	if (x.bad || fixed(&x, 1) != DW_OP_breg6)
		return false;
	*ret_offset = (int64_t)leb(&x, true);
	return fixed(&x, 1) == DW_OP_deref && !x.bad && x.at == x.end;
}

static bool is_at_rbp(struct reader x)
{
	return !x.bad && fixed(&x, 1) == DW_OP_breg6 && !leb(&x, true) && !x.bad && x.at == x.end;
}

static struct abi_row row_of(const struct machine *m)
{
	const struct cfi_state *s = &m->state;
	struct abi_row row = {.pc = (uint32_t)(m->pc - m->base)};

	if (m->cie->signal_frame) {
		row.kind = ABI_ROW_SIGNAL;
		return row;
	}
	if (s->ra.rule == RULE_UNDEFINED) {
		row.kind = ABI_ROW_END;
		return row;
	}
	if (s->ra.rule != RULE_OFFSET || s->ra.offset != -8 || s->cfa == CFA_NONE ||
	    s->cfa_offset < INT16_MIN || s->cfa_offset > INT16_MAX)
		return row;
	if (s->cfa == CFA_DRAP && s->rbp.rule == RULE_AT_RBP) {
		row.kind = ABI_ROW_DRAP;
		row.cfa_offset = (int16_t)s->cfa_offset;
		return row;
	}
	if (s->cfa == CFA_DRAP || s->rbp.rule == RULE_AT_RBP || s->rbp.rule == RULE_OTHER)
		return row;
	if (s->cfa == CFA_REGISTER && s->cfa_register != DWARF_RSP && s->cfa_register != DWARF_RBP)
		return row;
	if (s->rbp.rule == RULE_OFFSET) {
		if (s->rbp.offset % 8 || s->rbp.offset < 8 * INT8_MIN ||
		    s->rbp.offset > 8 * INT8_MAX || !s->rbp.offset)
			return row;
		row.rbp_slot = (int8_t)(s->rbp.offset / 8);
	}
	row.kind = s->cfa == CFA_PLT		  ? ABI_ROW_PLT
		   : s->cfa_register == DWARF_RSP ? ABI_ROW_RSP
						  : ABI_ROW_RBP;
	row.cfa_offset = (int16_t)s->cfa_offset;
	return row;
}

/* The state so far holds from here on. */
static int emit(struct machine *m)
{
	return m->out && m->pc < m->hi ? cfi_add_row(m->out, m->first, row_of(m)) : 0;
}

static int move_to(struct machine *m, uint64_t pc)
{
	int r;

	if (!m->out || pc < m->pc)
		return -EBADMSG;
	if (pc == m->pc)
		return 0;
	r = emit(m);
	m->pc = pc;
	return r;
}

static int move_by(struct machine *m, uint64_t delta)
{
	uint64_t bytes, pc;

	if (__builtin_mul_overflow(delta, m->cie->code_align, &bytes) ||
	    __builtin_add_overflow(m->pc, bytes, &pc))
		return -EBADMSG;
	return move_to(m, pc);
}

static struct cfi_register *kept(struct cfi_state *s, uint64_t reg)
{
	return reg == DWARF_RBP ? &s->rbp : reg == DWARF_RA ? &s->ra : NULL;
}

static int set(struct machine *m, uint64_t reg, enum cfi_rule rule, int64_t offset)
{
	struct cfi_register *r = kept(&m->state, reg);

	if (r)
		*r = (struct cfi_register){rule, offset};
	return 0;
}

static int set_offset(struct machine *m, uint64_t reg, int64_t factored)
{
	int64_t offset;

	if (__builtin_mul_overflow(factored, m->cie->data_align, &offset))
		return set(m, reg, RULE_OTHER, 0);
	return set(m, reg, RULE_OFFSET, offset);
}

/* Beyond what int64_t can say is beyond what a row can say. */
static int64_t clamped(uint64_t v)
{
	return v > INT64_MAX ? INT64_MAX : (int64_t)v;
}

static int restore(struct machine *m, uint64_t reg)
{
	struct cfi_register *r = kept(&m->state, reg);

	if (!m->out)
		return -EBADMSG; /* in a CIE there is nothing to go back to */
	if (r)
		*r = *kept((struct cfi_state *)&m->cie->initial, reg);
	return 0;
}

static int def_cfa(struct machine *m, uint64_t reg, int64_t offset)
{
	m->state.cfa = CFA_REGISTER;
	m->state.cfa_register = reg;
	m->state.cfa_offset = m->state.register_offset = offset;
	m->state.has_offset = true;
	return 0;
}

static int def_cfa_offset(struct machine *m, int64_t offset)
{
	if (m->state.cfa != CFA_REGISTER)
		return -EBADMSG;
	m->state.cfa_offset = m->state.register_offset = offset;
	return 0;
}

static int def_cfa_sf(struct machine *m, uint64_t reg, int64_t factored)
{
	int64_t offset;

	return def_cfa(m, reg,
		       __builtin_mul_overflow(factored, m->cie->data_align, &offset) ? INT64_MAX
										     : offset);
}

static int def_cfa_expression(struct machine *m)
{
	struct reader x = take_part(&m->code, leb(&m->code, false));
	int64_t offset;

	m->state.cfa = is_plt_expression(x, &offset)	? CFA_PLT
		       : is_drap_expression(x, &offset) ? CFA_DRAP
							: CFA_NONE;
	m->state.cfa_offset = m->state.cfa == CFA_NONE ? 0 : offset;
	return 0;
}

static int remember(struct machine *m)
{
	if (m->n_remembered == CFI_MAX_REMEMBERED)
		return -EBADMSG;
	m->remembered[m->n_remembered++] = m->state;
	return 0;
}

static int restore_state(struct machine *m)
{
	if (!m->n_remembered)
		return -EBADMSG;
	m->state = m->remembered[--m->n_remembered];
	return 0;
}

static int extended(struct machine *m, uint8_t op)
{
	struct reader *c = &m->code;
	uint64_t reg;

	switch (op) {
	case DW_CFA_nop:
		return 0;
	case DW_CFA_set_loc:
		return move_to(m, cfi_pointer(c, m->cie->fde_encoding));
	case DW_CFA_advance_loc1:
		return move_by(m, fixed(c, 1));
	case DW_CFA_advance_loc2:
		return move_by(m, fixed(c, 2));
	case DW_CFA_advance_loc4:
		return move_by(m, fixed(c, 4));
	case DW_CFA_MIPS_advance_loc8:
		return move_by(m, fixed(c, 8));
	case DW_CFA_remember_state:
		return remember(m);
	case DW_CFA_restore_state:
		return restore_state(m);
	case DW_CFA_def_cfa_offset:
		return def_cfa_offset(m, clamped(leb(c, false)));
	case DW_CFA_def_cfa_offset_sf:
		return m->state.cfa == CFA_REGISTER
			       ? def_cfa_sf(m, m->state.cfa_register, (int64_t)leb(c, true))
			       : -EBADMSG;
	case DW_CFA_def_cfa_expression:
		return def_cfa_expression(m);
	case DW_CFA_GNU_args_size:
		(void)leb(c, false);
		return 0;
	}
	/* All others begin with a register. */
	reg = leb(c, false);
	switch (op) {
	case DW_CFA_offset_extended:
		return set_offset(m, reg, clamped(leb(c, false)));
	case DW_CFA_offset_extended_sf:
		return set_offset(m, reg, (int64_t)leb(c, true));
	case DW_CFA_GNU_negative_offset_extended:
		return set_offset(m, reg, -clamped(leb(c, false)));
	case DW_CFA_restore_extended:
		return restore(m, reg);
	case DW_CFA_undefined:
		return set(m, reg, RULE_UNDEFINED, 0);
	case DW_CFA_same_value:
		return set(m, reg, RULE_SAME, 0);
	case DW_CFA_register:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		/* Elsewhere than on the stack: a row cannot say it. */
		(void)leb(c, false); /* a register, or an offset; signed or not, as long */
		return set(m, reg, RULE_OTHER, 0);
	case DW_CFA_expression:
		return set(m, reg,
			   is_at_rbp(take_part(c, leb(c, false))) ? RULE_AT_RBP : RULE_OTHER, 0);
	case DW_CFA_val_expression:
		(void)take_part(c, leb(c, false));
		return set(m, reg, RULE_OTHER, 0);
	case DW_CFA_def_cfa:
		return def_cfa(m, reg, clamped(leb(c, false)));
	case DW_CFA_def_cfa_sf:
		return def_cfa_sf(m, reg, (int64_t)leb(c, true));
	case DW_CFA_def_cfa_register:
		/* After an expression the offset of before it holds, as unwinders have it;
		 * libgcrypt is written so. */
		return m->state.has_offset ? def_cfa(m, reg, m->state.register_offset) : -EBADMSG;
	default:
		return -EBADMSG;
	}
}

static int execute(struct machine *m)
{
	int r = 0;

	while (r == 0 && !m->code.bad && m->code.at < m->code.end) {
		uint8_t op = (uint8_t)fixed(&m->code, 1), low = op & 0x3f;

		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			r = move_by(m, low);
			break;
		case DW_CFA_offset:
			r = set_offset(m, low, clamped(leb(&m->code, false)));
			break;
		case DW_CFA_restore:
			r = restore(m, low);
			break;
		default:
			r = extended(m, op);
		}
	}
	return m->code.bad ? -EBADMSG : r;
}

int cfi_run_cie(struct cfi_cie *cie, struct reader program)
{
	struct machine m = {.cie = cie, .code = program};
	int r = execute(&m);

	cie->initial = m.state;
	return r;
}

int cfi_run_fde(const struct cfi_cie *cie, struct reader program, uint64_t lo, uint64_t hi,
		uint64_t base, struct cfi_rows *out)
{
	struct machine m = {.cie = cie,
			    .code = program,
			    .state = cie->initial,
			    .pc = lo,
			    .hi = hi,
			    .base = base,
			    .first = out->n,
			    .out = out};
	int r = execute(&m);

	return r < 0 ? r : emit(&m);
}
