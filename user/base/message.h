/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages over a stream socket, and open files with them. All of a message, or a negative errno:
 * -EPIPE: the other end is gone, -ETIMEDOUT, -EBADMSG. @deadline_ns: of CLOCK_MONOTONIC, 0: none.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

int message_send(int fd, const void *bytes, size_t n, uint64_t deadline_ns);
int message_send_fd(int fd, int passed, const void *bytes, size_t n,
		    uint64_t deadline_ns); /* passed -1: none */
int message_read(int fd, void *bytes, size_t n, uint64_t deadline_ns);
/* With a file that came along (else -1), the caller's to close, and the sender's process id, if
 * @ret_pid is given and the socket says who sends (SO_PASSCRED). */
int message_read_fd(int fd, void *bytes, size_t n, uint64_t deadline_ns, int *ret_fd, int *ret_pid);
