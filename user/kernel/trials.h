/* SPDX-License-Identifier: BSD-2-Clause */
/* One trial for each thing that a kernel may lack, independent of all others. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct bpf_object;
struct bpf_program;
struct load_log;
struct refusal;

struct trial {
	const char *name, *what;
	const void *(*object)(
		size_t *size); /* the bytes of the object with @program; NULL: @check alone */
	const char *program;
	unsigned int attach_type; /* that it is loaded for, if not 0 */
	/* What else must work, with the object and its program (or NULL) loaded: 0 or a negative
	 * errno. NULL: nothing. */
	int (*check)(struct bpf_object *o, struct bpf_program *p, struct load_log *l);
	bool required;
	bool together;	     /* every run asks for it: trials_try_together */
	const char *since;   /* why an absent one is absent */
	const char *remedy;  /* for an absent one that is not required */
	const char *options; /* CONFIG_ options that it takes, or NULL */
};

#define MAX_TRIALS 16
extern const struct trial trials[];
extern const size_t n_trials;

/* 0, or a negative errno with *@why. */
int trial_try(const struct trial *t, struct refusal *why);
/* All that are marked so, in one object: libbpf reads the kernel's types, some megabytes, for each
 * object that it loads. 0: all of them work. A negative errno: one of them at least does not, which
 * says nothing of the others. */
int trials_try_together(void);
