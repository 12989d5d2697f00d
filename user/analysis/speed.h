/* SPDX-License-Identifier: BSD-2-Clause */
/* How fast the machine was while an experiment ran. A virtual speedup does not change what a visit
 * executes, so that where a visit takes more CPU time than in other experiments it is the machine
 * that was slower: a neighbour on the core's other thread, a lower clock, a hypervisor that had
 * something else to do. That is a control variate: times are corrected by as much of it as they
 * follow. Internal to the package. */
#pragma once

#include "analysis/collect.h"

/* Corrects the times of a point's observations, ordered as in a collection. Nothing is changed
 * where CPU times were not recorded, do not tell more than chance would, or change with the
 * speedup, if only by a seventh of what the time per visit does: who spins while it waits executes
 * more in a visit that takes longer, and its CPU time says nothing of the machine. Nor where
 * neither the effective time nor the pauses change by enough to show that they do not. Where
 * intervals were measured, their lengths are corrected by what their middle follows, apart from
 * their mean: that, and the CPU time, hang on how many long ones there were by chance as well. *ret
 * tells of times, not of lengths. Also tells whether threads spin while they wait. Returns whether
 * something was changed. */
bool speed_remove(struct observation *obs, size_t n, struct analysis_speed *ret);
