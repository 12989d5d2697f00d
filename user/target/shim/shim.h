/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the preloaded library share. It runs inside the program: nothing here may
 * print, allocate, lock, or leave errno, stdio or signal state different from what it found. It
 * makes its system calls itself (shared/raw_call.h), has the functions of string.h that it uses
 * (string.c), and finds others in libc's own object (libc.h): those of the global scope may be
 * another preloaded library's. So it also loads into programs that bring an older libc than the one
 * it was built with. */
#pragma once

#include "shared/raw_call.h"
#include "shared/shim_abi.h"
#include "shared/shim_launch.h"

#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

/* The two shared mappings; NULL until attached. They stay mapped for the life of the process, and
 * across fork. */
extern struct shim_page *shim_page;
extern struct shim_slot *shim_slots;

/* What was read before main, and the file that this library was loaded from. They are this
 * process's own: another one that shares the page cannot change them. */
extern struct shim_launch shim_launch;
extern struct shim_identity shim_own_image;

/* Attaches at the first call (the constructor's, or an earlier one from another library's
 * constructor through the coz.h ABI). Returns the page, or NULL if this process was not started by
 * the profiler or something failed. */
struct shim_page *shim_attach(void);

/* The calling thread's slot, or NULL if the ledger has given it none yet. For signal handlers, too.
 */
struct shim_slot *shim_own_slot(void);

/* Installs the payment handler for @signo and unblocks it in the calling thread, whose mask later
 * threads inherit. */
void shim_pay_install(enum shim_pay pay, int signo);

/* filter.c: not 0 once the program filters its system calls, by all that we have seen: then we must
 * make none. */
extern unsigned char shim_filtered;
void shim_filter_watch(void);

/* Tells the controller that this process, which another program than the launched one was before,
 * has a handler now. */
void shim_exec_announce(void);
