// SPDX-License-Identifier: BSD-2-Clause
/* The payment handler for processes that run already: code and data without libc, thread-local storage or relocations, that works wherever
 * it is put (user/target/inject.c), and touches nothing of the program's. Linked to address 0: addresses are offsets. */
#define SHIM_BLOB 1
#include "pay.c"

#define SA_RESTORER_FLAG 0x04000000UL /* asm/signal.h */
#define BIT_OF(signo) | 1ULL << ((signo)-1)

/* Where a handler of signals returns to. */
void blob_restorer(void);
__asm__(".pushsection .text\n"
	".globl blob_restorer\n"
	".type blob_restorer, @function\n"
	"blob_restorer:\n"
	"	movq $15, %rax\n" /* rt_sigreturn, in the form that debuggers know */
	"	syscall\n"
	".size blob_restorer, .-blob_restorer\n"
	".popsection\n");

/* From the linker. */
extern char blob_data[], blob_end[];

__attribute__((section(".head"), used)) struct shim_blob blob_head = {
	.magic = SHIM_BLOB_MAGIC,
	.handler = (unsigned long)handle_payment,
	.restorer = (unsigned long)blob_restorer,
	.flags = PAY_FLAGS | SA_RESTORER_FLAG,
	.mask = ~(0ULL PAY_FAULTS(BIT_OF)),
	.data = (unsigned long)blob_data,
	.end = (unsigned long)blob_end,
};
