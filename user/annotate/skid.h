/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a sample of the clock is found, relative to the instruction that waited. */
#pragma once

enum skid {
	SKID_NONE,    /* at it */
	SKID_NEXT,    /* at the one after it: the interrupt is taken once it is completed */
	SKID_UNKNOWN, /* at either: it could not be measured, or is not always the same */
};

/* Measures it here, for some hundredths of a second: in a loop whose one long instruction is known.
 */
enum skid skid_measure(void);
