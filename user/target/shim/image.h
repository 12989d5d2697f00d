/* SPDX-License-Identifier: BSD-2-Clause */
/* The preloaded library as bytes inside the executable: one file to install, and the versions
 * cannot mismatch. */
#pragma once

#include <stddef.h>

extern const unsigned char shim_image[];
extern const size_t shim_image_size;
/* ... with the calls that --sync pthread wraps. */
extern const unsigned char shim_pthread_image[];
extern const size_t shim_pthread_image_size;
/* The handler that is injected into processes that run already (struct shim_blob). */
extern const unsigned char shim_blob_image[];
extern const size_t shim_blob_image_size;
