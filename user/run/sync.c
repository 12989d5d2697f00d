// SPDX-License-Identifier: BSD-2-Clause
/* --sync: where it is seen who waits for whom. */
#include "run/run.h"

#include "base/error.h"
#include "code/map.h"
#include "kernel/probe.h"
#include "shim/image.h"
#include "target/launch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

int run_choose_sync(struct run *r, struct error *e)
{
	if (r->options.sync == RUN_SYNC_PTHREAD) {
		if (!r->dynamic)
			r->calls = RUN_CALLS_EXECUTABLE;
		else
			r->calls = feature_usable("sync_sites", r->options.disabled) ? RUN_CALLS_SHIM : RUN_CALLS_LIBRARIES;
		if (r->calls != RUN_CALLS_SHIM && !r->fallback[0])
			(void)snprintf(r->fallback, sizeof(r->fallback),
				       "no wrapped pthread calls: probes on the calls themselves, which slow every one of them down");
		return 0;
	}
	/* Loading the programs says what a user without privileges lacks. */
	if (feature_denied("sched_switch"))
		return 0;
	if (!feature_usable("sched_switch", r->options.disabled) || !feature_usable("sched_waking", r->options.disabled))
		return fail(e, EOPNOTSUPP,
			    "--sync sched needs BTF tracepoints on the scheduler (Linux 5.5; `cozbpf check` says why they cannot "
			    "be used here); use --sync pthread");
	return 0;
}

int run_add_calls(struct run *r, struct error *e)
{
	char path[64];

	switch (r->calls) {
	case RUN_CALLS_SHIM:
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", target_image_fd(r->target));
		return session_sync_shim(r->session, shim_pthread_image, shim_pthread_image_size, path, e);
	case RUN_CALLS_EXECUTABLE:
		return session_sync_executable(r->session, code_map_main(r->code), e);
	default:
		return 0;
	}
}

int run_add_calls_of_libraries(struct run *r, struct error *e)
{
	struct pollfd end = {.events = POLLIN};
	int err;

	if (r->calls != RUN_CALLS_LIBRARIES)
		return 1;
	end.fd = target_pidfd(r->target);
	err = session_sync_libraries(r->session, e);
	if (err < 0 && poll(&end, 1, 0) > 0) {
		/* It has ended meanwhile: there is nothing to probe any more. */
		e->text[0] = '\0';
		return 0;
	}
	if (err > 0)
		r->calls = RUN_CALLS_NONE;
	return err;
}
