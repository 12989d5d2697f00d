/* SPDX-License-Identifier: BSD-2-Clause */
/* inject_parts.c: all of it in or by a thread that is stopped. 0 or a negative errno. */
#pragma once

#include "target/inject.h"
#include "target/remote.h"

/* Maps the code, its data and the slots, by the calls of @helper, which shares the process's memory
 * but not its descriptors. *l is what there is, also after a failure: inject_unmap. */
int inject_map(const struct inject_options *o, struct remote *helper, struct inject_layout *l);
int inject_unmap(struct remote *r, const struct inject_layout *l);
/* What is to be done with the signal; @to NULL: *ret, what is done now, is all that is asked. */
int inject_set_action(const struct inject_options *o, struct remote *r,
		      const struct inject_layout *l, const struct inject_action *to,
		      struct inject_action *ret);
struct inject_action inject_own_action(const struct inject_options *o,
				       const struct inject_layout *l);
/* Installs the handler. -EBUSY: there is one already, which stays. */
int inject_install(const struct inject_options *o, struct remote *r, struct inject_layout *l);
