// SPDX-License-Identifier: BSD-2-Clause
/* What takes long before the program can start are two things that need not wait for each other: the kernel verifies our programs, and we
 * open the debug information. */
#include "run/run.h"
#include "run/points.h"

#include "base/cleanup.h"
#include "base/error.h"
#include "elf/object.h"

#include <pthread.h>
#include <string.h>

struct opening {
	const struct session_options *options;
	struct session *session;
	struct error e;
	int result;
};

static void *open_session(void *arg)
{
	struct opening *o = arg;

	o->result = session_open(o->options, &o->session, &o->e);
	return NULL;
}

int run_look_at_program(struct run *r, struct error *e)
{
	_cleanup_elf_object_ struct elf_object *o = NULL;
	int err = r->by_script ? elf_object_open_named(NULL, r->path, &o, e) : elf_object_open(r->path, &o, e);

	if (err == 0)
		r->dynamic = elf_object_is_dynamic(o);
	return err;
}

int run_open(struct run *r, const struct session_options *options, struct error *e)
{
	struct opening o = {.options = options};
	pthread_t thread;
	int err = pthread_create(&thread, NULL, open_session, &o);

	if (err)
		return fail(e, err, "cannot start a thread: %s", strerror(err));
	err = run_open_code(r, e);
	if (err == 0)
		err = run_check_points(r, e);
	if (err == 0)
		err = run_check_fixed_line(r, e);
	(void)pthread_join(thread, NULL);
	r->session = o.session;
	if (err == 0 && o.result < 0) {
		err = o.result;
		*e = o.e;
	}
	/* With both CPUs to itself. */
	if (err == 0)
		session_calibrate(r->session);
	return err;
}
