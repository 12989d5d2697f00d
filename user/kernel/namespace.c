// SPDX-License-Identifier: BSD-2-Clause
#include "kernel/namespace.h"

#include "base/error.h"
#include "shared/namespace.h"
#include "target/process.h"

#include "probe.skel.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define FIRST_PID_NAMESPACE 0xEFFFFFFCU /* its inode: include/linux/proc_ns.h */

/* How many namespaces are around our own. /proc shows none of those. */
static int ask_level(unsigned int *ret)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);
	struct bpf_object *o;
	const void *bytes;
	size_t size;
	int r;

	bytes = probe_bpf__elf_bytes(&size);
	o = bpf_object__open_mem(bytes, size, NULL);
	if (!o)
		return -errno;
	r = bpf_program__set_autoload(bpf_object__find_program_by_name(o, "probe_level"), true);
	if (r == 0)
		r = bpf_object__load(o);
	if (r == 0)
		r = bpf_prog_test_run_opts(
			bpf_program__fd(bpf_object__find_program_by_name(o, "probe_level")), &run);
	if (r == 0)
		*ret = run.retval;
	bpf_object__close(o);
	return r;
}

int namespace_find(struct own_namespace *ret, struct error *e)
{
	static struct own_namespace known;
	struct stat ns;
	int r = process_check_numbers(e);

	if (r < 0)
		return r;
	if (stat("/proc/self/ns/pid", &ns) < 0) {
		/* A kernel without namespaces. */
		if (errno != ENOENT)
			return fail(e, errno, "cannot look at /proc/self/ns/pid: %s",
				    strerror(errno));
		ns.st_ino = FIRST_PID_NAMESPACE;
	}
	if (ns.st_ino == FIRST_PID_NAMESPACE) {
		*ret = (struct own_namespace){0};
		return 0;
	}
	known.inode = (unsigned int)ns.st_ino;
	if (!known.level)
		r = ask_level(&known.level);
	if (r < 0)
		return fail(e, -r, "cannot ask the kernel which PID namespace cozbpf is in: %s",
			    strerror(-r));
	*ret = known;
	return 0;
}
