/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing and reading a whole buffer, also where signals interrupt. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
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

/* How many bytes there were from @at on, at most @n; or a negative errno. */
static inline ssize_t pread_all(int fd, void *bytes, size_t n, uint64_t at)
{
	size_t have = 0;
	ssize_t got = 1;

	while (have < n && got) {
		got = pread(fd, (char *)bytes + have, n - have, (off_t)(at + have));
		if (got < 0 && errno != EINTR)
			return -errno;
		have += got > 0 ? (size_t)got : 0;
	}
	return (ssize_t)have;
}
