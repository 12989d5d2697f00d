/* SPDX-License-Identifier: BSD-2-Clause */
/* USDT probes: places that a program's author marked with the macros of <sys/sdt.h>. Each is a nop,
 * and a note that says where it is. */
#pragma once

#include <stdint.h>

struct elf_object;

struct usdt_probe {
	const char *provider, *name;
	uint64_t vaddr;	    /* of the nop, in the file's own numbering */
	uint64_t semaphore; /* address of a 16-bit count that must not be 0 for the probe to be
			       passed; 0: there is none */
};

/* Calls @cb for every probe of the object, in the file's order; one that was inlined comes several
 * times. Strings are valid during the call. Stops at non-zero and returns it. Notes that make no
 * sense are left out. */
int usdt_each(const struct elf_object *o, int (*cb)(const struct usdt_probe *p, void *arg),
	      void *arg);
