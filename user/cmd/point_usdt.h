/* SPDX-License-Identifier: BSD-2-Clause */
/* USDT probes as points. */
#pragma once

#include "cmd/point_find.h"

/* As point_find. -ENOENT: the object has none of that name, @e says which is near. */
int point_find_usdt(const struct elf_object *o, const struct point_spec *p, const char *option, struct point_sites *ret, struct error *e);
