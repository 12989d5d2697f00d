// SPDX-License-Identifier: BSD-2-Clause
/* Alternates a loop of its own with work in libraries, without frame pointers, and prints the CPU time of both in the end: burn_ns=N
 * library_ns=N. usage: library SECONDS [PLUGIN [DEPTH]]; with a plug-in, loaded after a while, the work is its function plugin_work, or
 * plugin_deep that calls itself so often. */
#include "helper.h"

#include <dlfcn.h>
#include <math.h>

static char from[1 << 15], to[1 << 15], words[256][16];
static volatile uint64_t sink;
static void (*plugin_work)(uint64_t);
static void (*plugin_deep)(uint64_t, uint64_t);
static uint64_t depth;

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

static KEEP void libraries(void)
{
	char text[128];
	double sum = 0;

	for (int i = 0; i < 50; i++)
		memcpy(to, from, sizeof(from) - (sink & 1));
	for (unsigned int i = 0; i < 256; i++)
		words[i][0] = (char)('a' + i * 7919 % 23);
	for (int i = 0; i < 4; i++)
		qsort(words, 256, sizeof(*words), (int (*)(const void *, const void *))strcmp);
	for (int i = 0; i < 500; i++)
		sink += (uint64_t)snprintf(text, sizeof(text), "%s %d %f", "some", i, i * 0.37);
	for (int i = 0; i < 5000; i++)
		sum += sin(i * 1e5) + pow(i, 0.3);
	sink += sum > 0;
}

static KEEP void plugin(void)
{
	if (depth)
		plugin_deep(depth, 1000000);
	else
		plugin_work(1000000);
	sink++;
}

int main(int argc, char **argv)
{
	uint64_t own = 0, others = 0, end = now_ns() + (uint64_t)(seconds_of(argc < 3 ? argc : 2, argv) * 1e9);

	if (argc > 2) {
		void *so;

		for (int i = 0; i < 300; i++)
			burn();
		so = dlopen(argv[2], RTLD_NOW);
		plugin_work = so ? (void (*)(uint64_t))dlsym(so, "plugin_work") : NULL;
		plugin_deep = so ? (void (*)(uint64_t, uint64_t))dlsym(so, "plugin_deep") : NULL;
		if (!plugin_work || !plugin_deep)
			return 1;
		depth = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
	}
	while (now_ns() < end) {
		uint64_t a = cpu_ns(), b;

		burn();
		b = cpu_ns();
		if (plugin_work)
			plugin();
		else
			libraries();
		others += cpu_ns() - b;
		own += b - a;
		progress();
	}
	printf("burn_ns=%llu library_ns=%llu\n", (unsigned long long)own, (unsigned long long)others);
	return 0;
}
