// SPDX-License-Identifier: BSD-2-Clause
/* The payment handler for processes that run already: code and data without libc, thread-local
 * storage or relocations, that works wherever it is put (user/target/inject.c), and touches nothing
 * of the program's. Linked to address 0: addresses are offsets. */
#define SHIM_BLOB 1
#include "pay.c"

/* From the linker. */
extern char blob_data[], blob_end[];

__attribute__((section(".head"), used)) struct shim_blob blob_head = {
	.magic = SHIM_BLOB_MAGIC,
	.handler = (unsigned long)handle_payment,
	.restorer = (unsigned long)pay_restorer,
	.flags = PAY_FLAGS,
	.mask = PAY_MASK,
	.data = (unsigned long)blob_data,
	.end = (unsigned long)blob_end,
};
