// SPDX-License-Identifier: BSD-2-Clause
/* Perf maps of all processes, read by one process without rights. They are read again and again for
 * as long as the run goes on: not by decoder_deadline(). */
#include "program/decoder/private.h"
#include "program/elf/perf_map.h"
#include "program/elf/readers.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/message.h"
#include "base/sandbox/confine.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define ANSWER_NS (2 * NSEC_PER_SEC)
#define MAX_ENTRIES (2ULL * PERF_MAP_MAX_LINES) /* each line can cut another one in two */
#define MAX_NAMES (2ULL * PERF_MAP_MAX_BYTES)

static struct decoder maps = {.process = {.fd = -1, .pidfd = -1}};

bool decoder_serve_perf_maps(int client, const struct decoder_limits *limits)
{
	struct wire_perf_map answer = {0};
	struct perf_map m = {0};
	char byte;
	int fd, r;

	if (message_read_fd(client, &byte, 1, 0, &fd, NULL) < 0)
		return false;
	sandbox_allow_time(limits->cpu_s);
	answer.status = fd < 0 ? -EBADF : perf_map_read_here(fd, &m);
	if (fd >= 0)
		(void)close(fd);
	answer.n = m.n;
	answer.names_size = m.names_size;
	r = message_send(client, &answer, sizeof(answer), 0);
	if (r == 0)
		r = message_send(client, m.all, m.n * sizeof(*m.all), 0);
	if (r == 0)
		r = message_send(client, m.names, m.names_size, 0);
	perf_map_free(&m);
	return r == 0;
}

int decoder_read_perf_map(int fd, struct perf_map *ret, uint64_t deadline_ns)
{
	_cleanup_(perf_map_free) struct perf_map m = {0};
	struct wire_perf_map answer;
	int r = message_read(fd, &answer, sizeof(answer), deadline_ns);

	if (r < 0)
		return r;
	if (answer.status)
		return answer.status < 0 ? answer.status : -EBADMSG;
	if (answer.n > MAX_ENTRIES || answer.names_size > MAX_NAMES)
		return -EBADMSG;
	m.all = malloc(answer.n * sizeof(*m.all) + 1);
	m.names = malloc(answer.names_size + 1);
	if (!m.all || !m.names)
		return -ENOMEM;
	r = message_read(fd, m.all, answer.n * sizeof(*m.all), deadline_ns);
	if (r == 0)
		r = message_read(fd, m.names, answer.names_size, deadline_ns);
	if (r < 0)
		return r;
	m.n = answer.n;
	m.names_size = answer.names_size;
	if (!perf_map_is_sound(&m))
		return -EBADMSG;
	*ret = m;
	m = (struct perf_map){0};
	return 0;
}

int decoder_perf_map(int file, struct perf_map *ret)
{
	uint64_t until = clock_monotonic_ns() + ANSWER_NS;
	char byte = 0;
	int r = maps.process.fd < 0 ? decoder_make(&maps, DECODER_PERF_MAPS, -1, "", 0, until) : 0;

	if (r == 0)
		r = message_send_fd(maps.process.fd, file, &byte, 1, until);
	if (r == 0)
		r = decoder_read_perf_map(maps.process.fd, ret, until);
	if (r < 0)
		decoder_end(&maps);
	return r;
}

void decoder_perf_maps_stop(void)
{
	decoder_end(&maps);
}
