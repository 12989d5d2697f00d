/* SPDX-License-Identifier: BSD-2-Clause */
/* What payments and samples cost beside what BPF can see, measured in the first run after boot and
 * kept for later ones. */
#pragma once

#include "shared/latency.h"

#include <stdbool.h>

struct calibration;
struct cozbpf_bpf;
struct session;

/* What the session lends. */
struct calibration_host {
	struct session *session;
	struct cozbpf_bpf *skel;
	enum abi_payer payer;
	int signo;
	bool anew; /* whatever an earlier run has found */
	int (*read_totals)(struct session *s, struct abi_totals *ret);
	void (*take_in)(struct session *s,
			bool begins); /* has this process be in scope, or no longer */
};

/* Has an earlier run found it out? Then BPF is told; before the programs are loaded. */
bool calibrate_recall(const struct calibration_host *h);
/* Measures it, tells BPF, and keeps it for later runs. Takes half a second. 0 or a negative errno:
 * without it payments are a little less exact. */
int calibrate(const struct calibration_host *h);

/* measure.c: the measuring, on two CPUs or twice the same. 1: the figures are good for other runs,
 * too; 0: no two attempts agree, these are the lowest; else a negative errno. */
int calibrate_measure(const struct calibration_host *h, const int cpu[2], struct calibration *ret);
