/* SPDX-License-Identifier: BSD-2-Clause */
/* Why the kernel, or libbpf, refused BPF programs, in words: decided from what libbpf said and what
 * is known of the machine and the user. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct error;

/* What libbpf said while it loaded an object. "" where it said nothing. */
struct load_log {
	char program[32];  /* the program that was refused */
	char verdict[160]; /* the verifier's last line on it; "": it did not come to the verifier */
	char first[200];   /* the first warning beside these */
	bool no_memory;	   /* loaded, but the kernel gave it no memory in an interrupt */
	bool no_probes;	   /* loaded, but this user may not place it */
};
/* Takes in one message of libbpf. */
void load_log_note(struct load_log *l, const char *text);

/* The machine and the user. */
struct load_facts {
	bool btf;	    /* there is type information of the kernel */
	bool realtime;	    /* CONFIG_PREEMPT_RT */
	bool cx16;	    /* the CPU has cmpxchg16b */
	bool root;	    /* effective uid 0 */
	bool no_clock;	    /* perf_event_open() is refused to this user */
	int paranoid;	    /* kernel.perf_event_paranoid; -1 where it cannot be read */
	bool foreign_users; /* in a user namespace other than the first: capabilities do not count
			       for BPF */
	uint64_t capabilities; /* effective, bits as in linux/capability.h */
	char lockdown[64];     /* of /sys/kernel/security/lockdown, such as "none [integrity]
				  confidentiality"; "": not known */
	char missing[48]; /* an option that the kernel was built without; "": none, or not known */
};
/* @options: the comma list of CONFIG_ options to look for, or NULL. */
void load_facts_read(const char *options, struct load_facts *ret);
/* The first of @options that the kernel configuration @path (plain or gzip) does not set; false:
 * all are set, or it cannot be read. */
bool load_config_lacks(const char *path, const char *options, char *ret, size_t size);

struct refusal {
	bool denied; /* another user or machine set-up may do it: the kernel has it */
	char why[320], remedy[256];
};
/* @error: an errno. */
void refusal_explain(int error, const struct load_log *l, const struct load_facts *f,
		     struct refusal *ret);
/* The same of a negative errno, by what load_facts_read finds. */
void refusal_of(int r, const struct load_log *l, const char *options, struct refusal *ret);

/* @r, negative, and @why, as one line about @what. */
int refusal_fail(struct error *e, int r, const char *what, const struct refusal *why);

/* Has libbpf tell @l, or nobody, what it says while this thread loads. */
void load_log_listen(struct load_log *l);
/* ... and print it all to standard error. */
void load_log_verbose(void);
