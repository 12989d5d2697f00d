// SPDX-License-Identifier: BSD-2-Clause
#include "wrap.h"

#include <dlfcn.h>

struct shim_real shim_real;

/* Before main, and earlier where another library's constructor calls one of these. Several threads may do it at once: all find the same.
 * RTLD_NEXT goes by who calls dlsym, so these must be calls, not jumps. */
__attribute__((constructor, noinline)) void shim_resolve(void)
{
	int saved = errno;
	void *f;

#define SET(name, found) \
	f = (found);     \
	__atomic_store_n(&shim_real.name, (__typeof__(shim_real.name))f, __ATOMIC_RELAXED);
#define NEWEST(name) SET(name, dlsym(RTLD_NEXT, #name))
#define VERSION(name, which) SET(name, dlvsym(RTLD_NEXT, #name, which))
	FUNCTIONS(NEWEST, VERSION)
#undef NEWEST
#undef VERSION
#undef SET
	errno = saved;
}
