/* SPDX-License-Identifier: BSD-2-Clause */
/* What this machine and this user can do: every feature is really tried, and says why it failed. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct refusal;

enum feature_state { FEATURE_OK, FEATURE_MISSING, FEATURE_DENIED };

struct feature {
	const char *name;
	const char *what; /* what it is for */
	enum feature_state state;
	bool required;
	char detail[448]; /* version/commit that brought it, why it failed */
	char why[320];	  /* of that, why it failed; "": all of it */
	char remedy[256]; /* one sentence or "" */
};

/* Tries every feature for real. The caller's (free), with room for @more. @disabled: comma list of
 * feature names to treat as missing, or NULL. */
struct feature *features_try(const char *disabled, size_t more, size_t *ret_n);

/* Does the comma list @disabled (NULL: empty) name it? For what is no feature of the kernel but can
 * be left out, too. */
bool feature_disabled(const char *name, const char *disabled);

/* Tries one feature by name, unless the comma list @disabled names it. */
bool feature_usable(const char *name, const char *disabled);
/* Could this user not even try it? */
bool feature_denied(const char *name);
/* Of one that was tried and is not usable: why. */
const struct refusal *feature_refusal(const char *name);
