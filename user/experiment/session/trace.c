// SPDX-License-Identifier: BSD-2-Clause
/* --trace-payments FILE: the stops that the ledger knows of, and the ticks (bpf/trace.h), as text:
 * kind, thread, time, what it has paid. For tools/bench/paid.py. */
#include "experiment/session/internal.h"

#include "base/error.h"
#include "base/memory.h"
#include "cozbpf.skel.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const kinds[] = {[ABI_TRACE_TICK] = "tick",
				    [ABI_TRACE_HOLD] = "hold",
				    [ABI_TRACE_SHIM] = "shim",
				    [ABI_TRACE_ASKING] = "hit"};

static int write_stop(void *arg, void *data, size_t size)
{
	const struct abi_trace *r = data;
	struct session *s = arg;

	if (size >= sizeof(*r) && r->kind < sizeof(kinds) / sizeof(*kinds))
		(void)fprintf(s->trace, "%s %u %llu %lld\n", kinds[r->kind], r->tid, r->at,
			      r->paid_ns);
	return 0;
}

void trace_configure(struct session *s)
{
	s->skel->rodata->config.traces = s->options.trace != NULL;
	if (!s->options.trace)
		(void)bpf_map__set_max_entries(s->skel->maps.traces,
					       (unsigned int)sysconf(_SC_PAGESIZE));
}

int trace_open(struct session *s, struct error *e)
{
	int fd;

	if (!s->options.trace)
		return 0;
	fd = open(s->options.trace, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return fail(e, errno, "cannot create %s: %s; name a file that does not exist",
			    s->options.trace, strerror(errno));
	s->trace = or_out_of_memory(fdopen(fd, "w"));
	s->traces = ring_buffer__new(bpf_map__fd(s->skel->maps.traces), write_stop, s, NULL);
	return s->traces ? 0 : fail(e, errno, "cannot map the ring of stops: %s", strerror(errno));
}

void trace_drain(struct session *s)
{
	if (s->traces)
		(void)ring_buffer__consume(s->traces);
}

void trace_close(struct session *s)
{
	trace_drain(s);
	ring_buffer__free(s->traces);
	if (s->trace)
		(void)fclose(s->trace);
	s->traces = NULL;
	s->trace = NULL;
}
