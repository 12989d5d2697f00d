/* SPDX-License-Identifier: BSD-2-Clause */
/* Code that the line information gives to a header of the system's. */
#line 1 "/usr/include/cozbpf_test.h"
#define SYSTEM(name)                                 \
	WORK void name(void);                        \
	WORK void name(void)                         \
	{                                            \
		for (uint64_t i = 0; i < 10000; i++) \
			sink += i;                   \
	}
SYSTEM(system_1)
SYSTEM(system_2)
SYSTEM(system_3)
SYSTEM(system_4)
