/* SPDX-License-Identifier: BSD-2-Clause */
/* SHIM_IMAGE_HEADER names a generated header that defines SHIM_IMAGE_PATH; through it this file is assembled again whenever
 * the library was linked again. SHIM_IMAGE and SHIM_IMAGE_SIZE are what the bytes and their number are called. */
#include SHIM_IMAGE_HEADER

	.section .rodata.shim_image, "a"
	.balign 16
	.globl SHIM_IMAGE
	.type SHIM_IMAGE, %object
SHIM_IMAGE:
	.incbin SHIM_IMAGE_PATH
.Lend:
	.size SHIM_IMAGE, .Lend - SHIM_IMAGE
	.balign 8
	.globl SHIM_IMAGE_SIZE
	.type SHIM_IMAGE_SIZE, %object
SHIM_IMAGE_SIZE:
	.8byte .Lend - SHIM_IMAGE
	.size SHIM_IMAGE_SIZE, 8
	.section .note.GNU-stack, "", %progbits
