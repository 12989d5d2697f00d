// SPDX-License-Identifier: BSD-2-Clause
#include "target/internal.h"

#include "shared/shim_first.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRELOAD "LD_PRELOAD="

char **environ_with_preload(char *const *envp, int fd, const char *first)
{
	size_t n = 0, at, size;
	const char *old = NULL;
	char **vector, *entry, path[SHIM_FIRST_MAX + 48], separator = ':';

	/* With several, the loader obeys the last. */
	for (at = 0; envp && envp[n]; n++)
		if (strncmp(envp[n], PRELOAD, strlen(PRELOAD)) == 0) {
			old = envp[n];
			at = n;
		}
	if (!old)
		at = n;
	else if (strchr(old, ' ') && !strchr(old, ':'))
		separator = ' ';
	/* Behind other libraries it would not be the first. */
	if (*first && (!old || strlen(old) == strlen(PRELOAD)))
		(void)snprintf(path, sizeof(path), "%s:/proc/self/fd/" SHIM_FIRST_MARK "%d", first, fd);
	else
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	size = (old ? strlen(old) + 1 : strlen(PRELOAD)) + strlen(path) + 1;
	vector = calloc(n + 2, sizeof(*vector));
	entry = malloc(size);
	if (!vector || !entry) {
		free(vector);
		free(entry);
		return NULL;
	}
	if (old)
		(void)snprintf(entry, size, "%s%c%s", old, separator, path);
	else
		(void)snprintf(entry, size, PRELOAD "%s", path);
	for (size_t i = 0; i < n; i++)
		vector[i] = envp[i];
	vector[at] = entry;
	return vector;
}
