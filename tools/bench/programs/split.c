// SPDX-License-Identifier: BSD-2-Clause
/* Functions with known parts of the time: 50, 30, 15 and 5 %. usage: split SECONDS */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

static volatile uint64_t sink;

#define PART(name, n)                                    \
	__attribute__((noinline)) static void name(void) \
	{                                                \
		for (uint64_t i = 0; i < (n)*1000; i++)  \
			sink += i;                       \
	}

PART(half, 500)
PART(third, 300)
PART(seventh, 150)
PART(twentieth, 50)

int main(int argc, char **argv)
{
	time_t end = time(NULL) + (argc > 1 ? atol(argv[1]) : 10);

	while (time(NULL) < end) {
		half();
		third();
		seventh();
		twentieth();
	}
	return 0;
}
