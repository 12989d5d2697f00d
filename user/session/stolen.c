// SPDX-License-Identifier: BSD-2-Clause
/* CPU time that a hypervisor gave to others while this machine had something to run. */
#include "session/internal.h"

#include "base/clock.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STEAL_FIELD 8 /* of the line "cpu" in /proc/stat, counted from 1; in ticks of USER_HZ */

/* Of all CPUs since boot; 0 where nothing is known. */
static uint64_t read_stolen(int fd)
{
	char text[512], *at = text;
	uint64_t ticks = 0;
	long hz = sysconf(_SC_CLK_TCK);
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0 || hz <= 0)
		return 0;
	text[n] = 0;
	if (strncmp(text, "cpu ", 4) != 0)
		return 0;
	for (int field = 0; field < STEAL_FIELD && at; field++) {
		at = strchr(at, ' ');
		at = at ? at + strspn(at, " ") : NULL;
	}
	if (!at || sscanf(at, "%" SCNu64, &ticks) != 1)
		return 0;
	return ticks * (NSEC_PER_SEC / (uint64_t)hz);
}

void stolen_open(struct session *s)
{
	s->stat_fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	/* Where a machine has lost nothing since boot it is not a guest, or has its CPUs for itself: the file takes long to write on a large one. */
	if (s->stat_fd >= 0 && read_stolen(s->stat_fd) == 0)
		stolen_close(s);
}

uint64_t stolen_ns(const struct session *s)
{
	return s->stat_fd >= 0 ? read_stolen(s->stat_fd) : 0;
}

void stolen_close(struct session *s)
{
	if (s->stat_fd >= 0)
		(void)close(s->stat_fd);
	s->stat_fd = -1;
}
