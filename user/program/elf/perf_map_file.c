// SPDX-License-Identifier: BSD-2-Clause
/* Which file is a process's perf map. Any user can put files into /tmp, also before the process is
 * there. */
#include "program/elf/perf_map.h"
#include "program/elf/readers.h"
#include "base/sandbox/opener.h"

#include "base/clock.h"
#include "base/open_file.h"
#include "base/proc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* By how much the time of a write can seem to be before that of the process's begin, which is known
 * to a tick: file systems take their time from the last tick, and the clock may be set. */
#define SLACK_NS (2 * NSEC_PER_SEC)

static int open_map(pid_t pid, struct opened_file *ret, uint64_t *ret_written_ns)
{
	char path[PROC_PATH + 32];
	struct file_rights as;
	uint64_t began_ns = proc_began_ns(pid);
	int fd, r = file_rights_of_process(pid, &as);

	if (r < 0)
		return r;
	proc_path(path, pid, "root");
	as.root = (uint32_t)strlen(path);
	(void)snprintf(path + as.root, sizeof(path) - as.root, "/tmp/perf-%d.map",
		       (int)proc_own_number(pid));
	fd = opener_open_described(path, &as, ret);
	if (fd < 0)
		return fd;
	*ret_written_ns = timespec_ns(ret->st.st_mtim);
	if (ret->st.st_uid != as.uid && ret->st.st_uid != 0)
		r = -EPERM;
	else if (*ret_written_ns + SLACK_NS < began_ns)
		r = -ESTALE;
	if (r == 0)
		return fd;
	opener_close(fd);
	return r;
}

int perf_map_read(pid_t pid, struct perf_map_file *known, struct perf_map *ret)
{
	struct opened_file file = {0};
	struct perf_map_file now = {0};
	_cleanup_opener_ int fd = open_map(pid, &file, &now.written_ns);
	int r;

	if (fd < 0)
		return fd;
	now.device = file.st.st_dev;
	now.inode = file.st.st_ino;
	now.size = file.st.st_size;
	if (now.inode == known->inode && now.device == known->device && now.size == known->size &&
	    now.written_ns == known->written_ns)
		return -EALREADY;
	r = elf_readers_current()->perf_map(fd, ret);
	if (r == 0)
		*known = now;
	return r;
}
