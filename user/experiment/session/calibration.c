// SPDX-License-Identifier: BSD-2-Clause
/* What samples and payments cost is measured in the first run after boot: it takes two thirds of a
 * second, and hardly changes. */
#include "experiment/session/internal.h"

#include "cozbpf.skel.h"
#include "kernel/calibration/store.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>

#define RUN_DIRECTORY "/run"

/* Two CPUs that we may use, the same one twice if there is only one. */
static int two_cpus(int ret[2])
{
	cpu_set_t allowed;
	int n = 0;

	ret[0] = ret[1] = 0;
	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return -errno;
	for (int i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &allowed))
			ret[n++] = i;
	if (n == 1)
		ret[1] = ret[0];
	return 0;
}

static struct calibration_key make_key(struct session *s, const int cpu[2])
{
	const struct abi_config *config = &s->skel->rodata->config;
	struct calibration_key key;
	char how[128];

	(void)snprintf(how, sizeof(how), "payer=%u task_work=%u signal_task=%u cpus=%d,%d",
		       config->payer, config->has_task_work, config->has_send_signal_task, cpu[0],
		       cpu[1]);
	calibration_key_make(&key, s->options.config.payer, how);
	return key;
}

bool calibrate_recall(struct session *s)
{
	struct calibration_key key;
	int cpu[2];

	if (s->options.calibrate || two_cpus(cpu) < 0)
		return false;
	key = make_key(s, cpu);
	return calibration_recall(RUN_DIRECTORY, &key, &s->skel->bss->control.costs) == 0;
}

int calibrate(struct session *s)
{
	struct abi_costs *costs = &s->skel->bss->control.costs;
	struct calibration_key key;
	int cpu[2], r;

	r = two_cpus(cpu);
	if (r < 0)
		return r;
	/* On one CPU nobody else runs when a selected sample raises G: payments begin at a switch,
	 * without a kick, and cost less. */
	if (s->options.config.payer != ABI_PAY_NONE && s->skel->rodata->config.has_task_work &&
	    cpu[0] == cpu[1])
		return 0;
	r = calibrate_measure(s, cpu, costs);
	/* On a busy machine this run must make do with what was found; later ones need not. */
	if (r <= 0)
		return r;
	key = make_key(s, cpu);
	(void)calibration_keep(RUN_DIRECTORY, &key, costs); /* else the next run measures anew */
	return 0;
}
