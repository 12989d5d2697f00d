// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/programs.h"

#include "kernel/namespace.h"
#include "kernel/refusal.h"

#include "shared/latency.h"

#include "cozbpf.skel.h"
#include "cozbpf_impl.skel.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdlib.h>

/* What a session as a whole takes of the kernel, whatever it is asked for. */
#define OPTIONS                                                                                 \
	"CONFIG_BPF_SYSCALL,CONFIG_BPF_JIT,CONFIG_BPF_EVENTS,CONFIG_PERF_EVENTS,CONFIG_UPROBE_" \
	"EVENTS"

/* How many arguments a function of the kernel's has that programs may call; -1: it has none of the
 * name. */
static int find_function(const struct btf *btf, const char *name)
{
	int id = btf__find_by_name_kind(btf, name, BTF_KIND_FUNC);
	const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (unsigned int)id) : NULL;

	t = t ? btf__type_by_id(btf, t->type) : NULL;
	return t ? btf_vlen(t) : -1;
}

struct functions {
	bool known, plain, preempt_disable;
};

/* It takes milliseconds, and is asked a few times in a process. */
static const struct functions *functions(void)
{
	static struct functions f;
	struct btf *btf;

	if (f.known)
		return &f;
	btf = btf__load_vmlinux_btf();
	f.known = true;
	if (libbpf_get_error(btf))
		return &f;
	f.plain = find_function(btf, "bpf_task_work_schedule_resume") == 4;
	f.preempt_disable = find_function(btf, "bpf_preempt_disable") == 0;
	btf__free(btf);
	return &f;
}

bool programs_task_work_plain(void)
{
	return functions()->plain;
}

bool programs_preempt_disable(void)
{
	return functions()->preempt_disable;
}

/* Both variants have the same maps, globals and programs, so that one skeleton serves for either's
 * bytes. */
static struct cozbpf_bpf *open_variant(void)
{
	struct cozbpf_bpf *skel;
	int r;

	if (programs_task_work_plain())
		return cozbpf_bpf__open();
	skel = calloc(1, sizeof(*skel));
	if (!skel)
		return NULL;
	r = cozbpf_bpf__create_skeleton(skel);
	if (r == 0) {
		skel->skeleton->data = (void *)cozbpf_impl_bpf__elf_bytes(&skel->skeleton->data_sz);
		r = bpf_object__open_skeleton(skel->skeleton, NULL);
	}
	if (r < 0) {
		cozbpf_bpf__destroy(skel);
		errno = -r;
		return NULL;
	}
	return skel;
}

struct cozbpf_bpf *programs_open(void)
{
	struct cozbpf_bpf *skel = open_variant();
	int r = skel ? namespace_find(&skel->rodata->own_namespace, NULL) : 0;

	if (r < 0) {
		cozbpf_bpf__destroy(skel);
		skel = NULL;
		errno = -r;
	}
	return skel;
}

int programs_load(struct bpf_object_skeleton *skeleton, struct refusal *why)
{
	struct load_log log;
	int r;

	load_log_listen(&log);
	r = bpf_object__load_skeleton(skeleton);
	load_log_listen(NULL);
	if (r < 0)
		refusal_of(r, &log, OPTIONS, why);
	return r;
}
