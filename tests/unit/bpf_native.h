/* SPDX-License-Identifier: BSD-2-Clause */
/* What the headers of BPF programs that are arithmetic alone need to be compiled natively. Before
 * any of them. */
#pragma once

#include <stdint.h>

#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
typedef uint32_t u32;
typedef uint64_t u64;
typedef int64_t s64;

#include "shared/abi.h"
