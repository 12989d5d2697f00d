/* SPDX-License-Identifier: BSD-2-Clause */
/* SHIM_IMAGE_HEADER names a generated header that defines SHIM_IMAGE_PATH; through it this file is assembled again whenever
 * the library was linked again. */
#include SHIM_IMAGE_HEADER

	.section .rodata.shim_image, "a"
	.balign 16
	.globl shim_image
	.type shim_image, %object
shim_image:
	.incbin SHIM_IMAGE_PATH
.Lend:
	.size shim_image, .Lend - shim_image
	.balign 8
	.globl shim_image_size
	.type shim_image_size, %object
shim_image_size:
	.8byte .Lend - shim_image
	.size shim_image_size, 8
	.section .note.GNU-stack, "", %progbits
