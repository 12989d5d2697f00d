// SPDX-License-Identifier: BSD-2-Clause
#include "elf/lines_private.h"

#include <errno.h>
#include <stdlib.h>

int line_table_covered(const struct line_table *t, struct addr_range **ret, size_t *ret_n)
{
	struct range_list out = {0};

	for (size_t i = 0; i < t->n_index; i++)
		if (range_list_add(&out, t->index[i].lo, t->index[i].hi) < 0) {
			free(out.all);
			return -ENOMEM;
		}
	range_list_merge(&out);
	*ret = out.all;
	*ret_n = out.n;
	return 0;
}
