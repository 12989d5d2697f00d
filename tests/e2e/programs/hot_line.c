// SPDX-License-Identifier: BSD-2-Clause
/* A line that is passed hundreds of millions of times a second: a probe on it would be most of the run. usage: hot_line SECONDS */
#include "helper.h"

static uint64_t x = 1;

static KEEP void steps(uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL; /* LINE:step */
		__asm__ volatile("" : "+r"(x));
	}
}

int main(int argc, char **argv)
{
	uint64_t end = now_ns() + (uint64_t)(seconds_of(argc, argv) * 1e9);

	while (now_ns() < end) {
		steps(1000000);
		progress();
	}
	return 0;
}
