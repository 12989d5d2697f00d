/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps what calibrate() has measured until the machine boots again, so that only the first run has
 * to wait for it. The figures go into the ledger of a privileged process: they are taken only from
 * a file that nobody but the user who runs us (root) can have written, and only if all of it is as
 * we would have written it. */
#pragma once

#include "shared/abi.h"

#include <stddef.h>
#include <stdint.h>

/* What the figures depend on: those of another boot, program or way to pay are not ours. */
struct calibration_key {
	char file[32];	/* a name of letters, digits, '.' and '-' */
	char text[400]; /* one line; "" (no file is read or written): it could not be found out */
};

#define CALIBRATION_MAX 10000000 /* larger figures are no overheads */

/* The key of this boot and this executable. @how says what else matters; letters, digits and "=,.-_
 * " only. */
void calibration_key_make(struct calibration_key *ret, unsigned int payer, const char *how);

/* Reads from the directory "cozbpf" in @run, which is where the system keeps what does not outlive
 * it ("/run"). Negative errno, and *ret untouched: it is not there, or anything about it is odd. */
int calibration_recall(const char *run, const struct calibration_key *key, struct abi_costs *ret);
/* Writes it there, whole or not at all. Negative errno: this user cannot, or somebody else could
 * read, change or replace it. */
int calibration_keep(const char *run, const struct calibration_key *key, const struct abi_costs *c);
