// SPDX-License-Identifier: BSD-2-Clause
/* Loads two plug-ins in turn, has each work for a while, and unloads it: each comes to lie where the other was. Beside that a loop of its
 * own. Prints the CPU time of each and how often a plug-in was where another had been: own_ns=N odd_ns=N even_ns=N overlaid=N.
 * usage: reload SECONDS ODD EVEN */
#include "helper.h"

#include <dlfcn.h>
#include <link.h>

#define ODD_TURNS 60 /* some ten milliseconds */
#define EVEN_TURNS 30
#define OWN_TURNS 30

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static KEEP void burn(void)
{
	BURN(1000000); /* LINE:burn */
}

/* Returns where it was loaded; 0: not at all. */
static KEEP uintptr_t load_and_work(const char *path, int turns, uint64_t *sum)
{
	void *so = dlopen(path, RTLD_NOW);
	void (*work)(uint64_t) = so ? (void (*)(uint64_t))dlsym(so, "plugin_work") : NULL;
	struct link_map *map;
	uintptr_t where;
	uint64_t start;

	if (!work || dlinfo(so, RTLD_DI_LINKMAP, &map) < 0)
		return 0;
	where = map->l_addr;
	start = cpu_ns();
	for (int i = 0; i < turns; i++)
		work(1000000);
	*sum += cpu_ns() - start;
	return dlclose(so) == 0 ? where : 0;
}

int main(int argc, char **argv)
{
	uint64_t end = now_ns() + (uint64_t)(seconds_of(argc < 3 ? argc : 2, argv) * 1e9), own = 0, odd = 0, even = 0, overlaid = 0;

	if (argc != 4)
		return 2;
	while (now_ns() < end) {
		uintptr_t first = load_and_work(argv[2], ODD_TURNS, &odd), second = load_and_work(argv[3], EVEN_TURNS, &even);
		uint64_t start = cpu_ns();

		if (!first || !second)
			return 1;
		overlaid += first == second;
		for (int i = 0; i < OWN_TURNS; i++)
			burn();
		own += cpu_ns() - start;
		progress();
	}
	printf("own_ns=%llu odd_ns=%llu even_ns=%llu overlaid=%llu\n", (unsigned long long)own, (unsigned long long)odd,
	       (unsigned long long)even, (unsigned long long)overlaid);
	return 0;
}
