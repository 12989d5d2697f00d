/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing a whole buffer, also where signals interrupt. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <unistd.h>

/* 0, or a negative errno; then a part of it may be written. */
static inline int write_all(int fd, const void *bytes, size_t n)
{
	const char *p = bytes;

	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		p += done;
		n -= (size_t)done;
	}
	return 0;
}
