/* SPDX-License-Identifier: BSD-2-Clause */
/* Tests of the preloaded library: the program is the test itself, run again under it, and plays the
 * ledger, too. */
#pragma once

#include "base/error.h"
#include "shared/shim_abi.h"
#include "target/launch.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

/* In the child there is no cmocka. */
#define CHECK(c)                                                                      \
	do {                                                                          \
		if (!(c)) {                                                           \
			(void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #c); \
			exit(1);                                                      \
		}                                                                     \
	} while (0)

static char own_exe[4096];

/* Runs this program again under the library @image, which is told @pay and @signo, and fails the
 * test unless it ends well. Its arguments are the numbers of the page's and the slots' descriptors,
 * which it inherits. */
static inline void run_child(const void *image, size_t size, enum shim_pay pay, unsigned int signo)
{
	int page_fd = -1, slots_fd = memfd_create("slots", 0), status = 0;
	struct shim_page *p = NULL;
	struct error e = {0};
	int made = target_make_page(&page_fd, &p, &e);
	char first[16], second[16];
	struct target_spec spec = {
		.argv = (char *[]){own_exe, first, second, NULL},
		.shim = image,
		.shim_size = size,
		.page_fd = page_fd,
		.slots_fd = slots_fd,
		.pay = pay,
		.signo = signo,
	};
	struct target *t = NULL;

	assert_int_equal(made, 0);
	assert_true(slots_fd >= 0);
	assert_int_equal(ftruncate(slots_fd, SHIM_ENTRIES * sizeof(struct shim_slot)), 0);
	/* The child finds both by their numbers. */
	assert_int_equal(fcntl(page_fd, F_SETFD, 0), 0);
	(void)snprintf(first, sizeof(first), "%d", page_fd);
	(void)snprintf(second, sizeof(second), "%d", slots_fd);
	if (target_spawn(&spec, &t, &e) < 0 || target_exec(t, &e) < 0)
		fail_msg("%s", e.text);
	assert_int_equal(target_reap(t, &status), 0);
	assert_int_equal(target_exit_code(status), 0);
	target_free(t);
	(void)munmap(p, sizeof(*p));
	(void)close(page_fd);
	(void)close(slots_fd);
}

/* In the child, from its arguments: what the library has mapped as well. */
static inline struct shim_page *child_page(char **argv)
{
	struct shim_page *page =
		mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[1]), 0);

	CHECK(page != MAP_FAILED);
	return page;
}

static inline struct shim_slot *child_slots(char **argv)
{
	struct shim_slot *slots = mmap(NULL, SHIM_ENTRIES * sizeof(*slots), PROT_READ | PROT_WRITE,
				       MAP_SHARED, atoi(argv[2]), 0);

	CHECK(slots != MAP_FAILED);
	return slots;
}

/* Before any test. */
static inline void prepare_children(void)
{
	target_save_signals();
	CHECK(readlink("/proc/self/exe", own_exe, sizeof(own_exe) - 1) > 0);
}
