// SPDX-License-Identifier: BSD-2-Clause
/* What this kernel and this user can do, found out by trying. */
#include "kernel/probe.h"

#include "base/memory.h"
#include "kernel/refusal.h"
#include "kernel/trials.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool feature_disabled(const char *name, const char *disabled)
{
	size_t n = strlen(name);

	for (const char *p = disabled; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
		if (strncmp(p, name, n) == 0 && (p[n] == ',' || p[n] == '\0'))
			return true;
	return false;
}

struct outcome {
	bool tried;
	int result; /* 0 or a negative errno */
	struct refusal refusal;
};

/* Of trial @i. Tried once a process: loading a program takes milliseconds, and a run asks several
 * times. */
static const struct outcome *outcome(size_t i)
{
	static struct outcome known[MAX_TRIALS];
	static bool tried_together;
	struct outcome *o = &known[i];

	if (trials[i].together && !tried_together) {
		tried_together = true;
		if (trials_try_together() == 0)
			for (size_t k = 0; k < n_trials; k++)
				known[k].tried |= trials[k].together;
	}
	if (!o->tried) {
		o->result = trial_try(&trials[i], &o->refusal);
		o->tried = true;
	}
	return o;
}

static const struct outcome *outcome_of(const char *name)
{
	for (size_t i = 0; i < n_trials; i++)
		if (strcmp(trials[i].name, name) == 0)
			return outcome(i);
	return NULL;
}

bool feature_usable(const char *name, const char *disabled)
{
	const struct outcome *o = feature_disabled(name, disabled) ? NULL : outcome_of(name);

	return o && o->result == 0;
}

bool feature_denied(const char *name)
{
	const struct outcome *o = outcome_of(name);

	return o && o->result < 0 && o->refusal.denied;
}

const struct refusal *feature_refusal(const char *name)
{
	return &outcome_of(name)->refusal;
}

/* What a trial or a load found. */
static void describe(const struct trial *t, const struct outcome *o, struct feature *f)
{
	bool optional;

	f->state = o->result == 0      ? FEATURE_OK
		   : o->refusal.denied ? FEATURE_DENIED
				       : FEATURE_MISSING;
	if (f->state == FEATURE_OK)
		return;
	/* Of what a run can do without, that it is absent is all that matters. */
	optional = f->state == FEATURE_MISSING && t->remedy && feature_usable("btf", NULL);
	(void)snprintf(f->why, sizeof(f->why), "%s",
		       optional ? strerror(-o->result) : o->refusal.why);
	(void)snprintf(f->detail, sizeof(f->detail), "%s: %s", t->since, f->why);
	/* What a user without privileges cannot try may well be there. */
	(void)snprintf(f->remedy, sizeof(f->remedy), "%s",
		       optional ? t->remedy : o->refusal.remedy);
}

struct feature *features_try(const char *disabled, size_t more, size_t *ret_n)
{
	struct feature *f = xcalloc(n_trials + more, sizeof(*f));

	for (size_t i = 0; i < n_trials; i++) {
		f[i] = (struct feature){.name = trials[i].name,
					.what = trials[i].what,
					.required = trials[i].required};
		if (feature_disabled(trials[i].name, disabled)) {
			f[i].state = FEATURE_MISSING;
			(void)snprintf(f[i].detail, sizeof(f[i].detail),
				       "switched off by --disable");
		} else {
			describe(&trials[i], outcome(i), &f[i]);
		}
	}
	*ret_n = n_trials;
	return f;
}
