/* SPDX-License-Identifier: BSD-2-Clause */
/* Debug files from the servers that the invoking user has named in DEBUGINFOD_URLS. They are asked
 * by that user's own debuginfod-find, with that user's rights (file_rights_invoker) and cache: what
 * comes over a network is parsed by it alone. The program's user has no part in it, so that nobody
 * but the invoking user can prepare an answer. */
#pragma once

#include <stdbool.h>

/* How a debug file is called that is to be asked for: this and its build id. */
#define DEBUGINFOD_SCHEME "debuginfod:"

/* Are there servers? */
bool debuginfod_wanted(void);
/* The path of the debug file with the build id @id (hexadecimal digits) in the invoking user's
 * cache; *ret is the caller's. -ENOENT: there is none, no server or no debuginfod-find; -ETIMEDOUT:
 * no answer in time; -EINVAL: not a build id. */
int debuginfod_find(const char *id, char **ret);
