// SPDX-License-Identifier: BSD-2-Clause
/* What commands and options load: the objects of a run themselves, in the configurations that it
 * would ask for here. */
#include "base/error.h"
#include "experiment/session/internal.h"
#include "kernel/probe.h"
#include "kernel/refusal.h"

#include <signal.h>
#include <stdio.h>

#define ALL_POINTS                                                                    \
	(POINTS_NEED_PROBES | POINTS_NEED_SYSCALL_ENTER | POINTS_NEED_SYSCALL_LEAVE | \
	 POINTS_NEED_TRACEPOINTS | POINTS_NEED_SAMPLED)

static const struct {
	const char *name, *what;
	bool required; /* tried for one process as well as for many */
	struct session_options options;
} uses[] = {
	{"programs",
	 "what run, attach and system load, with all kinds of points",
	 true,
	 {.points.needs = ALL_POINTS}},
	{"programs_options",
	 "what --latency, --attribution inclusive and validate load",
	 false,
	 {.points.needs = POINTS_NEED_PROBES,
	  .points.latencies = ABI_MAX_LATENCIES,
	  .config.inclusive = true,
	  .config.slows = true}},
	{"programs_pthread",
	 "what --sync pthread loads",
	 false,
	 {.points.needs = POINTS_NEED_PROBES, .config.sync = ABI_SYNC_PTHREAD}},
};
#define N_USES (sizeof(uses) / sizeof(*uses))

static int try_with(size_t i, enum abi_payer payer, bool many, const char *disabled,
		    struct refusal *why)
{
	struct session_options o = uses[i].options;
	struct session *s = NULL;
	struct error e = {};
	int r;

	o.config.payer = payer;
	o.config.signo = (unsigned int)SIGRTMAX;
	o.config.many = o.config.all_execs = many;
	o.points.disabled = disabled;
	o.calibrate = true; /* what that takes as well */
	r = session_open_programs(&o, &s, why, &e);
	session_close(s);
	if (r < 0 && !why->why[0])
		(void)snprintf(why->why, sizeof(why->why), "%.*s", (int)sizeof(why->why) - 1,
			       e.text);
	return r;
}

static void use_try(size_t i, const char *disabled, struct feature *ret)
{
	enum abi_payer best = feature_usable("task_work", disabled) ? ABI_PAY_HOLD : ABI_PAY_SPIN;
	bool many = uses[i].options.config.sync == ABI_SYNC_SCHED;
	struct refusal why;
	int r = try_with(i, many ? best : ABI_PAY_SLEEP, many, disabled, &why);

	if (r == 0 && uses[i].required)
		r = try_with(i, ABI_PAY_SLEEP, false, disabled, &why);
	*ret = (struct feature){
		.name = uses[i].name, .what = uses[i].what, .required = uses[i].required};
	if (r == 0)
		return;
	ret->state = why.denied ? FEATURE_DENIED : FEATURE_MISSING;
	(void)snprintf(ret->detail, sizeof(ret->detail), "%s", why.why);
	(void)snprintf(ret->remedy, sizeof(ret->remedy), "%s", why.remedy);
}

struct feature *session_probe(const char *disabled, size_t *ret_n)
{
	struct feature *ret = features_try(disabled, N_USES, ret_n);

	for (size_t i = 0; i < N_USES; i++)
		use_try(i, disabled, &ret[(*ret_n)++]);
	return ret;
}
