// SPDX-License-Identifier: BSD-2-Clause
/* What a target needs beside itself to be run by libFuzzer: NAME_libfuzzer -max_len=16384
 * DIRECTORY. It stops at any crash, a library's as well (-fork=1 -ignore_crashes=1 goes on) and
 * leaves the input in a file; NAME FILE then says whose fault it was. */
#include "fuzz.h"

#include <stdlib.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed);

void fuzz_read(void)
{
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	if (!fuzz_begin())
		exit(1);
	(void)atexit(fuzz_end);
	return 0;
}

/* Few bytes of these formats may change without the rest: now and then one is made that fits. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned int seed)
{
	struct rng r;

	rng_seed(&r, seed);
	return rng_below(&r, 16) ? LLVMFuzzerMutate(data, size, max_size)
				 : fuzz_make(&r, data, max_size);
}
