// SPDX-License-Identifier: BSD-2-Clause
/* Readable names. The library that makes them takes for ever over some names, and has had errors
 * that a name can use: a process without rights calls it. One is enough. */
#include "program/decoder/private.h"
#include "program/elf/demangle.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/message.h"
#include "base/sandbox/confine.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ANSWER_S 1 /* a name takes microseconds, but the machine may be busy */
#define MOST_FAILURES 8

static_assert(DEMANGLE_BATCH * DEMANGLE_MAX_NAME <= DECODER_MAX_PAYLOAD,
	      "names of a batch are one request");

static struct {
	pthread_mutex_t lock;
	struct decoder decoder;
	unsigned int failures;
} names = {.lock = PTHREAD_MUTEX_INITIALIZER, .decoder = {.process = {.fd = -1, .pidfd = -1}}};

void decoder_put(FILE *to, const char *text)
{
	(void)fputs(text ? text : "", to);
	(void)fputc(0, to);
}

bool decoder_serve_names(int client, const struct decoder_limits *limits)
{
	_cleanup_free_ char *all = NULL, *answer = NULL;
	struct decoder_request q;
	size_t size = 0;
	uint32_t size32;
	FILE *f;

	if (message_read(client, &q, sizeof(q), 0) < 0 ||
	    !(all = decoder_read_payload(client, q.size)))
		return false;
	sandbox_allow_time(limits->cpu_s);
	f = open_memstream(&answer, &size);
	for (size_t at = 0; f && at < q.size; at += strlen(all + at) + 1) {
		_cleanup_free_ char *text = demangle_here(all + at, q.a, q.b);

		decoder_put(f, text);
	}
	if (!f || fclose(f) != 0)
		return false;
	size32 = (uint32_t)size;
	return message_send(client, &size32, sizeof(size32), 0) == 0 &&
	       message_send(client, answer, size, 0) == 0;
}

static int send_names(int fd, const char *const *list, size_t n, bool arguments, bool result,
		      uint64_t until)
{
	struct decoder_request q = {.op = DECODER_NAMES, .a = arguments, .b = result};
	_cleanup_free_ char *all = NULL;
	size_t size = 0;
	FILE *f = open_memstream(&all, &size);
	int r;

	for (size_t i = 0; f && i < n; i++)
		decoder_put(f, list[i]);
	if (!f || fclose(f) != 0)
		return -ENOMEM;
	q.size = (uint32_t)size;
	r = message_send(fd, &q, sizeof(q), until);
	return r < 0 ? r : message_send(fd, all, size, until);
}

static int read_names(int fd, size_t n, char **ret, uint64_t until)
{
	_cleanup_free_ char *all = NULL;
	uint32_t size;
	int r = message_read(fd, &size, sizeof(size), until);

	if (r < 0)
		return r;
	if (size > n * (DEMANGLE_MAX_READABLE + 1))
		return -EBADMSG;
	all = malloc(size + 1);
	if (!all)
		return -ENOMEM;
	r = message_read(fd, all, size, until);
	if (r < 0)
		return r;
	all[size] = 0;
	for (size_t i = 0, at = 0; i < n && at < size; i++) {
		ret[i] = all[at] ? strdup(all + at) : NULL;
		at += strlen(all + at) + 1;
	}
	return 0;
}

static bool ask(const char *const *list, size_t n, bool arguments, bool result, char **ret)
{
	uint64_t from = clock_monotonic_ns(), until = decoder_deadline(ANSWER_S);
	struct decoder *d = &names.decoder;
	int r = d->process.fd < 0 ? decoder_make(d, DECODER_NAMES, -1, "", 0, until) : 0;

	if (r == 0)
		r = send_names(d->process.fd, list, n, arguments, result, until);
	if (r == 0)
		r = read_names(d->process.fd, n, ret, until);
	decoder_waited(from);
	if (r < 0)
		decoder_end(d);
	return r == 0;
}

void decoder_demangle(const char *const *list, size_t n, bool arguments, bool result, char **ret)
{
	size_t at = 0, some = n;

	(void)pthread_mutex_lock(&names.lock);
	while (at < n && names.failures < MOST_FAILURES) {
		bool ok = ask(list + at, some, arguments, result, ret + at);

		names.failures += !ok;
		/* One of several is to blame: each is asked alone, and that one is left out. */
		if (ok || some == 1)
			at += some;
		some = 1;
	}
	(void)pthread_mutex_unlock(&names.lock);
}

void decoder_names_stop(void)
{
	(void)pthread_mutex_lock(&names.lock);
	decoder_end(&names.decoder);
	names.failures = 0;
	(void)pthread_mutex_unlock(&names.lock);
}
