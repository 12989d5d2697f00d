// SPDX-License-Identifier: BSD-2-Clause
/* A program that ends by itself. Its first thread computes alone, then two threads compute side by side, the one
 * twice as much as the other, and the first waits for both: the run lasts as long as ALONE and LONGER units take. Says
 * how much was done: `alone=N longer=N shorter=N`. usage: ends ALONE LONGER */
#include "helper.h"

#include <inttypes.h>

#define UNIT 1000000ULL

static uint64_t alone, longer;

static KEEP void work_alone(void)
{
	BURN(alone * UNIT); /* LINE:alone */
}

static KEEP void *work_longer(void *arg)
{
	BURN(longer * UNIT); /* LINE:longer */
	return arg;
}

static KEEP void *work_shorter(void *arg)
{
	BURN(longer * UNIT / 2); /* LINE:shorter */
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t first, second;

	alone = argc > 1 ? strtoull(argv[1], NULL, 10) : 50;
	longer = argc > 2 ? strtoull(argv[2], NULL, 10) : 50;
	work_alone();
	start_thread(&first, work_longer, NULL);
	start_thread(&second, work_shorter, NULL);
	(void)pthread_join(first, NULL);
	(void)pthread_join(second, NULL);
	printf("alone=%" PRIu64 " longer=%" PRIu64 " shorter=%" PRIu64 "\n", alone, longer, longer / 2);
	return 0;
}
