/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* One step up a stack, by a row of the unwinding tables or by the frame pointer: arithmetic without
 * state, compiled for BPF and, by the unit tests, natively. Before this is included, frame_read(to,
 * size, from) must be there: it copies from the program's memory, 0 on success. */
#pragma once

struct frame {
	u64 ip, sp, bp;
	u64 exact; /* ip is where the thread stands; else it is a return address: the call itself is
		      the byte before */
};

enum frame_outcome {
	FRAME_CALLER,	  /* one step up */
	FRAME_END,	  /* the outermost frame */
	FRAME_UNREADABLE, /* the stack cannot be read there */
	FRAME_LOST,	  /* nothing says how to go on */
};

/* Nothing is mapped below: who "returns" there has no caller. */
#define FRAME_LOWEST_CODE 4096

/* Where Linux puts the interrupted registers on a signal frame (struct rt_sigframe), from rsp in
 * the code that the handler returns to. */
#define FRAME_SIGNAL_BP 120
#define FRAME_SIGNAL_SP 160
#define FRAME_SIGNAL_IP 168

static __always_inline u64 frame_call_site(const struct frame *f)
{
	return f->exact ? f->ip : f->ip - 1;
}

static __always_inline int frame_returned(struct frame *f, u64 ip, u64 sp, u64 bp, u64 exact)
{
	f->ip = ip;
	f->sp = sp;
	f->bp = bp;
	f->exact = exact;
	return ip < FRAME_LOWEST_CODE ? FRAME_END : FRAME_CALLER;
}

/* Code without tables, of a just-in-time compiler say, often keeps frame pointers. The saved pair
 * must lie above the stack pointer, so that no chain goes in a circle. */
static __always_inline int frame_by_pointer(struct frame *f)
{
	u64 pair[2]; /* the caller's rbp, the return address */

	if (!f->bp || (f->bp & 7) || f->bp < f->sp)
		return FRAME_LOST;
	if (frame_read(pair, sizeof(pair), f->bp))
		return FRAME_UNREADABLE;
	return frame_returned(f, pair[1], f->bp + 16, pair[0], 0);
}

/* A handler may run on a stack of its own: the interrupted one can be anywhere. */
static __always_inline int frame_by_signal(struct frame *f)
{
	u64 bp, pair[2]; /* rsp, rip */

	if (frame_read(&bp, sizeof(bp), f->sp + FRAME_SIGNAL_BP) ||
	    frame_read(pair, sizeof(pair), f->sp + FRAME_SIGNAL_SP))
		return FRAME_UNREADABLE;
	return frame_returned(f, pair[1], pair[0], bp, 1);
}

/* From @f to its caller's frame. */
static __always_inline int frame_step(struct frame *f, struct abi_row row)
{
	u64 cfa, ip, bp = f->bp;

	switch (row.kind & ABI_ROW_KIND) {
	case ABI_ROW_RSP:
		cfa = f->sp + (s64)row.cfa_offset;
		break;
	case ABI_ROW_RBP:
		cfa = f->bp + (s64)row.cfa_offset;
		break;
	case ABI_ROW_PLT:
		cfa = f->sp + 8 + ((f->ip & 15) >= (u64)row.cfa_offset ? 8 : 0);
		break;
	case ABI_ROW_DRAP:
		if (frame_read(&cfa, sizeof(cfa), f->bp + (s64)row.cfa_offset) ||
		    frame_read(&bp, sizeof(bp), f->bp))
			return FRAME_UNREADABLE;
		break;
	case ABI_ROW_SIGNAL:
		return frame_by_signal(f);
	case ABI_ROW_END:
		return FRAME_END;
	default:
		return frame_by_pointer(f);
	}
	if (cfa <= f->sp) /* a caller's frame is above */
		return FRAME_LOST;
	if (frame_read(&ip, sizeof(ip), cfa - 8))
		return FRAME_UNREADABLE;
	if (row.rbp_slot && frame_read(&bp, sizeof(bp), cfa + 8 * (s64)row.rbp_slot))
		return FRAME_UNREADABLE;
	return frame_returned(f, ip, cfa, bp, 0);
}
