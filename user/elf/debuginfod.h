/* SPDX-License-Identifier: BSD-2-Clause */
/* Debug files from the servers that the user has named in DEBUGINFOD_URLS. Who asks them is the user's own debuginfod-find, with the rights of the
 * program's user: what comes over a network is parsed by it alone. */
#pragma once

#include <stdbool.h>

struct file_rights;

/* How a debug file is called that is to be asked for: this and its build id. */
#define DEBUGINFOD_SCHEME "debuginfod:"

/* Are there servers? */
bool debuginfod_wanted(void);
/* The path of the debug file with the build id @id (hexadecimal digits) in the cache of @as; *ret is the caller's. -ENOENT: there is none, no
 * server or no debuginfod-find; -EPERM: @as is root; -ETIMEDOUT: no answer in time; -EINVAL: not a build id. */
int debuginfod_find(const struct file_rights *as, const char *id, char **ret);
