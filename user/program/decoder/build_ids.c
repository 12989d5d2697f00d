// SPDX-License-Identifier: BSD-2-Clause
/* Build ids of files that are not looked into otherwise, as `cozbpf collect` needs them of each
 * file in which code was found. One process without rights reads those of all files. */
#include "program/decoder/private.h"
#include "program/elf/object.h"
#include "program/elf/readers.h"

#include "base/clock.h"
#include "base/message.h"
#include "base/sandbox/confine.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_NS NSEC_PER_SEC

static struct {
	pthread_mutex_t lock;
	struct decoder decoder;
} ids = {.lock = PTHREAD_MUTEX_INITIALIZER, .decoder = {.process = {.fd = -1, .pidfd = -1}}};

bool decoder_serve_build_ids(int client, const struct decoder_limits *limits)
{
	struct wire_build_id answer = {.text = ""};
	char byte, *id;
	int fd;

	if (message_read_fd(client, &byte, 1, 0, &fd, NULL) < 0)
		return false;
	sandbox_allow_time(limits->cpu_s);
	id = fd < 0 ? NULL : elf_readers_here.build_id(fd);
	if (fd >= 0)
		(void)close(fd);
	if (id)
		(void)strncpy(answer.text, id, sizeof(answer.text) - 1);
	free(id);
	return message_send(client, &answer, sizeof(answer), 0) == 0;
}

/* Not by decoder_deadline(): what is read here goes on for as long as a collector runs. */
static int ask(int file, struct wire_build_id *ret)
{
	uint64_t until = clock_monotonic_ns() + ANSWER_NS;
	struct decoder *d = &ids.decoder;
	char byte = 0;
	int r = d->process.fd < 0 ? decoder_make(d, DECODER_BUILD_IDS, -1, "", 0, until) : 0;

	if (r == 0)
		r = message_send_fd(d->process.fd, file, &byte, 1, until);
	if (r == 0)
		r = message_read(d->process.fd, ret, sizeof(*ret), until);
	if (r < 0)
		decoder_end(d);
	return r;
}

char *decoder_build_id(int fd)
{
	struct wire_build_id answer;
	int r;

	(void)pthread_mutex_lock(&ids.lock);
	r = ask(fd, &answer);
	(void)pthread_mutex_unlock(&ids.lock);
	/* It becomes part of a file's name. */
	if (r < 0 || answer.text[strspn(answer.text, "0123456789abcdef")] ||
	    answer.text[sizeof(answer.text) - 1])
		answer.text[0] = '\0';
	return strdup(answer.text);
}

void decoder_build_ids_stop(void)
{
	(void)pthread_mutex_lock(&ids.lock);
	decoder_end(&ids.decoder);
	(void)pthread_mutex_unlock(&ids.lock);
}
