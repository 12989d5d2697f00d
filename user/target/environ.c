// SPDX-License-Identifier: BSD-2-Clause
#include "target/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRELOAD "LD_PRELOAD="

char **environ_with_preload(char *const *envp, const char *path)
{
	size_t n = 0, at, size;
	const char *old = NULL;
	char **vector, *entry, separator = ':';

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
