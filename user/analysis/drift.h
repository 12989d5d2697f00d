/* SPDX-License-Identifier: BSD-2-Clause */
/* A program's pace can change while it is profiled: a cache fills, a neighbour of the virtual
 * machine wakes up, a table grows. Each experiment is then compared with the 0 % ones near it in
 * time. Internal to the package. */
#pragma once

#include "analysis/collect.h"

/* Takes the drift out of a point's observations: their times are scaled to the mean pace. The pace
 * at an experiment is that of the nearest k experiments at 0 %, not counting itself. Paces count as
 * much as their experiments do. k is chosen by how well that predicts the 0 % experiments
 * themselves; where their baseline does about as well, which is the mean over the run (@pooled) or
 * over those of their line, nothing is changed: a program has phases that are its lines', and a
 * load that comes and goes is not. Where intervals were measured, @obs are all of them measured,
 * and their lengths are scaled by a pace of their own: the mean hangs on how many long ones there
 * were by chance, by more than the pace of their middle changes. Returns whether something was
 * changed. */
bool drift_remove(struct observation *obs, size_t n, bool pooled);
