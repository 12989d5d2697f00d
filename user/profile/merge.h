/* SPDX-License-Identifier: BSD-2-Clause */
/* Several profiles as one. */
#pragma once

#include "profile/reader.h"

/* Moves everything of @from behind what @into has; samples of one location are added up. @from is empty then. -ENOMEM: both are as they
 * were. */
int profile_merge(struct profile *into, struct profile *from);
